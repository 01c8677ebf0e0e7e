"""Tables as they come: what is not to be changed stays as it is, and what is wrong is said."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
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


def relabel_all(flagged):
    """Take every suggestion; return the rows."""
    path = flagged.with_suffix(".review.json")
    review_set = load_review_set(path)
    with DecisionStore(path.with_suffix(".decisions.sqlite"), review_set) as store:
        for item in review_set.flagged:
            store.record(item.row, action="relabel", label=item.suggested, reviewer="Ada", based_on=0)
    return review_set, sorted(item.row for item in review_set.flagged)


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, add_label_noise(y.to_numpy(), rate=0.04, random_state=0)


def test_only_decided_labels_change_in_a_csv_file(wine, tmp_path):
    X, noisy = wine
    names = np.array(["01", "1.0", "None"])[noisy.y]
    frame = X.astype(str).assign(
        code=[f"{i:05d}" for i in range(178)], country=["NA", "DE"] * 89, count=["1", ""] * 89, y=names
    )
    frame.loc[7, "y"] = ""
    table, flagged, fixed = tmp_path / "t.csv", tmp_path / "s.csv", tmp_path / "c.csv"
    frame.to_csv(table, index=False)
    assert "1 of 178 rows are left out because their label is missing." in run(
        "audit", table, "--label", "y", "-o", flagged, "--flag", 6
    )
    review_set, rows = relabel_all(flagged)
    with pytest.raises(InvalidInputError) as error:
        run("correct", flagged, "-o", table)
    assert (
        str(error.value) == f"The output {table} would replace the table.\nHint: choose another path with -o."
    )
    assert review_set.classes == ("01", "1.0", "None")
    assert review_set.n_judged == 177
    run("correct", flagged, "-o", fixed)
    before, after = table.read_text().splitlines(), fixed.read_text().splitlines()
    assert [i - 1 for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == rows
    for i in rows:
        old, new = before[i + 1].rpartition(","), after[i + 1].rpartition(",")
        assert old[0] == new[0]
        assert new[2] in names
        assert new[2] != old[2]


def test_a_parquet_file_keeps_its_index_and_types(wine, tmp_path):
    X, noisy = wine
    index = pd.Index([f"id{i}" for i in range(178)], name="patient")
    kinds = pd.Categorical.from_codes(noisy.y, ["a", "b", "c"])
    frame = X.assign(size=pd.array(np.arange(178), dtype="Int16"), kind=kinds).set_index(index)
    table, flagged, fixed = tmp_path / "t.parquet", tmp_path / "s.csv", tmp_path / "c.parquet"
    frame.to_parquet(table)
    run("audit", table, "--label", "kind", "-o", flagged, "--flag", 5)
    _, rows = relabel_all(flagged)
    run("correct", flagged, "-o", fixed)
    after = pd.read_parquet(fixed)
    pd.testing.assert_frame_equal(after.drop(columns="kind"), frame.drop(columns="kind"))
    assert after["kind"].dtype == frame["kind"].dtype
    changed = after["kind"].astype(str).to_numpy() != frame["kind"].astype(str).to_numpy()
    assert np.flatnonzero(changed).tolist() == rows
    with pytest.raises(InvalidInputError) as error:
        run("correct", flagged, "-o", tmp_path / "c.tsv")
    assert str(error.value) == (
        f"The output {tmp_path}/c.tsv must have the format of the table {table}, of which it is a copy.\n"
        f"Hint: -o {tmp_path}/c.parquet"
    )


@pytest.mark.full
def test_a_comma_at_the_end_of_every_line(wine, tmp_path):
    X, noisy = wine
    lines = X.iloc[:, :4].assign(y=np.array(["u", "v", "w"])[noisy.y]).to_csv(index=False).splitlines()
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *(line + "," for line in lines[1:])]) + "\n")
    run("audit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "s.csv", "--flag", 3)
    assert load_review_set(tmp_path / "s.review.json").classes == ("u", "v", "w")


@pytest.mark.full
def test_labels_and_values_that_plots_and_json_do_not_like(wine, tmp_path):
    X, noisy = wine
    frame = X.assign(account=np.arange(178) + 12_345_678, y=np.array(["$20_$", "$100%$", "[/b]"])[noisy.y])
    frame.loc[:, "alcohol"] = np.where(np.arange(178) % 50 == 3, np.inf, frame["alcohol"])
    folder = tmp_path / "[red] [b"
    folder.mkdir()
    frame.to_csv(folder / "t.csv", index=False)
    output = run("audit", folder / "t.csv", "--label", "y", "-o", folder / "s.csv", "--flag", 178)
    assert f"neighboragg review '{folder / 's.csv'}'" in output
    items = {item.row: item for item in load_review_set(folder / "s.review.json").items}
    assert items[3].content["alcohol"] == "inf"
    assert items[8].content["account"] == 12_345_686


@pytest.mark.full
def test_an_identifier_does_not_make_a_column_for_every_row(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"id": [f"row {i}" for i in range(400)], "a": rng.normal(size=400) + 3 * y, "y": y})
    noisy = add_label_noise(y, rate=0.05, random_state=0)
    frame["y"] = noisy.y
    frame.to_csv(tmp_path / "t.csv", index=False)
    run("audit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "s.csv", "--flag", 15)
    assert noisy.mask[pd.read_csv(tmp_path / "s.csv")["row"]].mean() > 0.7


@pytest.mark.full
def test_copies_of_a_text_do_not_vouch_for_it(tmp_path):
    rng = np.random.default_rng(0)
    words = {"animal": ["cat", "dog", "cow", "fur", "paw"], "plant": ["leaf", "root", "seed", "moss", "bark"]}
    labels = rng.choice(list(words), 200)
    texts = np.array([" ".join(rng.choice(words[label], 5)) + f" {i:03d}" for i, label in enumerate(labels)])
    noisy = add_label_noise(labels, rate=0.08, random_state=0)
    rows = np.concatenate([np.arange(200), np.flatnonzero(noisy.mask)])
    pd.DataFrame({"text": texts[rows], "kind": noisy.y[rows]}).to_csv(tmp_path / "t.csv", index=False)
    run("audit", tmp_path / "t.csv", "--label", "kind", "-o", tmp_path / "s.csv", "--flag", 32)
    found = pd.read_csv(tmp_path / "s.csv")["row"]
    assert noisy.mask[rows][found].mean() > 0.9


@pytest.mark.full
def test_missing_texts_are_empty_ones(tmp_path):
    texts = ["green leaf here", "brown dog there", None, "brown fur there", "green moss here"] * 8
    frame = pd.DataFrame({"text": texts, "kind": ["p", "a", "a", "a", "p"] * 8})
    frame["text"] = frame["text"] + [f" x{i}" for i in range(40)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    run(
        "audit",
        tmp_path / "t.csv",
        "--label",
        "kind",
        "--text",
        "text",
        "-o",
        tmp_path / "s.csv",
        "--flag",
        2,
    )


def test_a_second_audit_does_not_orphan_decisions(wine, tmp_path):
    X, noisy = wine
    table, flagged = tmp_path / "t.csv", tmp_path / "s.csv"
    X.assign(y=noisy.y).to_csv(table, index=False)
    run("audit", table, "--label", "y", "-o", flagged, "--flag", 5)
    relabel_all(flagged)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InvalidInputError) as error:
        run("audit", table, "--label", "y", "-o", flagged, "--flag", 6)
    assert str(error.value) == (
        f"The output {flagged} already exists.\n"
        "Hint: choose another name with -o, or replace the file with --overwrite."
    )
    with pytest.raises(InvalidInputError) as error:
        run("audit", table, "--label", "y", "-o", flagged, "--flag", 6, "--overwrite")
    assert str(error.value) == (
        f"{tmp_path}/s.review.decisions.sqlite contains decisions about an earlier audit, which do not fit these "
        "flags.\n"
        "Hint: choose another name with -o, or move that file away."
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    # The same audit again finds the same rows, and changes nothing.
    run("audit", table, "--label", "y", "-o", flagged, "--flag", 5, "--overwrite")
    run("correct", flagged, "-o", tmp_path / "c.csv")


@pytest.mark.parametrize(
    ("name", "contents", "options", "message"),
    [
        ("suspicious.csv", b"a,y\n1,u\n2,v\n", ["-o", "{table}"],
         "The output {table} would replace the table.\nHint: choose another path with -o."),
        ("t.csv", b"a,y\n1,u\n2,v\n", ["-o", "{folder}/z.png"],
         "The output {folder}/z.png must end in .csv; the plot and the review set go next to it."),
        ("t.csv", b"a,y\n1,u\n2,v\n", ["--text", "y"], "The column of texts is the label column 'y' itself."),
        ("t.csv", b"", [], "{table} is empty."),
        ("t.csv", b"a,y\n1,u\n2,v,w,x\n", [],
         "Line 3 of {table} has 4 fields, but the header has 2 (delimiter ',').\nHint: quote fields that contain the "
         "delimiter and fill up short lines, or name the delimiter (--sep)."),
        ("t.csv", b"a,y\n\xe9t\xe9,u\n", [],
         "Line 2 of {table} is not text in utf-8: it contains the byte 0xe9.\nHint: name the encoding; files of older "
         "Windows programs are often in cp1252 (--encoding cp1252), others in latin-1."),
    ],
    ids=["over the table", "image", "label as text", "empty", "ragged", "latin-1"],
)  # fmt: skip
def test_refusals(tmp_path, name, contents, options, message):
    table = tmp_path / name
    table.write_bytes(contents)
    places = {"table": table, "folder": tmp_path}
    if "-o" not in options:
        options = [*options, "-o", "{folder}/out.csv"]
    with pytest.raises((InvalidInputError, InvalidParameterError)) as error:
        run("audit", table, "--label", "y", *(option.format(**places) for option in options))
    assert str(error.value) == message.format(**places)
    assert table.read_bytes() == contents


def test_texts_without_a_common_word_are_refused(tmp_path):
    lines = [f"{chr(19968 + 2 * i)} {chr(19969 + 2 * i)},{'uv'[i % 2]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["text,y", *lines]) + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="no texts with a word in common"):
        run("audit", tmp_path / "t.csv", "--label", "y", "--text", "text", "-o", tmp_path / "s.csv")


@pytest.mark.full
def test_rows_are_numbered_as_in_the_file_and_folders_are_made(wine, tmp_path):
    X, noisy = wine
    X.assign(y=noisy.y).to_csv(tmp_path / "t.csv", index=False)
    flagged = tmp_path / "new" / "folder" / "s.csv"
    options = ["--sample", 120, "--flag", 3]
    output = run("audit", tmp_path / "t.csv", "--label", "y", "-o", flagged, *options)
    said = [line.split(":")[0].strip() for line in output.splitlines() if line.startswith("  line ")]
    assert said == pd.read_csv(flagged)["where"].tolist()


@pytest.mark.full
def test_texts_are_judged_with_other_columns(wine, tmp_path):
    X, noisy = wine
    frame = X.assign(notes=[f"tasting note {i}" for i in range(178)], y=noisy.y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    output = run("audit", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "s.csv", "--flag", 7)
    assert "  texts       notes\n" in output
    assert noisy.mask[pd.read_csv(tmp_path / "s.csv")["row"]].mean() > 0.7


@pytest.mark.full
def test_nothing_decided_yet(wine, tmp_path):
    X, noisy = wine
    table, flagged = tmp_path / "t.csv", tmp_path / "s.csv"
    X.assign(y=noisy.y).to_csv(table, index=False)
    run("audit", table, "--label", "y", "-o", flagged, "--flag", 5)
    with pytest.raises(InvalidInputError) as error:
        run("correct", flagged)
    assert str(error.value) == f"Nothing has been decided yet.\nHint: neighboragg review {flagged}"
