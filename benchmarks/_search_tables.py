"""Tables of the neighbor search."""

from typing import Any

from benchmarks._record import read

PEERS = {
    "faiss set right": "faiss set right",
    "faiss as shipped": "faiss as shipped",
    "tiled product": "tiled product",
    "scikit-learn brute force": "brute force",
    "scikit-learn KD-tree": "KD-trees",
    "hnswlib, recall .99": "hnswlib",
    "ours with NumPy": "ours in NumPy",
}


def speed(threads: int) -> str:
    """Our queries per second, and how many times those of each peer, by shape."""
    shapes: dict[tuple[int, ...], dict[str, dict[str, Any]]] = {}
    for row in read("search"):
        if row["threads"] == threads:
            shape = tuple(row[key] for key in ("rows", "features", "classes", "neighbors", "queries"))
            shapes.setdefault(shape, {})[row["peer"]] = row
    lines = [
        "| rows × features, classes, K; queries | ours, queries/s | " + " | ".join(PEERS.values()) + " |",
        "| --- " * (len(PEERS) + 2) + "|",
    ]
    for (n, d, n_classes, k, n_queries), peers in shapes.items():
        ratios = [
            _ratio(peers[name]["ours_over_peer"]) if name in peers else "not measured" for name in PEERS
        ]
        shape_text = f"{n:,} × {d:,}, {n_classes:,}, {k}; {n_queries:,}"
        own = f"{peers['ours']['queries_per_processor_second']:,.0f}"
        lines.append("| " + " | ".join([shape_text, own, *ratios]) + " |")
    return "\n".join(lines)


def _ratio(value: float) -> str:
    return f"{value:.2f} ×" if value < 10 else f"{value:,.0f} ×"


def one_thread() -> str:
    """With one thread."""
    return speed(1)


def two_threads() -> str:
    """With two threads."""
    return speed(2)


def behind() -> str:
    """Shapes on which a peer that is as exact as ours is as fast, or nearly."""
    lines = []
    for row in read("search"):
        if row["peer"] != "faiss set right" or row["ours_over_peer"] >= 1.2:
            continue
        shape = (
            f"{row['rows']:,} × {row['features']:,}, {row['classes']:,} classes, {row['queries']:,} queries"
        )
        threads = "one thread" if row["threads"] == 1 else f"{row['threads']} threads"
        lines.append(f"- {shape}, {threads}: {row['ours_over_peer']:.2f} × faiss.")
    return "Where we are less than a fifth ahead of faiss, or behind:\n\n" + "\n".join(lines)


def approximate() -> str:
    """What approximate searches cost, find and change, beside the exact one."""
    lines = [
        "| data | search, recall | fit, s | search, µs a row | recall: limit | estimated | measured | AUROC "
        "| AP of errors | change of trust: mean | largest |",
        "| --- " * 11 + "|",
    ]
    for row in read("approximate"):
        exact = row["search"] == "exact"
        shape = f"{row['data']}, {row['rows']:,} × {row['features']}, {row['classes']}" if exact else ""
        name = "**exact**" if exact else f"{row['search']}, {row['recall_asked']:g}"
        if not exact and row["classes_with_index"] < row["classes"]:
            name += f": exact in {row['classes'] - row['classes_with_index']} classes"
        found = [f"{row[key]:.4f}" for key in ("recall_limit", "recall_estimated", "recall_measured")]
        change = [f"{row[key]:.2g}" for key in ("trust_mean_difference", "trust_largest_difference")]
        lines.append(
            f"| {shape} | {name} | {row['fit_seconds']:.1f} | {row['search_microseconds']:,.0f} | "
            + " | ".join(
                [
                    *(["1"] * 3 if exact else found),
                    f"{row['auroc']:.2f}",
                    f"{row['ap_error']:.2f}",
                    *(["0"] * 2 if exact else change),
                ]
            )
            + " |"
        )
    return "\n".join(lines)


def exactness() -> str:
    """Random searches whose bits were not those of brute force."""
    lines = ["| search | random problems | with other bits than brute force |", "| --- | --- | --- |"]
    lines += [
        f"| {row['variant']} | {row['searches']:,} | {row['other_bits']} |"
        for row in read("search_avx512") + read("search_exactness")
    ]
    return "\n".join(lines)
