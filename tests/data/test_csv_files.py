"""CSV files as they come: delimiters, encodings, quotes, and lines that do not fit their header."""

import gzip

import pytest

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from tables import Read


@pytest.fixture
def write(tmp_path):
    def write(contents, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    return write


def refusal(path, *args, kind=InvalidInputError, **kwargs):
    with pytest.raises(kind) as error:
        Read(path, *args, **kwargs)
    return str(error.value)


@pytest.mark.parametrize("sep", [",", ";", "\t", "|", " "])
def test_the_delimiter_is_found_out(write, sep):
    table = Read(write(f"a{sep}b{sep}y\n1{sep}2{sep}u\n3{sep}4{sep}v\n"), "y")
    assert table.frame.to_numpy().tolist() == [[1, 2], [3, 4]]
    assert table.labels.tolist() == ["u", "v"]


def test_delimiters_inside_quoted_texts_do_not_mislead(write):
    table = Read(write('text;y\n"a, b, c";u\n"d, e; f";v\n'), "y")
    assert table.frame["text"].tolist() == ["a, b, c", "d, e; f"]


def test_a_named_delimiter_is_taken(write):
    table = Read(write("a:y\n1:u\n"), "y", sep=":")
    assert table.labels.tolist() == ["u"]
    assert Read(write("a\ty\n1\tu\n"), "y", sep="tab").labels.tolist() == ["u"]
    assert refusal(write("a:y\n1:u\n"), "y", sep="::", kind=InvalidParameterError) == (
        "The delimiter must be one character other than a quotation mark or line end. Got '::' instead.\n"
        "Hint: for example ',', ';', '|' or 'tab'."
    )


def test_decimal_commas_stay_as_they_are_written(write):
    table = Read(write("a;b;y\n1,5;x,y;u\n-2;z;v\n;z;v\n"), "y")
    assert table.frame["a"].fillna("").tolist() == ["1,5", "-2", ""]
    assert table.frame["b"].tolist() == ["x,y", "z", "z"]


@pytest.mark.parametrize(
    ("cells", "options", "values"),
    [
        (["1.562", "900", "13.456", ""], {}, ["1.562", "900", "13.456", ""]),
        (["1.562", "2.100"], {}, [1.562, 2.1]),
        (["1.562", "2.100"], {"decimal": ","}, ["1.562", "2.100"]),
        (["1.000", "500"], {}, ["1.000", "500"]),
        (["1.562", "900", "1.5"], {"decimal": ","}, [1.562, 900, 1.5]),
        (["1.562", "0.562"], {"thousands": "."}, [1.562, 0.562]),
        (["1.562", "1900"], {}, [1.562, 1900]),
        (["7", "", "9"], {"decimal": ","}, [7, "", 9]),
    ],
)
def test_what_may_be_thousands_stays_text(write, cells, options, values):
    """Only points before three digits, next to small numbers without: pandas would take 1.562 for less than 900."""
    table = Read(write("a,y\n" + "".join(f"{cell},u\n" for cell in cells)), "y", **options)
    assert table.frame["a"].astype(object).where(table.frame["a"].notna(), "").tolist() == values


def test_labels_are_the_text_of_their_cells(write):
    path = write("a,y\n1,01\n2,02\n3,None\n4,1\n5,1.0\n6,\n7,NA\n8,  \n")
    assert Read(path, "y").labels.tolist() == ["01", "02", "None", "1", "1.0", "", "NA", ""]


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
     ("utf-32-le", b"\xff\xfe\0\0")],
)  # fmt: skip
def test_encodings_that_say_what_they_are(write, encoding, mark):
    path = write(mark + "größe,y\n1,süß\n2,naïve\n".encode(encoding))
    table = Read(path, "y")
    assert table.labels.tolist() == ["süß", "naïve"]
    assert list(table.frame.columns) == ["größe"]
    assert table.relabeled({0: "naïve"}) == mark + "größe,y\n1,naïve\n2,naïve\n".encode(encoding)


def test_other_encodings_are_named_in_the_error_and_taken_by_name(write):
    path = write("a,y\n1,u\n2,süß\n".encode("cp1252"))
    assert refusal(path, "y") == (
        f"Line 3 of {path} is not text in utf-8: it contains the byte 0xfc.\n"
        "Hint: name the encoding; files of older Windows programs are often in cp1252 (--encoding cp1252), others "
        "in latin-1."
    )
    table = Read(path, "y", encoding="cp1252")
    assert table.labels.tolist() == ["u", "süß"]
    assert table.relabeled({0: "süß"}) == "a,y\n1,süß\n2,süß\n".encode("cp1252")
    with pytest.raises(InvalidInputError) as error:
        table.relabeled({0: "日本"})
    assert str(error.value) == (
        f"The new label '日本' cannot be written in cp1252, the encoding of {path}.\n"
        "Hint: save the table as UTF-8 first, or choose another label."
    )


def test_encodings_that_cannot_be(write):
    path = write("a,y\n1,u\n".encode("utf-16-le"))
    assert refusal(path, "y") == (
        f"{path} contains zero bytes, so it is not text in UTF-8.\n"
        "Hint: if it is text in UTF-16, name the encoding: utf-16-le or utf-16-be (--encoding utf-16-le)."
    )
    assert Read(path, "y", encoding="utf-16").labels.tolist() == ["u"]
    assert refusal(path, "y", encoding="klingon", kind=InvalidParameterError) == (
        "Unknown encoding 'klingon'.\nHint: use, for example, utf-8, utf-16, latin-1 or cp1252."
    )
    path = write(b"\xef\xbb\xbfa,y\n1,u\n")
    assert refusal(path, "y", encoding="latin-1", kind=InvalidParameterError) == (
        f"{path} begins with the byte order mark of utf-8, which contradicts the encoding 'latin-1'.\n"
        "Hint: leave out the encoding."
    )


ROW_NAMES_HINT = (
    "Hint: name every column in the header; if the first field of each line is a row name, as in files from R, "
    "the header lacks a name for it (write.table with col.names=NA)."
)
FILL_HINT = (
    "Hint: quote fields that contain the delimiter and fill up short lines, or name the delimiter (--sep)."
)


@pytest.mark.parametrize(
    ("contents", "line", "fields", "sep", "hint"),
    [
        ('"a" "y"\n"1" 5.1 "u"\n"2" 4.9 "v"\n', 2, 3, " ", ROW_NAMES_HINT),
        ("a,y\n1,u,note\n2,v,\n", 2, 3, ",", ROW_NAMES_HINT),
        ("a,y\n1,u,\n2,v,note\n", 3, 3, ",", ROW_NAMES_HINT),
        ("a,b,y\n1,2,u\n\n3,v\n", 4, 2, ",", FILL_HINT),
        ('a,b,y\n"1\n1",2,u\n3,4,v,w\n', 4, 4, ",", FILL_HINT),
        ("a,y\n1,u\n2,v,\n", 3, 3, ",", FILL_HINT),
    ],
    ids=["R", "unnamed", "sometimes unnamed", "short", "long", "sometimes a comma"],
)
def test_lines_that_do_not_fit_the_header_are_refused(write, contents, line, fields, sep, hint):
    path = write(contents)
    header = contents.split("\n")[0].count(sep) + 1
    assert refusal(path, "y") == (
        f"Line {line} of {path} has {fields} fields, but the header has {header} (delimiter {sep!r}).\n{hint}"
    )


def test_an_empty_field_at_the_end_of_every_line_is_no_column(write):
    table = Read(write("a,y\n1,u,\n2,v,\n"), "y")
    assert table.frame["a"].tolist() == [1, 2]
    assert table.labels.tolist() == ["u", "v"]
    assert table.relabeled({0: "v"}) == b"a,y\n1,v,\n2,v,\n"


def test_repeated_and_empty_names_are_told_apart(write):
    table = Read(write("a,a,,y,\n1,2,3,u,4\n"), "y")
    assert list(table.frame.columns) == ["a", "a (2)", "column 3", "column 5"]
    assert table.frame.iloc[0].tolist() == [1, 2, 3, 4]
    assert refusal(write("a,y,y\n1,u,v\n"), "y") == (
        f"2 columns of {write('a,y,y')} are called 'y'.\nHint: give the label column a unique name."
    )


def test_an_unclosed_quotation_mark(write):
    path = write('a,y\n1,u\n2,"v\n3,u\n')
    assert refusal(path, "y") == (
        f"A quotation mark in the record that begins in line 3 of {path} is not closed.\n"
        'Hint: write a quotation mark inside a field twice ("").'
    )


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("t.csv", b"", "{path} is empty."),
        ("t.csv", b"\n \n", "{path} is empty."),
        ("t.csv", b"a,y\n", "{path} contains only a header."),
        ("t.jsonl", b"\n", "{path} is empty."),
        ("t.docx", b"", "Cannot tell the format of {path}.\nHint: use .csv, .tsv or .jsonl (each also with .gz), "
         ".parquet, .feather or .xlsx."),
        ("t.parquet.gz", b"", "Cannot tell the format of {path}.\nHint: use .csv, .tsv or .jsonl (each also with "
         ".gz), .parquet, .feather or .xlsx."),
        ("t.csv.gz", b"no gzip", "{path} is not a complete gzip file: Not a gzipped file (b'no')\n"
         "Hint: fetch or compress it again."),
        ("t.csv.gz", gzip.compress(b"a,y\n1,u\n", mtime=0)[:-9],
         "{path} is not a complete gzip file: Compressed file ended "
         "before the end-of-stream marker was reached\nHint: fetch or compress it again."),
        ("t.jsonl", b'{"y": 1}\n{"y": }\n', "Line 2 of {path} is not JSON: Expecting value at character 7."),
        ("t.jsonl", b"[1]\n", 'Line 1 of {path} is not a JSON object.\nHint: write one object per line: '
         '{{"text": "…", "label": "…"}}'),
        ("t.jsonl", b'{"y": [1]}\n', "The label column 'y' of {path} holds [1] in row 0, which is not a label.\n"
         "Hint: a label is a text or a number."),
    ],
)  # fmt: skip
def test_files_that_hold_no_table(write, name, contents, message):
    path = write(contents, name)
    assert refusal(path, "y") == message.format(path=path)


def test_what_the_system_refuses_is_one_sentence(tmp_path, write, monkeypatch):
    assert refusal(tmp_path / "no.csv", "y") == f"There is no file {tmp_path}/no.csv."
    assert refusal(tmp_path / "no", "y") == f"There is no file or folder {tmp_path}/no."
    path = write("a,y\n1,u\n")

    def forbidden(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    assert refusal(path, "y") == f"Cannot read {path}: Permission denied."


def test_long_texts_and_line_ends_of_all_kinds(write):
    contents = 'text,y\r\n"' + "word " * 50_000 + '\nand more",u\rshort,v\n'
    table = Read(write(contents), "y")
    assert table.labels.tolist() == ["u", "v"]
    assert table.frame["text"][0].endswith("\nand more")
    assert table.relabeled({1: "u"}).decode() == contents[:-2] + "u\n"


def test_compressed_files_are_edited_inside(write):
    path = write(gzip.compress(b"a,y\n1,u\n2,v\n"), "t.csv.gz")
    table = Read(path, "y")
    assert gzip.decompress(table.relabeled({1: "u"}, [0])) == b"a,y\n2,u\n"
