"""Tables of the comparison on images, and of what trust costs beside a network."""

from dataclasses import replace
from statistics import mean
from typing import Any

from benchmarks._record import RESULTS, read
from benchmarks.paper import TABLE2_PRINTED
from benchmarks.runs import DEFAULT, Comparison, ResultStore

#: What :class:`neighboragg.TrustedClassifier` does for a network.
NETWORK_DEFAULT = "Pool, two layers"
IMAGE_SETS = ("mnist", "fashion_mnist", "cifar10")


def image_rows() -> list[dict[str, Any]]:
    return ResultStore(RESULTS / "images.jsonl").rows


def image_methods() -> list[str]:
    """Rivals first, then ours."""
    names = dict.fromkeys(row["method"] for row in image_rows())
    return sorted(names, key=lambda name: name.startswith(DEFAULT))


def table2() -> str:
    """Every cell of the comparison on images, means and gains."""
    rows = image_rows()
    base_of = {row["set"]: row["base"] for row in rows}
    sets = [name for name in IMAGE_SETS if name in base_of]
    # The paper's figures stand beside ours also where its network was another.
    printed = {
        (name, base_of[name], method, metric): value
        for (name, _, method, metric), value in TABLE2_PRINTED.items()
        if name in base_of
    }
    comparison = Comparison(
        rows, sets, list(dict.fromkeys(base_of.values())), image_methods(), printed=printed
    )
    trained = [next(row for row in rows if row["set"] == name) for name in sets]
    notes = "; ".join(
        f"{row['set']}: {row['base']}, {row['epochs']} epochs on {row['n_train']:,} images, {row['n_val']:,} for "
        f"validation, {row['accuracy']:.2%} of {row['n_test']:,} test images right"
        for row in trained
    )
    counts = {
        name: len({row["seed"] for row in rows if row["method"] == name}) for name in comparison.methods
    }
    most = max(counts.values())
    fewer = [f"{name} ({n})" for name, n in counts.items() if n < most]
    measured = {name: {row["set"] for row in rows if row["method"] == name} for name in comparison.methods}
    complete = [name for name in comparison.methods if len(measured[name]) == len(sets)]
    means = replace(comparison, methods=complete).means()
    grids = [*comparison.by_base(), means, comparison.gains("Pool, three layers")]
    tables = "\n".join(grid.to_markdown() for grid in grids)
    if most == 1:  # there is nothing to deviate from
        tables = tables.replace("mean (standard deviation) over 1 seeds", "one seed").replace(" (0.00)", "")
    return f"Networks: {notes}." + (f" Fewer seeds: {', '.join(fewer)}." if fewer else "") + f"\n\n{tables}"


def views() -> str:
    """What more layers and a learned metric gain on each network."""
    rows = image_rows()
    lines = ["| set | | AUROC | AP of errors |", "| --- | --- | --- | --- |"]
    for name in IMAGE_SETS:
        for method, title in (
            ("Pool, no learned metric", "embedding as it is"),
            (DEFAULT, "embedding and its learned metric"),
            (NETWORK_DEFAULT, "two layers, each with its learned metric (default)"),
            ("Pool, three layers", "three layers, each with its learned metric"),
        ):
            found = [row for row in rows if (row["set"], row["method"]) == (name, method)]
            if found:
                auroc, ap = (100 * mean(row[key] for row in found) for key in ("auroc", "ap_error"))
                lines.append(f"| {name} | {title} | {auroc:.2f} | {ap:.2f} |")
    return "\n".join(lines)


def network_cost() -> str:
    """Trust beside the network it is about."""
    rows = read("network_cost")
    lines = [
        f"| {rows[0]['queries']:,} images of {rows[0]['set']} | reference rows | CPU s | over the network | "
        "over a ResNet-18 |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        reference = f"{row['reference_rows']:,}" if row["reference_rows"] else "–"
        lines.append(
            f"| {row['contender']} | {reference} | {row['cpu_seconds']:.2f} | {row['over_network']:.2f} | "
            f"{row['over_resnet18']:.3f} |"
        )
    return "\n".join(lines)


def image_labels() -> str:
    """Wrong labels of images found by the built-in descriptor, by views, and by views together."""
    rows = read("image_labels")
    sets = list(dict.fromkeys(row["set"] for row in rows))
    cell = {(row["set"], row["by"]): row for row in rows}
    lines = [
        "| AUROC / AP of wrong labels / right among flagged, % | " + " | ".join([*sets, "CPU s"]) + " |",
        "| --- " * (len(sets) + 2) + "|",
    ]
    for by in dict.fromkeys(row["by"] for row in rows):
        found = [cell[name, by] for name in sets]
        shown = [
            " / ".join(f"{100 * row[metric]:.1f}" for metric in ("auroc", "ap", "precision")) for row in found
        ]
        seconds = mean(row["cpu_seconds"] for row in found)
        lines.append(f"| {by} | " + " | ".join([*shown, f"{seconds:.0f}"]) + " |")
    return "\n".join(lines)
