"""How many labels are flagged when some rows carry a rare label, such as a misspelled one.

2,000 rows of each data set as they are, then with 1, 2, 5 and 20 of the rows relabeled, all with one rare label or
each with its own. Counts of flags among the other rows must stay within 20% or 5 rows of the count without rare
labels. Data: NEIGHBORAGG_DATA.
"""

import argparse
from typing import Any

import numpy as np

from benchmarks._record import save
from benchmarks.datasets import load_dataset
from neighboragg import find_mislabeled

SETS = ("letter", "landsat", "adult", "trec_questions")
COUNTS = (1, 2, 5, 20)
N_ROWS = 2000


def rows_of(name: str, n_rows: int) -> tuple[Any, Any]:
    """The first rows, as a table or a list of texts, and their labels as strings."""
    dataset = load_dataset(name)
    labels = np.asarray(dataset.y)[:n_rows].astype(str).astype(object)
    X = list(dataset.text[:n_rows]) if dataset.text is not None else dataset.to_matrix()[:n_rows]
    return X, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    args = parser.parse_args()
    lines = []
    print(
        f"{'set':<16}{'rare labels':>12}{'kind':>8}{'flagged':>9}{'others':>8}{'rare':>6}{'suggested':>11}{'stable':>8}"
    )
    for name in args.sets:
        X, labels = rows_of(name, args.rows)
        base = find_mislabeled(X, labels).n_flagged
        print(f"{name:<16}{0:>12}{'':>8}{base:>9}{base:>8}", flush=True)
        lines.append(
            {"set": name, "rare": 0, "kind": "", "flagged": base, "others": base, "found": 0, "suggested": 0}
        )
        for n_rare in COUNTS:
            for kind in ("same", "own")[: 1 if n_rare == 1 else 2]:
                chosen = np.random.default_rng(n_rare).permutation(len(labels))[:n_rare]
                changed = labels.copy()
                changed[chosen] = [f"RARE {i if kind == 'own' else ''}" for i in range(n_rare)]
                result = find_mislabeled(X, changed)
                others = int(np.delete(result.mask, chosen).sum())
                line = {
                    "set": name, "rare": n_rare, "kind": kind, "flagged": result.n_flagged, "others": others,
                    "found": int(result.mask[chosen].sum()),
                    "suggested": int((result.suggested[chosen] == labels[chosen]).sum()),
                    "stable": abs(others - base) <= max(5, 0.2 * base),
                }  # fmt: skip
                lines.append(line)
                print(
                    f"{name:<16}{n_rare:>12}{kind:>8}{line['flagged']:>9}{others:>8}{line['found']:>6}"
                    f"{line['suggested']:>11}{'yes' if line['stable'] else 'NO':>8}",
                    flush=True,
                )
    save("rare_labels", lines, 0)


if __name__ == "__main__":
    main()
