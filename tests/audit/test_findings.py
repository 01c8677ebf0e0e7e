"""What an audit finds beside wrong labels, and when it has nothing to say."""

import numpy as np
import pandas as pd
import pytest

from neighboragg import audit
from neighboragg.exceptions import TrustWarning
from neighboragg.labels import Embeddings


@pytest.fixture(scope="module")
def frame():
    """Two classes well apart; rows 0 and 1 have copies, row 5 nearly has one, row 9 is far from all."""
    rng = np.random.default_rng(0)
    y = rng.choice(["u", "v"], 150)
    frame = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc")).assign(y=y)
    frame["a"] += 4 * (y == "v")
    frame["part"] = np.where(np.arange(150) < 100, "train", "test")
    frame.loc[9, ["a", "b", "c"]] = [2, 90, -90]
    copies = frame.loc[[0, 1, 5]].assign(part="test")
    copies.iloc[0, 3] = "v" if y[0] == "u" else "u"
    copies.iloc[2, 0] += 1e-4
    return pd.concat([frame, copies], ignore_index=True)


@pytest.fixture(scope="module")
def found(frame):
    return audit(frame, label="y", split="part")


def rows_of(found, kind):
    return [finding.rows for finding in found.findings if finding.kind == kind]


def test_copies_with_different_labels(found, frame):
    assert rows_of(found, "conflicting copies") == [(0, 150)]
    reason = next(finding.reason for finding in found.findings)
    assert reason == f"same or nearly the same row, labeled {frame['y'][0]!r} (1), {frame['y'][150]!r} (1)"
    flagged = found.to_frame().set_index("row")["reasons"]
    assert flagged[150].endswith(f"copy in row 0 is {frame['y'][0]!r}")


def test_copies_across_the_split(found):
    assert rows_of(found, "copies across the split") == [(0, 150), (1, 151), (5, 152)]
    assert {role.name: role.use for role in found.roles}["part"] == "ignored"


def test_a_row_unlike_all_others(found, frame):
    assert set(rows_of(found, "unlike all others")) == {(9,)}
    reasons = [finding.reason for finding in found.findings if finding.kind == "unlike all others"]
    b = frame["b"].drop(index=9)
    assert f"b is 90, and between {b.min():g} and {b.max():g} in all other rows" in reasons


def test_a_vector_unlike_all_others(frame):
    found = audit(frame, label="y", by=Embeddings(frame[["a", "b", "c"]].to_numpy()))
    assert rows_of(found, "unlike all others") == [(9,)]
    assert found.counts() == {
        "wrong label": found.result.n_flagged, "conflicting copies": 2, "unlike all others": 1,
    }  # fmt: skip
    assert "  1  rows unlike all others" in found.summary()


def test_findings_as_a_table(found):
    table = found.findings_frame()
    assert list(table.columns) == ["kind", "group", "row", "where", "label", "reason"]
    assert table["row"].tolist()[:2] == [0, 150]
    assert table["group"].nunique() == len(found.findings)


def test_texts_are_compared_without_capitals_and_punctuation():
    words = {"p": ["leaf", "root", "seed", "moss"], "a": ["cat", "dog", "cow", "fur"]}
    rng = np.random.default_rng(0)
    y = rng.choice(["p", "a"], 80)
    texts = [" ".join(rng.choice(words[label], 6)) + f" {i:02d}" for i, label in enumerate(y)]
    frame = pd.DataFrame({"text": [*texts, texts[3].upper() + "!"], "y": [*y, "p" if y[3] == "a" else "a"]})
    assert (3, 80) in rows_of(audit(frame, label="y"), "conflicting copies")


@pytest.mark.full
def test_tables_in_which_most_rows_are_alike_have_no_copies():
    rng = np.random.default_rng(0)
    y = rng.choice(["u", "v"], 200)
    frame = pd.DataFrame({"a": (y == "u") ^ (rng.random(200) < 0.1), "b": rng.integers(0, 3, 200), "y": y})
    found = audit(frame, label="y")
    assert rows_of(found, "conflicting copies") == []
    assert "Most rows are duplicates, so duplicates are not reported." in found.notes


def test_what_says_nothing_flags_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=300), "y": rng.choice(["u", "v", "w"], 300, p=[0.5, 0.3, 0.2])}
    )
    with pytest.warns(TrustWarning, match="no better than the class frequencies alone: "):
        found = audit(frame, label="y")
    assert found.result.n_flagged == 0
    assert "Nothing is flagged, as nothing predicts the labels: " in found.summary()
    with pytest.warns(TrustWarning, match="close to chance"):
        assert audit(frame, label="y", flag=7).result.n_flagged == 7


@pytest.mark.full
def test_rare_classes_that_are_told_apart_are_flagged():
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.05).astype(int)
    frame = pd.DataFrame({"a": rng.normal(size=600) + 2.5 * y, "b": rng.normal(size=600) + 2.5 * y, "y": y})
    assert audit(frame, label="y", flag=5).result.n_flagged == 5


def test_stages_are_told():
    rng = np.random.default_rng(0)
    y = rng.choice(["u", "v"], 60)
    frame = pd.DataFrame({"a": rng.normal(size=60) + 3 * (y == "u"), "y": y})
    told = []
    audit(frame, label="y", progress=lambda *said: told.append(said))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == [
        "Reading the table",
        "Looking at the columns",
        "Searching neighbors, pass 1 of 2",
        "Fitting models, pass 1 of 2",
        "Searching neighbors, pass 2 of 2",
        "Fitting models, pass 2 of 2",
        "Searching for copies",
        "Preparing the review",
    ]
    done = [done for _, done, _ in told]
    assert done == sorted(done)
    assert told[0][1:] == (0, 0)
    assert {total for _, _, total in told} == {0, told[-1][2]}
    assert told[-1][1] == told[-1][2]
