"""Decided labels with who and when, as rows, CSV, Parquet and a corrected column."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighboragg._core.files import unescape_formula
from neighboragg._review.export import corrected_labels, excluded_rows, export_labels, to_csv
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import FileFormatError, InvalidInputError
from neighboragg.labels._review_set import ReviewItem, ReviewSet
from sizes import examples

COLUMNS = ["row", "given", "decided", "action", "reviewer", "time", "note"]


@pytest.fixture
def decided(open_pages, review_set):
    (page,) = open_pages(review_set, clock=lambda: 1_700_000_000.5)
    for action, label in (
        ("relabel", "hen"),
        ("keep", None),
        ("skip", None),
        ("unsure", None),
        ("relabel", "cat"),
    ):
        page.decide(action, label)
    page.undo()
    return page


EXPECTED = [
    (0, "cat", "hen", "relabel"),
    (1, "dog", "dog", "keep"),
    (2, "hen", None, "skip"),
    (3, "cat", None, "unsure"),
]


def test_rows(decided, review_set):
    rows = export_labels(decided.app.state.store.path, review_set)
    assert [tuple(row[name] for name in COLUMNS[:4]) for row in rows] == EXPECTED
    assert {row["reviewer"] for row in rows} == {"reviewer 1"}
    assert {row["time"] for row in rows} == {"2023-11-14T22:13:20.500Z"}
    assert [list(row) for row in rows] == [COLUMNS] * 4


def test_csv(decided):
    answer = decided.get("/export.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    assert answer.text.splitlines()[:4] == [
        "row,given,decided,action,reviewer,time,note",
        "0,cat,hen,relabel,reviewer 1,2023-11-14T22:13:20.500Z,",
        "1,dog,dog,keep,reviewer 1,2023-11-14T22:13:20.500Z,",
        "2,hen,,skip,reviewer 1,2023-11-14T22:13:20.500Z,",
    ]


def test_parquet(decided):
    answer = decided.get("/export.parquet")
    assert answer.headers["content-disposition"] == 'attachment; filename="labels.parquet"'
    table = pyarrow.parquet.read_table(io.BytesIO(answer.content))
    assert table.column_names == COLUMNS
    assert [str(kind) for kind in table.schema.types] == [
        "int64",
        *["string"] * 4,
        "timestamp[ms, tz=UTC]",
        "string",
    ]
    rows = table.to_pylist()
    assert [tuple(row[name] for name in COLUMNS[:4]) for row in rows] == EXPECTED
    assert rows[0]["time"].isoformat() == "2023-11-14T22:13:20.500000+00:00"


def test_an_empty_export(open_pages, review_set):
    (page,) = open_pages(review_set)
    assert page.get("/export.csv").text == "row,given,decided,action,reviewer,time,note\r\n"
    assert pyarrow.parquet.read_table(io.BytesIO(page.get("/export.parquet").content)).num_rows == 0


def test_the_log_contains_undone_decisions(decided):
    rows = list(csv.DictReader(io.StringIO(decided.get("/log.csv").text)))
    assert [row["action"] for row in rows] == ["relabel", "keep", "skip", "unsure", "relabel", "undo"]
    assert (rows[5]["undoes"], rows[5]["based_on"], rows[5]["row"]) == (rows[4]["id"], rows[4]["id"], "4")


def test_without_pyarrow(decided, monkeypatch):
    def missing(module):
        raise ImportError(module)

    monkeypatch.setattr("neighboragg._core.packages.import_module", missing)
    assert decided.get("/export.parquet").status_code == 501
    assert "Export as Parquet needs the package &#39;pyarrow&#39;" in decided.text
    assert "neighboragg[review]" in decided.text


def small_set(classes, givens):
    items = tuple(
        ReviewItem(
            row=row,
            content={"text": ""},
            given=given,
            suggested=next(label for label in classes if label != given),
            score=0.0,
            trust=(0.5,) * len(classes),
        )
        for row, given in enumerate(givens)
    )
    return ReviewSet(classes=classes, n_rows=len(givens) + 1, n_flagged=len(givens), items=items)


def relabel(path, review_set, changes):
    with DecisionStore(path, review_set) as store:
        for row, label in changes.items():
            store.record(row, action="relabel", label=label, reviewer="Ada", based_on=0)


@examples(20)
@given(labels=st.lists(st.text(min_size=1), min_size=2, max_size=4, unique=True))
def test_any_label_survives_csv(tmp_path_factory, labels):
    review_set = small_set(tuple(labels), labels)
    path = tmp_path_factory.mktemp("export") / "d.sqlite"
    new = {row: review_set.items[row].suggested for row in range(len(labels))}
    try:
        relabel(path, review_set, new)
    except UnicodeEncodeError:
        # A lone surrogate is no text; it is refused whole.
        assert any(re.search("[\ud800-\udfff]", label) for label in labels)
        return
    rows = export_labels(path, review_set)
    read = list(csv.DictReader(io.StringIO(to_csv(rows), newline="")))
    assert {int(row["row"]): unescape_formula(row["decided"]) for row in read} == new
    assert [unescape_formula(row["given"]) for row in read] == labels


FORMULAS = ["=1+1", "+cmd", "-2+3", "@SUM(1)", "\t=1", "'=1", "=", "''+x"]
HARMLESS = ["-1", "+1", "-1.5e-3", "a=b", "1-2", "'quoted'", "", "-.5"]


@pytest.mark.parametrize("label", [*FORMULAS, *HARMLESS])
def test_no_spreadsheet_runs_a_label(label):
    (row,) = csv.DictReader(
        io.StringIO(to_csv([{"row": 0, "decided": label}], ["row", "decided"]), newline="")
    )
    assert row["decided"] == (f"'{label}" if label in FORMULAS else label)
    assert unescape_formula(row["decided"]) == label


def test_new_classes_exclusions_and_notes(tmp_path):
    review_set = small_set(("a", "b"), ["a", "b", "a"])
    path = tmp_path / "d.sqlite"
    with DecisionStore(path, review_set) as store:
        store.record(
            0, action="relabel", label="=new", new_class=True, reviewer="Ada", based_on=0, note="odd"
        )
        store.record(1, action="exclude", reviewer="Ada", based_on=0)
        taken_back = store.record(2, action="exclude", reviewer="Ada", based_on=0, note="a copy")
        store.undo(taken_back.id, reviewer="Ada")
        log = store.log()
    rows = export_labels(path, review_set)
    assert [(row["row"], row["decided"], row["action"], row["note"]) for row in rows] == [
        (0, "=new", "relabel", "odd"),
        (1, None, "exclude", ""),
    ]
    assert "0,a,'=new,relabel,Ada," in to_csv(rows)
    assert corrected_labels(["a", "b", "a", "b"], path, review_set).tolist() == ["=new", "b", "a", "b"]
    assert excluded_rows(path, review_set).tolist() == [1]
    assert [(entry.action, entry.note) for entry in log] == [
        ("relabel", "odd"),
        ("exclude", ""),
        ("exclude", "a copy"),
        ("undo", ""),
    ]


@pytest.mark.parametrize(
    ("original", "names", "changes", "expected"),
    [
        (np.array([3, 5, 3, 5]), ("3", "5"), {0: "5", 1: "3"}, [5, 3, 3, 5]),
        (np.array([True, False, True]), ("True", "False"), {0: "False"}, [False, False, True]),
        (np.array(["a", "b", "a"]), ("a", "b", "much longer"), {1: "much longer"}, ["a", "much longer", "a"]),
        (np.array(["a", "b", "a"], dtype=object), ("a", "b", "c"), {1: "c"}, ["a", "c", "a"]),
        (np.array(["a", 1, "a"], dtype=object), ("a", "1"), {0: "1"}, [1, 1, "a"]),
        (pd.Series(["a", "b", "a"], index=[7, 8, 9]), ("a", "b"), {0: "b"}, ["b", "b", "a"]),
        (["a", "b", "a"], ("a", "b"), {}, ["a", "b", "a"]),
    ],
)
def test_corrected_labels(tmp_path, original, names, changes, expected):
    givens = [str(value) for value in list(original)[:-1]]
    review_set = small_set(names, givens)
    relabel(tmp_path / "d.sqlite", review_set, changes)
    before = list(original)
    corrected = corrected_labels(original, tmp_path / "d.sqlite", review_set)
    assert corrected.tolist() == expected
    assert [type(value) for value in corrected.tolist()] == [type(value) for value in expected]
    assert list(original) == before


def test_corrected_labels_that_do_not_fit(tmp_path):
    review_set = small_set(("1", "2", "3"), ["1", "2"])
    path = tmp_path / "d.sqlite"
    relabel(path, review_set, {0: "3"})
    with pytest.raises(InvalidInputError) as caught:
        corrected_labels([1, 2], path, review_set)
    assert str(caught.value) == (
        "labels passed to corrected_labels must have shape (3,), as the data that was reviewed. Got (2,)."
    )
    with pytest.raises(InvalidInputError) as caught:
        corrected_labels([1, 1, 1], path, review_set)
    assert str(caught.value) == (
        "Row 1 of labels passed to corrected_labels is 1, but the review set says '2'.\n"
        "Hint: pass the label column of the same data, in the same order."
    )
    with pytest.raises(InvalidInputError) as caught:
        corrected_labels([1, 2, 1], path, review_set)
    assert str(caught.value) == (
        "The new label '3' does not occur in labels passed to corrected_labels, so its value of type int64 is not "
        "known.\nHint: pass the labels as text."
    )
    with pytest.raises(FileFormatError):
        corrected_labels([1, 2, 1], tmp_path / "none.sqlite", review_set)
