"""The trust report: its numbers, text and plot."""

import json

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from neighboragg import TrustedClassifier, TrustReport
from neighboragg._report.report import summarize_trust
from neighboragg.exceptions import InvalidInputError
from neighboragg.methods import MaxConfidence
from neighboragg.metrics import auroc, bootstrap_difference, coverage_at_risk, expected_calibration_error

mpl.use("Agg")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700], y[:700], X[700:1300], y[700:1300]


@pytest.fixture(scope="module")
def model(digits):
    return TrustedClassifier(GaussianNB(), random_state=0).fit(*digits[:2])


@pytest.fixture(scope="module")
def report(model, digits):
    return model.report(*digits[2:], n_resamples=100)


def test_numbers_are_those_of_the_metrics(model, digits, report):
    _, _, X, y = digits
    assessed = model.assess(X)
    correct = assessed.predicted == y
    found = report.to_dict()
    assert (found["n_rows"], found["n_errors"]) == (600, int((~correct).sum()))
    assert (
        found["accuracy"]["low"] < correct.mean() == found["accuracy"]["estimate"] < found["accuracy"]["high"]
    )
    confidence = (assessed.proba / assessed.proba.sum(axis=1)[:, None]).max(axis=1)
    for name, scores in (("trust", assessed.trust), ("confidence", confidence)):
        assert found["auroc"][name]["estimate"] == auroc(correct, scores)
        assert found["ece"][name] == expected_calibration_error(correct, scores)
        for point, risk in zip(found["coverage_at_risk"], (0.01, 0.02, 0.05), strict=True):
            assert point["risk"] == risk
            assert point[name] == coverage_at_risk(correct, scores, risk=risk)
        assert sum(point["n_rows"] for point in found["reliability"][name]) == 600
    gain = bootstrap_difference(auroc, correct, assessed.trust, confidence, n_resamples=100, random_state=0)
    assert found["auroc"]["difference"] == {"estimate": gain.estimate, "low": gain.low, "high": gain.high}


def test_it_becomes_json(report):
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()


def test_text_of_the_report(report):
    found = report.to_dict()
    lines = str(report).splitlines()
    accuracy = found["accuracy"]
    assert lines[0] == (
        f"600 rows, {found['n_errors']} errors, accuracy {accuracy['estimate']:.3f} "
        f"[{accuracy['low']:.3f}, {accuracy['high']:.3f}] (95% intervals)."
    )
    assert lines[1].startswith(
        "Trust separates correct from wrong predictions better than the classifier's confidence: AUROC 0.9"
    )
    assert [line.split("  ")[0] for line in lines[4:9]] == [
        "AUROC",
        "accepted at 1% errors",
        "accepted at 2% errors",
        "accepted at 5% errors",
        "calibration error (ECE)",
    ]
    assert "Trust and share of correct predictions, by bins of trust:" in lines
    html = report._repr_html_()
    assert html.count("<table>") == 2
    assert "<td>AUROC</td>" in html


def test_the_plot_shows_both_scores(report):
    figure = report.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Errors among accepted predictions", "Share of correct predictions by score"]
    for axes in figure.axes:
        texts = [text.get_text().partition(" (")[0] for text in axes.get_legend().get_texts()]
        assert texts == ["trust", "confidence"]
    plt.close(figure)


def verdict(correct, trust, confidence):
    correct = np.asarray(correct)
    summary = summarize_trust(correct, trust, confidence, n_resamples=50)
    return TrustReport(summary, correct, np.asarray(trust), np.asarray(confidence)).verdict


def test_verdicts():
    rng = np.random.default_rng(0)
    correct = rng.random(300) < 0.8
    good, poor = np.where(correct, 0.9, 0.2) + 0.1 * rng.random(300), rng.random(300)
    assert "better than the classifier's confidence" in verdict(correct, good, poor)
    assert "worse than the classifier's confidence" in verdict(correct, poor, good)
    assert "about as well as the classifier's confidence" in verdict(correct, good, good)
    ones = np.ones(20, dtype=bool)
    assert verdict(ones, good[:20], poor[:20]) == (
        "All 20 predictions are right, so the two scores cannot be compared."
    )
    assert verdict(~ones, good[:20], poor[:20]) == (
        "All 20 predictions are wrong, so the two scores cannot be compared."
    )


def test_calibration_is_omitted_for_scores_that_are_not_probabilities():
    rng = np.random.default_rng(0)
    correct, trust, confidence = rng.random(200) < 0.7, -rng.random(200), rng.random(200)
    summary = summarize_trust(correct, trust, confidence, n_resamples=20)
    report = TrustReport(summary, correct, trust, confidence)
    assert report.to_dict()["ece"]["trust"] is None
    assert str(report).splitlines()[-1].split()[-2] == "–"
    assert "share that was correct" not in str(report)
    plt.close(report.plot())


def test_confidence_does_not_differ_from_itself(digits):
    X, y, X_new, y_new = digits
    model = TrustedClassifier(GaussianNB(), MaxConfidence(), random_state=0).fit(X, y)
    difference = model.report(X_new, y_new, n_resamples=20).to_dict()["auroc"]["difference"]
    assert difference == {"estimate": 0.0, "low": 0.0, "high": 0.0}


def test_unusable_labels_are_refused(model, digits):
    _, _, X, y = digits
    with pytest.raises(InvalidInputError) as error:
        model.report(X, y[:-1])
    assert str(error.value) == (
        "X and y passed to TrustedClassifier must have the same number of rows. Got 600 and 599."
    )
    with pytest.raises(InvalidInputError, match="so no label can equal a prediction"):
        model.report(X, y.astype(str))
