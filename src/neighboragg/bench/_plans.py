"""What each comparison consists of."""

from collections.abc import Sequence

from neighboragg.bench._lineup import ABLATION, TABLE1
from neighboragg.bench._run import Task

__all__ = ["ABLATION_SETS", "PAPER_BASES", "TABLE1_BASES", "TABLE1_SETS", "plan", "sensitivity_plan"]

TABLE1_SETS = ("letter", "landsat", "card_default")
ABLATION_SETS = (
    "letter",
    "landsat",
    "card_default",
    "adult",
    "bank_marketing",
    "magic_gamma",
    "sensorless_drive",
)
PAPER_BASES = ("LR", "RF", "MLP")
TABLE1_BASES = (*PAPER_BASES, "HGB")
SENSITIVITY_METHODS = ("Network", "Pool")


def plan(
    sets: Sequence[str],
    bases: Sequence[str],
    seeds: int,
    methods: Sequence[str],
    label: str | None = None,
) -> list[Task]:
    """Every data set with every base classifier and seed, all seeds of a data set together."""
    return [
        Task(name, base, seed, tuple(methods), label)
        for name in sets
        for base in bases
        for seed in range(seeds)
    ]


def sensitivity_plan(seeds: int, counts: Sequence[int]) -> list[Task]:
    """CardDefault with logistic regression, K from 1 to 20, as in the paper's appendix."""
    return [
        Task("card_default", "LR", seed, SENSITIVITY_METHODS, changes=(("n_neighbors", k),))
        for seed in range(seeds)
        for k in counts
    ]


ALL_METHODS = tuple(dict.fromkeys((*TABLE1, *ABLATION)))
