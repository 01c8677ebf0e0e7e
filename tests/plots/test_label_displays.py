"""Histogram of label scores and matrix of labels, read back from their artists."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

from neighboragg._report.label_plots import LabelMatrixDisplay, LabelScoreDisplay
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, MissingExtraError

mpl.use("Agg")

from matplotlib import pyplot as plt

SCORES = np.array([-3.0, -2.5, -0.5, 0.2, 0.4, 1.0, 2.0, 2.0])
MASK = SCORES < -1.0
GIVEN = np.array(["cat", "cat", "dog", "owl", "cat"])
SUGGESTED = np.array(["dog", "dog", "cat", "cat", "owl"])


def test_bars_count_every_row_once():
    display = LabelScoreDisplay(SCORES, MASK, -1.0).plot(bins=5)
    flagged = np.array([bar.get_height() for bar in display.flagged_])
    kept = np.array([bar.get_height() for bar in display.kept_])
    np.testing.assert_array_equal(flagged + kept, np.histogram(SCORES, 5)[0])
    np.testing.assert_array_equal(flagged, np.histogram(SCORES[MASK], 5, (-3.0, 2.0))[0])
    assert [bar.get_y() for bar in display.kept_] == flagged.tolist()
    assert (display.kept_[0].get_x(), display.kept_[-1].get_x() + display.kept_[-1].get_width()) == (
        -3.0,
        2.0,
    )


def test_threshold_is_a_line_and_in_the_legend(legend_of):
    display = LabelScoreDisplay(SCORES, MASK, -1.0).plot()
    assert list(display.line_.get_xdata()) == [-1.0, -1.0]
    assert legend_of(display) == ["threshold (-1)", "kept (6)", "flagged (2)"]


@pytest.mark.parametrize("threshold", [None, np.inf, -np.inf])
def test_no_line_without_a_finite_threshold(threshold, legend_of):
    display = LabelScoreDisplay(SCORES, MASK, threshold).plot()
    assert display.line_ is None
    assert legend_of(display) == ["kept (6)", "flagged (2)"]


def test_infinite_scores_are_drawn_at_the_ends():
    display = LabelScoreDisplay([-np.inf, 0.0, 1.0, np.inf], [True, False, False, False]).plot(bins=2)
    assert [bar.get_height() for bar in display.flagged_] == [1, 0]
    assert [bar.get_height() for bar in display.kept_] == [1, 2]


def test_rows_are_counted_on_a_log_axis_by_default():
    logarithmic = LabelScoreDisplay(SCORES, MASK).plot().ax_
    assert logarithmic.get_yscale() == "log"
    assert logarithmic.get_ylim()[0] < 1  # a bar of one label is seen
    figure, axes = plt.subplots()
    display = LabelScoreDisplay(SCORES, MASK).plot(axes, log=False, alpha=0.5)
    assert (display.ax_, display.figure_) == (axes, figure)
    assert axes.get_yscale() == "linear"
    assert display.flagged_[0].get_alpha() == 0.5


def test_scores_and_mask_must_fit():
    with pytest.raises(InvalidInputError) as caught:
        LabelScoreDisplay(SCORES, MASK[:3])
    assert str(caught.value) == (
        "scores and mask passed to LabelScoreDisplay must have the same number of rows. Got 8 and 3."
    )


def test_matrix_counts_given_against_suggested():
    display = LabelMatrixDisplay(GIVEN, SUGGESTED).plot()
    assert display.classes.tolist() == ["cat", "dog", "owl"]
    assert display.counts.tolist() == [[0, 2, 1], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(display.image_.get_array(), display.counts)
    written = {text.get_position(): text.get_text() for text in display.texts_}
    assert written == {(1, 0): "2", (2, 0): "1", (0, 1): "1", (0, 2): "1"}
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["cat", "dog", "owl"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("Suggested label", "Given label")
    assert display.ax_.get_title() == ""


def test_only_the_most_frequent_classes_are_shown():
    display = LabelMatrixDisplay(GIVEN, SUGGESTED, max_classes=2).plot()
    assert display.classes.tolist() == ["cat", "dog"]
    assert display.counts.tolist() == [[0, 2], [1, 0]]
    assert display.n_hidden == 2
    assert display.ax_.get_title() == "2 rows with other labels not shown"


def test_many_classes_are_drawn_without_numbers():
    codes = np.arange(40)
    display = LabelMatrixDisplay(codes, (codes + 1) % 40, max_classes=40).plot()
    assert display.texts_ == []
    assert display.counts.sum() == 40


def test_no_flag_at_all_gives_an_empty_matrix():
    display = LabelMatrixDisplay(GIVEN[:0], SUGGESTED[:0]).plot()
    assert display.counts.shape == (0, 0)
    assert display.image_ is None
    assert [text.get_text() for text in display.texts_] == ["No labels to show"]


def test_matrix_needs_room_for_two_classes():
    with pytest.raises(InvalidParameterError) as caught:
        LabelMatrixDisplay(GIVEN, SUGGESTED, max_classes=1)
    assert str(caught.value) == (
        "The 'max_classes' parameter of LabelMatrixDisplay must be an int >= 2. Got 1 instead."
    )


@pytest.mark.parametrize("display", [LabelScoreDisplay(SCORES, MASK), LabelMatrixDisplay(GIVEN, SUGGESTED)])
def test_without_matplotlib_the_error_names_the_extra(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError) as caught:
        display.plot()
    assert str(caught.value) == (
        f"{type(display).__name__} needs the package 'matplotlib', which is not installed.\n"
        'Hint: pip install "neighboragg[cli]"'
    )
