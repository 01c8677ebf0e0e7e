"""The selective promise on real data: random resplits of adult and letter into calibration and test rows.

A classifier and the pool are fitted once on 50% of the rows (40% training, 10% validation). The other half is split
at random into calibration and test rows, again and again; each time a threshold is calibrated and the error rate
among kept test rows is compared with the target. Test rows are finite, so their error rate scatters around the true
risk: a break is counted both plainly and beyond what chance on the test rows explains.
"""

import numpy as np
from scipy.stats import binom

from benchmarks._record import save
from benchmarks.runs import load_matrix
from neighboragg import NeighborAgg
from neighboragg.promises import risk_threshold
from neighboragg.trust._compare import make_cell

CASES = [("adult", "RF", 0.05), ("adult", "LR", 0.10), ("letter", "RF", 0.01), ("letter", "LR", 0.02)]
N_SPLITS = 200
N_CALIBRATION = 2000
CONFIDENCE = 0.95


def main() -> None:
    results = []
    allowed = int(binom.ppf(1 - 1e-3, N_SPLITS, 1 - CONFIDENCE))
    print(f"{N_SPLITS} resplits, {N_CALIBRATION:,} calibration rows, confidence {CONFIDENCE:.0%}; ", end="")
    print(f"breaks expected at most {N_SPLITS * (1 - CONFIDENCE):.0f}, by chance up to {allowed}")
    print(f"{'set':<10}{'base':<6}{'target':>8}{'promised':>10}{'coverage':>10}{'risk':>9}{'breaks':>8}")
    for name, base, target in CASES:
        cell = make_cell(*load_matrix(name), base, 0)
        trust, correct = cell.trust(NeighborAgg(n_jobs=-1), "quantiles"), cell.correct
        rng = np.random.default_rng(0)
        promised, coverages, risks = 0, [], []
        for split in range(N_SPLITS):
            order = rng.permutation(len(trust))
            cal, test = order[:N_CALIBRATION], order[N_CALIBRATION:]
            found = risk_threshold(
                correct[cal], trust[cal], target_risk=target, confidence_level=CONFIDENCE, random_state=split
            )
            promised += found.promised
            kept = trust[test] >= found.threshold
            coverages.append(kept.mean())
            risks.append((~correct[test][kept]).mean() if kept.any() else 0.0)
        breaks = int((np.array(risks) > target).sum())
        print(
            f"{name:<10}{base:<6}{target:>8.0%}{promised:>10}{np.mean(coverages):>10.1%}"
            f"{np.mean(risks):>9.2%}{breaks:>8}"
        )
        results.append(
            {
                "set": name, "base": base, "target_risk": target, "confidence_level": CONFIDENCE,
                "splits": N_SPLITS, "promised": promised, "mean_coverage": float(np.mean(coverages)),
                "mean_risk": float(np.mean(risks)), "breaks": breaks, "allowed": allowed,
            }
        )  # fmt: skip
    save("selective_guarantee", results, 0)


if __name__ == "__main__":
    main()
