"""Where results are written: what reads them, what is never replaced, and outputs that are refused."""

import importlib.util

import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest
from typer.testing import CliRunner

from neighboragg import score
from neighboragg._cli.app import app
from neighboragg.exceptions import InvalidInputError


def test_the_folder_reads_as_one_table(scored, cut_into, tmp_path):
    expected = scored(cut_into(100))
    folder = tmp_path / "scored"
    pd.testing.assert_frame_equal(pd.read_parquet(folder), expected)
    pd.testing.assert_frame_equal(pyarrow.dataset.dataset(folder).to_table().to_pandas(), expected)
    assert all(path.name.startswith(("part-", "_")) for path in folder.iterdir())
    if importlib.util.find_spec("datasets"):
        from datasets import load_dataset

        assert load_dataset(str(folder), split="train").num_rows == 300


def test_rows_of_fit_are_marked(scored, digits, new_rows, tmp_path):
    rows = pd.concat([new_rows[:60], digits[0][:1].assign(id=60)])
    rows.to_parquet(tmp_path / "rows.parquet")
    assert np.flatnonzero(scored(tmp_path / "rows.parquet")["seen_in_fit"]).tolist() == [60]


@pytest.mark.parametrize(
    "name", ["scored.csv", "scored.JSONL", "scored.feather", "scored.xlsx", "scored.txt"]
)
def test_a_file_of_another_format_does_not_become_a_folder(scored, cut_into, tmp_path, name):
    with pytest.raises(InvalidInputError) as caught:
        scored(cut_into(), name)
    path = tmp_path / name
    assert str(caught.value) == (
        f"The output {path} would be a folder of Parquet files, although it ends in {path.suffix}.\n"
        f"Hint: name a folder such as {tmp_path / 'scored'}, or a single file such as {tmp_path / 'scored.parquet'}."
    )
    assert not path.exists()


def test_an_address_is_no_output(model_file, cut_into):
    with pytest.raises(InvalidInputError, match="The output s3://bucket/scored is not on a file system"):
        score(model_file, cut_into(), "s3://bucket/scored")


class Unused:
    """A model that must not be called."""

    def assess(self, rows):
        raise AssertionError


def test_an_output_that_cannot_be_written_is_noticed_before_the_work(scored, cut_into, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError) as caught:
        scored(cut_into(), "file/scored", model=Unused(), columns=["pixel1"])
    assert str(caught.value) == (
        f"The output {tmp_path / 'file' / 'scored'} cannot be written: Not a directory.\nHint: choose another output."
    )


def test_another_run_is_replaced_only_with_overwrite(scored, cut_into, tmp_path):
    folder, output = cut_into(100), tmp_path / "scored"
    scored(folder)
    (output / "notes.txt").write_text("mine")
    with pytest.raises(
        InvalidInputError, match=r"with include=\['id'\], not \[\]\.\nHint: replace it with overwrite"
    ):
        scored(folder, include=[])
    found = scored(folder, include=[], part_rows=100, overwrite=True)
    assert "id" not in found
    assert sorted(path.name for path in output.glob("*.parquet")) == [
        f"part-0000{i}.parquet" for i in range(3)
    ]
    assert len(pd.read_parquet(sorted(output.glob("*.parquet")))) == 300
    assert (output / "notes.txt").read_text() == "mine"


def test_a_single_file_is_replaced_only_with_overwrite(scored, cut_into, tmp_path):
    path = tmp_path / "scored.parquet"
    path.write_text("mine")
    with pytest.raises(InvalidInputError) as caught:
        scored(cut_into(), path.name)
    assert str(caught.value) == (
        f"{path} exists already.\nHint: replace it with overwrite=True (--overwrite), or choose another output."
    )
    assert path.read_text() == "mine"
    assert len(scored(tmp_path / "input", path.name, overwrite=True)) == 300


def test_a_folder_of_other_files_is_never_emptied(scored, cut_into, tmp_path):
    (tmp_path / "scored").mkdir()
    (tmp_path / "scored" / "mine.parquet").touch()
    with pytest.raises(InvalidInputError, match=r"contains other files, such as mine\.parquet"):
        scored(cut_into(), overwrite=True)


def test_the_command_has_the_same_options(cut_into, model_file, tmp_path):
    source = cut_into()
    score(model_file, source, tmp_path / "scored")
    arguments = ["score", str(model_file), str(source), "-o", str(tmp_path / "scored"), "--include", "id"]
    assert isinstance(CliRunner().invoke(app, arguments).exception, InvalidInputError)
    done = CliRunner().invoke(app, [*arguments, "--overwrite"])
    assert done.exit_code == 0, done.output
    assert "id" in pd.read_parquet(tmp_path / "scored")
