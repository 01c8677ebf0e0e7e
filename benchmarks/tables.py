"""Write the tables of the README from the committed results; --check only says whether they are current."""

import json
import re
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from neighboragg.bench import (
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    ResultStore,
    mean_table,
    to_markdown,
)

RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parents[1] / "README.md"


def read(name: str) -> list[dict[str, Any]]:
    return json.loads((RESULTS / f"{name}.json").read_text())["rows"]


def quality() -> str:
    """AUROC by cell with the full and with a tiny validation set."""
    rows = [row for row in read("quality_core") if row["n_val"] is None]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = list(dict.fromkeys((row["set"], row["base"]) for row in rows))

    def average(metric: str, method: str, *cell: str) -> float:
        found = [
            r[metric] for r in rows if r["method"] == method and (not cell or (r["set"], r["base"]) == cell)
        ]
        return mean(found)

    lines = ["| AUROC, % | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 1) + "|"]
    for cell in cells:
        values = {method: average("auroc", method, *cell) for method in methods}
        best = max(values.values())
        shown = [f"**{v:.1f}**" if v == best else f"{v:.1f}" for v in values.values()]
        lines.append(f"| {cell[0]}, {cell[1]} | " + " | ".join(shown) + " |")
    for title, metric in (("mean AUROC", "auroc"), ("mean AP of errors", "ap_error"), ("mean ECE ↓", "ece")):
        lines.append(f"| {title} | " + " | ".join(f"{average(metric, m):.1f}" for m in methods) + " |")
    seeds = len({row["seed"] for row in rows})
    note = (
        f"Mean over {seeds} seeds, 40% training, 10% validation, 50% test rows; *network* is the paper's aggregator, "
        "*pool* our default."
    )
    return f"{note}\n\n" + "\n".join(lines)


def tabular() -> str:
    """Means over the seven data sets of the paper and every method."""
    store = ResultStore(RESULTS / "tabular.jsonl")
    grid = mean_table(store.rows, ABLATION_SETS, PAPER_BASES, ALL_METHODS)
    seeds = len({row["seed"] for row in store.rows})
    return f"{to_markdown(grid)}\n{seeds} seeds; every cell is in `benchmarks/results`."


def search() -> str:
    """Queries per second against peers."""
    rows = read("search")
    lines = [
        "| rows × features, classes, K | ours, queries/s | over KD-trees | over faiss flat | over bare product |",
        "| --- | --- | --- | --- | --- |",
    ]
    for start in range(0, len(rows), 4):
        by_peer = {row["peer"]: row for row in rows[start : start + 4]}
        own = by_peer["ours"]
        shape = f"{own['rows']:,} × {own['features']}, {own['classes']}, {own['neighbors']}"
        ratios = [f"{by_peer[peer]['ours_over_peer']:.2g}" for peer in ("KD-tree", "faiss flat", "product")]
        lines.append(f"| {shape} | {own['queries_per_second']:,} | " + " | ".join(ratios) + " |")
    return "\n".join(lines)


SECTIONS = {"quality": quality, "tabular": tabular, "search": search}


def updated(text: str) -> str:
    for name, make in SECTIONS.items():
        pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
        text = pattern.sub(lambda found, make=make: f"{found[1]}{make()}\n{found[2]}", text)
    return text


def main() -> None:
    old = README.read_text()
    new = updated(old)
    if "--check" in sys.argv:
        sys.exit("README.md is not current; run: python benchmarks/tables.py" if new != old else 0)
    README.write_text(new)


if __name__ == "__main__":
    main()
