"""Tables of the neighbor search."""

from typing import Any

from _record import read

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


def exactness() -> str:
    """Random searches whose bits were not those of brute force."""
    lines = ["| search | random problems | with other bits than brute force |", "| --- | --- | --- |"]
    lines += [
        f"| {row['variant']} | {row['searches']:,} | {row['other_bits']} |"
        for row in read("search_exactness")
    ]
    return "\n".join(lines)
