"""Scoring part by part: equal answers however rows are spread; runs that are resumed or refused."""

import json
import os
import subprocess
import sys
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from sklearn.linear_model import LogisticRegression

from neighboragg import SelectiveClassifier, TrustedClassifier, score
from neighboragg.exceptions import (
    FileFormatError,
    FittedRowsWarning,
    InvalidInputError,
    InvalidParameterError,
    PartsFailedError,
)

RESULTS = ["predicted", "probability", "trust", "familiarity", "seen_in_fit"]
SPREADS = {
    "2 files": (150,),
    "8 files": (30, 60, 100, 140, 180, 220, 260),
    "unequal": (1, 3, 290),
    "an empty one": (0, 100, 100, 300),
}


def test_results_are_those_of_the_model(scored, cut_into, model, new_rows):
    found, expected = scored(cut_into()), model.assess(new_rows.drop(columns="id"))
    assert found.columns.tolist() == ["id", *RESULTS]
    assert found["id"].tolist() == list(range(300))
    np.testing.assert_array_equal(found["predicted"], expected.predicted)
    for name in ("probability", "trust", "familiarity"):
        np.testing.assert_allclose(found[name], getattr(expected, name), rtol=1e-12)


@pytest.mark.full(include=1)
@pytest.mark.parametrize("ends", SPREADS.values(), ids=SPREADS)
def test_equal_answers_however_rows_are_spread(ends, scored, cut_into):
    whole = scored(cut_into(), "whole")
    pd.testing.assert_frame_equal(
        scored(cut_into(*ends, name="spread"), "again", part_rows=41), whole, rtol=0, atol=1e-9
    )


class RoundsAsItLikes(LogisticRegression):
    """As a matrix library: by the memory order, and in another way the last rows, too few for a tile."""

    def predict_proba(self, X):
        proba = super().predict_proba(X)
        proba[len(proba) - len(proba) % 24 :] *= 1 + 1e-15
        return proba * (1 + 1e-15) if np.asarray(X).flags.c_contiguous else proba


@pytest.mark.full(include=1)
@pytest.mark.parametrize("ends", SPREADS.values(), ids=SPREADS)
def test_equal_answers_however_rows_are_rounded(ends, scored, cut_into, digits):
    X, y = digits
    model = TrustedClassifier(RoundsAsItLikes(max_iter=50, tol=0.1), random_state=0).fit(X[:300], y[:300])
    whole = scored(cut_into(), "whole", model=model)
    spread = scored(cut_into(*ends, name="spread"), "again", model=model, part_rows=41)
    pd.testing.assert_frame_equal(spread, whole, rtol=0, atol=1e-9)


def test_equal_answers_where_a_class_lives_in_one_file_only(scored, model, new_rows, tmp_path):
    whole = tmp_path / "whole.parquet"
    new_rows.to_parquet(whole)
    by_class = model.predict(new_rows.drop(columns="id"))
    for c in np.unique(by_class):
        new_rows[by_class == c].to_parquet(tmp_path / f"class-{c}.parquet")
    parts = scored(str(tmp_path / "class-*.parquet"), "parts").sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(parts, scored(whole), rtol=0, atol=1e-9)


def test_threads_and_an_object_for_a_model_change_nothing(scored, cut_into, model):
    folder = cut_into(100)
    expected = scored(folder)
    for name, options in {"threads": {"n_jobs": 3}, "object": {"model": model}}.items():
        pd.testing.assert_frame_equal(scored(folder, name, **options), expected, rtol=0, atol=1e-9)


def test_one_file_as_output(scored, cut_into, tmp_path):
    folder = cut_into(100)
    expected = scored(folder)
    pd.testing.assert_frame_equal(scored(folder, "one.parquet"), expected, rtol=0, atol=1e-9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "one.parquet", "scored"]


def test_addresses_are_read_like_paths(scored, cut_into):
    folder = cut_into(100)
    expected = scored(folder)
    for name, source in {
        "folder": folder.as_uri(),
        "file": [path.as_uri() for path in sorted(folder.iterdir())],
    }.items():
        pd.testing.assert_frame_equal(scored(source, name), expected, rtol=0, atol=1e-9)
    refused(
        lambda: scored((folder / "none").as_uri(), "a"), f"There is no file or folder {folder.as_uri()}/none."
    )
    refused(lambda: scored("nowhere://bucket/rows", "a"), "Cannot read from nowhere://bucket/rows: ")
    (folder / "empty").mkdir()
    refused(lambda: scored((folder / "empty").as_uri(), "a"), "There is no Parquet file in file://")


def test_columns_of_two_types_do_not_become_one_file(scored, cut_into, new_rows, tmp_path):
    folder = cut_into(100)
    new_rows[100:].astype({"id": str}).to_parquet(folder / "01.parquet")
    refused(
        lambda: scored(folder, "one.parquet"), "Included columns have different types in the input files: "
    )
    assert len(list((tmp_path / "one.parquet.parts").glob("part-*.parquet"))) == 5
    assert not (tmp_path / "one.parquet").exists()


def test_the_manifest_says_what_was_done(scored, cut_into, tmp_path, model_file):
    scored(cut_into(100))
    said = json.loads((tmp_path / "scored" / "_manifest.json").read_text())
    assert said["state"] == "complete"
    assert said["failed"] == []
    assert [part["output"] for part in said["parts"]] == [f"part-0000{i}.parquet" for i in range(5)]
    assert [file["rows"] for file in said["inputs"]] == [100, 200]


def states(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("*.parquet")}


def test_finished_parts_are_not_repeated(model_file, cut_into, tmp_path, small):
    folder, output = cut_into(100), tmp_path / "scored"
    first = score(model_file, folder, output)
    before = states(output)
    missing = output / "part-00003.parquet"
    missing.unlink()
    second = score(model_file, folder, output)
    after = states(output)
    assert (first.n_resumed, second.n_resumed, second.n_parts) == (0, 4, 5)
    assert {name for name in after if after[name] != before[name]} == {missing.name}
    assert str(second) == f"300 rows in 5 parts, 4 of them by an earlier run: {output}"


def test_a_model_in_memory_is_the_same_after_it_was_used(model, cut_into, new_rows, tmp_path, small):
    unused, folder = deepcopy(model), cut_into(100)
    settings = {"output": tmp_path / "scored"}
    first = score(unused, folder, **settings)
    unused.assess(new_rows.drop(columns="id"))
    second = score(unused, folder, **settings)
    assert (first.n_resumed, second.n_resumed) == (0, 5)


KILLED = """
import os, signal, sys
from neighboragg import score
from neighboragg.trust import _score

_score.PART_ROWS, _score.BATCH_ROWS = 70, 64

def progress(stage, done, total):
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

score(sys.argv[1], sys.argv[2], sys.argv[3], include=["id"], progress=progress)
"""


def test_a_killed_run_is_resumed(model_file, cut_into, tmp_path, scored):
    folder, output = cut_into(100), tmp_path / "scored"
    command = [sys.executable, "-c", KILLED, str(model_file), str(folder), str(output)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    before = states(output)
    assert len(before) == 2
    assert json.loads((output / "_manifest.json").read_text())["state"] == "running"
    found = scored(folder)
    after = states(output)
    assert len(after) == 5
    assert before.items() <= after.items()
    pd.testing.assert_frame_equal(found, scored(folder, "again"), rtol=0, atol=1e-9)


def test_half_a_part_counts_as_none(model_file, cut_into, tmp_path, scored):
    folder, output = cut_into(100), tmp_path / "scored"
    expected = scored(folder)
    part = output / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    (output / ".part-00002.parquet.0000.tmp").write_bytes(b"left by a process that died")
    pd.testing.assert_frame_equal(scored(folder), expected, rtol=0, atol=1e-9)
    assert not list(output.glob(".part*"))


def test_a_failed_part_is_named_and_stops_no_other(scored, cut_into, tmp_path, new_rows):
    folder = cut_into(100, 200)
    bad = folder / "01.parquet"
    rows = new_rows[100:200].copy()
    rows.iloc[80, 3] = np.nan
    rows.to_parquet(bad)
    with pytest.raises(PartsFailedError) as caught:
        scored(folder)
    said = str(caught.value)
    assert said.startswith(
        f"1 of 6 parts failed; the other 5 are in {tmp_path / 'scored'}.\n- {bad}, rows 70 to 99: ValueError: Input X "
        "contains NaN."
    )
    assert said.endswith("If an input file must be repaired first, choose a new output folder.")
    manifest = json.loads((tmp_path / "scored" / "_manifest.json").read_text())
    assert (manifest["state"], [one["part"] for one in manifest["failed"]]) == ("incomplete", [3])
    assert len(states(tmp_path / "scored")) == 5


def refused(run, message):
    with pytest.raises(InvalidInputError) as caught:
        run()
    assert message in str(caught.value)


def test_two_runs_into_one_folder_are_refused(scored, cut_into, tmp_path):
    folder, heard = cut_into(100), []

    def second_run(stage, done, total):
        if done == 1 and not heard:
            with pytest.raises(InvalidInputError) as caught:
                scored(folder)
            heard.append(str(caught.value))

    found = scored(folder, progress=second_run)
    (said,) = heard
    assert said.startswith(f"Another run (process {os.getpid()} on ")
    assert f") is writing to {tmp_path / 'scored'}.\nHint: wait for it" in said
    assert len(found) == 300


def test_what_does_not_belong_together_is_not_mixed(scored, cut_into, model, digits, tmp_path, new_rows):
    folder, output = cut_into(100), tmp_path / "scored"
    scored(folder)
    before = states(output)
    refused(
        lambda: scored(folder, include=[]),
        "another run: with include=['id'], not [].\n"
        "Hint: replace it with overwrite=True (--overwrite), or choose another output.",
    )
    refused(lambda: scored(folder, part_rows=50), "another run: the rows are cut or ordered in another way.")
    X, y = digits
    other_model = TrustedClassifier(LogisticRegression(max_iter=50, tol=1.0), random_state=0).fit(
        X[:300], y[:300]
    )
    refused(
        lambda: scored(folder, model=other_model),
        "another run: of another model, or of one with",
    )
    new_rows[:5].to_parquet(folder / "02.parquet")
    refused(lambda: scored(folder), f"the input {folder / '02.parquet'} was not among the files.")
    (folder / "02.parquet").unlink()
    new_rows[:100].assign(pixel1=1.0).to_parquet(folder / "00.parquet")
    refused(lambda: scored(folder), f"the input {folder / '00.parquet'} has changed since.")
    (folder / "00.parquet").unlink()
    refused(lambda: scored(folder), f"the input {folder / '00.parquet'} is not among the files any more.")
    other = cut_into(name="other")
    refused(lambda: scored(folder, "other"), f"{other} contains other files, such as 00.parquet.")
    (tmp_path / "file").touch()
    refused(lambda: scored(folder, "file"), f"The output {tmp_path / 'file'} is a file.")
    assert states(output) == before


def test_a_model_that_changes_is_not_mixed_with_what_it_was(scored, cut_into, model_file, digits, tmp_path):
    folder, path = cut_into(100), tmp_path / "copy.nagg"
    path.write_bytes(model_file.read_bytes())
    X, y = digits

    def save_another(stage, done, total):
        if done == 1:
            TrustedClassifier(LogisticRegression(max_iter=50, tol=1.0), random_state=0).fit(
                X[:200], y[:200]
            ).save(path)

    with pytest.raises(PartsFailedError, match=r"4 of 5 parts failed") as caught:
        scored(folder, model=path, progress=save_another)
    assert f"The model {path} has changed since the run began.\nHint: start again with a new output" in str(
        caught.value
    )
    refused(lambda: scored(folder, model=path), "another run: of another model, or of one")


def test_damage_to_a_model_is_found_after_it_was_used(scored, cut_into, model_file, tmp_path):
    folder, path = cut_into(100), tmp_path / "copy.nagg"
    whole = model_file.read_bytes()
    path.write_bytes(whole)
    scored(folder, model=path)
    for place in (-1, len(whole) // 3, len(whole) // 2):
        content = bytearray(whole)
        content[place] ^= 1
        path.unlink()  # not in place, as the process has mapped it
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=r"is damaged: the digest of its array '.*' does not match"):
            scored(folder, "again", model=path)
        assert not (tmp_path / "again").exists()


def test_damage_to_pages_with_a_checksum_is_found(scored, cut_into, new_rows):
    folder = cut_into(100)
    path = folder / "01.parquet"
    new_rows[100:].to_parquet(path, compression="none", write_page_checksum=True, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[content.index(new_rows["pixel2"][100:].to_numpy().tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(PartsFailedError, match=r"01\.parquet, rows 0 to .*(?i:crc|checksum)"):
        scored(folder)


def test_what_is_written_has_checksums(scored, cut_into, tmp_path):
    scored(cut_into(100))
    path = tmp_path / "scored" / "part-00000.parquet"
    column = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"(?i:crc|checksum|corrupt)"):
        pyarrow.parquet.read_table(path, page_checksum_verification=True)


def test_a_file_that_is_being_written_is_refused(scored, cut_into):
    folder = cut_into(100)
    path = folder / "01.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    refused(lambda: scored(folder), f"{path} is not a complete Parquet file: ")


def test_a_file_that_changes_while_others_are_read(scored, cut_into, new_rows, tmp_path):
    folder = cut_into(100, 200)
    path = folder / "02.parquet"

    def rewrite(stage, done, total):
        if done == 1:
            new_rows[200:].assign(pixel1=2.0).to_parquet(path)

    with pytest.raises(PartsFailedError) as caught:
        scored(folder, progress=rewrite)
    assert list(caught.value.failed) == [f"{path}, rows 0 to 69", f"{path}, rows 70 to 99"]
    assert f"{path} has changed since the run began (size was " in str(caught.value)
    assert len(states(tmp_path / "scored")) == 4


def test_rows_of_fit_are_noticed(scored, digits, tmp_path):
    X, _ = digits
    X[:100].assign(id=range(100)).to_parquet(tmp_path / "old.parquet")
    with pytest.warns(FittedRowsWarning) as caught:
        scored(tmp_path / "old.parquet")
    (said,) = caught
    assert str(said.message).startswith(
        f"In 2 of 2 parts, first in {tmp_path / 'old.parquet'}, rows 0 to 69, more rows are exact copies "
    )


def test_a_chance_copy_of_a_row_of_fit_is_not_noticed(scored, digits, new_rows, tmp_path):
    rows = pd.concat([new_rows[:64], digits[0][:1].assign(id=64)])  # alone in the second batch
    rows.to_parquet(tmp_path / "rows.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scored(tmp_path / "rows.parquet")


def test_columns_of_one_name_are_refused(scored, new_rows, tmp_path):
    table = pyarrow.Table.from_pandas(new_rows, preserve_index=False)
    twice = table.append_column("pixel3", table.column("pixel4"))
    pyarrow.parquet.write_table(twice, tmp_path / "rows.parquet")
    refused(
        lambda: scored(tmp_path / "rows.parquet"),
        f"Several columns of {tmp_path / 'rows.parquet'} are called 'pixel3'.\nHint: give every column its own name",
    )
    assert not (tmp_path / "scored").exists()


def test_models_of_arrays_take_columns_of_numbers_or_of_vectors(digits, scored, tmp_path):
    X, y = digits[0].to_numpy(), digits[1]
    model = TrustedClassifier(LogisticRegression(max_iter=50, tol=0.1), random_state=0).fit(X[:500], y[:500])
    new = X[500:600]
    columns = {f"{j}": column for j, column in enumerate(new.T)}
    pyarrow.parquet.write_table(pyarrow.table(columns | {"id": np.arange(100)}), tmp_path / "columns.parquet")
    table = pyarrow.table({"vector": list(new), "id": np.arange(100), "other": np.zeros(100)})
    pyarrow.parquet.write_table(table, tmp_path / "vectors.parquet")
    first = scored(tmp_path / "columns.parquet", "a", model=model)
    second = scored(tmp_path / "vectors.parquet", "b", model=model, columns=["vector"])
    pd.testing.assert_frame_equal(first, second, rtol=0, atol=1e-9)
    refused(
        lambda: scored(tmp_path / "vectors.parquet", "c", model=model),
        f"The model takes 64 numbers for a row, and {tmp_path / 'vectors.parquet'} has 2 columns besides "
        "the included ones.",
    )


def test_coded_texts_are_texts(tmp_path, scored):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"color": rng.choice(["red", "green", "blue"], 200), "size": rng.normal(size=200)})
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["color"]), remainder="passthrough"
    )
    model = TrustedClassifier(make_pipeline(encoder, LogisticRegression()), random_state=0)
    model.fit(frame[:150], np.where(frame["color"][:150] == "red", "yes", "no"))
    new = frame[150:].assign(id=range(50))
    new.to_parquet(tmp_path / "text.parquet")
    new.astype({"color": "category"}).to_parquet(tmp_path / "coded.parquet")
    found = [scored(tmp_path / f"{name}.parquet", name, model=model) for name in ("text", "coded")]
    pd.testing.assert_frame_equal(*found, rtol=0, atol=1e-9)
    assert (found[0]["predicted"] == np.where(new["color"] == "red", "yes", "no")).all()


def test_what_a_selective_classifier_accepts(model, digits, scored, cut_into, new_rows):
    X, y = digits
    safe = SelectiveClassifier(model, target_risk=0.1).calibrate(X[800:], y[800:])
    found = scored(cut_into(), model=safe)
    np.testing.assert_array_equal(found["accepted"], safe.accept(new_rows.drop(columns="id")))


def test_refusals(scored, cut_into, tmp_path, model_file):
    folder = cut_into()
    refused(lambda: scored(tmp_path / "none"), f"There is no file or folder {tmp_path / 'none'}.")
    refused(lambda: scored(tmp_path / "*.parquet"), "There is no Parquet file in ")
    refused(lambda: scored([folder, folder]), "00.parquet is among the input files twice.")
    refused(
        lambda: scored(folder, model=tmp_path / "none.nagg"),
        f"The model {tmp_path / 'none.nagg'} does not exist.",
    )
    refused(lambda: scored(3), "or a list of these. Got a int.")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    refused(
        lambda: scored(tmp_path / "table.csv"),
        "table.csv does not have the name of a Parquet file.\nHint: convert",
    )
    pyarrow.parquet.write_table(pyarrow.table({"trust": [1.0]}), tmp_path / "odd.parquet")
    refused(
        lambda: scored(tmp_path / "odd.parquet", include=["trust"]), "The column 'trust' cannot be included"
    )
    pyarrow.parquet.write_table(
        pyarrow.table({"x": pyarrow.array([], "float64")}), tmp_path / "empty.parquet"
    )
    refused(
        lambda: scored(tmp_path / "empty.parquet"), f"{tmp_path / 'empty.parquet'} does not contain any rows."
    )
    refused(lambda: scored(tmp_path / "odd.parquet", include=[]), "There is no column 'pixel0' in ")
    for options, message in (
        ({"client": "tcp://somewhere"}, "'client' parameter must be a dask.distributed.Client or None"),
        (
            {"model": LogisticRegression()},
            "must be a TrustedClassifier or SelectiveClassifier. Got a Logistic",
        ),
    ):
        with pytest.raises(InvalidParameterError) as caught:
            scored(folder, "never", **options)
        assert message in str(caught.value)
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize(
    ("source", "output"),
    [
        (".", "scored"),
        (".", "deep/scored"),
        (".", "scored.parquet"),
        ("../input/**", "scored"),
        ("*.parquet", "scored.parquet"),
        ("*/*.parquet", "scored"),
        (["00.parquet", "01.parquet"], "01.parquet"),
    ],
)
def test_results_are_not_written_into_the_input(source, output, cut_into, monkeypatch):
    folder = cut_into(100)
    monkeypatch.chdir(folder)
    with pytest.raises(InvalidInputError, match=f"/{output} lies in the input .*\n.*outside"):
        score("no.nagg", source, output)
    assert sorted(path.name for path in folder.iterdir()) == ["00.parquet", "01.parquet"]


@pytest.mark.parametrize(
    ("source", "output"),
    [("*.parquet", "scored"), ("00.parquet", "scored"), (".", "_scored"), (".", "../input scored")],
)
def test_results_beside_the_input_are_scored_again_alike(source, output, cut_into, monkeypatch, model_file):
    monkeypatch.chdir(cut_into(100))
    first = score(model_file, source, output)
    assert score(model_file, source, output).n_resumed == first.n_parts
