"""Trust methods compared on one's own data: a file, a frame or arrays."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from neighboragg import compare
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning

QUICK = {"estimators": ["LR"], "splits": 1}
NAMES = ["max-softmax", "temperature scaling", "Trust Score", "paper's network", "neighboragg"]
METRICS = ["auroc", "ap_success", "ap_error", "ece"]


def message_of(*args, **kwargs):
    with pytest.raises((InvalidInputError, InvalidParameterError)) as error:
        compare(*args, **{**QUICK, **kwargs})
    return str(error.value)


def test_a_file_a_frame_and_arrays_give_the_same(csv, frame):
    from_file = compare(csv, label="kind", **QUICK)
    from_frame = compare(frame(), label="kind", **QUICK)
    table = from_file.to_frame()
    assert table["method"].tolist() == NAMES
    assert (table["estimator"] == "LR").all()
    np.testing.assert_allclose(from_frame.to_frame()[METRICS], table[METRICS])
    numbers = frame()[["weight", "ripe"]]
    from_numbers = compare(numbers.assign(kind=frame()["kind"]), label="kind", **QUICK)
    from_arrays = compare(numbers.astype(float), frame()["kind"], **QUICK)
    np.testing.assert_allclose(from_arrays.to_frame()[METRICS], from_numbers.to_frame()[METRICS])


def test_a_column_of_vectors_is_a_column_for_each_number(frame):
    numbers, kind = frame()[["weight", "ripe"]].astype(float), frame()["kind"]
    vectors = pd.DataFrame({"embedding": numbers.to_numpy().tolist()})
    for found in (compare(vectors, kind, **QUICK), compare(vectors.assign(kind=kind), label="kind", **QUICK)):
        expected = compare(numbers, kind, **QUICK).to_frame()
        np.testing.assert_allclose(found.to_frame()[METRICS], expected[METRICS])


def test_ignored_columns_of_a_file_are_reported_once(csv, frame):
    frame().assign(constant=1).to_csv(csv, index=False)
    with pytest.warns(TrustWarning, match="'constant'") as caught:
        compare(csv, label="kind", **QUICK)
    assert len(caught) == 1


def test_it_prints_and_reports_the_expected_time_first(frame):
    seen = []
    found = compare(frame(), label="kind", progress=lambda *counts: seen.append(counts), **QUICK)
    assert seen == [("Comparing, about 10 s", 0, 1), ("Comparing, about 10 s", 1, 1)]
    title, _, header, *lines = str(found).split("\n")
    assert title == "Trust methods on data"
    assert header.split()[0] == "AUROC"
    assert [line.split("  ")[0].strip() for line in lines] == NAMES
    assert "<th>gain of neighboragg</th>" in found._repr_html_()


def test_splits_differ_and_are_seeded():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=120) > 0).astype(int)
    both = compare(X, y, estimators=["LR"], splits=2).to_frame()
    second = compare(X, y, estimators=["LR"], splits=1, random_state=1).to_frame()
    pd.testing.assert_frame_equal(both[both["split"] == 1].reset_index(drop=True), second)
    assert both[both["split"] == 0]["auroc"].tolist() != second["auroc"].tolist()


PLAIN = """
import numpy as np
from neighboragg import compare

X = np.random.default_rng(0).normal(size=(120, 3))
y = (X[:, 0] + np.random.default_rng(1).normal(size=120) > 0).astype(int)
print(compare(X, y, estimators=["LR"], splits={splits}, n_jobs={n_jobs}))
"""


@pytest.mark.full
@pytest.mark.parametrize(("splits", "n_jobs"), [(1, None), (2, 2)])
def test_a_plain_script_needs_no_guard(tmp_path, splits, n_jobs):
    path = tmp_path / "plain.py"
    path.write_text(PLAIN.format(splits=splits, n_jobs=n_jobs))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Trust methods on data") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {},
            "compare needs either y or label, not neither.\n"
            "Hint: compare(X, y) for arrays, compare(frame_or_path, label='column') for tables.",
        ),
        (
            {"y": [0, 1], "label": "kind"},
            "compare needs either y or label, not both.\n"
            "Hint: compare(X, y) for arrays, compare(frame_or_path, label='column') for tables.",
        ),
        (
            {"label": "kind"},
            "label passed to compare names a column, but list has none.\nHint: pass the labels of an array as y.",
        ),
        (
            {"y": [0, 1, 0]},
            "data and y passed to compare must have the same number of rows. Got 2 and 3.",
        ),
        (
            {"y": [0, 1], "estimators": ["SVM"]},
            "The 'estimators' parameter of compare must be one of 'HGB', 'LR', 'MLP', 'RF'. Got 'SVM' instead.",
        ),
        ({"y": [0, 1], "splits": 0}, "The 'splits' parameter of compare must be an int >= 1. Got 0 instead."),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(arguments, message):
    assert message_of([[0.0], [1.0]], **arguments) == message


def test_a_file_needs_its_label_column(csv):
    assert message_of(csv, [0, 1]) == "A file passed to compare needs label, the name of its label column."
