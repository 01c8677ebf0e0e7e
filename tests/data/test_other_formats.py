"""JSON lines, Parquet, Feather and Excel: what is read, and what survives a corrected copy."""

import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neighboragg.exceptions import InvalidInputError
from tables import Read

COLUMNS = {"size": [1.5, None, 3.0], "count": [1, 2, 3], "color": ["red", None, "blue"], "y": [1, None, 2]}


@pytest.fixture
def frame():
    frame = pd.DataFrame(COLUMNS)
    frame["y"] = frame["y"].astype("Int64")
    return frame


@pytest.mark.parametrize(
    "name", ["t.parquet", "t.PQ", "t.feather", "t.xlsx", "t.jsonl", "t.csv", "t.jsonl.gz"]
)
def test_all_formats_hold_the_same(tmp_path, frame, name):
    path = tmp_path / name
    if "parquet" in name or "PQ" in name:
        frame.to_parquet(path)
    elif "feather" in name:
        frame.to_feather(path)
    elif "xlsx" in name:
        frame.to_excel(path, index=False)
    elif "jsonl" in name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False)
    table = Read(path, "y")
    assert table.labels.tolist() == ["1", "", "2"]
    np.testing.assert_array_equal(table.frame["size"], [1.5, np.nan, 3.0])
    assert table.frame["count"].tolist() == [1, 2, 3]
    assert table.frame["color"].fillna("").tolist() == ["red", "", "blue"]
    again = tmp_path / ("again" + name[1:])
    again.write_bytes(table.relabeled({0: "2"}, [1]))
    other = Read(again, "y")
    assert other.labels.tolist() == ["2", "2"]
    assert other.frame["count"].tolist() == [1, 3]
    assert other.frame["color"].tolist() == ["red", "blue"]


def test_json_lines_keep_every_other_byte(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"y": "a",  "t": {"y": 1}}\r\n\n { "t": "\\u00e9", "y" :1 } \n{"y":"x", "y":"b","z":[1, {"y": 2}]}'
    )
    table = Read(path, "y")
    assert table.labels.tolist() == ["a", "1", "b"]
    assert table.relabeled({0: 'é"', 2: "a"}).decode() == (
        '{"y": "é\\"",  "t": {"y": 1}}\r\n\n { "t": "\\u00e9", "y" :1 } \n{"y":"x", "y":"a","z":[1, {"y": 2}]}'
    )
    assert table.relabeled({1: "b"}, [0, 2]).decode() == '\n { "t": "\\u00e9", "y" :"b" } \n'
    assert table.place_of(1) == "line 3"


def test_parquet_keeps_types_metadata_and_row_groups(tmp_path):
    path = tmp_path / "t.parquet"
    schema = pa.schema(
        [
            pa.field("when", pa.timestamp("us", tz="UTC")),
            pa.field("tags", pa.list_(pa.int8())),
            pa.field("y", pa.dictionary(pa.int16(), pa.string(), ordered=True), metadata={"unit": "none"}),
        ],
        metadata={"author": "Ada"},
    )
    kinds = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 0], pa.int16()), pa.array(["a", "b", "unused"]), ordered=True
    )
    before = pa.table(
        [pa.array([0, 1, 2, 3], schema.field(0).type), [[1], None, [2, 3], []], kinds], schema=schema
    )
    pq.write_table(before, path, compression="zstd", row_group_size=2)
    table = Read(path, "y")
    assert table.labels.tolist() == ["a", "b", "", "a"]
    (tmp_path / "c.parquet").write_bytes(table.relabeled({0: "b", 3: "new"}))
    after = pq.read_table(tmp_path / "c.parquet")
    assert after.schema.equals(pq.read_table(path).schema, check_metadata=True)
    assert after.drop_columns("y").equals(pq.read_table(path).drop_columns("y"))
    assert after["y"].to_pylist() == ["b", "b", None, "new"]
    assert after["y"].chunk(0).dictionary.to_pylist()[:3] == ["a", "b", "unused"]
    facts = pq.ParquetFile(tmp_path / "c.parquet").metadata
    assert (facts.num_row_groups, facts.row_group(0).column(0).compression) == (2, "ZSTD")


def test_rows_dropped_from_a_file_that_pandas_wrote(tmp_path, frame):
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "c.parquet").write_bytes(Read(tmp_path / "t.parquet", "y").relabeled({}, [1]))
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "c.parquet").reset_index(drop=True),
        frame.drop(index=1).reset_index(drop=True),
    )


def test_a_label_that_the_type_cannot_hold(tmp_path, frame):
    frame.to_parquet(tmp_path / "t.parquet")
    table = Read(tmp_path / "t.parquet", "y")
    with pytest.raises(InvalidInputError) as error:
        table.relabeled({0: "cat"})
    assert str(error.value) == (
        f"The new label 'cat' does not fit the label column of {tmp_path}/t.parquet, which contains int.\n"
        "Hint: save the labels as text first."
    )
    (tmp_path / "c.parquet").write_bytes(table.relabeled({0: "7"}))
    assert Read(tmp_path / "c.parquet", "y").labels.tolist() == ["7", "", "2"]


def test_excel_says_which_sheet_and_keeps_the_others(tmp_path, frame):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="Data", index=False)
        frame.to_excel(writer, sheet_name="More", index=False)
    book = openpyxl.load_workbook(path)
    book["Data"]["A2"].font = openpyxl.styles.Font(bold=True)
    book["More"]["A9"] = "=SUM(A2:A4)"
    book.save(path)
    table = Read(path, "y")
    assert table.notes == ["Read the sheet 'Data', the first of 2; choose another with --sheet."]
    assert table.place_of(0) == "row 2 of the sheet"
    (tmp_path / "c.xlsx").write_bytes(table.relabeled({0: "2"}))
    after = openpyxl.load_workbook(tmp_path / "c.xlsx")
    assert after["Data"]["D2"].value == 2
    assert after["Data"]["A2"].font.bold
    assert after["More"]["A9"].value == "=SUM(A2:A4)"
    with pytest.raises(InvalidInputError) as error:
        table.relabeled({}, [0])
    assert str(error.value) == (
        f"{path} has formulas, which would refer to other cells once rows are dropped.\n"
        "Hint: save the sheet as CSV, and audit and correct that."
    )


def test_charts_would_be_lost(tmp_path, frame):
    path = tmp_path / "t.xlsx"
    frame.to_excel(path, index=False)
    with zipfile.ZipFile(path, "a") as parts:
        parts.writestr("xl/charts/chart1.xml", "<c/>")
    with pytest.raises(InvalidInputError) as error:
        Read(path, "y").relabeled({0: "2"})
    assert str(error.value) == (
        f"{path} contains charts, images or similar parts (xl/charts/chart1.xml) that would be lost.\n"
        "Hint: save the sheet as CSV, and audit and correct that."
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("t.parquet", "Parquet file"), ("t.feather", "Feather file"), ("t.xlsx", "Excel workbook")],
)
@pytest.mark.parametrize("damage", ["cut", "noise"])
def test_damaged_files_are_one_sentence(tmp_path, frame, name, kind, damage):
    path = tmp_path / name
    {"t.parquet": frame.to_parquet, "t.feather": frame.to_feather, "t.xlsx": frame.to_excel}[name](path)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] if damage == "cut" else b"noise" * 100)
    with warnings.catch_warnings(), pytest.raises(InvalidInputError) as error:
        warnings.simplefilter("ignore")
        Read(path, "y")
    first, hint = str(error.value).splitlines()
    assert first.startswith(f"{path} is not a complete {kind}: ")
    assert hint.startswith("Hint: ")


def test_damage_to_pages_with_a_checksum_is_found(tmp_path, frame):
    path = tmp_path / "t.parquet"
    frame.to_parquet(path, compression="none", write_page_checksum=True, use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[raw.index(frame["count"].to_numpy().tobytes())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(InvalidInputError, match=r"t\.parquet is not a complete Parquet file: "):
        len(Read(path, "y").frame)


def test_frames_of_any_kind_are_tables(frame):
    polars = pytest.importorskip("polars")
    for given in (frame, polars.from_pandas(frame)):
        table = Read(given, "y")
        assert table.labels.tolist() == ["1", "", "2"]
        assert list(table.frame.columns) == ["size", "count", "color"]
    with pytest.raises(InvalidInputError) as error:
        Read(frame, "z")
    assert str(error.value) == (
        "There is no column 'z' in the table.\nHint: the columns are 'size', 'count', 'color', 'y'."
    )
    with pytest.raises(InvalidInputError) as error:
        Read(json.dumps, "y")
    assert str(error.value) == (
        "A source of rows is a path, a pattern, a list of Parquet files, a data frame or a data set. "
        "Got function instead."
    )


def test_an_absent_extra_is_named(tmp_path, frame, monkeypatch):
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ImportError) as error:
        Read(tmp_path / "t.xlsx", "y")
    assert str(error.value) == (
        "Reading and writing Excel files needs the package 'openpyxl', which is not installed.\n"
        'Hint: pip install "neighboragg[excel]"'
    )
