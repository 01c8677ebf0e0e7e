"""Loading: the same tiny content in the local and in the public format, from folder, cache and loopback."""

import csv
import gzip
import io
import re
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from benchmarks.datasets import SPECS, RemoteFile, list_datasets, load_dataset
from benchmarks.datasets._errors import DatasetNotFoundError
from neighboragg.exceptions import FileFormatError, InvalidParameterError, TrustWarning

NAMES = [
    "adult",
    "bank_marketing",
    "card_default",
    "fashion_mnist",
    "landsat",
    "letter",
    "magic_gamma",
    "mnist",
    "sensorless_drive",
    "trec_questions",
]
TABLES = [name for name in NAMES if "mnist" not in name and name != "trec_questions"]
LABELS = {
    "adult": ["<=50K", ">50K", "<=50K", ">50K"],
    "bank_marketing": ["no", "yes", "no", "no"],
    "card_default": ["1", "0", "0", "1"],
    "landsat": ["3", "7", "1", "3"],
    "letter": ["T", "I", "D", "T"],
    "magic_gamma": ["g", "h", "g", "g"],
    "sensorless_drive": ["1", "11", "2", "11"],
}
BANK_PUBLIC = [
    *("age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact", "day"),
    *("month", "duration", "campaign", "pdays", "previous", "poutcome", "y"),
]
QUESTIONS = ['What is "Nine Inch Nails" ?', "What's the Olympic motto ?", "Which sister city , LA ?"]
QUESTIONS_PUBLIC = (
    "DESC:def What is `` Nine Inch Nails '' ?\nDESC:desc What 's the Olympic motto ?\n"
    "LOC:city Which sister\xf0city , LA ?\n"
)
MAGIC = [f"x{i}" for i in range(1, 11)]
IMAGES = np.arange(20, dtype=np.uint8).reshape(5, 2, 2) * 12


def table_rows(name):
    """Four rows of text values in the order of the registered features."""
    table = SPECS[name].table
    return [
        [
            ("?" if i == 2 else f"kind {(i + j) % 3}") if feature in table.categorical else f"{i - j / 4}"
            for j, feature in enumerate(table.features)
        ]
        for i in range(4)
    ]


def csv_gz(header, rows):
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    return gzip.compress(text.getvalue().encode())


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return buffer.getvalue()


def idx_gz(values):
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    return gzip.compress(header + values.tobytes())


def image_files():
    labels = np.array([7, 0, 9, 0, 7], dtype=np.uint8)
    return [idx_gz(part) for part in (IMAGES[:3], labels[:3], IMAGES[3:], labels[3:])]


def local_files(name):
    if "mnist" in name:
        return image_files()
    if name == "trec_questions":
        return [csv_gz(["text", "label"], zip(QUESTIONS, ["DESC", "DESC", "LOC"], strict=True))]
    header = [*SPECS[name].table.features, "label"]
    rows = [[*row, label] for row, label in zip(table_rows(name), LABELS[name], strict=True)]
    return [csv_gz(header, rows)]


def public_files(name):
    if "mnist" in name:
        return image_files()
    if name == "trec_questions":
        return [QUESTIONS_PUBLIC.encode("latin-1")]
    rows, labels = table_rows(name), LABELS[name]
    last = [[*row, label] for row, label in zip(rows, labels, strict=True)]
    if name == "letter":
        lines = "".join(f"{label},{','.join(row)}\n" for row, label in zip(rows, labels, strict=True))
        return [zipped({"letter-recognition.data": lines, "Index": "x"})]
    if name == "landsat":
        parts = ["".join(" ".join(row) + " \n" for row in part) for part in (last[:3], last[3:])]
        return [zipped({"sat.trn": parts[0], "sat.tst": parts[1]})]
    if name == "adult":
        train = "".join(", ".join(row) + "\n" for row in last[:2]) + "\n"
        test = "|1x3 Cross validator\n" + "".join(", ".join(row) + ".\n" for row in last[2:])
        return [zipped({"adult.data": train, "adult.test": test})]
    if name == "magic_gamma":
        return [zipped({"folder/magic04.data": "".join(",".join(row) + "\r\n" for row in last)})]
    if name == "sensorless_drive":
        return [zipped({"Sensorless_drive_diagnosis.txt": "".join(" ".join(r) + "\n" for r in last)})]
    if name == "card_default":
        body = "".join(f"{i},{','.join(row)}\n" for i, row in enumerate(last, start=1))
        return [f"% remark\n@RELATION card\n@ATTRIBUTE id REAL\n\n@DATA\n{body}".encode()]
    order = [[*SPECS[name].table.features, "y"].index(column) for column in BANK_PUBLIC]
    body = ["; ".join(f'"{row[i]}"' for i in order) for row in last]
    inner = zipped({"bank-full.csv": "\n".join([";".join(f'"{c}"' for c in BANK_PUBLIC), *body, ""])})
    return [zipped({"bank.zip": inner, "bank-additional.zip": b"other"})]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """No test reads or writes the user's own folders, nor goes through a proxy."""
    monkeypatch.delenv("NEIGHBORAGG_DATA", raising=False)
    monkeypatch.setenv("NEIGHBORAGG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write the files of a data set into the local folder or the cache."""

    def write(name, contents, *, where):
        spec = SPECS[name]
        if where == "data":
            monkeypatch.setenv("NEIGHBORAGG_DATA", str(tmp_path / "data"))
            paths = [tmp_path / "data" / file for file in spec.local_files]
        else:
            paths = [tmp_path / "home" / name / file.filename for file in spec.remote_files]
        for path, content in zip(paths, contents, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return paths

    return write


@pytest.fixture
def accept(monkeypatch):
    """Register the tiny content as the right one."""

    def change(name, **changes):
        n_rows = 5 if "mnist" in name else 3 if name == "trec_questions" else 4
        monkeypatch.setitem(
            SPECS, name, replace(SPECS[name], **{"n_rows": n_rows, "checksums": {}} | changes)
        )

    return change


class _Server(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {}
        self.requests = []

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}/{path}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.lstrip("/")
        self.server.requests.append(path)
        if path == "nonsense":
            self.wfile.write(b"no status line\r\n\r\n")
            return
        content = self.server.files.get(path)
        self.send_response(404 if content is None else 200)
        content = content or b""
        if path != "unannounced":
            self.send_header("Content-Length", str(len(content) + 10 * (path == "broken")))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with _Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def serve(server, name, contents, accept, urls=None):
    """Serve the public files of a data set, and register the server's addresses."""
    remote = []
    for file, content in zip(SPECS[name].remote_files, contents, strict=True):
        server.files[file.filename] = content
        remote.append(RemoteFile(file.filename, urls or (server.url(file.filename),)))
    accept(name, remote_files=tuple(remote))


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def check_content(name, dataset):
    assert dataset.name == name
    if "mnist" in name:
        assert dataset.y.dtype == np.int64 and dataset.y.tolist() == [7, 0, 9, 0, 7]
        assert dataset.images.dtype == np.float32
        np.testing.assert_array_equal(dataset.X, IMAGES.reshape(5, 4))
        assert dataset.feature_names == ("pixel_0", "pixel_1", "pixel_2", "pixel_3")
        assert dataset.n_train == 3
        return
    assert dataset.n_train is None and dataset.images is None
    if name == "trec_questions":
        assert dataset.text.tolist() == QUESTIONS and dataset.X is dataset.text
        assert dataset.y.tolist() == ["DESC", "DESC", "LOC"]
        return
    table = SPECS[name].table
    assert [str(label) for label in dataset.y] == LABELS[name]
    assert dataset.y.dtype.kind == ("i" if table.integer_labels else "U")
    assert dataset.feature_names == table.features and dataset.categorical_names == table.categorical
    numbers = [[float(v) for v in row if v[-1].isdigit() and v[0] != "k"] for row in table_rows(name)]
    np.testing.assert_array_equal(dataset.numeric, numbers)
    categories = [[v for v in row if v[0] in "k?"] for row in table_rows(name)]
    assert dataset.categorical.tolist() == categories
    assert dataset.numeric.dtype == np.float64 and dataset.numeric.flags.c_contiguous
    assert dataset.categorical.dtype == object and dataset.categorical.shape == (4, len(table.categorical))


def test_names():
    assert list(list_datasets()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_local_folder(name, put):
    put(name, local_files(name), where="data")
    check_content(name, load_dataset(name))


@pytest.mark.parametrize("name", NAMES)
def test_public_format_in_the_cache(name, put, accept):
    put(name, public_files(name), where="home")
    accept(name)
    check_content(name, load_dataset(name, download_if_missing=False))


@pytest.mark.parametrize("name", NAMES)
def test_download(name, server, accept, tmp_path):
    serve(server, name, public_files(name), accept)
    check_content(name, load_dataset(name, data_home=tmp_path / "cache"))
    files = sorted(file.filename for file in SPECS[name].remote_files)
    assert listed(tmp_path / "cache" / name) == files
    n_requests = len(server.requests)
    assert n_requests == len(files)
    load_dataset(name, data_home=str(tmp_path / "cache"))
    assert len(server.requests) == n_requests


def test_local_folder_goes_before_the_cache_and_is_not_checked(put):
    put("letter", [b"not a zip"], where="home")
    put("letter", local_files("letter"), where="data")
    assert len(load_dataset("letter").y) == 4


def test_a_local_folder_without_the_file_is_passed_over(put, accept):
    put("letter", local_files("letter"), where="data")
    put("landsat", public_files("landsat"), where="home")
    accept("landsat")
    assert len(load_dataset("landsat", download_if_missing=False).y) == 4


def test_default_cache_is_in_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("NEIGHBORAGG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with pytest.raises(DatasetNotFoundError, match=re.escape(str(tmp_path / ".cache" / "neighboragg"))):
        load_dataset("letter", download_if_missing=False)


def test_only_missing_files_are_downloaded(server, put, accept):
    serve(server, "mnist", public_files("mnist"), accept)
    paths = put("mnist", public_files("mnist"), where="home")
    paths[2].unlink()
    check_content("mnist", load_dataset("mnist"))
    assert server.requests == ["t10k-images-idx3-ubyte.gz"]


@pytest.mark.parametrize("first", ["missing", "broken", "nonsense"])
def test_next_address_after_a_failure(first, server, accept, tmp_path):
    server.files["broken"] = b"half of a file"
    serve(server, "letter", public_files("letter"), accept, (server.url(first), server.url("letter.zip")))
    check_content("letter", load_dataset("letter"))
    assert server.requests == [first, "letter.zip"]
    assert listed(tmp_path / "home" / "letter") == ["letter.zip"]


def test_a_source_need_not_announce_the_length(server, accept):
    server.files["unannounced"] = public_files("letter")[0]
    serve(server, "letter", public_files("letter"), accept, (server.url("unannounced"),))
    check_content("letter", load_dataset("letter"))


def test_every_address_fails(server, accept, tmp_path, monkeypatch):
    monkeypatch.setenv("NEIGHBORAGG_DATA", str(tmp_path / "nowhere"))
    server.files["broken"] = b"half"
    urls = (server.url("missing"), server.url("broken"))
    serve(server, "letter", [b""], accept, urls)
    folder = tmp_path / "home" / "letter"
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("letter")
    assert str(caught.value) == (
        f"The data set 'letter' is neither in the folder that NEIGHBORAGG_DATA names "
        f"({tmp_path / 'nowhere'}) nor in the cache ({folder}).\n"
        f"Downloading {urls[0]} failed: HTTP Error 404: Not Found\n"
        f"Downloading {urls[1]} failed: the connection ended after 4 of 14 bytes\n"
        f"Hint: check the connection, or download by hand\n"
        f"  {urls[0]} to {folder / 'letter.zip'}\n"
        "or set NEIGHBORAGG_DATA to a folder that holds letter.csv.gz."
    )
    assert listed(folder) == []


def test_absent_and_not_to_be_downloaded(tmp_path):
    folder = tmp_path / "home" / "letter"
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("letter", download_if_missing=False)
    assert isinstance(caught.value, DatasetNotFoundError)
    assert str(caught.value) == (
        f"The data set 'letter' is neither in the folder that NEIGHBORAGG_DATA names (not set) "
        f"nor in the cache ({folder}).\n"
        "Hint: let load_dataset download it (download_if_missing=True), or download by hand\n"
        f"  https://archive.ics.uci.edu/static/public/59/letter+recognition.zip to {folder / 'letter.zip'}\n"
        "or set NEIGHBORAGG_DATA to a folder that holds letter.csv.gz."
    )


def test_all_missing_files_are_named(put, tmp_path):
    put("mnist", public_files("mnist"), where="home")[0].unlink()
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("mnist", download_if_missing=False)
    assert "train-images-idx3-ubyte.gz to" in str(caught.value)
    assert "t10k-images-idx3-ubyte.gz to" not in str(caught.value)


def test_unknown_name():
    with pytest.raises(InvalidParameterError) as caught:
        load_dataset("iris")
    options = ", ".join(repr(name) for name in NAMES)
    assert str(caught.value) == (
        f"The 'name' parameter of load_dataset must be one of {options}. Got 'iris' instead."
    )


def test_content_with_another_checksum(put, accept):
    [path] = put("magic_gamma", public_files("magic_gamma"), where="home")
    accept("magic_gamma", checksums={4: "0" * 64})
    with pytest.warns(TrustWarning) as caught:
        dataset = load_dataset("magic_gamma")
    check_content("magic_gamma", dataset)
    assert str(caught[0].message) == (
        f"The content of the data set 'magic_gamma' in {path.parent} is not the one known to this version "
        f"(SHA-256 {dataset.checksum()[:12]}… instead of 000000000000…): its source may have changed or "
        "re-ordered it.\n"
        "Hint: results may differ from published ones; delete that folder to download again."
    )
    assert caught[0].filename == __file__
    accept("magic_gamma", checksums={4: dataset.checksum()})
    load_dataset("magic_gamma")


def test_content_with_another_number_of_rows(put):
    put("sensorless_drive", public_files("sensorless_drive"), where="home")
    with pytest.warns(TrustWarning, match=r"\(4 rows instead of 58509\)"):
        load_dataset("sensorless_drive")


@pytest.mark.parametrize("name", TABLES)
def test_registered_columns(name):
    spec = SPECS[name]
    expected = {"letter": 16, "landsat": 36, "card_default": 23, "adult": 14, "bank_marketing": 16}
    assert len(spec.table.features) == {**expected, "magic_gamma": 10, "sensorless_drive": 48}[name]
    assert len(set(spec.table.features)) == len(spec.table.features)
    assert set(spec.table.categorical) <= set(spec.table.features)


@pytest.mark.parametrize("name", NAMES)
def test_registered_checksums_and_addresses(name):
    spec = SPECS[name]
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in spec.checksums.values())
    assert list(spec.checksums) == ([2200] if name == "sensorless_drive" else [spec.n_rows])
    assert all(url.startswith("https://") for file in spec.remote_files for url in file.urls)


def damaged(reason, path):
    return (
        f"The data set {path.parent.name!r} cannot be read from {path}: {reason}\n"
        "Hint: the file may be cut short or of another format; delete it and load again."
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("letter", b"<html>", "File is not a zip file"),
        ("letter", zipped({"Index": "x"}), "the archive has no file 'letter-recognition.data'."),
        ("letter", zipped({"letter-recognition.data": "\n"}), "there are no rows."),
        ("letter", zipped({"letter-recognition.data": "A,1,2\n"}), "row 1 has 3 values instead of 17."),
        ("bank_marketing", zipped({"bank.zip": b"x"}), "File is not a zip file"),
        (
            "bank_marketing",
            zipped({"bank.zip": zipped({"bank-full.csv": ";".join(BANK_PUBLIC[2:]) + "\n"})}),
            "the columns 'job', 'age' are missing.",
        ),
        ("trec_questions", b"<html>\n", "row 1 has 1 values instead of 2."),
        ("trec_questions", b"<html> x\n", "a line does not begin with a label such as 'DESC:manner'."),
    ],
)
def test_damaged_public_file(name, content, reason, put):
    [path] = put(name, [content], where="home")
    with pytest.raises(FileFormatError) as caught:
        load_dataset(name)
    assert str(caught.value) == damaged(reason, path)
    assert path.exists()


def test_damaged_download_is_not_kept(server, accept, tmp_path):
    serve(server, "letter", [b"<html>"], accept)
    with pytest.raises(FileFormatError, match="is not a zip file"):
        load_dataset("letter")
    assert listed(tmp_path / "home" / "letter") == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"plain", "Not a gzipped file (b'pl')"),
        (gzip.compress(b"label,x1\n" * 9)[:-9], "Compressed file ended before the end-of-stream marker"),
        (csv_gz([*MAGIC[2:], "label"], [["1"] * 9]), "the columns 'x1', 'x2' are missing."),
        (csv_gz([*MAGIC, "label"], [["g"] * 11]), "could not convert string to float: 'g'"),
    ],
    ids=["not gzip", "cut short", "columns missing", "not a number"],
)
def test_damaged_local_file(content, reason, put):
    [path] = put("magic_gamma", [content], where="data")
    with pytest.raises(FileFormatError) as caught:
        load_dataset("magic_gamma")
    assert str(caught.value).startswith(f"The data set 'magic_gamma' cannot be read from {path}: {reason}")


def test_damaged_images(put):
    train_images, train_labels, test_images, test_labels = image_files()
    put("mnist", [train_labels, train_labels, test_images, test_labels], where="data")
    message = "train-images-idx3-ubyte.gz is not an idx file of unsigned bytes with 3 axes."
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_dataset("mnist")
    put("mnist", [train_images, test_labels, test_images, test_labels], where="data")
    with pytest.raises(FileFormatError, match=re.escape("there are 3 images, but 2 labels.")):
        load_dataset("mnist")
    cut = gzip.compress(gzip.decompress(train_images)[:-1])
    put("mnist", [cut, train_labels, test_images, test_labels], where="data")
    with pytest.raises(FileFormatError, match="cannot reshape"):
        load_dataset("mnist")
