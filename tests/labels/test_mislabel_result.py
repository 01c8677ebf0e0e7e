"""What a result says, as text, as a table, and as a file."""

import builtins

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

import neighboragg
from neighboragg import MislabelResult, find_mislabeled, load
from neighboragg.exceptions import MissingExtraError


@pytest.fixture(scope="module")
def result(blobs):
    X = blobs.X.copy()
    X[20] += 40.0
    return find_mislabeled(X, blobs.y, flag=3)


def test_fields_fit_together(result, blobs):
    assert len(result) == 80
    assert repr(result) == "MislabelResult(n_flagged=3, n_rows=80, rule='budget')"
    np.testing.assert_array_equal(result.given, blobs.y)
    assert result.classes.tolist() == ["left", "right"]
    assert sorted(result.ranking.tolist()) == list(range(80))
    assert (np.diff(result.scores[result.ranking]) >= 0).all()
    np.testing.assert_array_equal(np.flatnonzero(result.mask), np.sort(result.ranking[:3]))
    for field in ("neighbors", "distances"):
        for side in ("given", "suggested"):
            assert getattr(result, f"{side}_{field}").shape == (80, 5)
    assert (blobs.y[result.given_neighbors] == result.given[:, None]).all()
    assert (blobs.y[result.suggested_neighbors] == result.suggested[:, None]).all()


def test_reasons_name_what_speaks_against_the_label(result, blobs):
    assert result.reasons[0] == ()
    assert result.reasons[3][0] == "neighbors disagree (20 of 20 are 'left')"
    assert result.reasons[3][1].startswith("logistic regression prefers 'left' (0.")
    assert result.reasons[3][2].startswith("extra-trees prefers 'left' (")
    assert "isolated row" in result.reasons[20]
    assert "isolated row" not in result.reasons[3]
    proba = np.where(blobs.true[:, None] == ["left", "right"], 0.9, 0.1)
    said = find_mislabeled(blobs.X, blobs.y, proba=proba, effort="fast", flag=80)
    assert said.reasons[3][1] == "classifier prefers 'left' (0.90)"
    # A good label, flagged only because everything is.
    trusted = said.label_trust[0]
    assert said.reasons[0] == (f"weak evidence ('left' {trusted:.2f}, 'right' {1 - trusted:.2f})",)


def test_summary_says_it_in_words(blobs):
    y = blobs.true.copy()
    y[[3, 4, 50]] = ["right", "right", "left"]
    result = find_mislabeled(blobs.X, y, flag=3, effort="fast")
    first, second, third = result.ranking[:3]
    lines = result.summary().splitlines()
    assert lines[:6] == [
        "3 of 80 labels flagged (3.8%) by the rule 'budget'.",
        "A fixed number, without a promise about false alarms. To bound their precision, review a random sample "
        "of the flags (precision_interval).",
        "Estimated share of wrong labels: 3.7%. Errors, if any, look like ambiguity, so it may also be "
        "too high. It is too low where errors look right to a "
        "model, as in labels that a model made. A reviewed random sample gives an exact interval "
        "(errors_left_interval).",
        "Most frequent among the flags:",
        "  given 'right', suggested 'left': 2",
        "  given 'left', suggested 'right': 1",
    ]
    assert lines[6] == "Most suspicious:"
    for line, row in zip(lines[7:], (first, second, third), strict=True):
        given, suggested = y[row].item(), blobs.true[row].item()
        assert (
            line == f"  row {row}: given {given!r}, suggested {suggested!r}; {'; '.join(result.reasons[row])}"
        )


def test_summary_without_flags(blobs):
    clean = find_mislabeled(blobs.X, blobs.true, effort="fast")
    assert clean.summary() == (
        "0 of 80 labels flagged (0.0%) by the rule 'estimated'.\n"
        "The labels that trust is confident are wrong, which may be fewer than estimated, without a promise "
        "about false alarms. To bound their precision, review a random sample of the flags (precision_interval).\n"
        "Estimated share of wrong labels: 0.6%. Errors, if any, look like ambiguity, so it may "
        "also be too high. It is too low where errors look right to a model, as in labels that a model made. A "
        "reviewed random sample gives an exact interval (errors_left_interval)."
    )


def test_frame_has_one_line_per_row(result):
    frame = result.to_frame()
    assert frame.columns.tolist() == [
        "given",
        "suggested",
        "flagged",
        "p_wrong",
        "trust",
        "suggested_trust",
        "reasons",
    ]
    assert len(frame) == 80
    np.testing.assert_array_equal(frame["p_wrong"], result.p_wrong)
    assert frame["flagged"].sum() == 3
    assert frame.loc[3, "reasons"] == "; ".join(result.reasons[3])
    assert frame.loc[0, "reasons"] == ""


def test_the_index_of_a_filtered_and_shuffled_frame_is_kept(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    y[[7, 70]] = [2, 0]
    chosen = X[X.index % 5 != 1].sample(frac=1, random_state=0)
    result = find_mislabeled(chosen, y.loc[chosen.index], flag=2)
    frame = result.to_frame()
    pd.testing.assert_index_equal(frame.index, chosen.index)
    assert sorted(frame.index[frame["flagged"]]) == [7, 70]
    assert frame.loc[7, "given"] == 2
    assert sorted(X.loc[frame.index[frame["flagged"]]].index) == [7, 70]
    result.save(tmp_path / "result.nagg")
    loaded = load(tmp_path / "result.nagg").to_frame()
    np.testing.assert_array_equal(loaded.index, chosen.index)
    named = find_mislabeled(chosen.set_axis([f"id{i}" for i in chosen.index]), y.loc[chosen.index], flag=2)
    assert sorted(named.to_frame().query("flagged").index) == ["id7", "id70"]


def test_frame_needs_pandas(result, monkeypatch):
    real = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr("neighboragg._core.packages.import_module", without_pandas)
    with pytest.raises(MissingExtraError) as error:
        result.to_frame()
    assert str(error.value) == (
        "MislabelResult.to_frame needs the package 'pandas', which is not installed.\n"
        'Hint: pip install "neighboragg[cli]"'
    )


@pytest.mark.parametrize("labels", ["str", "object", "int"])
def test_saved_and_loaded_it_is_the_same(blobs, tmp_path, labels):
    y = (blobs.y == "left").astype(int) if labels == "int" else blobs.y.astype(labels)
    result = find_mislabeled(blobs.X, y, effort="fast", flag=0.1)
    result.save(tmp_path / "result.nagg")
    again = neighboragg.load(tmp_path / "result.nagg")
    for name in MislabelResult.__dataclass_fields__:
        before, after = getattr(result, name), getattr(again, name)
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(after, before, strict=True)
        else:
            assert after == before
            assert type(after) is type(before)
    assert again.summary() == result.summary()


def test_an_infinite_threshold_survives(blobs, tmp_path):
    find_mislabeled(blobs.X, blobs.y, effort="fast", flag=80).save(tmp_path / "all.nagg")
    assert neighboragg.load(tmp_path / "all.nagg").threshold == np.inf


def test_a_result_cannot_be_changed(result):
    with pytest.raises(AttributeError):
        result.rule = "none"


def test_plots_show_the_flags_and_the_threshold(result):
    mpl.use("Agg")
    scores = result.plot_scores(bins=10)
    assert sum(bar.get_height() for bar in scores.flagged_) == 3
    assert sum(bar.get_height() for bar in scores.kept_) == 77
    assert scores.line_.get_xdata()[0] == result.threshold
    matrix = result.plot_matrix(max_classes=2)
    assert matrix.counts.sum() == 3
    left_as_right = ((result.given == "left") & (result.suggested == "right"))[result.mask].sum()
    assert matrix.counts[0, 1] == left_as_right
    plt.close("all")
