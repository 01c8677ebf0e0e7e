"""Fitting on files: the model of one process in memory, however rows are spread."""

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import neighboragg
from benchmarks.methods import KNNVote
from neighboragg import NeighborAgg, TrustedClassifier, score
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.search import Streamed
from neighboragg.trust._fit import fit

SPREADS = {"1 file": (), "2 files": (300,), "8 files, one empty": (30, 60, 61, 61, 180, 420, 599)}
COLUMNS = [f"pixel{j}" for j in range(64)]


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    return X[:600].assign(digit=y[:600])


@pytest.fixture
def files(tmp_path, digits, rows):
    """Writes training rows into files that end where it is told, and validation rows; returns their places."""
    X, y = digits
    validation = tmp_path / "validation.parquet"
    X[600:800].assign(digit=y[600:800]).to_parquet(validation)

    def write(*ends, name="train", frame=rows):
        folder = tmp_path / name
        folder.mkdir()
        for i, (start, stop) in enumerate(zip((0, *ends), (*ends, len(frame)), strict=True)):
            frame[start:stop].to_parquet(folder / f"{i}.parquet", row_group_size=50)
        return folder, validation

    return write


@pytest.fixture(scope="module")
def frozen(digits):
    X, y = digits
    return FrozenEstimator(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=30, tol=0.1)).fit(X[:600], y[:600])
    )


@pytest.fixture
def fitted(tmp_path, frozen, small):
    """Fits with small parts and returns the file of the model."""

    def run(source, validation, name="model.nagg", model=None, **options):
        settings = {"label": "digit", **options}
        fit(model or TrustedClassifier(frozen), source, tmp_path / name, validation=validation, **settings)
        return tmp_path / name

    return run


@pytest.fixture
def few_sampled(monkeypatch):
    monkeypatch.setattr("neighboragg.search._streamed.MAX_SAMPLED", 200)


def same_answers(path, model, new):
    ours, theirs = neighboragg.load(path, mmap=True).assess(new), model.assess(new)
    np.testing.assert_array_equal(ours.predicted, theirs.predicted)
    for name in ("probability", "trust", "familiarity"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-9)


@pytest.mark.full
def test_the_model_in_memory(files, fitted, digits, frozen, tmp_path):
    X, y = digits
    source, validation = files(100)
    path = fitted(source, validation)
    alone = TrustedClassifier(frozen).fit(X[:600], y[:600], X_val=X[600:800], y_val=y[600:800])
    same_answers(path, alone, X[800:])
    found = neighboragg.load(path).kneighbors(X[800:820], 3)
    for ours, theirs in zip(found, alone.kneighbors(X[800:820], 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.nagg", "train", "validation.parquet"]


def test_the_model_in_memory_of_few_rows(files, fitted, digits, rows):
    X, y = digits
    source, validation = files(100, frame=rows[:200])
    classifier = FrozenEstimator(GaussianNB().fit(X[:200], y[:200]))
    model = TrustedClassifier(classifier, NeighborAgg(effort="fast", learned_metric=False))
    path = fitted(source, validation, model=model)
    same_answers(path, model.fit(X[:200], y[:200], X_val=X[600:800], y_val=y[600:800]), X[800:])


@pytest.mark.full
def test_out_of_fold_evidence_is_that_in_memory(files, fitted, digits):
    X, y = digits
    source, _ = files(100)
    model = TrustedClassifier(GaussianNB(), cv=3)
    path = fitted(source, None, model=model)
    same_answers(path, model.fit(X[:600], y[:600]), X[800:])


@pytest.mark.full
def test_a_sample_learns_and_all_rows_are_neighbors(files, fitted, digits, frozen, few_sampled):
    X, y = digits
    source, validation = files(100)
    model = TrustedClassifier(frozen, NeighborAgg(search=Streamed("1 GB")), features="passthrough")
    path = fitted(source, validation, model=model)
    same_answers(path, model.fit(X[:600], y[:600], X_val=X[600:800], y_val=y[600:800]), X[800:])
    assert neighboragg.load(path).method_.neighborhoods_.n_rows == 800


@pytest.mark.full
@pytest.mark.parametrize("ends", SPREADS.values(), ids=SPREADS)
@pytest.mark.parametrize("validated", [True, False])
def test_equal_answers_on_a_cluster(files, fitted, cluster, ends, validated, few_sampled, digits):
    source, validation = files()
    options = {} if validated else {"model": TrustedClassifier(GaussianNB(), cv=3)}
    validation = validation if validated else None
    alone = fitted(source, validation, "alone.nagg", **options)
    together = fitted(files(*ends, name="spread")[0], validation, client=cluster, **options)
    same_answers(together, neighboragg.load(alone), digits[0][800:])


@pytest.mark.full
def test_equal_answers_where_a_class_lives_in_one_file_only(files, fitted, cluster, rows, digits):
    by_class = rows.sort_values("digit", kind="stable", ignore_index=True)
    ends = np.cumsum(by_class["digit"].value_counts(sort=False))[:-1]
    source, validation = files(*ends, frame=by_class)
    whole, _ = files(name="whole", frame=by_class)
    together = fitted(source, validation, client=cluster)
    same_answers(
        together, neighboragg.load(fitted(whole, validation, "alone.nagg", n_jobs=2)), digits[0][800:]
    )


@pytest.mark.full
def test_workers_that_are_killed_change_nothing(files, fitted, cluster, kills, digits):
    source, validation = files(100)
    together = fitted(source, validation, client=cluster, progress=kills("Making vectors"))
    same_answers(together, neighboragg.load(fitted(source, validation, "alone.nagg")), digits[0][800:])


@pytest.mark.full
def test_the_model_scores_files(files, fitted, digits, tmp_path):
    source, validation = files(100)
    path = fitted(source, validation)
    X, _ = digits
    X[800:].to_parquet(tmp_path / "new.parquet")
    written = score(path, tmp_path / "new.parquet", tmp_path / "scored")
    scored = pd.concat([pd.read_parquet(file) for file in written.files], ignore_index=True)
    assert scored["trust"].between(0, 1).all()
    assert len(scored) == len(X) - 800


@pytest.mark.full
def test_columns_of_vectors(fitted, tmp_path, digits):
    X, y = np.ascontiguousarray(digits[0]), digits[1]
    for name, part in {"train": slice(600), "val": slice(600, 800)}.items():
        pyarrow.parquet.write_table(
            pyarrow.table({"vector": list(X[part]), "digit": y[part]}), tmp_path / f"{name}.parquet"
        )
    classifier = FrozenEstimator(GaussianNB().fit(X[:600], y[:600]))
    model = TrustedClassifier(classifier, features="passthrough")
    path = fitted(tmp_path / "train.parquet", tmp_path / "val.parquet", model=model)
    same_answers(path, model.fit(X[:600], y[:600], X_val=X[600:800], y_val=y[600:800]), X[800:])


def test_a_failed_part_is_named_and_nothing_is_left(files, fitted, rows, tmp_path, frozen, few_sampled):
    gap = rows.copy()
    chosen = NeighborAgg().training_sample(gap["digit"])
    row = next(i for i in range(600) if i not in chosen)
    gap.iloc[row, 3] = np.nan
    source, validation = files(100, frame=gap)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidInputError, match=r"1 of 10 parts failed, such as [^$]*NaN"):
        fitted(source, validation, model=TrustedClassifier(frozen, features="passthrough"))
    assert sorted(tmp_path.iterdir()) == before


def refused(run, message, kind=InvalidInputError):
    with pytest.raises(kind) as caught:
        run()
    assert message in str(caught.value)


def test_a_mistake_does_not_take_the_name_of_the_output(files, fitted, frozen, rows, tmp_path):
    source, validation = files(100)
    unlabeled, _ = files(100, name="unlabeled", frame=rows.drop(columns="digit"))
    later, _ = files(100, name="later")
    rows[100:].drop(columns="digit").to_parquet(later / "1.parquet")
    other, _ = files(100, name="other", frame=rows.assign(digit=rows["digit"] + 1))
    before = sorted(tmp_path.iterdir())
    unfitted = TrustedClassifier(GaussianNB())
    needs = "TrustedClassifier needs rows that the classifier was not trained on"
    refused(lambda: fitted(source, None, model=unfitted), needs)
    refused(lambda: fitted(source, None, model=TrustedClassifier(frozen, cv=5)), needs)
    refused(lambda: fitted(source, validation, label="digits"), "There is no column 'digits' in ")
    refused(lambda: fitted(source, validation, columns=["pixel99"]), "There is no column 'pixel99' in ")
    refused(
        lambda: fitted(source, unlabeled),
        f"There is no column 'digit' in {unlabeled / '0.parquet'}.\nHint: the columns are 'pixel0', ",
    )
    refused(lambda: fitted(later, validation), f"There is no column 'digit' in {later / '1.parquet'}.")
    refused(
        lambda: fitted(source, validation, columns=["pixel1", "pixel2"]),
        "Feature names seen at fit time, yet now missing:\n- pixel0",
        ValueError,
    )
    refused(lambda: fitted(other, validation), "not among the 10 known classes: 10.")
    views = TrustedClassifier(frozen, features={"a": "auto", "b": "passthrough"})
    refused(lambda: fitted(source, validation, model=views), "keeps several views of rows in memory")
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_that_cannot_be_written_is_noticed_first(files, fitted, tmp_path):
    source, validation = files(100)
    (tmp_path / "file").touch()
    stages, path = [], tmp_path / "file" / "deep" / "model.nagg"
    refused(
        lambda: fitted(
            source, validation, "file/deep/model.nagg", progress=lambda *stage: stages.append(stage)
        ),
        f"{path} cannot be written: Not a directory.\nHint: choose another output.",
    )
    assert not stages


@pytest.mark.full
def test_refusals(files, fitted, rows, tmp_path, frozen, digits):
    source, validation = files(100)
    fitted(source, validation)
    refused(lambda: fitted(source, validation), "model.nagg exists already.\nHint: overwrite=True")
    before = (tmp_path / "model.nagg").stat().st_ino
    fitted(source, validation, overwrite=True)
    assert (tmp_path / "model.nagg").stat().st_ino != before
    refused(
        lambda: fitted(source, validation, "c", columns=["pixel1", "digit"]),
        "The label column 'digit' is among the columns to learn from.",
    )
    for model, message in (
        (TrustedClassifier(frozen, KNNVote()), "must be a NeighborAgg for rows outside memory"),
        (GaussianNB(), "The 'model' parameter of fit must be a TrustedClassifier. Got a GaussianNB."),
    ):
        refused(
            lambda model=model: fitted(source, validation, "d", model=model), message, InvalidParameterError
        )
    mixed, _ = files(100, name="mixed")
    rows[100:].astype({"pixel3": np.float32}).to_parquet(mixed / "1.parquet")
    refused(lambda: fitted(mixed, validation, "f"), "Column 'pixel3' is of the type float in ")
