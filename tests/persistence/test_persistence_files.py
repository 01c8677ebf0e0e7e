"""The file itself: its layout, damage of every byte and length, forged headers, and atomic writes."""

import hashlib
import json
import os
import platform
import stat
import struct
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy
import sklearn

from neighboragg.exceptions import FileFormatError
from neighboragg.persistence import FORMAT, read_record, write_record

RECORD = {"theta": np.arange(3.0), "flags": np.array([True, False]), "name": np.array(["é"]), "t": [1, None]}
SAVE_AGAIN = "Hint: copy the file again, or save the model again."


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nagg"


@pytest.fixture
def content(path):
    write_record(path, "pool", RECORD)
    return path.read_bytes()


def parse(content):
    """Read a file by the documented layout."""
    magic, number, length = struct.unpack_from("<8sIQ", content)
    header = json.loads(content[20 : 20 + length])
    return magic, number, header, -(-(20 + length) // 64) * 64


def forge(header, payload=b"", *, raw=None):
    """Return a file with a given header whose checksum is right."""
    text = json.dumps(header).encode() if raw is None else raw
    body = struct.pack("<8sIQ", b"\x89NAGG\r\n\x1a", 1, len(text)) + text
    body += bytes(-len(body) % 64) + payload
    return body + hashlib.sha256(body).digest()


def message(path, content):
    """Return the error message that reading `content` gives."""
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        read_record(path)
    return str(caught.value)


def test_layout(content):
    magic, number, header, start = parse(content)
    assert magic == b"\x89NAGG\r\n\x1a"
    assert number == FORMAT == 1
    assert header["kind"] == "pool"
    assert header["record"] == {
        "theta": {"$array": 0},
        "flags": {"$array": 1},
        "name": {"$array": 2},
        "t": [1, None],
    }
    assert header["arrays"] == [
        {"name": "theta", "dtype": "<f8", "shape": [3], "offset": 0, "nbytes": 24},
        {"name": "flags", "dtype": "|b1", "shape": [2], "offset": 64, "nbytes": 2},
        {"name": "name", "dtype": "<U1", "shape": [1], "offset": 128, "nbytes": 4},
    ]
    assert header["payload_nbytes"] == 132
    assert len(content) == start + 132 + 32
    assert content[start : start + 24] == np.arange(3.0).astype("<f8").tobytes()
    assert content[-32:] == hashlib.sha256(content[:-32]).digest()


def test_versions(content):
    versions = parse(content)[2]["versions"]
    assert set(versions) == {"python", "neighboragg", "numpy", "scipy", "scikit-learn"}
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == np.__version__
    assert versions["scipy"] == scipy.__version__
    assert versions["scikit-learn"] == sklearn.__version__


def test_missing_package_has_no_version(path, monkeypatch):
    monkeypatch.setattr("neighboragg.persistence._writing._LIBRARIES", ("no-such-package",))
    write_record(path, "pool", {})
    assert parse(path.read_bytes())[2]["versions"]["no-such-package"] is None


def test_an_array_can_be_memory_mapped(path, content):
    _, _, header, start = parse(content)
    entry = header["arrays"][0]
    mapped = np.memmap(path, dtype=entry["dtype"], mode="r", offset=start + entry["offset"], shape=(3,))
    assert mapped.ctypes.data % 64 == 0
    assert mapped.tolist() == [0, 1, 2]


def test_every_flipped_bit_is_found(path, content):
    rng = np.random.default_rng(0)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        assert str(path) in message(path, bytes(damaged)), position


@pytest.mark.parametrize("bit", range(8))
def test_every_bit_of_the_prefix(path, content, bit):
    for position in range(20):
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        message(path, bytes(damaged))


def test_every_changed_byte_of_the_checksum_reads_as_damage(path, content):
    expected = f"{str(path)!r} is damaged: its checksum does not match its content.\n{SAVE_AGAIN}"
    for position in range(len(content) - 32, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        assert message(path, bytes(damaged)) == expected


def test_every_truncation_is_found(path, content):
    for length in range(1, len(content)):
        found = message(path, content[:length])
        assert found.startswith(
            f"{str(path)!r} is truncated: it has {length} bytes, and should have at least "
        )


def test_truncation_names_both_sizes(path, content):
    assert message(path, content[:-1]) == (
        f"{str(path)!r} is truncated: it has {len(content) - 1} bytes, "
        f"and should have at least {len(content)}.\n{SAVE_AGAIN}"
    )
    assert message(path, content[:15]) == (
        f"{str(path)!r} is truncated: it has 15 bytes, and should have at least 52.\n{SAVE_AGAIN}"
    )


def test_appended_bytes_are_found(path, content):
    assert "is damaged" in message(path, content + b"\0")
    assert "is damaged" in message(path, content + content)


def test_absurd_header_length_allocates_nothing(path, content):
    absurd = content[:12] + struct.pack("<Q", 2**64 - 1) + content[20:]
    assert message(path, absurd) == (
        f"{str(path)!r} is truncated: it has {len(content)} bytes, "
        f"and should have at least {2**64 - 1 + 52}.\n{SAVE_AGAIN}"
    )


def test_newer_format(path, content):
    assert message(path, content[:8] + struct.pack("<I", 2) + content[12:]) == (
        f"{str(path)!r} has the format number 2, and this version of neighboragg reads up to 1.\n"
        "Hint: upgrade neighboragg."
    )
    # A newer file may be of any size and checksum.
    assert "upgrade neighboragg" in message(path, content[:8] + struct.pack("<I", 3) + bytes(8))


def test_format_zero(path, content):
    assert message(path, content[:8] + bytes(4) + content[12:]) == (
        f"{str(path)!r} has the format number 0, which no version of neighboragg writes: "
        f"the file is damaged.\n{SAVE_AGAIN}"
    )


def write_npz(path):
    with path.open("wb") as file:
        np.savez(file, x=np.arange(3))


def write_npy(path):
    with path.open("wb") as file:
        np.save(file, np.arange(3))


@pytest.mark.parametrize(
    ("write", "looks"),
    [
        (lambda path: joblib.dump({"a": 1}, path), "a pickle, as written by pickle or joblib"),
        (
            lambda path: joblib.dump([1], path, compress=3),
            "a zlib stream, as joblib writes a compressed pickle",
        ),
        (
            lambda path: joblib.dump([1], path, compress=("gzip", 3)),
            "a compressed file, perhaps a pickle by joblib",
        ),
        (write_npz, "a zip archive, such as .npz or .skops"),
        (write_npy, "a NumPy .npy file"),
        (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n"), "an HDF5 file"),
        (lambda path: path.write_bytes(b"PAR1"), "a Parquet file"),
    ],
)
def test_foreign_files_are_named(path, write, looks):
    write(path)
    assert message(path, path.read_bytes()) == (
        f"{str(path)!r} is not a neighboragg file: it looks like {looks}.\n"
        "Hint: load it with the library that wrote it, if you trust where it comes from."
    )


def test_unknown_file(path):
    assert message(path, b"x,y\n1,2\n3,4\n") == (
        f"{str(path)!r} is not a neighboragg file: it begins with b'x,y\\n1,2\\n'.\nHint: check the path."
    )


def test_empty_file(path):
    assert message(path, b"") == f"{str(path)!r} is not a neighboragg file: it is empty."


def test_missing_file_and_folder(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="model\\.nagg"):
        read_record(path)
    with pytest.raises(IsADirectoryError):
        read_record(tmp_path)


FIELDS = "an entry of the array directory has other fields than expected"
SHAPE = "array 'x' has a shape that is not a list of whole numbers"
NUMBERS = "array 'x' has an offset or a size that is not a whole number"
NO_ARRAY, NO_FLOAT = "a placeholder points at no array", "a placeholder names no float"
UNFILLED = "a placeholder lists strings that do not fill their shape"
VALID = {"kind": "pool", "payload_nbytes": 8, "arrays": [], "record": {"x": {"$array": 0}}}
ENTRY = {"name": "x", "dtype": "<i4", "shape": [2], "offset": 0, "nbytes": 8}


def header_error(path, header, payload=b"\1\0\0\0\2\0\0\0", **kwargs):
    found = message(path, forge(header, payload, **kwargs))
    start, end = f"The header of {str(path)!r} is not valid: ", ".\nHint: save the model again."
    assert found.startswith(start)
    assert found.endswith(end)
    return found[len(start) : -len(end)]


def test_a_forged_file_can_be_right(path):
    path.write_bytes(forge(VALID | {"arrays": [ENTRY]}, b"\1\0\0\0\2\0\0\0"))
    kind, record = read_record(path)
    assert kind == "pool"
    assert record["x"].tolist() == [1, 2]


@pytest.mark.parametrize("raw", [b"\xff", b"[", b"[1]", b'{"kind": NaN}', b"[" * 100_000, b"9" * 5_000])
def test_header_that_is_no_json_object(path, raw):
    assert header_error(path, None, raw=raw) == "it is not a JSON object"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": 3}, "the kind is not a string"),
        ({"arrays": None}, "the array directory is not a list"),
        ({"arrays": [3]}, FIELDS),
        ({"arrays": [ENTRY | {"more": 1}]}, FIELDS),
        ({"arrays": [ENTRY | {"name": 1}]}, "the name of an array is not a string"),
        ({"arrays": [ENTRY | {"dtype": "O"}]}, "array 'x' has the dtype 'O', which is not a known one"),
        ({"arrays": [ENTRY | {"dtype": ">i4"}]}, "array 'x' has the dtype '>i4', which is not a known one"),
        ({"arrays": [ENTRY | {"dtype": "<U0"}]}, "array 'x' has the dtype '<U0', which is not a known one"),
        (
            {"arrays": [ENTRY | {"dtype": ["<i4"]}]},
            "array 'x' has the dtype ['<i4'], which is not a known one",
        ),
        ({"arrays": [ENTRY | {"shape": 2}]}, SHAPE),
        ({"arrays": [ENTRY | {"shape": [-2]}]}, SHAPE),
        ({"arrays": [ENTRY | {"shape": [2.0]}]}, SHAPE),
        ({"arrays": [ENTRY | {"shape": [True, 2]}]}, SHAPE),
        ({"arrays": [ENTRY | {"shape": [3]}]}, "array 'x' of shape (3,) and dtype <i4 has a wrong size"),
        ({"arrays": [ENTRY | {"dtype": "<U9"}]}, "array 'x' of shape (2,) and dtype <U9 has a wrong size"),
        ({"arrays": [ENTRY | {"nbytes": 7}]}, "array 'x' of shape (2,) and dtype <i4 has a wrong size"),
        ({"arrays": [ENTRY | {"nbytes": "8"}]}, NUMBERS),
        ({"arrays": [ENTRY | {"offset": -64}]}, NUMBERS),
        ({"arrays": [ENTRY | {"offset": 64}]}, "array 'x' is at 64 instead of 0"),
        ({"arrays": [ENTRY, ENTRY]}, "array 'x' is at 0 instead of 64"),
        (
            {"arrays": [ENTRY | {"shape": [2**50], "nbytes": 2**52}]},
            f"the arrays take {2**52} bytes, and there are 8",
        ),
        ({"arrays": []}, "the arrays take 0 bytes, and there are 8"),
    ],
)
def test_forged_directory(path, change, reason):
    assert header_error(path, VALID | {"arrays": [ENTRY]} | change) == reason


@pytest.mark.parametrize("shape", [[0] * 100, [0, 2**70], [0, 2**62]])
def test_shapes_that_numpy_cannot_make(path, shape):
    entry = ENTRY | {"shape": shape, "nbytes": 0}
    found = header_error(path, VALID | {"payload_nbytes": 0, "arrays": [entry]}, b"")
    assert found.startswith("array 'x' cannot be made: ")
    strings = {"x": {"$strings": [], "shape": shape}}
    found = header_error(path, VALID | {"payload_nbytes": 0, "record": strings}, b"")
    assert found.startswith("an array of strings cannot be made: ")


def test_string_width_beyond_numpy(path):
    entry = ENTRY | {"dtype": "<U999999999", "shape": [0], "nbytes": 0}
    found = header_error(path, VALID | {"payload_nbytes": 0, "arrays": [entry]}, b"")
    assert found.startswith("array 'x' cannot be made: ")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "the record is not a dict"),
        ([1], "the record is not a dict"),
        ({"$array": 0}, "the record is not a dict"),
        ({"x": {"$array": 1}}, NO_ARRAY),
        ({"x": {"$array": -1}}, NO_ARRAY),
        ({"x": {"$array": False}}, NO_ARRAY),
        ({"x": {"$array": "0"}}, NO_ARRAY),
        ({"x": {"$array": 0, "y": 1}}, NO_ARRAY),
        ({"x": {"$float": "1.5"}}, NO_FLOAT),
        ({"x": {"$float": ["nan"]}}, NO_FLOAT),
        ({"x": {"$float": "nan", "y": 1}}, NO_FLOAT),
        ({"x": {"$other": 1}}, "'$other' is not a known placeholder"),
        ({"x": {"$strings": ["a"]}}, "array '$strings' has a shape that is not a list of whole numbers"),
        ({"x": {"$strings": ["a"], "shape": [2]}}, UNFILLED),
        ({"x": {"$strings": [1], "shape": [1]}}, UNFILLED),
        ({"x": {"$strings": "a", "shape": [1]}}, UNFILLED),
        ({"x": {"$strings": [], "shape": [0], "y": 1}}, UNFILLED),
    ],
)
def test_forged_record(path, record, reason):
    assert header_error(path, VALID | {"arrays": [ENTRY], "record": record}) == reason


def test_forged_depth(path):
    node: dict = {}
    for _ in range(70):
        node = {"a": node}
    header = VALID | {"arrays": [ENTRY], "record": node}
    assert header_error(path, header) == "the record is nested more than 64 deep"


def test_forged_values(path):
    booleans = VALID | {"arrays": [ENTRY | {"dtype": "|b1", "shape": [8]}]}
    assert header_error(path, booleans) == "array 'x' holds bytes that are neither True nor False"
    strings = VALID | {"arrays": [ENTRY | {"dtype": "<U1"}]}
    assert header_error(path, strings, b"a\0\0\0\0\0\x11\0") == "array 'x' holds bytes that are no characters"


def test_file_that_shrinks_while_it_is_read(path, content, monkeypatch):
    from neighboragg.persistence import _reading

    check = _reading._check_digest

    def check_then_shrink(file, size, name):
        check(file, size, name)
        os.truncate(path, parse(content)[3])

    monkeypatch.setattr(_reading, "_check_digest", check_then_shrink)
    found = message(path, content)
    assert "array 'theta' ends early; the file changed while it was read" in found


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("odd"), Interrupted()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_write_leaves_the_old_file(path, content, monkeypatch, error, step):
    def fail(*_):
        raise error

    monkeypatch.setattr(*((os, "fsync", fail) if step == "fsync" else (Path, "replace", fail)))
    with pytest.raises(type(error)) as caught:
        write_record(path, "pool", {"theta": np.zeros(1000)})
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    if isinstance(error, OSError):
        assert str(caught.value) == (
            f"[Errno 28] Cannot save to the folder {str(path.parent)!r} "
            f"(No space left on device): {str(path)!r}"
        )


def test_permission_error_names_folder_and_path(path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", ".nagg-0.tmp")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        write_record(path, "pool", {})
    assert str(caught.value) == (
        f"[Errno 13] Cannot save to the folder {str(path.parent)!r} (Permission denied): {str(path)!r}"
    )


def test_missing_folder_and_folder_as_file(tmp_path):
    target = tmp_path / "no" / "model.nagg"
    with pytest.raises(FileNotFoundError) as caught:
        write_record(target, "pool", {})
    assert str(caught.value) == (
        f"[Errno 2] Cannot save to the folder {str(target.parent)!r} "
        f"(No such file or directory): {str(target)!r}"
    )
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_record(tmp_path / "folder", "pool", {})
    assert [item.name for item in tmp_path.iterdir()] == ["folder"]


def test_overwriting_keeps_the_mode_and_links(path, content, tmp_path):
    path.chmod(0o600)
    link = tmp_path / "link.nagg"
    link.symlink_to(path)
    write_record(str(link), "pool", {"new": 1})
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_record(path) == ("pool", {"new": 1})
    assert sorted(item.name for item in tmp_path.iterdir()) == ["link.nagg", "model.nagg"]


def test_new_file_follows_the_umask(path):
    old = os.umask(0o027)
    try:
        write_record(path, "pool", {})
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
