"""Write the tables of the README and of docs/*.md from the committed results.

With --check nothing is written; the exit status says whether they are current.
"""

import ast
import inspect
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import _cost_tables as cost_tables
from benchmarks import _image_tables as image_tables
from benchmarks import _label_tables as label_tables
from benchmarks import _scale_tables as scale_tables
from benchmarks import _search_tables as search_tables
from benchmarks._record import RESULTS, read
from benchmarks.paper import (
    ABLATION_SETS,
    ALL_METHODS,
    PAPER_BASES,
    TABLE1_BASES,
    TABLE1_PRINTED,
    TABLE1_SETS,
)
from benchmarks.runs import BEST, COMPARED, DEFAULT, FAST, PAPER_METHOD, Comparison, Grid, ResultStore
from benchmarks.shift import ShiftResults

ROOT = Path(__file__).parents[1]
GROUP_METHODS = ("max-softmax", "temperature scaling", "neighboragg", "neighboragg, groups=")
#: The paper's baselines, with the settings of their authors and tuned.
BASELINES = tuple(
    name
    for name in COMPARED
    if name.partition(",")[0] in ("Confidence", "TempScaling", "TopLabel", "TCP", "TrustScore")
)


def tabular_rows() -> list[dict[str, Any]]:
    return ResultStore(RESULTS / "tabular.jsonl").rows


def compared(sets: Sequence[str], bases: Sequence[str], methods: Sequence[str], **options: Any) -> Comparison:
    """The methods that have been measured."""
    rows = tabular_rows()
    known = {row["method"] for row in rows}
    return Comparison(rows, sets, bases, [name for name in methods if name in known], **options)


def seven_sets() -> Comparison:
    return compared(ABLATION_SETS, PAPER_BASES, ALL_METHODS)


def quality() -> str:
    """AUROC by cell for the core methods."""
    rows = [row for row in read("quality_core") if row["n_val"] is None]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = list(dict.fromkeys((row["set"], row["base"]) for row in rows))

    def average(metric: str, method: str, *cell: str) -> float:
        return mean(
            r[metric] for r in rows if r["method"] == method and (not cell or (r["set"], r["base"]) == cell)
        )

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


def tiny() -> str:
    """The pool with 100 validation rows."""
    rows = [row for row in read("quality_core") if row["n_val"] == 100]
    lines = ["| AUROC with 100 validation rows, % | max-softmax | pool |", "| --- | --- | --- |"]
    for cell in dict.fromkeys((row["set"], row["base"]) for row in rows):
        values = [
            mean(r["auroc"] for r in rows if (r["set"], r["base"]) == cell and r["method"] == method)
            for method in ("max-softmax", "pool")
        ]
        lines.append(f"| {cell[0]}, {cell[1]} | {values[0]:.1f} | {values[1]:.1f} |")
    return "\n".join(lines)


def tabular() -> str:
    """Means over the seven data sets of the paper and every method."""
    comparison = seven_sets()
    seeds = len({row["seed"] for row in comparison.rows})
    return f"{comparison.means().to_markdown()}\n{seeds} seeds."


def readme() -> str:
    """The default and its strongest simple rivals on three common classifiers, and on a boosted one."""
    rows, boosted = tabular_rows(), "HGB"
    metrics = ("auroc", "ap_error", "ece")
    groups = (
        [row for row in rows if row["set"] in ABLATION_SETS and row["base"] in PAPER_BASES],
        [row for row in rows if row["base"] == boosted],
    )
    names = {
        "Confidence": "the classifier's probability",
        "TempScaling": "temperature scaling",
        "TrustScore": "Trust Score",
        PAPER_METHOD: "the paper's network",
        DEFAULT: "neighboragg (default)",
        BEST: 'neighboragg, `effort="best"`',
    }
    lines = [
        "| | AUROC | AP of errors | calibration error ↓ | boosted: AUROC | AP of errors | calibration error ↓ |",
        "| --- " * 7 + "|",
    ]
    for method, name in names.items():
        figures = [
            f"{100 * mean(row[metric] for row in group if row['method'] == method):.1f}"
            for group in groups
            for metric in metrics
        ]
        lines.append(f"| {name} | " + " | ".join(figures) + " |")
    sets = len({row["set"] for row in groups[1]})
    seeds = len({row["seed"] for row in groups[0]})
    note = (
        "How well trust separates errors from correct predictions, in percent (AP: average precision): means over "
        f"{seeds} seeds of "
        f"{len(ABLATION_SETS)} public data sets with logistic regression, a random forest and a multilayer perceptron, "
        f"and of {sets} of them with gradient boosting. 40% training, 10% validation, 50% test rows."
    )
    return f"{textwrap.fill(note, 120)}\n\n" + "\n".join(lines)


def names() -> str:
    """Every public name with the first line of its docstring."""
    rooms = ("", "methods", "labels", "promises", "metrics", "search", "features", "torch", "exceptions")
    lines = []
    for room in rooms:
        path = f"neighboragg.{room}" if room else "neighboragg"
        lines += [f"\n## {path}\n", "| name | what it is |", "| --- | --- |"]
        lines += [f"| `{name}` | {line} |" for name, line in summaries(path)]
    return "\n".join(lines)


def summaries(path: str) -> list[tuple[str, str]]:
    if path == "neighboragg.torch":
        return torch_summaries()
    module = import_module(path)
    return [(name, first_line(inspect.getdoc(getattr(module, name)))) for name in sorted(module.__all__)]


def torch_summaries() -> list[tuple[str, str]]:
    """Read from the source, as PyTorch need not be installed for this."""
    folder = ROOT / "src" / "neighboragg" / "torch"
    trees = [ast.parse(path.read_text()) for path in sorted(folder.glob("*.py"))]
    found = {
        node.name: first_line(ast.get_docstring(node))
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    door = trees[0].body  # __init__ sorts before the modules
    (exported,) = (ast.literal_eval(node.value) for node in door if isinstance(node, ast.Assign))
    return [(name, found[name]) for name in sorted(exported)]


def first_line(docstring: str | None) -> str:
    line = " ".join((docstring or "").split("\n\n")[0].split())
    return re.sub(r":\w+:`([^`]+)`", r"`\1`", line)


def cells(rows: list[dict[str, Any]], metric: str) -> dict[tuple[str, str, str], float]:
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["set"], row["base"], row["method"]), []).append(100 * row[metric])
    return {cell: mean(values) for cell, values in found.items()}


def beside_prototype() -> str:
    """Ours beside the prototype, AUROC / AP-error, cell by cell."""
    rows = tabular_rows()
    ours = {metric: cells(rows, metric) for metric in ("auroc", "ap_error")}
    lines = []
    for entry in json.loads((ROOT / "benchmarks" / "prototype.json").read_text()):
        line = [f"{entry['set']}, {entry['base']}"]
        for method in ("Confidence", PAPER_METHOD, DEFAULT, BEST):
            cell = (entry["set"], entry["base"], method)
            if cell not in ours["auroc"]:
                line += ["–", f"{entry[method][0]:.1f} / {entry[method][1]:.1f}"]
                continue
            line += [
                f"{ours['auroc'][cell]:.1f} / {ours['ap_error'][cell]:.1f}",
                f"{entry[method][0]:.1f} / {entry[method][1]:.1f}",
            ]
        lines.append(line)
    header = ["cell"]
    for method in ("Confidence", PAPER_METHOD, DEFAULT, BEST):
        header += [method, "prototype"]
    return Grid("AUROC / AP of errors, %: ours and the prototype's", header, lines).to_markdown()


def exceptions_to_the_paper() -> str:
    """Cells of Table 1 where the paper's network is not the best of the paper's methods in APM."""
    values = cells(tabular_rows(), "ap_error")
    lines = []
    for name in TABLE1_SETS:
        for base in PAPER_BASES:
            own = values[name, base, PAPER_METHOD]
            better = {m: v for m in BASELINES if (v := values.get((name, base, m), 0.0)) > own}
            if better:
                found = ", ".join(f"{m} {v:.2f}" for m, v in better.items())
                lines.append(f"- {name}, {base}: the network has {own:.2f}, but {found}.")
    n = len(TABLE1_SETS) * len(PAPER_BASES)
    return f"In {n - len(lines)} of {n} cells the network has the best APM. The others:\n\n" + "\n".join(
        lines
    )


def losses() -> str:
    """Cells where ours is below max-softmax in AUROC."""
    values = cells(tabular_rows(), "auroc")
    lines = []
    for method in (FAST, DEFAULT, BEST):
        below = [
            f"{name} {base} ({value - values[name, base, 'Confidence']:+.2f})"
            for (name, base, m), value in values.items()
            if m == method and value < values[name, base, "Confidence"]
        ]
        lines.append(f"- {method}: {', '.join(below) or 'none'}.")
    return "Cells below max-softmax in AUROC:\n\n" + "\n".join(lines)


def table1() -> str:
    """Every cell beside the paper's, and gains."""
    comparison = compared(TABLE1_SETS, TABLE1_BASES, COMPARED, printed=TABLE1_PRINTED)
    grids = [*comparison.by_base(), *(comparison.gains(method) for method in (DEFAULT, BEST))]
    return "\n".join(grid.to_markdown() for grid in grids)


Line = dict[tuple[str, str], float]


def baseline_lines() -> dict[str, dict[str, Line]]:
    """AUROC of each baseline by whose it is, then by cell; all of ours and of the authors' on the same splits."""
    rows = read("baselines")
    seeds = {(row["set"], row["base"], row["seed"]) for row in rows}
    # Baselines without public code were measured on these splits, too.
    others = [
        {**row, "whose": "ours"}
        for row in tabular_rows()
        if (row["set"], row["base"], row["seed"]) in seeds
        and row["method"].partition(",")[0] in ("Mahalanobis", "GCN-1hop", PAPER_METHOD)
    ]
    found: dict[str, dict[str, dict[tuple[str, str], list[float]]]] = {}
    for row in (*rows, *others):
        baseline, _, form = row["method"].partition(", ")
        whose = {"authors": "authors' code"}.get(row["whose"], row["whose"]) + (f", {form}" if form else "")
        values = found.setdefault(baseline, {}).setdefault(whose, {})
        values.setdefault((row["set"], row["base"]), []).append(100 * row["auroc"])
    lines = {
        baseline: {whose: {cell: mean(v) for cell, v in line.items()} for whose, line in by.items()}
        for baseline, by in found.items()
    }
    for (name, base, method, metric), value in TABLE1_PRINTED.items():
        if metric == "auroc" and method in lines:
            lines[method].setdefault("paper", {})[name, base] = value
    return lines


def baselines() -> str:
    """Ours, the authors' and the paper's figure of every baseline."""
    cells = [(name, base) for name in TABLE1_SETS for base in PAPER_BASES]
    table = [
        [baseline, whose, *(f"{line[cell]:.2f}" if cell in line else "–" for cell in cells)]
        for baseline, by in baseline_lines().items()
        for whose, line in by.items()
    ]
    rows = read("baselines")
    splits = sorted({row["seed"] for row in rows})
    title = f"AUROC, %, mean over the splits of seeds {', '.join(map(str, splits))}"
    commits = {(row["method"], row["commit"]) for row in rows if "commit" in row}
    used = "; ".join(f"{method} {commit[:12]}" for method, commit in sorted(commits))
    grid = Grid(title, ["baseline", "whose", *(f"{name} {base}" for name, base in cells)], table)
    return f"{grid.to_markdown()}\nCommits of the authors' code: {used}."


def baseline_settings() -> str:
    """What validation rows chose, over base classifiers and splits."""
    rows = [row for row in read("baselines") if "setting" in row]
    lines = ["| | " + " | ".join(TABLE1_SETS) + " |", "| --- " * (len(TABLE1_SETS) + 1) + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        shown = []
        for name in TABLE1_SETS:
            chosen = Counter(
                ", ".join(f"{key}={value}" for key, value in row["setting"].items())
                for row in rows
                if (row["method"], row["set"]) == (method, name)
            )
            shown.append("; ".join(f"{text} ({times})" for text, times in chosen.most_common()))
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def baseline_differences() -> str:
    """Where ours differs from the authors' code, and from the paper, by more than a point of AUROC."""
    lines = []
    for baseline, by in baseline_lines().items():
        for whose in ("authors' code", "paper"):
            if whose not in by:
                continue
            gaps = {cell: by["ours"][cell] - value for cell, value in by[whose].items() if cell in by["ours"]}
            above = [f"{name} {base} {gap:+.1f}" for (name, base), gap in gaps.items() if abs(gap) > 1]
            most = max(gaps.values(), key=abs)
            text = ", ".join(above) or f"none; the largest difference is {most:+.2f}"
            lines.append(f"| {baseline} | {whose} | {text} |")
    return "\n".join(
        ["| baseline | ours against | cells more than 1 point apart |", "| --- | --- | --- |", *lines]
    )


def ablation() -> str:
    """Means over the seven data sets, and gains."""
    return "\n".join(grid.to_markdown() for grid in seven_sets().summaries())


def selective() -> str:
    """The selective promise on resplits."""
    lines = [
        "| set, base | target risk | promised | mean coverage | mean risk | broken | allowed by chance |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in read("selective_guarantee"):
        lines.append(
            f"| {row['set']}, {row['base']} | {row['target_risk']:.0%} | {row['promised']} of {row['splits']} | "
            f"{row['mean_coverage']:.1%} | {row['mean_risk']:.2%} | {row['breaks']} | {row['allowed']} |"
        )
    return "\n".join(lines)


def familiarity() -> str:
    """False alarms of familiarity on resplits, and the promise about the risk beside it."""
    lines = [
        "| set | level | false alarms, mean | allowed by chance | largest of the resplits | in the worst class, mean |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    rows = read("familiarity")
    lines += [
        f"| {r['set']} | {r['level']:.0%} | {r['mean']:.2%} | {r['allowed']:.2%} | {r['largest']:.2%} | "
        f"{r['worst_class']:.2%} |"
        for r in rows
    ]
    lines += [
        "",
        "| set | min_familiarity | target risk | mean coverage | broken | allowed by chance |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['set']} | {r['level']:g} | {r['target_risk']:.0%} | {r['mean_coverage']:.1%} | "
        f"{r['broken']} of {r['splits']} | {r['broken_allowed']} |"
        for r in rows
    ]
    return "\n".join(lines)


def shift() -> str:
    """Trust methods and alarms on rows unlike those seen."""
    results = ShiftResults(ResultStore(RESULTS / "shift.jsonl").rows)
    return "\n".join(grid.to_markdown() for grid in results.tables())


def efforts() -> str:
    """What each effort costs, over a forest in the same run, and what it gains."""
    cost = {(row["set"], row["method"].split()[-1]): row for row in read("fit_cost") if "fit_ratio" in row}
    forests = {name: row for (name, effort), row in cost.items() if effort == "forest"}
    comparison = seven_sets()
    means = dict(zip(comparison.methods, comparison.means().rows, strict=True))
    costs = [
        f"{what}, forests ({row['n_classes']} classes)"
        for row in forests.values()
        for what in ("fit", "score")
    ]
    header = ["effort", "second opinions", *costs, "AUROC", "APM", "ECE ↓"]
    lines = ["| " + " | ".join(header) + " |", "| --- " * len(header) + "|"]
    for effort, opinions, method in (
        ("fast", "none", FAST),
        ("balanced (default)", "kernel", DEFAULT),
        ("best", "two kernels, forest, extra trees, boosting; 50 neighbors", BEST),
    ):
        measured = [cost[name, effort.split()[0]] for name in forests]
        ratios = [
            text for row in measured for text in (f"{row['fit_ratio']:.2f}", f"{row['score_ratio']:.1f}")
        ]
        auroc, apm, ece = (means[method][i] for i in (1, 3, 6))
        effort += means[method][0].removeprefix(method)  # "(1 of 5 seeds)", where others have more
        lines.append("| " + " | ".join([effort, opinions, *ratios, auroc, apm, ece]) + " |")
    seconds = ", ".join(
        f"{row['fit_cpu_seconds']:.2f} and {row['score_cpu_seconds']:.2f} s on {name} with {row['n_train']:,} "
        "training rows"
        for name, row in forests.items()
    )
    n_rounds = next(iter(forests.values()))["rounds"]
    how = "measured once, in one run" if n_rounds == 1 else f"medians over {n_rounds} rounds in one run"
    return "\n".join(lines) + (
        "\n\nCosts are CPU seconds to fit, with a quarter as many validation rows, and to score as many rows, over "
        f"those of a random forest of 100 trees on the same training rows ({seconds}): {how}. "
        "Quality: means over the seven data sets × LR, RF, MLP below."
    )


def fit_cost() -> str:
    """CPU seconds of every method."""
    rows = read("fit_cost")
    lines = [
        "| method | fit, CPU s | score, CPU s | peak of new memory, MiB |",
        "| --- | --- | --- | --- |",
    ]
    for row in rows:
        if "peak_mib" in row:
            lines.append(
                f"| {row['method']} | {row['fit_cpu_seconds']:.2f} | {row['score_cpu_seconds']:.2f} | "
                f"{row['peak_mib']:.0f} |"
            )
    return "\n".join(lines)


def network_settings() -> str:
    """Settings of the network on validation rows."""
    rows = read("network_settings")
    settings = ("bandwidth", "activation", "penalty")
    lines = [
        "| T | activation | penalty | mean log-likelihood | mean AUROC |",
        "| --- | --- | --- | --- | --- |",
    ]
    for setting in dict.fromkeys(tuple(row[key] for key in settings) for row in rows):
        some = [row for row in rows if tuple(row[key] for key in settings) == setting]
        values = [mean(row[key] for row in some) for key in ("log_likelihood", "auroc")]
        bandwidth, activation, penalty = setting
        lines.append(f"| {bandwidth} | {activation} | {penalty:.0e} | {values[0]:.4f} | {values[1]:.2f} |")
    return "\n".join(lines)


def mechanism_surfaces() -> str:
    """AUROC on the two moons."""
    shallow, deep = (row for row in read("mechanism") if "classifier" in row)
    return (
        f"On 5,000 new points trust separates right from wrong predictions with AUROC {shallow['trust']:.3f}, "
        f"confidence\nwith {shallow['confidence']:.3f}. A small network follows the moons, so there is less to "
        f"correct: {deep['trust']:.3f} against {deep['confidence']:.3f}."
    )


def mechanism_weights() -> str:
    """Correlation of the two parts of the paper's network, by split."""
    rows = [row for row in read("mechanism") if "correlation" in row]
    seeds = sorted({row["seed"] for row in rows})
    header = ["classifier", *(f"split {seed + 1}" for seed in seeds), "mean"]
    lines = ["| " + " | ".join(header) + " |", "| --- " * len(header) + "|"]
    for base in dict.fromkeys(row["base"] for row in rows):
        values = [row["correlation"] for row in rows if row["base"] == base]
        lines.append(f"| {base} | " + " | ".join(f"{value:+.2f}" for value in [*values, mean(values)]) + " |")
    return "\n".join(lines)


def groups() -> str:
    """Trust on rows in groups, with and without groups=."""
    rows = read("groups")
    lines = [
        "| set, groups, classifier | "
        + " | ".join(f"{m}: AUROC / ECE" for m in GROUP_METHODS)
        + " | warned | unfamiliar |",
        "| --- " * (len(GROUP_METHODS) + 3) + "|",
    ]
    made = [row for row in rows if row["groups"] != "plain"]
    for cell in dict.fromkeys((row["set"], row["groups"], row["base"]) for row in made):
        by = {
            m: [r for r in made if (r["set"], r["groups"], r["base"], r["method"]) == (*cell, m)]
            for m in GROUP_METHODS
        }
        figures = [
            f"{100 * mean(r['auroc'] for r in some):.1f} / {100 * mean(r['ece'] for r in some):.1f}"
            for some in by.values()
        ]
        warned = sum(r["warned"] for r in by["neighboragg"])
        unfamiliar = mean(r["unfamiliar"] for r in by["neighboragg, groups="])
        lines.append(
            f"| {', '.join(cell)} | "
            + " | ".join(figures)
            + f" | {warned} of {len(by['neighboragg'])} | {100 * unfamiliar:.1f}% |"
        )
    plain = [row for row in rows if row["groups"] == "plain"]
    return "\n".join(lines) + (
        f"\n\n*warned*: fits without `groups=` that warn. Of {len(plain)} fits on rows without groups, "
        f"{sum(row['warned'] for row in plain)} warn. *unfamiliar*: new rows with a familiarity of at most 5%, with "
        "`groups=`."
    )


def changed_columns() -> str:
    """Risk promised and measured after columns have changed, and whether the change is named."""
    lines = ["| set | change | accepted | risk, promised | risk, measured | named |", "| --- " * 6 + "|"]
    for row in read("changed_columns"):
        named = "yes" if any(note.startswith("Columns") for note in row["notes"]) else "–"
        lines.append(
            f"| {row['set']} | {row['change']} | {row['accepted']:.1%} | {row['target_risk']:.0%} | "
            f"{row['risk']:.1%} | {named} |"
        )
    return "\n".join(lines)


SECTIONS: dict[str, Callable[[], str]] = {
    "changed-columns": changed_columns,
    "quality": quality,
    "tiny": tiny,
    "tabular": tabular,
    "search": search_tables.one_thread,
    "search-two-threads": search_tables.two_threads,
    "search-behind": search_tables.behind,
    "search-exactness": search_tables.exactness,
    "search-approximate": search_tables.approximate,
    "readme": readme,
    "names": names,
    "table1": table1,
    "table2": image_tables.table2,
    "views": image_tables.views,
    "network-cost": image_tables.network_cost,
    "image-labels": image_tables.image_labels,
    "ablation": ablation,
    "prototype": beside_prototype,
    "exceptions": exceptions_to_the_paper,
    "baselines": baselines,
    "baseline-differences": baseline_differences,
    "baseline-settings": baseline_settings,
    "losses": losses,
    "selective": selective,
    "familiarity": familiarity,
    "shift": shift,
    "latency": cost_tables.latency,
    "one-query": cost_tables.one_query,
    "many-classes": cost_tables.many_classes,
    "many-classes-rows": cost_tables.many_classes_rows,
    "growth": cost_tables.growth,
    "growth-large": cost_tables.growth_large,
    "efforts": efforts,
    "fit-cost": fit_cost,
    "network-settings": network_settings,
    "mislabel": label_tables.mislabel,
    "label-guarantees": label_tables.label_guarantees,
    "label-scale": label_tables.label_scale,
    "scale-streamed": scale_tables.streamed,
    "scale-shards": scale_tables.shards,
    "scale-cluster": scale_tables.cluster,
    "scale-costs": scale_tables.costs,
    "mechanism-surfaces": mechanism_surfaces,
    "mechanism-weights": mechanism_weights,
    "trec-counts": label_tables.trec_counts,
    "trec-list": label_tables.trec_list,
}
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def updated(text: str) -> str:
    for name, make in SECTIONS.items():
        pattern = re.compile(rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
        text = pattern.sub(lambda found, make=make: f"{found[1]}{make()}\n{found[2]}", text)
    return text


def main() -> None:
    stale = []
    for path in PAGES:
        old = path.read_text()
        new = updated(old)
        if new != old:
            stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(new)
    if "--check" in sys.argv and stale:
        sys.exit(f"{', '.join(stale)} not current; run: python -m benchmarks tables")


if __name__ == "__main__":
    main()
