"""Tables of what trust costs: one row at a time, and as data grow."""

from typing import Any

from benchmarks._record import read


def latency() -> str:
    """What trust adds to one call of the classifier, before and after."""
    rows = read("latency")
    lines = [
        "| ms for one row | classifier | trust adds, before | trust adds | of it the search | with trust over alone |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for case in dict.fromkeys((row["set"], row["base"]) for row in rows):
        found = {row["version"]: row for row in rows if (row["set"], row["base"]) == case}
        after, before = found["after"], found["before"]
        lines.append(
            f"| {case[0]}, {case[1]} | {after['own_ms']:.2f} | {before['added_ms']:.2f} | "
            f"**{after['added_ms']:.2f}** | {after['search_ms']:.2f} | "
            f"{after['with_trust_ms'] / after['own_ms']:.1f} × |"
        )
    return "\n".join(lines)


def one_query() -> str:
    """The search for one row, beside reading the reference rows once."""
    rows = read("one_query")
    shape = f"{rows[0]['rows']:,} × {rows[0]['features']}, {rows[0]['classes']} classes"
    return "\n".join(
        [
            f"| {shape} | ms | over matrix times vector |",
            "| --- | --- | --- |",
            *(f"| {row['call']} | {row['ms']:.2f} | {row['over_reading']:.2f} × |" for row in rows),
        ]
    )


def growth(results: str = "growth") -> str:
    """CPU seconds and memory as one axis grows, with the exponent."""
    rows = read(results)
    lines = []
    for axis in dict.fromkeys(row["axis"] for row in rows):
        sizes = list(dict.fromkeys(row["size"] for row in rows if row["axis"] == axis))
        lines += [
            f"| {axis}: CPU s, MiB | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent of time |",
            "| --- " * (len(sizes) + 2) + "|",
        ]
        for call in dict.fromkeys(row["call"] for row in rows if row["axis"] == axis):
            some = {row["size"]: row for row in rows if row["axis"] == axis and row["call"] == call}
            cells = [_cell(some.get(size)) for size in sizes]
            exponent = next((row["exponent"] for row in some.values() if "exponent" in row), None)
            shown = "" if exponent is None else f"{exponent:.2f}"
            lines.append(f"| {call} | " + " | ".join(cells) + f" | {shown} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def growth_large() -> str:
    """The same up to a million rows."""
    return growth("growth_large")


def many_classes() -> str:
    """A thousand classes."""
    return "\n".join(
        [
            "| 50,000 × 64, 1,000 classes | CPU s | largest memory so far, MiB beyond the data |",
            "| --- | --- | --- |",
            *(
                f"| {row['version']}, {row['call']} | {row['cpu_seconds']:.0f} | {row['extra_memory_mib']:,.0f} |"
                for row in read("many_classes")
            ),
        ]
    )


def many_classes_rows() -> str:
    """A thousand classes: what it changes that the pool is fitted on fewer rows."""
    return "\n".join(
        [
            "| 1,000 classes: pool fitted on | AUROC | AP of errors | change of trust: mean | largest |",
            "| --- | --- | --- | --- | --- |",
            *(
                f"| {row['rows']:,} rows | {100 * row['auroc']:.2f} | {100 * row['ap_error']:.2f} | "
                f"{row['mean_change']:.2g} | {row['largest_change']:.2g} |"
                for row in read("many_classes_rows")
            ),
        ]
    )


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not run"
    if not row["done"]:
        return "not finished"
    return f"{row['cpu_seconds']:.2f}, {row['extra_memory_mib']:,.0f}"
