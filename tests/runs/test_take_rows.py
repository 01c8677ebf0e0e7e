"""Rows of files by number, or drawn at random: those that were asked for, or a refusal."""

import numpy as np
import pandas as pd
import pytest

from neighboragg._run.gather import take_rows
from neighboragg.exceptions import InvalidInputError, InvalidParameterError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """100 rows in two files."""
    folder = tmp_path_factory.mktemp("rows")
    for name, values in (("a", range(60)), ("b", range(60, 100))):
        pd.DataFrame({"x": values}).to_parquet(folder / f"{name}.parquet")
    return folder


def test_no_files():
    with pytest.raises(InvalidInputError, match=r"^The list of input files is empty\.$"):
        take_rows([], 5)


@pytest.mark.parametrize("number", [5, np.int64(5), 1000])
def test_a_number_is_how_many(folder, number):
    frame = take_rows(folder, number, part_rows=7)
    assert len(frame) == min(int(number), 100)
    assert frame.index.is_unique
    np.testing.assert_array_equal(frame["x"], frame.index)
    pd.testing.assert_frame_equal(take_rows(folder, number), frame)


def test_numbers_of_rows_across_files(folder):
    frame = take_rows(folder, np.array([99, 0, 60, 60], dtype=np.uint8))
    assert frame["x"].to_dict() == {0: 0, 60: 60, 99: 99}
    assert len(take_rows(folder, [])) == 0


@pytest.mark.parametrize("rows", [-1, 0, True])
def test_no_number_of_rows(folder, rows):
    with pytest.raises(InvalidParameterError, match=f"'rows' parameter of take_rows .* Got {rows} instead"):
        take_rows(folder, rows)


@pytest.mark.parametrize("rows", [[1.7, 2.2], np.arange(100) > 92, [[1, 2]], ["1"]])
def test_what_is_no_list_of_numbers_is_refused(folder, rows):
    with pytest.raises(InvalidInputError, match=r"whole numbers of rows(.|\n)*np\.flatnonzero\(mask\)"):
        take_rows(folder, rows)


@pytest.mark.parametrize("rows", [[-1], [3, 100]])
def test_rows_that_do_not_exist(folder, rows):
    with pytest.raises(InvalidInputError, match="There are 100 rows"):
        take_rows(folder, rows)
