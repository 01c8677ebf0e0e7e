"""How much a test does: little in the quick run, everything with ``--full``."""

from hypothesis import settings

#: Set by the root conftest.py before any test is imported.
FULL = False


def draws(quick, full=1000):
    """Draws of a simulation, whose binomial bound must scale with them; or sizes to draw."""
    return full if FULL else quick


def examples(full, quick=15):
    """Settings of a property whose number of examples is not the usual one."""
    return settings(deadline=None, max_examples=full if FULL else min(quick, full))
