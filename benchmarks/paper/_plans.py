"""What each of the paper's tables and figures consists of."""

from collections.abc import Sequence

from benchmarks.runs import COMPARED, DEFAULT, PAPER_METHOD, Task

__all__ = [
    "ABLATION_METHODS",
    "ABLATION_SETS",
    "ALL_METHODS",
    "PAPER_BASES",
    "SENSITIVITY_METHODS",
    "TABLE1_BASES",
    "TABLE1_SETS",
    "plan",
    "sensitivity_plan",
]

TABLE1_SETS = ("letter", "landsat", "card_default")
ABLATION_SETS = (*TABLE1_SETS, "adult", "bank_marketing", "magic_gamma", "sensorless_drive")
PAPER_BASES = ("LR", "RF", "MLP")
TABLE1_BASES = (*PAPER_BASES, "HGB")
SENSITIVITY_METHODS = (PAPER_METHOD, DEFAULT)
ABLATION_METHODS = ("TrustScore", "NeighOnly", "ProbOnly", PAPER_METHOD, DEFAULT)
ALL_METHODS = tuple(dict.fromkeys((*COMPARED, *ABLATION_METHODS)))


def plan(sets: Sequence[str], bases: Sequence[str], n_splits: int) -> list[Task]:
    """Every data set with every base classifier and split, all splits of a data set together."""
    return [
        Task(name, base, seed, ALL_METHODS) for name in sets for base in bases for seed in range(n_splits)
    ]


def sensitivity_plan(n_splits: int, counts: Sequence[int]) -> list[Task]:
    """CardDefault with logistic regression and several K, as in the paper's appendix."""
    return [
        Task("card_default", "LR", seed, SENSITIVITY_METHODS, changes=(("n_neighbors", k),))
        for seed in range(n_splits)
        for k in counts
    ]
