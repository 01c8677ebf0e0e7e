"""Figures are drawn off screen and closed after each test."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture
def legend_of():
    """Texts of the legend of a display."""
    return lambda display: [text.get_text() for text in display.ax_.get_legend().get_texts()]
