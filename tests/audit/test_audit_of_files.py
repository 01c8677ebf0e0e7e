"""An audit of Parquet files of any size: the same as of one table, reviewed and corrected like one."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from benchmarks.datasets import add_label_noise
from neighboragg import MislabelDetector, audit, correct
from neighboragg._cli.app import app
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import InvalidInputError, PartsFailedError, TrustWarning
from neighboragg.labels import FDR, Columns

N = 300


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("NEIGHBORAGG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("neighboragg.labels._audit.PART_ROWS", 100)


@pytest.fixture(scope="module")
def labeled():
    """Rows of three classes with wrong and missing labels, and an identifier."""
    rng = np.random.default_rng(0)
    kinds = np.array(["setosa", "versicolor", "virginica"])
    y = rng.integers(0, 3, N)
    noisy = add_label_noise(kinds[y], rate=0.04, random_state=0)
    X = pd.DataFrame(rng.normal(size=(N, 3)) + 4 * np.eye(3)[y], columns=["sepal", "petal", "leaf"])
    frame = X.assign(species=noisy.y, number=[f"p{i}" for i in rng.permutation(N)])
    frame.loc[[11, 77], "species"] = [None, " "]
    return frame, noisy.mask


def write(frame, folder, n_files):
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(folder / f"{i:02}.parquet")
    return folder


@pytest.fixture
def sixty(labeled, tmp_path):
    return write(labeled[0], tmp_path / "iris", 60)


def test_sixty_files_give_the_flags_of_one_csv_file(labeled, sixty, tmp_path):
    frame, wrong = labeled
    frame.to_csv(tmp_path / "iris.csv", index=False)
    one, many = audit(tmp_path / "iris.csv", "species"), audit(sixty, "species")
    np.testing.assert_array_equal(many.rows, one.rows)
    np.testing.assert_array_equal(many.result.mask, one.result.mask)
    np.testing.assert_allclose(many.result.scores, one.result.scores, atol=1e-9)
    assert many.result.reasons == one.result.reasons
    assert len(many.result) == 298
    assert "2 of 300 rows are left out because their label is missing." in many.notes
    found = many.to_frame()
    assert found["number"].tolist() == frame["number"].iloc[found["row"]].tolist()
    assert wrong[found["row"]].mean() > 0.7
    first = int(found["row"][0])
    starts = np.cumsum([0, *(len(rows) for rows in np.array_split(np.arange(N), 60))])
    number = int(np.searchsorted(starts, first, side="right")) - 1
    assert found["where"][0] == f"{number:02}.parquet, row {first - starts[number]}"


def decide(found, flagged):
    """A relabeled row, an excluded one and a new class."""
    first, second, third = found.review_set.flagged[:3]
    with DecisionStore(flagged.with_suffix(".review.decisions.sqlite"), found.review_set) as store:
        store.record(first.row, action="relabel", label=first.suggested, reviewer="Ada", based_on=0)
        store.record(second.row, action="exclude", reviewer="Ada", based_on=0)
        store.record(third.row, action="relabel", label="iris", new_class=True, reviewer="Ada", based_on=0)
    return {first.row: first.suggested, third.row: "iris"}, second.row


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("given", ["folder", "pattern", "list", "address"])
def test_only_decided_cells_of_sixty_files_change(labeled, sixty, tmp_path, given):
    source = {
        "folder": sixty,
        "pattern": str(sixty / "*.parquet"),
        "list": sorted(sixty.iterdir()),
        "address": sixty.as_uri(),
    }[given]
    found = audit(source, "species", flag=5, n_random=3)
    found.write(tmp_path / "s.csv")
    new, gone = decide(found, tmp_path / "s.csv")
    done = correct(tmp_path / "s.csv", tmp_path / "fixed")
    assert (done.n_changed, done.n_dropped, done.source_changed) == (2, 1, False)
    before, after = sorted(sixty.iterdir()), sorted((tmp_path / "fixed").iterdir())
    assert len(after) == 60
    if given != "address":
        assert [path.name for path in after] == [path.name for path in before]
    start, equal = 0, 0
    for old, fixed in zip(before, after, strict=True):
        equal += old.read_bytes() == fixed.read_bytes()
        was, now = pq.read_table(old), pq.read_table(fixed)
        assert now.schema.equals(was.schema, check_metadata=True)
        expected = was.to_pylist()
        for i, row in enumerate(expected):
            row["species"] = new.get(start + i, row["species"])
        kept = [row for i, row in enumerate(expected) if start + i != gone]
        assert now.to_pylist() == kept
        start += len(expected)
    assert 57 <= equal < 60


def test_a_folder_is_written_whole_and_never_mixed(sixty, tmp_path):
    found = audit(sixty, "species", flag=5)
    found.write(tmp_path / "s.csv")
    decide(found, tmp_path / "s.csv")
    for inside in (sixty, sixty / "fixed"):
        with pytest.raises(InvalidInputError, match="lies in the input"):
            correct(tmp_path / "s.csv", inside, overwrite=True)
    target = tmp_path / "fixed"
    correct(tmp_path / "s.csv", target)
    with pytest.raises(InvalidInputError, match="fixed exists already"):
        correct(tmp_path / "s.csv", target)
    correct(tmp_path / "s.csv", target, overwrite=True)
    (target / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"contains other files, such as notes\.txt"):
        correct(tmp_path / "s.csv", target, overwrite=True)
    assert (target / "notes.txt").exists()
    rows = pd.read_parquet(sixty / "00.parquet")
    rows.assign(number="other").to_parquet(sixty / "00.parquet")
    rows.to_parquet(sixty / "zz.parquet")  # rows that moved are found, and the output has the new file too
    done = correct(tmp_path / "s.csv", tmp_path / "again")
    assert done.source_changed
    assert len(list((tmp_path / "again").iterdir())) == 61


def test_rows_outside_the_sample_are_scored_with_reasons_and_neighbors(labeled, sixty):
    frame, wrong = labeled
    found = audit(sixty, "species", sample=160, flag=7)
    assert len(found.result) == 298
    assert found.result.n_flagged == 7
    flagged = found.rows[found.result.mask]
    assert wrong[flagged].mean() > 0.8
    assert all(found.result.reasons[i] for i in np.flatnonzero(found.result.mask))
    np.testing.assert_allclose(found.result.trust.sum(axis=1), 1)
    assert "rows drawn at random were scored out of sample, and the other " in found.summary()
    for item in found.review_set.items:
        assert item.content["number"] == frame["number"][item.row]
        assert len(item.given_neighbors) > 0
        for near in item.neighbors:
            assert near.content["number"] == frame["number"][near.row]
            assert near.row != item.row
        assert {frame["species"][near.row] for near in item.given_neighbors} == {item.given}


@pytest.mark.parametrize("flag", ["estimated", 0.1, FDR(0.3)], ids=["estimated", "share", "fdr"])
def test_every_rule_flags_by_the_scores_of_all_rows(labeled, tmp_path, flag):
    frame, wrong = labeled
    verified = ~wrong & (np.arange(N) % 2 == 0) & frame["species"].notna() & (frame["species"] != " ")
    found = audit(frame, "species", sample=160, flag=flag, verified=verified.to_numpy())
    assert not verified[found.rows[found.result.mask]].any()
    assert found.result.n_flagged >= 5
    assert wrong[found.rows[found.result.mask]].mean() > 0.4


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("n_files", [7, 1])
def test_equal_flags_however_rows_are_spread(labeled, sixty, tmp_path, n_files):
    many = audit(sixty, "species", sample=160)
    found = audit(write(labeled[0], tmp_path / "other", n_files), "species", sample=160)
    np.testing.assert_array_equal(found.result.mask, many.result.mask)
    np.testing.assert_allclose(found.result.scores, many.result.scores, atol=1e-9)
    assert found.result.reasons == many.result.reasons


def test_an_interrupted_audit_is_resumed(sixty, tmp_path, monkeypatch):
    expected = audit(sixty, "species", sample=160)
    assert list((tmp_path / "home" / "audits").iterdir()) == []
    judge, calls = MislabelDetector.judge, []

    def fail(self, X, y, **options):
        calls.append(len(y))
        if len(calls) == 2:
            raise RuntimeError("no memory left")
        return judge(self, X, y, **options)

    monkeypatch.setattr(MislabelDetector, "judge", fail)
    with pytest.raises(
        PartsFailedError, match=r"1 of .* parts failed; .*\n- rows .*: RuntimeError: no memory left"
    ):
        audit(sixty, "species", sample=160)
    n_parts = len(calls)
    found = audit(sixty, "species", sample=160)
    assert len(calls) == n_parts + 1
    np.testing.assert_array_equal(found.result.scores, expected.result.scores)
    assert list((tmp_path / "home" / "audits").iterdir()) == []


def test_a_folder_that_cannot_be_written_stops_no_audit(sixty, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEIGHBORAGG_HOME", str(tmp_path / "file"))
    assert audit(sixty, "species", sample=160, flag=3).result.n_flagged == 3


@pytest.mark.full
def test_a_cluster_gives_the_same(sixty, tmp_path):
    names = {}
    for name, options in {"alone": [], "cluster": ["--cluster", "local"]}.items():
        output = tmp_path / f"{name}.csv"
        command = ["audit", str(sixty), "--label", "species", "--sample", "160", "-o", str(output), *options]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        names[name] = pd.read_csv(output)
    pd.testing.assert_frame_equal(names["cluster"], names["alone"])


def test_labels_of_two_types_are_refused(labeled, tmp_path):
    frame = labeled[0].assign(species=(labeled[0]["species"] == "setosa").astype("int64"))
    frame[:200].to_parquet(tmp_path / "a.parquet")
    frame[200:].astype({"species": "float64"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError) as error:
        audit([tmp_path / "a.parquet", tmp_path / "b.parquet"], "species")
    assert str(error.value) == (
        f"Column 'species' is of the type double in {tmp_path / 'b.parquet'}, and of the type int64 in "
        f"{tmp_path / 'a.parquet'}.\nHint: write all files with the same types."
    )


def test_what_predicts_no_labels_flags_nothing_in_any_row(labeled, tmp_path):
    frame = labeled[0].assign(species=np.random.default_rng(5).permutation(labeled[1]))
    by = Columns(["sepal"])
    with pytest.warns(TrustWarning, match="predicts the labels no better than the class frequencies alone"):
        found = audit(frame, "species", by=by, sample=160)
    assert found.result.n_flagged == 0
    with pytest.warns(TrustWarning, match="close to chance"):
        assert audit(frame, "species", by=by, sample=160, flag=4).result.n_flagged == 4


def test_an_index_that_pandas_wrote_is_not_judged_by(labeled, tmp_path):
    frame = labeled[0].set_index(np.random.default_rng(1).permutation(N))
    frame.to_parquet(tmp_path / "t.parquet")
    found = audit(tmp_path / "t.parquet", "species", flag=2)
    assert [role.name for role in found.roles] == [name for name in frame.columns if name != "species"]
    assert list(pq.read_schema(tmp_path / "t.parquet").names)[-1] == "__index_level_0__"
