"""What the rules for wrong labels promise, checked on real data with labels made wrong on purpose.

Each repetition draws 2,000 rows to judge and 1,000 new ones, makes some of the labels wrong, and cross-validates a
logistic regression. *false alarms*: share of the right labels that are flagged, at most alpha. *FDR*: share of false
alarms among the flags, at most q on average, with 300 right labels verified. Data: NEIGHBORAGG_DATA.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._record import save
from benchmarks.datasets import add_label_noise
from benchmarks.paper import noise_rows
from neighboragg import MislabelDetector
from neighboragg.promises import benjamini_hochberg, cmd_threshold, conformal_p_values
from neighboragg.promises._conformal import cmd_flags

SETS = ("letter", "landsat", "fashion_mnist")
NOISES = ("symmetric", "class_dependent", "instance_dependent")
RATES = (0.03, 0.09, 0.20)
ALPHAS = (0.01, 0.05, 0.1, 0.2)
LEVELS = (0.1, 0.2)
N_JUDGED, N_NEW, N_VERIFIED = 2000, 1000, 300


def repetition(cell: tuple[str, str, float, int]) -> list[dict[str, Any]]:
    name, noise, rate, seed = cell
    X, truth = noise_rows(name, seed)
    X, truth = X[: N_JUDGED + N_NEW], truth[: N_JUDGED + N_NEW]
    noisy = add_label_noise(truth, rate=rate, kind=noise, X=X, random_state=seed)
    y, wrong = np.asarray(noisy.y), noisy.mask
    with threadpool_limits(1):
        detector = MislabelDetector(
            LogisticRegression(max_iter=300), features="passthrough", random_state=seed
        )
        found = detector.fit(X[:N_JUDGED], y[:N_JUDGED]).result_
        new_scores = detector.score_reliability(X[N_JUDGED:], y[N_JUDGED:])
    rows = [
        *false_alarms(found.scores, wrong[:N_JUDGED], new_scores, wrong[N_JUDGED:], rate, found.noise_rate),
        *discoveries(found.scores, wrong[:N_JUDGED], seed),
    ]
    return [{"set": name, "noise": noise, "rate": rate, "seed": seed, **row} for row in rows]


def false_alarms(
    scores: Any, wrong: Any, new_scores: Any, new_wrong: Any, rate: float, estimated: float
) -> Iterator[dict[str, Any]]:
    for alpha, (source, noise_rate) in product(ALPHAS, (("known", rate), ("estimated", estimated))):
        flagged = cmd_flags(scores, alpha=alpha, noise_rate=noise_rate)
        new = new_scores < cmd_threshold(scores, alpha=alpha, noise_rate=noise_rate)
        yield {
            "rule": "false alarms", "level": alpha, "noise_rate": source,
            "false_alarms": int((flagged & ~wrong).sum()), "right": int((~wrong).sum()),
            "flagged": int(flagged.sum()), "found": float((flagged & wrong).sum() / wrong.sum()),
            "new_false_alarms": int((new & ~new_wrong).sum()), "new_right": int((~new_wrong).sum()),
        }  # fmt: skip


def discoveries(scores: Any, wrong: Any, seed: int) -> Iterator[dict[str, Any]]:
    verified = np.zeros(len(wrong), dtype=bool)
    verified[np.random.default_rng(seed).permutation(np.flatnonzero(~wrong))[:N_VERIFIED]] = True
    p_values = conformal_p_values(scores[~verified], scores[verified])
    missed = wrong[~verified]
    for q in LEVELS:
        flagged = benjamini_hochberg(p_values, q=q)
        yield {
            "rule": "FDR", "level": q, "flagged": int(flagged.sum()),
            "false_share": float((flagged & ~missed).sum() / max(1, flagged.sum())),
            "found": float((flagged & missed).sum() / missed.sum()),
        }  # fmt: skip


def summarize(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each data set, rule and level."""
    lines = []
    for name, alpha, source in product(SETS, ALPHAS, ("known", "estimated")):
        some = [r for r in rows if (r["set"], r["level"], r.get("noise_rate")) == (name, alpha, source)]
        shares = np.array([r["false_alarms"] / r["right"] for r in some])
        alarms, right = sum(r["new_false_alarms"] for r in some), sum(r["new_right"] for r in some)
        lines.append(
            {
                "set": name, "rule": "false alarms", "level": alpha, "noise_rate": source, "repetitions": len(some),
                "mean": shares.mean(), "largest": shares.max(), "broken": int((shares > alpha).sum()),
                "found": np.mean([r["found"] for r in some]), "new": alarms / right,
                # Above this share, chance alone would explain one case in 1,000.
                "new_bound": binom.ppf(0.999, right, alpha) / right,
            }
        )  # fmt: skip
    for name, q in product(SETS, LEVELS):
        some = [r for r in rows if (r["set"], r["rule"], r["level"]) == (name, "FDR", q)]
        shares = np.array([r["false_share"] for r in some])
        lines.append(
            {
                "set": name, "rule": "FDR", "level": q, "repetitions": len(some), "mean": shares.mean(),
                "error": shares.std(ddof=1) / np.sqrt(len(some)), "found": np.mean([r["found"] for r in some]),
            }
        )  # fmt: skip
    return lines


def show(lines: list[dict[str, Any]]) -> None:
    print(
        f"{'set':<16}{'alpha':>6} {'noise rate':<11}{'mean':>7}{'largest':>9}{'broken':>8}{'new':>8}{'found':>8}"
    )
    for line in lines:
        if line["rule"] == "false alarms":
            print(
                f"{line['set']:<16}{line['level']:>6.2f} {line['noise_rate']:<11}{line['mean']:>7.3f}"
                f"{line['largest']:>9.3f}{line['broken']:>8}{line['new']:>8.3f}{line['found']:>8.1%}"
            )
    print(f"\n{'set':<16}{'q':>6}{'mean false share':>18}{'± error':>9}{'found':>8}")
    for line in lines:
        if line["rule"] == "FDR":
            print(
                f"{line['set']:<16}{line['level']:>6.2f}{line['mean']:>18.3f}{line['error']:>9.3f}"
                f"{line['found']:>8.1%}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10, help="Seeds of each data set, noise and rate.")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cells = list(product(SETS, NOISES, RATES, range(args.repetitions)))
    with ProcessPoolExecutor(args.jobs) as pool:
        rows = [row for found in pool.map(repetition, cells) for row in found]
    lines = summarize(rows)
    show(lines)
    save("label_guarantees", lines, 0)


if __name__ == "__main__":
    main()
