"""From a labeled CSV to a corrected CSV, as a new user does it."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from typer.testing import CliRunner

from benchmarks.datasets import add_label_noise
from neighboragg._cli.app import app
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.labels._review_set import load_review_set


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    noisy = add_label_noise(names, rate=0.06, random_state=0)
    frame = X.assign(bottle=np.where(X["alcohol"] > 13, "large", "small"), cultivar=noisy.y)
    frame.loc[5, "cultivar"] = None
    return frame, names, noisy.mask


def decide_everything(path, review_set):
    """Take every suggestion for flagged rows, as a reviewer would by pressing r."""
    with DecisionStore(path, review_set) as store:
        for item in review_set.flagged:
            store.record(item.row, action="relabel", label=item.suggested, reviewer="Ada", based_on=0)


def test_three_commands(wine, tmp_path):
    frame, truth, wrong = wine
    table, flagged, fixed = tmp_path / "wine.csv", tmp_path / "suspicious.csv", tmp_path / "corrected.csv"
    frame.to_csv(table, index=False)
    output = run("audit", table, "--label", "cultivar", "-o", flagged)
    assert "labels flagged" in output
    found = pd.read_csv(flagged)
    assert wrong[found["row"]].mean() > 0.8
    assert {"given", "suggested", "reasons", "alcohol", "bottle"} <= set(found.columns)

    assert flagged.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

    review_path = flagged.with_suffix(".review.json")
    review_set = load_review_set(review_path)
    assert len(review_set.flagged) == len(found)
    # Rows are numbered as in the file, the one without a label included; that one is not judged.
    assert [item.row for item in review_set.flagged] == found["row"].tolist()
    assert (review_set.n_rows, review_set.n_judged) == (178, 177)
    assert len(review_set.random) == 50
    decide_everything(review_path.with_suffix(".decisions.sqlite"), review_set)

    assert "labels changed" in run("correct", flagged, "-o", fixed)
    after = pd.read_csv(fixed)
    assert (after.drop(columns="cultivar") == pd.read_csv(table).drop(columns="cultivar")).all(axis=None)
    labeled = after["cultivar"].notna()
    assert not labeled[5]
    assert (after["cultivar"] != truth)[labeled].sum() < wrong.sum() / 2


def test_integer_labels_stay_integers_and_parquet_works(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    noisy = add_label_noise(y.to_numpy(), rate=0.05, random_state=1)
    table, flagged, fixed = tmp_path / "w.parquet", tmp_path / "s.csv", tmp_path / "c.parquet"
    X.assign(y=noisy.y).to_parquet(table)
    run("audit", table, "--label", "y", "-o", flagged, "--flag", 5)
    review_path = flagged.with_suffix(".review.json")
    decide_everything(review_path.with_suffix(".decisions.sqlite"), load_review_set(review_path))
    run("correct", flagged, "-o", fixed)
    after = pd.read_parquet(fixed)["y"]
    assert (after.to_numpy() != noisy.y).sum() == 5
    assert set(after) == {0, 1, 2}


def test_all_rows_are_scored_where_a_sample_is_fitted_on(wine, tmp_path):
    frame, _, wrong = wine
    table, flagged, fixed = tmp_path / "wine.csv", tmp_path / "s.csv", tmp_path / "c.csv"
    frame.to_csv(table, index=False)
    run("audit", table, "--label", "cultivar", "-o", flagged, "--sample", 150, "--flag", 6, "--n-random", 10)
    review_path = flagged.with_suffix(".review.json")
    review_set = load_review_set(review_path)
    assert (review_set.n_rows, review_set.n_judged) == (178, 177)
    assert wrong[[item.row for item in review_set.flagged]].mean() > 0.8
    for item in review_set.items:
        assert item.content["alcohol"] == frame["alcohol"].iloc[item.row]
        for neighbor in (*item.given_neighbors, *item.suggested_neighbors):
            assert neighbor.content["alcohol"] == frame["alcohol"].iloc[neighbor.row]
    decide_everything(review_path.with_suffix(".decisions.sqlite"), review_set)
    assert "6 labels changed" in run("correct", flagged, "-o", fixed)
    changed = pd.read_csv(fixed)["cultivar"].fillna("") != frame["cultivar"].fillna("")
    assert np.flatnonzero(changed).tolist() == sorted(item.row for item in review_set.flagged)


@pytest.mark.full
def test_dates_and_missing_values_are_shown(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    frame = X.iloc[:, :3].assign(
        when=pd.date_range("2024-01-01", periods=len(X)), count=pd.array([1, None] * 89, dtype="Int64"), y=y
    )
    table, flagged = tmp_path / "w.parquet", tmp_path / "s.csv"
    frame.to_parquet(table)
    run("audit", table, "--label", "y", "-o", flagged, "--flag", 4)
    contents = [item.content for item in load_review_set(flagged.with_suffix(".review.json")).items]
    assert all(content["when"].startswith("2024-") for content in contents)
    assert {content["count"] for content in contents} == {1, None}


@pytest.mark.full
def test_texts(tmp_path):
    rng = np.random.default_rng(0)
    words = {"animal": ["cat", "dog", "cow", "fur", "paw"], "plant": ["leaf", "root", "seed", "moss", "bark"]}
    labels = rng.choice(list(words), 240)
    texts = [" ".join(rng.choice(words[label], 6)) + f" number {i}" for i, label in enumerate(labels)]
    noisy = add_label_noise(labels, rate=0.05, random_state=0)
    table, flagged = tmp_path / "texts.csv", tmp_path / "suspicious.csv"
    pd.DataFrame({"sentence": texts, "kind": noisy.y}).to_csv(table, index=False)
    run("audit", table, "--label", "kind", "-o", flagged, "--flag", 12)
    found = pd.read_csv(flagged)
    assert noisy.mask[found["row"]].all()
    item = load_review_set(flagged.with_suffix(".review.json")).flagged[0]
    assert item.kind == "text"


@pytest.mark.full
def test_a_table_of_the_form_of_the_quora_questions(tmp_path):
    rng = np.random.default_rng(0)
    words = {0: ["how", "learn", "best", "way", "python"], 1: ["why", "stupid", "hate", "people", "always"]}
    target = rng.integers(0, 2, 300)
    noisy = add_label_noise(target, rate=0.04, random_state=0)
    texts = [" ".join(rng.choice(words[label], 6)) for label in target]
    table, flagged = tmp_path / "train.csv", tmp_path / "suspicious.csv"
    identifiers = [f"{i:020x}" for i in range(300)]
    pd.DataFrame({"qid": identifiers, "question_text": texts, "target": noisy.y}).to_csv(table, index=False)
    options = ["--text", "question_text", "--sample", 250, "--flag", 8]
    run("audit", table, "--label", "target", "-o", flagged, *options)
    found = pd.read_csv(flagged)
    assert noisy.mask[found["row"]].all()
    assert found["qid"].tolist() == [identifiers[row] for row in found["row"]]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Images as files, numbered from 2 to 11 so that text and numbers sort differently, with wrong labels."""
    folder = tmp_path_factory.mktemp("digits")
    (folder / "images").mkdir()
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    noisy = add_label_noise(y + 2, rate=0.05, random_state=0)
    for i, row in enumerate(X):
        Image.fromarray((row.reshape(8, 8) * 15).astype(np.uint8)).save(folder / "images" / f"{i}.png")
    paths = [f"images/{i}.png" for i in range(len(y))]
    pd.DataFrame({"image": paths, "digit": noisy.y}).to_csv(folder / "digits.csv", index=False)
    np.save(folder / "embeddings.npy", X.astype(np.float32))
    proba = cross_val_predict(LogisticRegression(max_iter=300), X / 16, noisy.y, method="predict_proba")
    np.save(folder / "proba.npy", proba)
    return folder, noisy.mask


def test_embeddings_probabilities_and_images(digits):
    folder, wrong = digits
    flagged = folder / "s.csv"
    matrices = ["--embeddings", folder / "embeddings.npy", "--proba", folder / "proba.npy"]
    run("audit", folder / "digits.csv", "--label", "digit", *matrices, "-o", flagged)
    found = pd.read_csv(flagged)
    assert wrong[found["row"]].mean() > 0.85
    assert wrong[found["row"]].sum() > 0.85 * wrong.sum()
    review_set = load_review_set(flagged.with_suffix(".review.json"))
    assert {item.kind for item in review_set.items} == {"image"}
    # The probability columns are in the order 2, …, 11, the classes of the result in that of their text.
    assert review_set.classes[:3] == ("10", "11", "2")
    agrees = found["reasons"].str.extract(r"classifier prefers '(\d+)'")[0].dropna()
    assert (agrees.astype(int) == found["suggested"][agrees.index]).mean() > 0.9


def test_probabilities_and_a_sample(tmp_path):
    rng = np.random.default_rng(0)
    y = np.array([9] * 60 + [10] * 60 + [11])
    X = rng.normal(size=(121, 3)) + 3.0 * y[:, None]
    proba = np.eye(3)[y - 9] * 0.7 + 0.1
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "p.npy", proba)
    options = ["--proba", tmp_path / "p.npy", "--sample", 100, "--flag", 1]
    run("audit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "s.csv", *options)
    assert load_review_set(tmp_path / "s.review.json").classes == ("10", "11", "9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["audit", "{table}", "--label", "z"],
            "There is no column 'z' in {table}.\nHint: the columns are 'a', 'y'.",
        ),
        (
            ["audit", "{table}", "--label", "y", "--text", "z"],
            "There is no column 'z' in {table}.\nHint: the columns other than the label are 'a'.",
        ),
        (
            ["audit", "{table}", "--label", "y", "--image", "a"],
            "30 images of {table} cannot be read or shown, so too few labels are left to compare:\n"
            + "\n".join(
                f"  line {i + 2}: its name does not end in one of .avif, .bmp, .gif, .jpeg, .jpg, .png, .webp ({i})"
                for i in range(10)
            )
            + "\n  and 20 more",
        ),
        (
            ["audit", "{table}", "--label", "y", "--embeddings", "{folder}/no.npy"],
            "There is no file {folder}/no.npy.",
        ),
        (
            ["audit", "{table}", "--label", "y", "--embeddings", "{folder}/short.npy"],
            "{folder}/short.npy must contain a matrix of numbers with one row for each of the 30 rows of the "
            "table. Got shape (29, 2) of type float64.",
        ),
        (
            ["audit", "{table}", "--label", "y", "--embeddings", "{folder}/text.npy"],
            "{folder}/text.npy is not a numeric .npy array.\nHint: numpy.save(path, array).",
        ),
        (
            ["audit", "{table}", "--label", "y", "--proba", "{folder}/two.npy"],
            "{folder}/two.npy has 2 columns, but there are 3 labels: u, v, w.\n"
            "Hint: name the class of each column: a data frame, a CSV file with a header, or an .npz file with "
            "proba and classes.",
        ),
        (
            ["review", "{folder}/s.csv"],
            "There is no review set {folder}/s.review.json.\n"
            "Hint: neighboragg audit table.csv --label y -o {folder}/s.csv",
        ),
    ],
    ids=["label", "text", "image", "absent", "short", "no array", "columns", "review"],
)
def test_refusals(tmp_path, arguments, message):
    table = tmp_path / "t.csv"
    pd.DataFrame({"a": range(30), "y": ["u", "v", "w"] * 10}).to_csv(table, index=False)
    np.save(tmp_path / "short.npy", np.zeros((29, 2)))
    np.save(tmp_path / "two.npy", np.full((30, 2), 0.5))
    (tmp_path / "text.npy").write_text("no array at all")
    places = {"table": table, "folder": tmp_path}
    with pytest.raises((InvalidInputError, InvalidParameterError)) as error:
        run(*(argument.format(**places) for argument in arguments))
    assert str(error.value) == message.format(**places)
