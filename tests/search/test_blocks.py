"""Blocks of rows from many kinds of sources: complete, in order, and with errors that name the place."""

import os

import dask.array
import h5py
import numpy as np
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
import zarr

from neighboragg.exceptions import InvalidInputError
from neighboragg.search._blocks import count_features, count_rows, gather, open_rows, read_segments
from neighboragg.search._streamed import StreamedNeighbors

ROWS = np.random.default_rng(0).normal(size=(23, 3))


def write_parquet(path, rows, **options):
    table = pyarrow.table({f"x{j}": column for j, column in enumerate(rows.T)})
    pyarrow.parquet.write_table(table, path, **options)
    return path


def write_vectors(path, rows, kind):
    values = pyarrow.array(rows.ravel())
    if kind == "fixed":
        column = pyarrow.FixedSizeListArray.from_arrays(values, rows.shape[1])
    else:
        offsets = pyarrow.array(np.arange(len(rows) + 1) * rows.shape[1], type=pyarrow.int32())
        column = pyarrow.ListArray.from_arrays(offsets, values)
    pyarrow.parquet.write_table(pyarrow.table({"vector": column}), path)
    return path


def make_source(kind, folder, rows):
    match kind:
        case "array":
            return rows
        case "npy":
            np.save(folder / "rows.npy", rows)
            return folder / "rows.npy"
        case "memmap":
            np.save(folder / "rows.npy", rows)
            return np.load(folder / "rows.npy", mmap_mode="r")
        case "hdf5":
            return h5py.File(folder / "rows.h5", "w").create_dataset("rows", data=rows)
        case "zarr":
            return zarr.create_array(store=str(folder / "rows.zarr"), data=rows, chunks=(5, 2))
        case "dask":
            return dask.array.from_array(rows, chunks=(5, 2))
        case "parquet":
            return write_parquet(folder / "rows.parquet", rows, row_group_size=7)
        case "folder":
            for name, part in zip("abc", (rows[:4], rows[4:4], rows[4:]), strict=True):
                write_parquet(folder / f"{name}.parquet", part)
            return folder
        case "dataset":
            write_parquet(folder / "rows.parquet", rows)
            return pyarrow.dataset.dataset(folder, format="parquet")
        case "fixed" | "list":
            return write_vectors(folder / "rows.parquet", rows, kind)
        case "chained":
            return [rows[:4], write_parquet(folder / "rows.parquet", rows[4:])]


KINDS = ["array", "npy", "memmap", "hdf5", "zarr", "dask", "parquet", "folder", "dataset", "fixed", "list"]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("kind", [*KINDS, "chained"])
def test_blocks_are_the_rows_in_order(kind, size, tmp_path):
    segments = open_rows(make_source(kind, tmp_path, ROWS))
    read = list(read_segments(segments, size))
    assert (count_rows(segments), count_features(segments)) == (23, 3)
    assert max(map(len, read)) <= size
    np.testing.assert_array_equal(np.concatenate(read), ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_stays(kind, tmp_path):
    (blocks,) = open_rows(make_source(kind, tmp_path, ROWS.astype(np.float32)))
    assert {block.dtype for block in blocks.read(9)} == {np.dtype(np.float32)}


def test_numbers_of_other_types_become_doubles(tmp_path):
    table = pyarrow.table(
        {"whole": [3, 4], "truth": [True, False], "half": pyarrow.array([0.5, 2.0], pyarrow.float32())}
    )
    pyarrow.parquet.write_table(table, tmp_path / "mixed.parquet")
    (block,) = read_segments(open_rows(tmp_path / "mixed.parquet"), 10)
    np.testing.assert_array_equal(block, [[3.0, 1.0, 0.5], [4.0, 0.0, 2.0]])
    assert block.dtype == np.float64


def test_columns_are_chosen_by_name(tmp_path):
    (blocks,) = open_rows(write_parquet(tmp_path / "rows.parquet", ROWS), columns=["x2", "x0"])
    np.testing.assert_array_equal(np.concatenate(list(blocks.read(10))), ROWS[:, [2, 0]])


def test_gathered_rows():
    segments = open_rows([ROWS[:9], ROWS[9:]])
    wanted = np.array([0, 3, 4, 22])
    np.testing.assert_array_equal(gather(segments, wanted, 4), ROWS[wanted])
    assert gather(segments, np.array([], dtype=int), 4).shape == (0, 3)


def test_sources_of_other_widths_are_refused():
    with pytest.raises(InvalidInputError, match="have 2 and 3 features"):
        open_rows([ROWS, ROWS[:, :2]])


def refused(source, message):
    with pytest.raises(InvalidInputError) as caught:
        list(read_segments(open_rows(source), 4))
    assert message in str(caught.value)


def test_errors_name_the_problem_and_the_place(tmp_path):
    refused(3, "Rows cannot be read in blocks from a int.")
    refused(ROWS[0], "known shape (n, n_features). Got (3,).")
    refused(np.array([["a"]]), "must be numbers. Got an array of type <U1.")
    refused(tmp_path, f"There is no Parquet file in the folder {tmp_path}.")
    refused(tmp_path / "none.parquet", f"There is no file {tmp_path / 'none.parquet'}.")
    (tmp_path / "half.parquet").write_bytes(b"PAR1abc")
    refused(tmp_path / "half.parquet", "half.parquet is not a complete Parquet file: ")
    (tmp_path / "half.npy").write_bytes(b"\x93NUMPY")
    refused(tmp_path / "half.npy", "half.npy is not a complete .npy file: ")
    table = pyarrow.table(
        {"a": [1.0] * 6 + [None], "b": list("abcdefg"), "v": [[1.0]] * 5 + [[1.0, 2.0], [1.0]]}
    )
    path = tmp_path / "odd.parquet"
    for column, message in {
        "a": f"Column 'a' of {path} has no value in row 6.",
        "b": "Column 'b' of the first file contains string, not numbers.",
        "v": f"Column 'v' of {path} contains vectors of 1 numbers, but one of 2 in row 5.",
    }.items():
        pyarrow.parquet.write_table(table.select([column]), path)
        refused(path, message)
    with pytest.raises(InvalidInputError, match=r"There is no column 'z' in .*\nHint: the columns are 'v'"):
        open_rows(path, columns=["z"])


@pytest.mark.parametrize("through", [lambda path: path, pyarrow.dataset.dataset], ids=["path", "dataset"])
def test_replaced_rows_are_noticed(tmp_path, through):
    path = write_parquet(tmp_path / "rows.parquet", ROWS)
    os.utime(path, ns=(0, 0))
    index = StreamedNeighbors(2).fit(through(path), np.arange(len(ROWS)) % 2)
    index.kneighbors(ROWS[:3])
    write_parquet(path, ROWS[::-1])
    with pytest.raises(InvalidInputError, match="has changed since it was opened"):
        index.kneighbors(ROWS[:3])


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path):
    (blocks,) = open_rows(write_parquet(tmp_path / "rows.parquet", ROWS))
    write_parquet(tmp_path / "rows.parquet", ROWS[:20])
    with pytest.raises(InvalidInputError, match="had 23 rows when it was opened and has 20 now"):
        list(blocks.read(50))
