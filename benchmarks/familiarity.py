"""False alarms of familiarity on real data: random resplits of letter and adult.

Each time 2,000 rows are drawn: 600 to train a random forest and the learned metric on, 400 to compare with, and 1,000
new ones, none of which is unlike the others. Counted is the share of new rows with a familiarity of at most the
level; the promise is that it is the level or less on average. Around that, chance on 400 validation and 1,000 new
rows makes it scatter like a beta-binomial variable, which says how large the mean of so many resplits may be by chance.
`min_familiarity` adds a promise about the risk of what is kept; its breaks are counted on a half of the new rows, with
thresholds from the other half.
"""

import sys
import time
import warnings

import numpy as np
from scipy.stats import betabinom, binom, norm
from sklearn.ensemble import RandomForestClassifier

from benchmarks._record import save
from benchmarks.runs import load_matrix
from neighboragg import NeighborAgg
from neighboragg.exceptions import TrustWarning
from neighboragg.features import TabularFeatures
from neighboragg.promises import risk_threshold

SETS = {"letter": 0.05, "adult": 0.10}
LEVELS = (0.01, 0.05)
N_SPLITS = 200
N_TRAIN, N_VAL, N_NEW = 600, 400, 1000
CONFIDENCE = 0.95


def resplit(X, codes, seed):
    """Familiarity of new rows, their trust, predicted class, and whether the classifier is right."""
    rows = np.random.default_rng(seed).permutation(len(codes))[: N_TRAIN + N_VAL + N_NEW]
    train, val, new = np.split(rows, [N_TRAIN, N_TRAIN + N_VAL])
    vectors = TabularFeatures().fit(X[train])
    classifier = RandomForestClassifier(30, random_state=seed).fit(X[train], codes[train])
    proba_val, proba = classifier.predict_proba(X[val]), classifier.predict_proba(X[new])
    method = NeighborAgg(effort="fast").fit(
        vectors.transform(X[train]), codes[train],
        X_val=vectors.transform(X[val]), y_val=codes[val], proba_val=proba_val, classes=classifier.classes_,
    )  # fmt: skip
    trust, familiarity = method.trust_and_familiarity(vectors.transform(X[new]), proba)
    predicted = proba.argmax(axis=1)
    return familiarity, trust[np.arange(len(new)), predicted], predicted, predicted == codes[new]


def allowed(level):
    """Largest mean share over the resplits that chance explains once in a thousand."""
    rank = int(level * (N_VAL + 1))
    spread = betabinom(N_NEW, rank, N_VAL + 1 - rank).std() / N_NEW
    return level + norm.isf(1e-3) * spread / np.sqrt(N_SPLITS)


def main() -> None:
    results = []
    for name, target in SETS.items():
        X, labels = load_matrix(name)
        codes = np.unique(labels, return_inverse=True)[1]
        shares = {level: [] for level in LEVELS}
        by_class = {level: [] for level in LEVELS}
        broken = dict.fromkeys(LEVELS, 0)
        kept_shares = {level: [] for level in LEVELS}
        start = time.process_time()
        for seed in range(N_SPLITS):
            familiarity, trust, predicted, correct = resplit(X, codes, seed)
            half = np.arange(N_NEW) < N_NEW // 2
            for level in LEVELS:
                alarms = familiarity <= level
                shares[level].append(alarms.mean())
                by_class[level].append(
                    [
                        alarms[predicted == c].mean() if (predicted == c).any() else np.nan
                        for c in np.unique(codes)
                    ]
                )
                passes = ~alarms
                found = risk_threshold(
                    correct[half & passes], trust[half & passes],
                    target_risk=target, confidence_level=CONFIDENCE, random_state=seed,
                )  # fmt: skip
                kept = ~half & passes & (trust >= found.threshold)
                kept_shares[level].append(kept[~half].mean())
                broken[level] += bool(kept.any() and (~correct[kept]).mean() > target)
            if sys.stderr.isatty():
                print(f"\r{name}: {seed + 1} of {N_SPLITS}", end="", file=sys.stderr)
        for level in LEVELS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                worst = float(np.nanmax(np.nanmean(by_class[level], axis=0)))
            row = {
                "set": name, "level": level, "splits": N_SPLITS, "mean": float(np.mean(shares[level])),
                "largest": float(np.max(shares[level])), "allowed": allowed(level), "worst_class": worst,
                "target_risk": target, "broken": broken[level],
                "broken_allowed": int(binom.ppf(1 - 1e-3, N_SPLITS, 1 - CONFIDENCE)),
                "mean_coverage": float(np.mean(kept_shares[level])),
                "cpu_seconds": round(time.process_time() - start, 1),
            }  # fmt: skip
            print(row)
            results.append(row)
    save("familiarity", results, 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore", TrustWarning)
    main()
