"""Trust methods compared on one's own data: a file, a frame or arrays."""

import numpy as np
import pandas as pd
import pytest

from neighboragg import compare
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning

QUICK = {"bases": ["LR"], "methods": ["Confidence", "TrustScore"], "n_splits": 2, "n_jobs": 1}
METRICS = ["auroc", "ap_success", "ap_error", "ece"]


def message_of(*args, **kwargs):
    with pytest.raises((InvalidInputError, InvalidParameterError)) as error:
        compare(*args, **{**QUICK, **kwargs})
    return str(error.value)


def test_a_file_a_frame_and_arrays_give_the_same(csv, frame):
    from_file = compare(csv, label="kind", **QUICK)
    from_frame = compare(frame(), label="kind", **QUICK)
    table = from_file.to_frame()
    assert table["method"].tolist() == ["Confidence"] * 2 + ["TrustScore"] * 2
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


def test_what_is_left_out_of_a_file_is_said_once(csv, frame):
    frame().assign(constant=1).to_csv(csv, index=False)
    with pytest.warns(TrustWarning, match="'constant'") as caught:
        compare(csv, label="kind", **QUICK)
    assert len(caught) == 1


def test_it_prints_and_becomes_a_page(frame):
    seen = []
    found = compare(frame(), label="kind", progress=lambda *counts: seen.append(counts), **QUICK)
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert str(found).startswith("Trust methods on data\n\n**Mean over data × LR**\n\n| method | AUROC |")
    assert found.to_markdown().startswith(
        "# Trust methods on data\n\n**LR: mean (standard deviation) over 2 seeds**\n"
    )
    assert "<h1>Trust methods on data</h1>" in found.to_html()
    assert found.gains("TrustScore").rows[0][0] == "Confidence"


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
            {"y": [0, 1], "bases": ["SVM"]},
            "The 'bases' parameter of compare must be one of 'HGB', 'LR', 'MLP', 'RF'. Got 'SVM' instead.",
        ),
        ({"y": [0, 1], "n_splits": 0}, "The 'n_splits' parameter of compare must be an int >= 1. Got 0 instead."),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(arguments, message):
    assert message_of([[0.0], [1.0]], **arguments) == message


def test_a_file_needs_its_label_column(csv):
    assert message_of(csv, [0, 1]) == "A file passed to compare needs label, the name of its label column."
