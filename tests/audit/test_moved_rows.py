"""A table that has changed since the audit: decisions reach the rows they are about, or nothing is written."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from neighboragg import audit, correct
from neighboragg._cli.app import app
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import InvalidInputError
from neighboragg.labels import Columns
from neighboragg.labels._review_set import load_review_set

READ = {
    ".csv": lambda path: pd.read_csv(path, dtype=str),
    ".jsonl": lambda path: pd.read_json(path, lines=True),
    ".parquet": pd.read_parquet,
    ".xlsx": pd.read_excel,
}


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_excel(path, index=False)


@pytest.fixture(scope="module")
def frame():
    """Two classes apart, with three wrong labels; the last two rows are the same in every cell."""
    rng = np.random.default_rng(0)
    y = np.repeat(["u", "v"], 30)
    frame = pd.DataFrame({"id": np.arange(60), "a": (rng.normal(size=60) + 6 * (y == "v")).round(3), "y": y})
    frame.loc[[4, 11, 50], "y"] = ["v", "v", "u"]
    frame.loc[59] = frame.loc[58]
    return frame


@pytest.fixture(
    scope="module",
    params=[
        suffix if suffix in (".csv", ".parquet") else pytest.param(suffix, marks=pytest.mark.full)
        for suffix in READ
    ],
)
def reviewed(request, frame, tmp_path_factory):
    """The folder of a table that was audited, and whose three wrong labels were decided about."""
    folder = tmp_path_factory.mktemp("audit")
    table = folder / f"t{request.param}"
    write(frame, table)
    audit(table, label="y", by=Columns(ignore=["id"]), flag=3, n_random=10).write(folder / "s.csv")
    review_set = load_review_set(folder / "s.review.json")
    assert sorted(item.row for item in review_set.flagged) == [4, 11, 50]
    with DecisionStore(folder / "s.review.decisions.sqlite", review_set) as store:
        store.record(4, action="relabel", label="u", reviewer="Ada", based_on=0)
        store.record(11, action="relabel", label="w", new_class=True, reviewer="Ada", based_on=0)
        store.record(50, action="exclude", reviewer="Ada", based_on=0)
    return folder, request.param


@pytest.fixture
def corrected(reviewed, tmp_path):
    """Corrects another state of the table and gives the ids and labels that are written."""
    folder, suffix = reviewed

    def run(frame):
        write(frame, tmp_path / f"now{suffix}")
        done = correct(folder / "s.csv", tmp_path / f"c{suffix}", source=tmp_path / f"now{suffix}")
        assert (done.n_changed, done.n_dropped) == (2, 1)
        found = READ[suffix](tmp_path / f"c{suffix}")
        return list(zip(found["id"].astype(int), found["y"], strict=True))

    return run


def expected(frame):
    decided = frame.assign(y=frame["y"].where(frame["id"] != 4, "u").where(frame["id"] != 11, "w"))
    decided = decided[decided["id"] != 50]
    return list(zip(decided["id"], decided["y"], strict=True))


def test_rows_in_the_same_order(corrected, frame):
    assert corrected(frame) == expected(frame)


def test_rows_sorted_again(corrected, frame):
    """By label and backward: where a reviewed row was, there is now another one with the same label."""
    again = frame.sort_values(["y", "id"], ascending=[True, False], ignore_index=True)
    assert (again["y"][[4, 50]] == ["u", "v"]).all()
    assert corrected(again) == expected(again)


def test_two_rows_that_changed_places(corrected, frame):
    """Of the same label, so that labels alone cannot tell."""
    again = frame.copy()
    again.loc[[4, 40]] = frame.loc[[40, 4]].to_numpy()
    assert corrected(again) == expected(again)


def test_rows_added_and_removed_elsewhere(corrected, frame):
    again = pd.concat([frame[1:2].assign(id=100), frame.drop(index=[7, 30])], ignore_index=True)
    assert corrected(again) == expected(again)


def test_columns_in_another_order(corrected, frame):
    assert corrected(frame[["y", "id", "a"]]) == expected(frame)


@pytest.mark.parametrize("change", ["gone", "another cell", "relabeled"])
def test_a_decided_row_that_is_not_as_it_was_is_refused(reviewed, corrected, frame, tmp_path, change):
    _, suffix = reviewed
    again = frame.copy()
    if change == "gone":
        again = again.drop(index=11)
    else:
        again.loc[11, "a" if change == "another cell" else "y"] = 9.5 if change == "another cell" else "u"
    with pytest.raises(InvalidInputError) as error:
        corrected(again)
    name = {".xlsx": "row 13 of the sheet", ".parquet": "row 11"}.get(
        suffix, "line 13" if suffix == ".csv" else "line 12"
    )
    assert str(error.value) == (
        f"{name} of the audit, labeled 'v', is not in {tmp_path / f'now{suffix}'} any more, or one of its cells has "
        "changed. Nothing was written.\nHint: correct the table that was audited, or audit this one."
    )
    assert not (tmp_path / f"c{suffix}").exists()


def test_copies_are_told_apart_by_nothing_and_need_not_be(frame, tmp_path):
    table = tmp_path / "t.csv"
    write(frame, table)
    found = audit(table, label="y", by=Columns(ignore=["id"]), flag=60, n_random=0)
    found.write(tmp_path / "s.csv")
    with DecisionStore(tmp_path / "s.review.decisions.sqlite", found.review_set) as store:
        store.record(59, action="relabel", label="u", reviewer="Ada", based_on=0)
    write(frame[::-1], table)
    correct(tmp_path / "s.csv", tmp_path / "c.csv")
    after = pd.read_csv(tmp_path / "c.csv")
    assert after["y"][after["id"] == 58].tolist() == ["u", "v"]
    assert (after["y"][2:].to_numpy() == frame["y"][::-1][2:].to_numpy()).all()


def test_what_was_audited_as_a_data_frame_has_no_rows_to_find(frame, tmp_path):
    found = audit(frame, label="y", by=Columns(ignore=["id"]), flag=3)
    found.write(tmp_path / "s.csv")
    with DecisionStore(tmp_path / "s.review.decisions.sqlite", found.review_set) as store:
        store.record(4, action="relabel", label="u", reviewer="Ada", based_on=0)
    with pytest.raises(InvalidInputError) as error:
        correct(tmp_path / "s.csv", tmp_path / "c.csv")
    assert str(error.value) == (
        f"{tmp_path / 's.review.json'} does not name a file to correct, as a data frame was audited."
        "\nHint: audit the file itself, or apply the decisions to the frame with "
        "neighboragg._review.export.corrected_labels."
    )


def test_a_table_that_has_moved_is_named_or_found_next_to_the_audit(frame, tmp_path):
    (tmp_path / "old").mkdir()
    write(frame, tmp_path / "old" / "t.csv")
    found = audit(tmp_path / "old" / "t.csv", label="y", by=Columns(ignore=["id"]), flag=3)
    found.write(tmp_path / "old" / "s.csv")
    with DecisionStore(tmp_path / "old" / "s.review.decisions.sqlite", found.review_set) as store:
        store.record(4, action="relabel", label="u", reviewer="Ada", based_on=0)
    (tmp_path / "old").rename(tmp_path / "new")
    assert correct(tmp_path / "new" / "s.csv", tmp_path / "c.csv").n_changed == 1
    (tmp_path / "new" / "t.csv").rename(tmp_path / "elsewhere.csv")
    with pytest.raises(InvalidInputError) as error:
        correct(tmp_path / "new" / "s.csv", tmp_path / "d.csv")
    assert str(error.value) == (
        f"There is no {tmp_path / 'old' / 't.csv'}, which was audited.\n"
        "Hint: name its new place with --source, or source= in Python."
    )
    done = correct(tmp_path / "new" / "s.csv", tmp_path / "d.csv", source=tmp_path / "elsewhere.csv")
    assert (done.n_changed, done.source_changed) == (1, False)
    assert (tmp_path / "c.csv").read_bytes() == (tmp_path / "d.csv").read_bytes()


def test_decisions_about_other_rows_are_not_taken_over(frame, tmp_path):
    """A second audit of the table sorted again: the same places, labels and suggestions, but other rows."""
    table, flagged = tmp_path / "t.csv", tmp_path / "s.csv"
    write(frame, table)
    found = audit(table, label="y", by=Columns(ignore=["id"]), flag=3, n_random=0)
    found.write(flagged)
    DecisionStore(flagged.with_suffix(".review.decisions.sqlite"), found.review_set).close()
    again = frame.assign(id=frame["id"][::-1].to_numpy())
    write(again, table)
    with pytest.raises(InvalidInputError, match="contains decisions about an earlier audit"):
        audit(table, label="y", by=Columns(ignore=["id"]), flag=3, n_random=0).write(flagged, overwrite=True)


def test_the_command_says_that_the_table_has_changed(frame, tmp_path):
    table = tmp_path / "t.csv"
    write(frame, table)
    found = audit(table, label="y", by=Columns(ignore=["id"]), flag=3)
    found.write(tmp_path / "s.csv")
    with DecisionStore(tmp_path / "s.review.decisions.sqlite", found.review_set) as store:
        store.record(4, action="relabel", label="u", reviewer="Ada", based_on=0)
    command = ["correct", str(tmp_path / "s.csv"), "-o"]
    told = []
    for name in ("same.csv", "moved.csv"):
        done = CliRunner().invoke(app, [*command, str(tmp_path / name)], env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        told.append(done.output)
        write(frame[::-1], table)
    assert told == [
        f"1 labels changed: {tmp_path / 'same.csv'}\n",
        f"{table} has changed since the audit; decided rows were matched by their contents.\n"
        f"1 labels changed: {tmp_path / 'moved.csv'}\n",
    ]
