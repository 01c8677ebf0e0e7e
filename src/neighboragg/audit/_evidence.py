"""Whether what labels are judged by says anything about them."""

from dataclasses import replace

import numpy as np

from neighboragg.mislabel import MislabelResult

__all__ = ["says_nothing", "without_flags"]

# Less of the uncertainty explained than this, and hardly more labels foretold than by always guessing one class.
LEAST_EXPLAINED, LEAST_FORETOLD = 0.05, 0.1


def says_nothing(result: MislabelResult) -> str:
    """Why the judgment is worthless; empty if it is not.

    Trust is out of sample. It is compared with the shares of the classes: by the share of the uncertainty (mean
    log loss) that it removes, and by the share of the errors of always guessing the most frequent class.
    """
    codes = np.searchsorted(result.classes, result.given)
    shares = np.bincount(codes, minlength=len(result.classes)) / len(codes)
    entropy = -float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
    loss = -float(np.mean(np.log(np.maximum(result.label_trust, 1e-12))))
    foretold = float((result.trust.argmax(axis=1) == codes).mean())
    guessed = float(shares.max())
    explained = (entropy - loss) / entropy
    if explained >= LEAST_EXPLAINED or foretold - guessed >= LEAST_FORETOLD * (1 - guessed):
        return ""
    frequent = str(result.classes[shares.argmax()])
    return (
        f"What is given foretells {foretold:.1%} of the labels, and always guessing {frequent!r} foretells "
        f"{guessed:.1%}: it says next to nothing about single labels."
    )


def without_flags(result: MislabelResult) -> MislabelResult:
    """The same judgment with no label flagged."""
    return replace(
        result,
        mask=np.zeros(len(result), dtype=bool),
        reasons=((),) * len(result),
        threshold=-np.inf,
    )
