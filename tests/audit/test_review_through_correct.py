"""What a reviewer may decide beside the classes of the table: a class of its own, and that a row does not belong."""

import pandas as pd
import pytest
from sklearn.datasets import load_wine

from neighboragg import audit, correct
from neighboragg._review.store import DecisionStore
from neighboragg.labels import Text
from neighboragg.labels._review_set import load_review_set


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_new_classes_and_exclusions_reach_the_table(tmp_path, suffix):
    frame = load_wine(as_frame=True).frame[["alcohol", "flavanoids", "proline", "target"]]
    frame["target"] = frame["target"].map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    table = tmp_path / f"wines{suffix}"
    frame.to_csv(table, index=False) if suffix == ".csv" else frame.to_parquet(table)
    flagged = tmp_path / "s.csv"
    audit(table, label="target", flag=4).write(flagged)
    review_set = load_review_set(tmp_path / "s.review.json")
    first, second, third, _ = review_set.flagged
    with DecisionStore(tmp_path / "s.review.decisions.sqlite", review_set) as store:
        store.record(
            first.row,
            action="relabel",
            label="Nebbiolo",
            new_class=True,
            reviewer="Ada",
            based_on=0,
            note="!",
        )
        store.record(second.row, action="exclude", reviewer="Ada", based_on=0)
        store.record(third.row, action="keep", reviewer="Ada", based_on=0)
    output = tmp_path / f"corrected{suffix}"
    done = correct(flagged, output)
    assert (done.n_changed, done.n_dropped) == (1, 1)
    expected = frame.copy()
    expected.loc[first.row, "target"] = "Nebbiolo"
    expected = expected.drop(index=second.row)
    if suffix == ".csv":
        assert output.read_text() == expected.to_csv(index=False)
    else:
        found = pd.read_parquet(output)
        assert found.to_numpy().tolist() == expected.to_numpy().tolist()


def test_rows_are_called_by_their_lines_and_texts_keep_their_other_columns(tmp_path):
    texts = [
        "the cat sat on the mat",
        "a dog ran in the park",
        "cats purr and sleep",
        "dogs bark and run",
    ] * 15
    labels = ["cat", "dog", "cat", "dog"] * 15
    labels[5] = "cat"
    lines = [
        f"{text} {number},{number % 7},{label}"
        for number, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    table = tmp_path / "pets.csv"
    table.write_text("\n".join(["message,weekday,kind", *lines]) + "\n")
    found = audit(table, label="kind", by=Text("message"), flag=2)
    for item in found.review_set.items:
        assert item.title == f"line {item.row + 2}"
        assert item.content == {"text": f"{texts[item.row]} {item.row}"}
        assert item.details == {"weekday": item.row % 7}
        assert [near.title for near in item.neighbors] == [f"line {near.row + 2}" for near in item.neighbors]
