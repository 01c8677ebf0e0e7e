"""What the product answers today, kept to compare with after every change that must not change it.

``python -m benchmarks golden record`` writes results/golden.npz. Without ``record``, the same is computed again and the
largest difference of each array is printed. Bits differ between processors, so compare on one machine, and record anew
on another from the commit that the file was recorded at.
"""

import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from neighboragg import (
    MislabelDetector,
    NeighborAgg,
    SelectiveClassifier,
    TrustedClassifier,
    audit,
    correct,
    find_mislabeled,
)
from neighboragg._review.store import DecisionStore

FILE = Path(__file__).parent / "results" / "golden.npz"
N_NEW = 40
WORDS = {"sports": "goal match team player score league", "cooking": "flour oven sugar recipe bake butter"}


def tables() -> dict[str, tuple[Any, Any]]:
    """Rows of every kind with labels: numbers, categories and gaps, texts, views, one row a class, many classes."""
    rng = np.random.default_rng(0)
    two = make_classification(300, 6, n_informative=4, flip_y=0.1, random_state=0)
    many = make_classification(600, 10, n_informative=8, n_classes=60, n_clusters_per_class=1, random_state=1)
    X, y = load_wine(return_X_y=True, as_frame=True)
    mixed = X.iloc[:, :4].assign(kind=np.where(X["hue"] > 1, "bright", "dark"))
    mixed.loc[::9, "alcohol"] = np.nan
    topics = rng.choice(list(WORDS), 160)
    texts = [" ".join(rng.choice(WORDS[topic].split(), 5)) for topic in topics]
    digits, targets = load_digits(return_X_y=True)
    rare = two[1].copy()
    rare[:3] = [2, 3, 4]
    return {
        "iris": load_iris(return_X_y=True),
        "cancer": load_breast_cancer(return_X_y=True),
        "digits": (digits[:500], targets[:500]),
        "two": two,
        "many": many,
        "rare": (two[0], rare),
        "copies": (np.repeat(two[0][:100], 3, axis=0), np.repeat(two[1][:100], 3)),
        "mixed": (mixed, y.map({0: "barolo", 1: "grignolino", 2: "barbera"}).to_numpy()),
        "texts": (texts, topics),
        "views": ({"left": digits[:300, :32], "right": digits[:300, 32:]}, targets[:300]),
    }


def models() -> Iterator[tuple[str, TrustedClassifier, Any, Any, Any]]:
    """Fitted models with the rows to ask them about."""
    methods = {
        "pool": NeighborAgg(),
        "fast": NeighborAgg(effort="fast"),
        "network": NeighborAgg("network"),
        "forest": NeighborAgg(second_opinions=["kernel", "forest"]),
    }
    for name, (X, y) in tables().items():
        if name in ("views", "mixed"):
            continue
        new, fit = X[:N_NEW], X[N_NEW:]
        chosen = methods if name == "digits" else {"pool": methods["pool"]}
        base: Any = GaussianNB() if name != "cancer" else RandomForestClassifier(20, random_state=0)
        if name == "texts":
            base = make_pipeline(TfidfVectorizer(), LogisticRegression())
        for kind, method in chosen.items():
            model = TrustedClassifier(base, method, random_state=0)
            yield f"{name}/{kind}", model.fit(fit, y[N_NEW:]), new, X, y


def trust_arrays() -> Iterator[tuple[str, Any]]:
    """Labels, trust, familiarity and what each expert adds."""
    for name, model, new, _, _ in models():
        assessed = model.assess(new)
        yield f"{name}/label", assessed.predicted
        for field in ("probability", "trust", "familiarity"):
            yield f"{name}/{field}", getattr(assessed, field)
        yield f"{name}/contributions", model.explain(new[:5]).contributions
    X, y = tables()["two"]
    model = TrustedClassifier(GaussianNB(), random_state=0).fit(X[:150], y[:150])
    safe = SelectiveClassifier(model, target_coverage=0.5).calibrate(X[150:], y[150:])
    yield "selective/threshold", np.array([safe.threshold_, safe.coverage_])


def label_arrays() -> Iterator[tuple[str, Any]]:
    """Scores, suggestions and flags of labels, and the same of new rows."""
    for name, (X, y) in tables().items():
        noisy = np.array(y, copy=True)
        noisy[::17] = np.roll(noisy, 7)[::17]
        result = find_mislabeled(X, noisy, duplicates="ignore" if name == "copies" else "group")
        for field in ("scores", "p_wrong", "mask", "suggested"):
            yield f"{name}/labels/{field}", getattr(result, field)
    X, y = tables()["digits"]
    detector = MislabelDetector().fit(X[:400], y[:400])
    yield "digits/labels/new", detector.score_reliability(X[400:], y[400:])
    grouped = find_mislabeled(X, y, groups=np.arange(len(y)) // 3)
    yield "digits/labels/grouped", grouped.scores


def audit_arrays() -> Iterator[tuple[str, Any]]:
    """Bytes of what an audit writes and of the corrected table."""
    frame, y = tables()["mixed"]
    y = y.copy()
    y[[5, 60, 140]] = ["barbera", "barolo", "grignolino"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame.assign(y=y).to_csv(folder / "t.csv", index=False)
        found = audit(folder / "t.csv", label="y", flag=5)
        found.write(folder / "s.csv")
        with DecisionStore(folder / "s.review.decisions.sqlite", found.review_set) as store:
            for item in found.review_set.flagged:
                store.record(item.row, action="relabel", label=item.suggested, reviewer="Ada", based_on=0)
        correct(folder / "s.csv", folder / "c.csv")
        flagged = pd.read_csv(folder / "s.csv")
        yield "audit/rows", flagged["row"].to_numpy()
        yield "audit/suggested", flagged["suggested"].to_numpy(dtype=str)
        yield "audit/corrected", np.frombuffer((folder / "c.csv").read_bytes(), dtype=np.uint8)


def answers() -> dict[str, np.ndarray]:
    """Everything, by name; objects as texts."""
    found = [*trust_arrays(), *label_arrays(), *audit_arrays()]
    arrays = {name: np.asarray(values) for name, values in found}
    return {name: values.astype(str) if values.dtype == object else values for name, values in arrays.items()}


def difference(old: np.ndarray, new: np.ndarray) -> float:
    """The largest difference; inf where shapes, kinds or texts differ."""
    if old.shape != new.shape or (old.dtype.kind == "f") != (new.dtype.kind == "f"):
        return float("inf")
    if old.dtype.kind != "f":
        return 0.0 if (old == new).all() else float("inf")
    return float(np.nan_to_num(np.abs(old - new)).max(initial=0.0))


def main(command: str = "compare") -> int:
    """Record, or compare and return 1 where anything differs by more than 1e-12."""
    if command == "record":
        np.savez_compressed(FILE, **answers())
        print(f"{len(zipfile.ZipFile(FILE).namelist())} arrays: {FILE}")
        return 0
    with np.load(FILE) as stored:
        old = dict(stored)
    new = answers()
    gaps = {name: difference(old[name], new[name]) if name in new else float("inf") for name in old}
    for name, gap in gaps.items():
        if gap:
            print(f"{name}: {gap:.3g}")
    print(
        f"{len(old)} arrays, {sum(gap == 0 for gap in gaps.values())} with equal bits, worst {max(gaps.values()):.3g}"
    )
    return int(max(gaps.values()) > 1e-12)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
