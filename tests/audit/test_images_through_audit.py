"""Images and texts from files: folders by class, a column of paths, encoders, what cannot be read, corrections."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from benchmarks.datasets import add_label_noise
from neighboragg import audit, correct
from neighboragg._cli.app import app
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features._vector_cache import VectorCache
from neighboragg.labels import Images
from neighboragg.labels._review_set import load_review_set

N = 240


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEIGHBORAGG_HOME", str(tmp_path / "home"))


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def message_of(function, *arguments, **options):
    with pytest.raises((InvalidInputError, InvalidParameterError)) as caught:
        function(*arguments, **options)
    return str(caught.value)


@pytest.fixture
def digits(tmp_path):
    """Digits as PNG files in folders called by words, some in a wrong one."""
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    data = load_digits()
    noisy = add_label_noise(names[data.target[:N]], rate=0.05, random_state=0)
    root = tmp_path / "digits"
    for i, label in enumerate(noisy.y):
        (root / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray((data.images[i] * 15).astype(np.uint8)).save(root / label / f"{i:03}.png")
    return root, noisy.mask, names[data.target[:N]]


def numbers_of(images):
    return images.str.extract(r"(\d+)\.png")[0].astype(int).to_numpy()


def relabel_all(review_path):
    review_set = load_review_set(review_path)
    with DecisionStore(review_path.with_suffix(".decisions.sqlite"), review_set) as store:
        for item in review_set.flagged:
            store.record(item.row, action="relabel", label=item.suggested, reviewer="Ada", based_on=0)
    return review_set


def test_a_folder_from_audit_to_corrected(digits, tmp_path):
    root, wrong, truth = digits
    before = sorted(path.relative_to(root) for path in root.rglob("*.png"))
    flagged, fixed = tmp_path / "s.csv", tmp_path / "c.csv"
    output = run("audit", root, "-o", flagged)
    assert "240 labels of digits, scored by a small fixed descriptor of the images" in output
    assert "It is weak" in output
    assert f"neighboragg review {flagged}\n" in output
    found = pd.read_csv(flagged)
    rows = numbers_of(found["image"])
    assert wrong[rows].mean() > 0.8
    assert wrong[rows].sum() > 0.8 * wrong.sum()
    assert found["where"].tolist() == found["image"].tolist()

    review_set = relabel_all(flagged.with_suffix(".review.json"))
    assert {item.kind for item in review_set.items} == {"image"}
    assert all((root / item.content["image"]).is_file() for item in review_set.items)
    assert all(item.title == item.content["image"] for item in review_set.items)

    assert f"{len(found)} labels changed" in run("correct", flagged, "-o", fixed)
    after = pd.read_csv(fixed)
    assert len(after) == N
    assert (after["folder"] == after["image"].str.partition("/")[0]).all()
    moved = after["label"] != after["folder"]
    assert sorted(after["image"][moved]) == sorted(found["image"])
    assert (after["label"].to_numpy() != truth[numbers_of(after["image"])]).sum() < wrong.sum() / 2
    # Nothing was moved.
    assert sorted(path.relative_to(root) for path in root.rglob("*.png")) == before


def test_a_folder_that_changed(digits, tmp_path):
    """Images that came or went elsewhere do no harm; one that was decided about must be there."""
    root, *_ = digits
    flagged, fixed = tmp_path / "s.csv", tmp_path / "c.csv"
    run("audit", root, "-o", flagged, "--flag", 5)
    review_set = relabel_all(flagged.with_suffix(".review.json"))
    decided = {item.content["image"]: item.suggested for item in review_set.flagged}
    folder = sorted(root.iterdir())[0]
    Image.new("L", (8, 8)).save(folder / "!first.png")
    output = run("correct", flagged, "-o", fixed)
    assert output.startswith(
        f"{root} has changed since the audit; decided rows were matched by their contents.\n"
    )
    after = pd.read_csv(fixed)
    moved = after[after["label"] != after["folder"]]
    assert dict(zip(moved["image"], moved["label"], strict=True)) == decided
    (root / next(iter(decided))).unlink()
    said = message_of(run, "correct", flagged, "-o", tmp_path / "d.csv")
    assert said.startswith(f"{next(iter(decided))} of the audit, labeled ")
    assert f"is not in {root} any more" in said
    assert not (tmp_path / "d.csv").exists()


@pytest.mark.full
def test_excluded_images_are_left_out_of_the_list(digits, tmp_path):
    root, *_ = digits
    flagged = tmp_path / "s.csv"
    found = audit(root, flag=3)
    found.write(flagged)
    review_set = found.review_set
    with DecisionStore(flagged.with_suffix(".review.decisions.sqlite"), review_set) as store:
        store.record(review_set.flagged[0].row, action="exclude", reviewer="Ada", based_on=0)
    done = correct(flagged, tmp_path / "c.csv")
    assert (done.n_changed, done.n_dropped) == (0, 1)
    listed = set(pd.read_csv(tmp_path / "c.csv")["image"])
    assert review_set.flagged[0].content["image"] not in listed
    assert len(listed) == N - 1
    assert message_of(correct, flagged, tmp_path / "c.parquet") == (
        f"The output {tmp_path / 'c.parquet'} for a folder of images must end in .csv."
    )


def decided(digits, tmp_path, **labels):
    """Audit the folder, and give the two most suspicious images these labels."""
    flagged = tmp_path / "s.csv"
    found = audit(digits, flag=2)
    found.write(flagged, overwrite=True)
    items = found.review_set.flagged
    with DecisionStore(flagged.with_suffix(".review.decisions.sqlite"), found.review_set) as store:
        for item, label in zip(items, labels.values(), strict=True):
            store.record(
                item.row,
                action="relabel",
                label=label,
                reviewer="Ada",
                based_on=0,
                new_class=label not in found.result.classes,
            )
    return flagged, [item.content["image"] for item in items]


def files_in(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.png")}


def test_images_are_moved_when_asked(digits, tmp_path):
    root, *_ = digits
    before = files_in(root)
    flagged, (first, second) = decided(root, tmp_path, first="one", second="a new class")
    first_name, second_name = first.partition("/")[2], second.partition("/")[2]
    output = run("correct", flagged, "-o", tmp_path / "c.csv", "--move")
    assert output.startswith("2 labels changed, 2 images moved: ")
    expected = before | {f"one/{first_name}": before[first], f"a new class/{second_name}": before[second]}
    assert files_in(root) == {path: raw for path, raw in expected.items() if path not in (first, second)}
    # Not twice.
    said = message_of(run, "correct", flagged, "-o", tmp_path / "d.csv", "--move")
    assert f"is not in {root} any more" in said


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("label", ["../outside", "..", "/tmp/x", ".hidden", "a\\b"])
def test_no_label_leads_out_of_the_folder(digits, tmp_path, label):
    root, *_ = digits
    before = files_in(tmp_path)
    flagged, (_, second) = decided(root, tmp_path, first="one", second=label)
    said = message_of(correct, flagged, tmp_path / "c.csv", move=True)
    assert said == (
        f"The label {label!r} of {second} cannot be the name of a folder, so nothing was moved.\n"
        "Hint: relabel it in the review, or move the images by the list."
    )
    flagged.with_suffix(".png").unlink()
    assert files_in(tmp_path) == before


@pytest.mark.full
def test_no_image_replaces_another(digits, tmp_path, monkeypatch):
    root, *_ = digits
    flagged, (first, second) = decided(root, tmp_path, first="new", second="new")
    (root / "new").mkdir()
    in_the_way = root / "new" / first.partition("/")[2]
    in_the_way.with_suffix(".txt").write_text("not an image")
    before = files_in(root)
    monkeypatch.setattr(
        "pathlib.Path.exists", lambda path, real=Path.exists: real(path) or path == in_the_way
    )
    said = message_of(correct, flagged, tmp_path / "c.csv", move=True)
    assert said.startswith(
        f"{root / first} cannot move to {in_the_way}, because another image is or would be there;"
    )
    monkeypatch.undo()
    assert files_in(root) == before
    # One that cannot be moved brings the others back.
    real = Path.rename

    def rename(path, target):
        if path == root / second:
            raise PermissionError(13, "Permission denied")
        return real(path, target)

    monkeypatch.setattr("pathlib.Path.rename", rename)
    said = message_of(correct, flagged, tmp_path / "c.csv", move=True)
    assert said.endswith("Permission denied. All images are back in their original folders.")
    assert files_in(root) == before


def test_a_table_is_not_moved(tmp_path):
    frame = pd.DataFrame({"a": np.arange(40) % 7 + 10 * (np.arange(40) % 2), "y": ["u", "v"] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    audit(tmp_path / "t.csv", "y", flag=2).write(tmp_path / "s.csv")
    said = message_of(correct, tmp_path / "s.csv", move=True)
    assert said.endswith(
        "t.csv is a table; only images in a folder for each class are moved.\nHint: leave out --move."
    )


@pytest.fixture
def table_of_digits(digits, tmp_path):
    root, wrong, _ = digits
    paths = sorted(root.rglob("*.png"), key=lambda path: path.name)
    frame = pd.DataFrame(
        {
            "image": [path.relative_to(tmp_path).as_posix() for path in paths],
            "y": [p.parent.name for p in paths],
        }
    )
    return frame, wrong


@pytest.mark.full
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_of_paths(table_of_digits, tmp_path, suffix):
    frame, wrong = table_of_digits
    table, flagged = tmp_path / f"t.{suffix}", tmp_path / "out" / "s.csv"
    frame.to_csv(table, index=False) if suffix == "csv" else frame.to_parquet(table)
    run("audit", table, "--label", "y", "--image", "image", "-o", flagged)
    found = pd.read_csv(flagged)
    assert wrong[found["row"]].mean() > 0.8
    assert (
        load_review_set(flagged.with_suffix(".review.json")).items[0].content["image"].startswith("digits/")
    )


def test_unreadable_images_are_findings(table_of_digits, tmp_path):
    frame, _ = table_of_digits
    (tmp_path / "digits" / "broken.png").write_text("no image")
    frame.loc[3, "image"] = "digits/broken.png"
    frame.loc[7, "image"] = "digits/missing.png"
    frame.loc[9, "image"] = None
    frame.loc[11, "image"] = "../secret.png"
    frame.loc[13, "image"] = "digits/page.html"
    frame.loc[15, ["image", "y"]] = ["not/looked at.png", None]
    table = tmp_path / "t.csv"
    frame.to_csv(table, index=False)
    problems = {
        "line 5": "not an image that Pillow can read (digits/broken.png)",
        "line 9": "file not found (digits/missing.png)",
        "line 11": "the path is missing (nan)",
        "line 13": "the path must lead below the folder of the table, with forward slashes (../secret.png)",
        "line 15": "its name does not end in one of .avif, .bmp, .gif, .jpeg, .jpg, .png, .webp (digits/page.html)",
    }
    options = ["--label", "y", "--image", "image", "-o", tmp_path / "s.csv", "--flag", 5]
    output = run("audit", table, *options)
    assert "5  images that cannot be read or shown, so they are not scored\n" in output
    assert output.startswith("234 labels of t.csv")
    found = pd.read_csv(tmp_path / "s.findings.csv")
    found = found[found["kind"] == "unreadable image"]
    assert dict(zip(found["where"], found["reason"], strict=True)) == problems
    review_set = load_review_set(tmp_path / "s.review.json")
    assert (review_set.n_rows, review_set.n_judged) == (240, 234)
    for item in review_set.items:  # rows are still those of the file
        assert item.content["image"] == frame["image"][item.row]


@pytest.mark.full
def test_images_of_a_folder_that_cannot_be_shown_are_findings(digits):
    root, *_ = digits
    Image.new("L", (8, 8)).save(root / "one" / "scan.tiff")
    (root / "two" / "cut.png").write_bytes(b"")
    found = audit(root, flag=3)
    table = found.findings_frame()
    table = table[table["kind"] == "unreadable image"]
    assert table["where"].tolist() == ["one/scan.tiff", "two/cut.png"]
    assert table["label"].tolist() == ["one", "two"]
    assert found.counts()["unreadable image"] == 2
    assert len(found.result) == N


@pytest.mark.full
def test_images_outside_the_sample_are_scored_too(digits, tmp_path):
    root, wrong, _ = digits
    (root / "two" / "cut.png").write_bytes(b"")
    found = audit(root, sample=100, flag=10)
    assert len(found.result) == N
    assert wrong[numbers_of(found.to_frame()["image"])].mean() > 0.6
    assert [finding.rows for finding in found.findings if finding.kind == "unreadable image"]


@pytest.mark.full
def test_a_second_audit_opens_no_image(digits, tmp_path, monkeypatch):
    root, *_ = digits
    first = audit(root, flag=5)
    assert len(VectorCache()) == N
    monkeypatch.setattr("PIL.Image.open", lambda *args, **kwargs: 1 / 0)
    second = audit(root, flag=5)
    np.testing.assert_array_equal(second.result.scores, first.result.scores)
    VectorCache().clear()
    said = message_of(audit, root)
    assert said.startswith(
        f"240 images of {root} cannot be read or shown, so too few labels are left to compare:\n"
    )


ENCODER = """
import numpy as np

def pixels(images):
    return np.array([np.asarray(image.convert("L"), dtype=float).ravel() for image in images])

def letters(texts):
    return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])

def flat(texts):
    return np.zeros(len(texts))
"""


@pytest.fixture
def encoder_here(tmp_path, monkeypatch):
    """A module in the folder where the command runs."""
    (tmp_path / "letters_and_pixels.py").write_text(ENCODER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield "letters_and_pixels"
    sys.modules.pop("letters_and_pixels", None)


@pytest.mark.full
def test_images_by_an_encoder_of_ones_own(digits, tmp_path, encoder_here):
    _, wrong, _ = digits
    output = run("audit", "digits", "--encoder", f"{encoder_here}:pixels", "-o", "s.csv")
    assert "scored by vectors of the images from the encoder letters_and_pixels:pixels." in output
    assert wrong[numbers_of(pd.read_csv("s.csv")["image"])].mean() > 0.8
    assert "weak" not in output


def test_texts_by_an_encoder_of_ones_own(tmp_path, encoder_here):
    rng = np.random.default_rng(0)
    labels = rng.choice(["low", "high"], 200)
    alphabets = {"low": "abcdefgh", "high": "pqrstuvw"}
    texts = ["".join(rng.choice(list(alphabets[label]), 8)) for label in labels]
    noisy = add_label_noise(labels, rate=0.05, random_state=0)
    pd.DataFrame({"word": texts, "y": noisy.y}).to_csv("t.csv", index=False)
    options = ["audit", "t.csv", "--label", "y", "--encoder", f"{encoder_here}:letters", "--text", "word"]
    output = run(*options, "-o", "s.csv", "--flag", 10)
    assert "scored by vectors of the texts in 'word' from the encoder letters_and_pixels:letters." in output
    assert noisy.mask[pd.read_csv("s.csv")["row"]].all()
    assert load_review_set(tmp_path / "s.review.json").items[0].kind == "text"
    assert len(VectorCache()) == len(set(texts))
    said = message_of(
        run, "audit", "t.csv", "--label", "y", "--text", "word", "--encoder", f"{encoder_here}:flat"
    )
    assert said.startswith(
        "The encoder letters_and_pixels:flat must return an array of numbers of shape (64, d)"
    )
    said = message_of(run, "audit", "t.csv", "--label", "y", "--text", "word", "--encoder", "no_such:flat")
    assert said.startswith("The module 'no_such' of the encoder 'no_such:flat' was not found.")


def test_a_table_needs_its_label_column():
    assert message_of(audit, pd.DataFrame({"a": [1, 2]})) == (
        "A table needs the name of its label column.\nHint: --label name, or label= in Python."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--encoder", "m:f"],
            "Images() needs the name of the column with the image paths.\n"
            "Hint: --image column, or Images(column) in Python.",
        ),
        (
            ["--text", "a", "--image", "b", "--encoder", "m:f"],
            ("--text and --image and --encoder cannot be combined.\nHint: pass one of them."),
        ),
        (
            ["--encoder", "m:f", "--embeddings", "e.npy"],
            ("--embeddings and --encoder cannot be combined.\nHint: pass one of them."),
        ),
        (
            ["--image", "b", "--ignore", "a"],
            ("With --image, columns cannot be chosen.\nHint: leave out --columns, --use and --ignore."),
        ),
    ],
)
def test_choices_that_do_not_go_together(tmp_path, options, message):
    frame = pd.DataFrame({"a": ["u v", "w x"] * 10, "b": ["p.png"] * 20, "y": [0, 1] * 10})
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["audit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "s.csv"]
    assert message_of(run, *command, *options) == message


def test_a_folder_has_no_columns_and_keeps_outputs_away(digits, tmp_path):
    root, *_ = digits
    assert message_of(audit, root, by=Images("image")) == (
        f"{root} is a folder of images, so there is no column to choose.\nHint: leave out the column."
    )
    assert message_of(audit, root, "y") == (
        f"{root} is a folder of images, labeled by its subfolders. It does not have a column 'y'.\n"
        "Hint: leave out the label column, or name a file."
    )
    output = root / "one" / "s.csv"
    assert message_of(run, "audit", root, "-o", output) == (
        f"The output {output} would end up among the images of {root}.\nHint: choose another path with -o."
    )
