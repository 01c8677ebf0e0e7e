"""Wrong labels in files: the in-memory result where all rows are in the sample, equal bits however rows are spread."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from benchmarks.datasets import add_label_noise
from neighboragg import find_mislabeled
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning, UntrustedTypeError
from neighboragg.labels import Budget
from neighboragg.labels import _files as distributed


@pytest.fixture(scope="module")
def labeled():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    X.columns = ["sepal length", "sepal width", "petal length", "petal width"]
    noisy = add_label_noise(names[y], rate=0.1, random_state=0)
    order = np.random.default_rng(0).permutation(150)
    return X.assign(species=noisy.y, id=np.arange(150)).iloc[order].reset_index(drop=True)


@pytest.fixture
def judged(labeled, tmp_path):
    def run(name, ends=(), frame=None, **options):
        frame = labeled if frame is None else frame
        folder = tmp_path / f"input {name}"
        if not folder.exists():
            folder.mkdir()
            for i, (start, stop) in enumerate(zip((0, *ends), (*ends, len(frame)), strict=True)):
                frame[start:stop].to_parquet(folder / f"{i}.parquet")
        settings = {
            "label": "species",
            "keep": ["id"],
            "part_rows": 40,
            "batch_rows": 32,
            "effort": "fast",
        }
        written = distributed.find_mislabeled(folder, tmp_path / name, **(settings | options))
        return pd.concat([pd.read_parquet(file) for file in written.files], ignore_index=True)

    return run


def test_the_result_in_memory_where_all_rows_are_in_the_sample(judged, labeled):
    found = judged("all")
    expected = find_mislabeled(labeled.drop(columns=["species", "id"]), labeled["species"], effort="fast")
    assert found.columns.tolist() == ["id", "given", "suggested", "label_trust", "score", "flagged"]
    np.testing.assert_array_equal(found["score"], expected.scores)
    np.testing.assert_array_equal(found["flagged"], expected.mask)
    np.testing.assert_array_equal(found["suggested"], expected.suggested)
    np.testing.assert_array_equal(found["given"], expected.given)
    np.testing.assert_array_equal(found["label_trust"], expected.label_trust)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    "ends", [(75,), (10, 11, 30, 30, 90, 120, 140), (1, 149)], ids=["2", "8, one empty", "unequal"]
)
def test_equal_bits_however_rows_are_spread(judged, ends):
    whole = judged("whole", sample_rows=90)
    pd.testing.assert_frame_equal(
        judged("spread", ends, sample_rows=90, part_rows=23), whole, check_exact=True
    )


@pytest.mark.full
def test_equal_bits_where_a_class_lives_in_one_file_only(judged, labeled):
    by_class = labeled.sort_values("species", ignore_index=True)
    ends = tuple(np.cumsum(by_class["species"].value_counts(sort=False))[:-1])
    settings = {"frame": by_class, "sample_rows": 90, "effort": "balanced"}
    pd.testing.assert_frame_equal(
        judged("spread", ends, **settings), judged("whole", **settings), check_exact=True
    )


@pytest.mark.full
@pytest.mark.parametrize(
    "ends", [(), (75,), (10, 11, 30, 30, 90, 120, 140)], ids=["1", "2", "8 unequal, one empty"]
)
def test_equal_bits_on_a_cluster(judged, cluster, ends):
    alone = judged("alone", sample_rows=90)
    together = judged("together", ends, sample_rows=90, client=cluster)
    pd.testing.assert_frame_equal(together, alone, check_exact=True)


@pytest.mark.full
def test_equal_bits_on_a_cluster_where_a_class_lives_in_one_file_only(judged, labeled, cluster):
    by_class = labeled.sort_values("species", ignore_index=True)
    ends = tuple(np.cumsum(by_class["species"].value_counts(sort=False))[:-1])
    settings = {"frame": by_class, "sample_rows": 90}
    pd.testing.assert_frame_equal(
        judged("together", ends, client=cluster, **settings),
        judged("alone", **settings),
        check_exact=True,
    )


@pytest.mark.full
def test_workers_that_are_killed_change_nothing(judged, cluster, kills):
    settings = {"sample_rows": 90, "part_rows": 10, "ends": (10, 80)}
    together = judged("together", client=cluster, progress=kills("Judging labels"), **settings)
    pd.testing.assert_frame_equal(together, judged("alone", **settings), check_exact=True)


KILLED = """
import os, signal, sys
from distributed import Client
from neighboragg.labels._files import find_mislabeled

heard = []

def progress(stage, done, total):
    heard.append(stage)
    if heard.count("Judging labels") == 3:  # its beginning and two parts
        os.kill(os.getpid(), signal.SIGKILL)

with Client(sys.argv[3]) as client:
    settings = {"keep": ["id"], "part_rows": 10, "batch_rows": 32, "effort": "fast", "sample_rows": 90}
    find_mislabeled(sys.argv[1], sys.argv[2], label="species", client=client, progress=progress, **settings)
"""


@pytest.mark.full
def test_a_client_that_is_killed_resumes(judged, labeled, cluster, tmp_path):
    source, output = tmp_path / "input together", tmp_path / "together"
    source.mkdir()
    labeled[:60].to_parquet(source / "0.parquet")
    labeled[60:].to_parquet(source / "1.parquet")
    address = cluster.scheduler_info()["address"]
    command = [sys.executable, "-c", KILLED, str(source), str(output), address]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr

    def states():
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in output.glob("[!.]*[tg]")}

    before = states()
    assert "detector.nagg" in before
    assert len(before) >= 3
    settings = {"sample_rows": 90, "part_rows": 10}
    together = judged("together", client=cluster, **settings)
    assert before.items() <= states().items()
    pd.testing.assert_frame_equal(together, judged("alone", **settings), check_exact=True)


def test_rows_outside_the_sample_are_judged_well(judged, labeled):
    found = judged("sampled", sample_rows=90).set_index("id").loc[labeled["id"]]
    clean = np.repeat(["setosa", "versicolor", "virginica"], 50)[labeled["id"]]
    wrong = (labeled["species"] != clean).to_numpy()
    assert found["score"][wrong].median() < found["score"][~wrong].quantile(0.1)
    assert (found["suggested"][wrong].to_numpy() == clean[wrong]).mean() > 0.8


def test_the_detector_is_fitted_once(judged, tmp_path, monkeypatch):
    first = judged("again", sample_rows=90)
    (tmp_path / "again" / "part-00001.parquet").unlink()
    monkeypatch.setattr("neighboragg.MislabelDetector.fit", None)
    pd.testing.assert_frame_equal(judged("again", sample_rows=90), first, check_exact=True)
    with pytest.raises(
        InvalidInputError, match="holds the parts of another run: with sample_rows=90, not 80"
    ):
        judged("again", sample_rows=80)


def test_refusals(judged, labeled):
    with pytest.raises(
        InvalidInputError, match="The label column 'species' is among the columns to judge by"
    ):
        judged("a", columns=["petal width", "species"])
    with pytest.raises(InvalidInputError, match="The column 'score' cannot be kept"):
        judged("a", keep=["score"])
    gap = labeled.copy()
    gap.loc[50, "species"] = None
    with pytest.raises(InvalidInputError, match=r"There is no label in row 50 of .*0\.parquet\."):
        judged("gap", frame=gap)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1.5, 2.5], "double such as 1.5"),
        ([1.0, np.inf], "double such as 1.0"),
        ([b"a", b"b"], r"binary such as b'a'"),
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), r"timestamp\[us\] such as 2026-01-01.*"),
    ],
)
def test_what_is_no_class_is_refused(judged, labeled, tmp_path, labels, said):
    frame = labeled.assign(species=pd.Series(labels)[np.arange(150) % 2].to_numpy())
    with pytest.raises(
        InvalidInputError,
        match=rf"^Column 'species' of .*0\.parquet holds no classes, but values of the type {said}\.\nHint:",
    ):
        judged("a", frame=frame)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("flag", [5, np.int64(5), Budget(5)])
def test_no_number_of_labels_can_be_asked_for(judged, flag):
    with pytest.raises(InvalidParameterError, match="cannot be a number of labels here"):
        judged("a", flag=flag)


def test_a_text_is_no_list_of_columns(judged):
    for name in ("columns", "keep"):
        with pytest.raises(InvalidParameterError) as caught:
            judged("a", **{name: "id"})
        assert str(caught.value) == (
            f"The {name!r} parameter of find_mislabeled must be a list of names of columns. Got the text 'id' instead."
            "\nHint: a list of one is ['id']."
        )


def test_a_column_named_twice_counts_once(judged):
    names = ["petal width", "petal length"]
    pd.testing.assert_frame_equal(
        judged("a", columns=pd.Index(names)), judged("b", columns=[*names, *names]), check_exact=True
    )


def test_a_mistake_does_not_take_the_name_of_the_output(judged, labeled, tmp_path):
    gap = labeled.copy()
    gap.loc[50, "species"] = None
    for message, options in (
        (
            r"There is no column 'kind' in .*0\.parquet\.\nHint: the columns are 'sepal length'",
            {"label": "kind"},
        ),
        (r"There is no column 'girth' in .*0\.parquet\.", {"columns": ["girth"]}),
        (r"There is no column 'name' in .*0\.parquet\.", {"keep": ["name"]}),
        ("There is no label in row 50 of ", {"frame": gap}),
        ("'effort' parameter of MislabelDetector must be one of", {"effort": "more"}),
    ):
        with pytest.raises((InvalidInputError, InvalidParameterError), match=message):
            judged(f"{len(list(tmp_path.iterdir()))}", **options)
    assert {path.name[:5] for path in tmp_path.iterdir()} == {"input"}


def test_a_file_without_rows_has_no_say_in_the_columns(judged, labeled, tmp_path):
    first = judged("a")
    labeled[:0][["petal width", "species"]].to_parquet(tmp_path / "input a" / "-empty.parquet")
    (tmp_path / "input a").rename(tmp_path / "input b")
    pd.testing.assert_frame_equal(judged("b"), first, check_exact=True)


def test_a_detector_that_is_lost_judges_all_parts_again(judged, tmp_path):
    first = judged("a")
    parts = sorted((tmp_path / "a").glob("part-*.parquet"))
    before = [path.stat().st_mtime_ns for path in parts]
    (tmp_path / "a" / "detector.nagg").unlink()
    pd.testing.assert_frame_equal(judged("a"), first, check_exact=True)
    assert all(path.stat().st_mtime_ns != time for path, time in zip(parts, before, strict=True))


def test_threads_are_no_part_of_what_is_resumed(judged):
    first = judged("a")
    pd.testing.assert_frame_equal(judged("a", n_jobs=2), first, check_exact=True)
    with pytest.raises(InvalidInputError, match="another run: with random_state=0, not 1"):
        judged("a", random_state=1)
    with pytest.raises(InvalidInputError, match="another run: of another model, or of one with other param"):
        judged("a", flag=0.05)


class OwnClassifier(GaussianNB):
    pass


def test_a_classifier_of_ones_own_is_trusted_by_name(judged):
    name = f"{OwnClassifier.__module__}.OwnClassifier"
    with (
        pytest.warns(TrustWarning, match="which must be allowed when it is loaded"),
        pytest.raises(UntrustedTypeError, match=rf"^The saved .* are not known to be safe: {name}\.\nHint:"),
    ):
        judged("a", estimator=OwnClassifier())
    own = judged("a", estimator=OwnClassifier(), trusted=[name])
    pd.testing.assert_frame_equal(own, judged("b", estimator=GaussianNB()), check_exact=True)


@pytest.mark.parametrize(
    ("kind", "called"),
    [("float64", "double"), ("int32", "int32"), ("bool", "bool"), ("str", "(large_)?string")],
)
def test_labels_of_two_types_are_refused(labeled, tmp_path, kind, called):
    frame = labeled.assign(species=(labeled["species"] == "setosa").astype("int64"))
    paths = [str(tmp_path / f"{name}.parquet") for name in "ab"]
    frame[:90].to_parquet(paths[0])
    frame[90:].astype({"species": kind}).to_parquet(paths[1])
    said = rf"'species' is of the type {called} in .*b\.parquet, and of the type int64 in .*a\.parquet\.\nHint: write"
    with pytest.raises(InvalidInputError, match=said):
        distributed.find_mislabeled(paths, tmp_path / "out", label="species")
