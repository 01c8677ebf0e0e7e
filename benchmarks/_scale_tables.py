"""Tables about data larger than memory and about clusters."""

from typing import Any

from benchmarks._record import read

SEARCHES = ("compiled", "NumPy's")


def rows_of(what: str) -> list[dict[str, Any]]:
    return [row for row in read("cluster") if row["what"] == what]


def streamed() -> str:
    """A search within a quarter of the memory that its rows take."""
    (r,) = rows_of("streamed")
    equal = "equal bits" if r["equal_distances"] and r["equal_ids"] else "DIFFERENT"
    return "\n".join(
        [
            "| reference rows | queries | rows on disk | memory allowed | taken at most | taken by a search in memory "
            "| CPU time over it | result |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            f"| {r['reference_rows']:,} × {r['features']} | {r['queries']:,} | {r['index_mb']:.0f} MB | "
            f"{r['allowed_mb']:.0f} MB | {r['peak_own_mb']:.0f} MB | {r['peak_own_in_memory_mb']:,.0f} MB | "
            f"{r['cpu_over_in_memory']:.2f} | {equal} |",
        ]
    )


def shards() -> str:
    """What a model of the cost says, and what it is."""
    rows = rows_of("shards")
    first = rows[0]
    lines = [
        f"{first['reference_rows']:,} × {first['features']} reference rows, {first['queries']:,} queries; "
        f"a = {first['build_ns_per_row']:,.0f} ns for a reference row, b = {first['search_ns_per_pair']:.2f} ns for a "
        f"pair, c = {first['merge_ns_per_query'] / 1000:.0f} µs for a query and shard.",
        "",
        "| shards | predicted, CPU s | measured, CPU s | measured over predicted |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['shards']} | {r['predicted_cpu_seconds']:.1f} | {r['cpu_seconds']:.1f} | "
        f"{r['cpu_seconds'] / r['predicted_cpu_seconds']:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def cluster() -> str:
    """A cluster beside one process, and millions of rows through it."""
    lines = [
        "| work | search | one process, CPU s | two at a time, CPU s | 2 workers, CPU s | client and scheduler, CPU s "
        "| cluster over one process | result |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['queries']:,} rows against {r['reference_rows']:,} × {r['features']} | "
        f"{SEARCHES[r['search'] == 'numpy']} | {r['cpu_seconds_one_process']:.1f} | "
        f"{r['cpu_seconds_two_processes']:.1f} | {r['cpu_seconds_workers']:.1f} | "
        f"{r['cpu_seconds_client_and_scheduler']:.1f} | {r['cluster_over_one_process']:.2f} | "
        f"{'equal bits' if r['equal'] else 'DIFFERENT'} |"
        for r in rows_of("cpu")
    ]
    lines += [
        "",
        "| rows | parts | input | largest worker | client and scheduler | CPU s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['rows']:,} × {r['features']} | {r['parts']} | {r['input_mb']:.0f} MB | "
        f"{r['peak_mb_of_workers']:.0f} MB | {r['peak_mb_of_client_and_scheduler']:.0f} MB | {r['cpu_seconds']:.0f} |"
        for r in rows_of("large")
    ]
    return "\n".join(lines)


def costs() -> str:
    """What large searches would cost, from the measured costs of a pair and a row."""
    (first, *_) = rows_of("shards")
    lines = [
        "| reference rows | queries | core hours | on 1,000 cores | rows in memory, all shards | read by each pass |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for n, m, d in ((1e6, 1e9, 256), (1e7, 1e9, 256), (1e8, 1e6, 256), (1e8, 1e9, 256)):
        seconds = m * n * first["search_ns_per_pair"] * 1e-9 * d / first["features"]
        hours = seconds / 3600
        gigabytes = n * d * 4 / 1e9
        lines.append(
            f"| {n:,.0f} × {d} | {m:,.0f} | {hours:,.0f} | {hours / 1000:,.1f} h | {3 * gigabytes:,.0f} GB | "
            f"{gigabytes:,.0f} GB |"
        )
    return "\n".join(lines)
