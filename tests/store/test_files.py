"""The file itself: its layout, damage of every byte and length, forged headers, and atomic writes."""

import hashlib
import json
import os
import platform
import stat
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import neighboragg
from neighboragg._store.file import FORMAT
from neighboragg.exceptions import FileFormatError, InvalidParameterError
from neighboragg.features._quantiles import TamedScores

AGAIN = "Hint: copy the file again, or save the model again."


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.nagg"


def fitted(**attributes):
    scores = TamedScores().fit(np.arange(12.0).reshape(4, 3))
    scores.quantiles_ = scores.quantiles_[:2]  # small, so that every byte of the file can be changed in turn
    vars(scores).update(attributes)
    return scores


@pytest.fixture
def content(path):
    fitted(names_=np.array(["é"]), words_=np.array(["a", "bc"], dtype=object)).save(path)
    return path.read_bytes()


def message(path, content):
    """Return the error message that loading `content` gives."""
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        neighboragg.load(path)
    return str(caught.value)


def test_other_software_can_look_inside(path, content):
    tensors = load_file(path)
    assert tensors["low_"].tolist() == [0, 1, 2]
    assert tensors["is_binary_"].dtype == bool
    assert tensors["names_"].tolist() == [[ord("é")]]
    assert tensors["words_"].tobytes() == b"abc"
    assert tensors["words_/lengths"].tolist() == [1, 2]
    with safe_open(path, "numpy") as file:
        document = json.loads(file.metadata()["neighboragg"])
    assert document["format"] == FORMAT == 3
    assert document["kind"] == "TamedScores"
    assert document["versions"]["python"] == platform.python_version()
    assert document["versions"]["scikit-learn"] == sklearn.__version__
    assert document["root"] == {"$object": 0}
    assert document["objects"][0]["state"]["low_"] == {"$array": "low_"}


def test_the_digests_are_those_of_the_header_with_zeros_in_its_place_and_of_each_array(path, content):
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = content[: 8 + int.from_bytes(content[:8], "little")]
    digest = metadata["sha256"].encode()
    assert header.count(digest) == 1
    assert hashlib.sha256(header.replace(digest, b"0" * 64)).hexdigest() == metadata["sha256"]
    expected = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
    assert json.loads(metadata["arrays"]) == expected


def test_the_same_model_gives_the_same_bytes(path, content):
    neighboragg.load(path).save(path)
    assert path.read_bytes() == content


def test_every_flipped_bit_is_found(path, content):
    rng = np.random.default_rng(0)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        assert str(path) in message(path, bytes(damaged)), position


@pytest.mark.parametrize("bit", range(8))
def test_every_bit_of_the_length_and_the_digest(path, content, bit):
    start = content.index(b'"sha256"')
    for position in [*range(9), *range(start, start + 76)]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        message(path, bytes(damaged))


def test_damage_of_an_array_is_named_as_damage(path, content):
    damaged = content[:-1] + bytes([content[-1] ^ 1])
    assert message(path, damaged) == (
        f"{str(path)!r} is damaged: the digest of its array 'words_' does not match its content.\n{AGAIN}"
    )


@pytest.mark.parametrize("digests", [{}, {"x_": "a", "y_": "b"}, {"x_": 5}, {"x_": "a"}, ["x_"], "x_", 5])
def test_digests_that_are_not_those_of_the_arrays(path, forge, digests):
    found = message(path, forge(digests=digests))
    assert "it has other digests than arrays" in found or "array 'x_' does not match" in found


def test_every_truncation_is_found(path, content):
    for length in range(len(content)):
        found = message(path, content[:length])
        assert "is truncated" in found or length < 9, length


def test_truncation_names_both_sizes(path, content):
    assert message(path, content[:-1]) == (
        f"{str(path)!r} is truncated: it has {len(content) - 1} bytes, and should have at least {len(content)}."
        f"\n{AGAIN}"
    )
    header = 8 + int.from_bytes(content[:8], "little")
    assert message(path, content[:15]) == (
        f"{str(path)!r} is truncated: it has 15 bytes, and should have at least {header}.\n{AGAIN}"
    )


def test_appended_bytes_are_found(path, content):
    for more in (b"\0", content):
        assert message(path, content + more).startswith(f"The header of {str(path)!r} is not valid: ")


def test_an_absurd_length_allocates_nothing(path, content):
    assert message(path, b"\xff" * 8 + content[8:]).startswith(
        f"{str(path)!r} is not a neighboragg file: it begins"
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
        (
            lambda path: path.write_bytes(b"\x89NAGG\r\n\x1a\1\0\0\0{"),
            "a file of a development version of neighboragg, with a format of its own",
        ),
    ],
)
def test_foreign_files_are_named(path, write, looks):
    write(path)
    assert message(path, path.read_bytes()) == (
        f"{str(path)!r} is not a neighboragg file: it looks like {looks}.\n"
        "Hint: load it with the library that wrote it, if you trust where it comes from."
    )


def test_safetensors_of_other_software(path):
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.ones(2)}, path, metadata)
        assert message(path, path.read_bytes()) == (
            f"{str(path)!r} is not a neighboragg file: it is a safetensors file of other software.\n"
            "Hint: check the path."
        )


def test_unknown_file(path):
    assert message(path, b"x,y\n1,2\n3,4\n") == (
        f"{str(path)!r} is not a neighboragg file: it begins with b'x,y\\n1,2\\n'.\nHint: check the path."
    )


def test_empty_file(path):
    assert message(path, b"") == f"{str(path)!r} is not a neighboragg file: it is empty."


def test_missing_file_and_folder(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="scores\\.nagg"):
        neighboragg.load(path)
    with pytest.raises(IsADirectoryError):
        neighboragg.load(tmp_path)


def test_a_forged_file_can_be_right(path, forge):
    path.write_bytes(forge())
    assert neighboragg.load(path).x_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("number", "remedy"), [(4, "upgrade neighboragg"), (2, "save the model again with this version")]
)
def test_other_formats(path, forge, number, remedy):
    assert message(path, forge(format=number)) == (
        f"{str(path)!r} has the format number {number}, and this version of neighboragg reads 3.\nHint: {remedy}."
    )


@pytest.mark.parametrize(
    "text", ["", "[", "[1]", "{}", '{"format": NaN}', '{"format": true}', "[" * 100_000, "9" * 5_000]
)
def test_documents_without_a_format(path, forge, text):
    assert message(path, forge(text=text)) == (
        f"The header of {str(path)!r} is not valid: it has no format number.\n{AGAIN}"
    )


X = {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}


@pytest.mark.parametrize(
    "entry",
    [
        X | {"dtype": "O"},
        X | {"dtype": ["F64"]},
        X | {"shape": 3},
        X | {"shape": [-3]},
        X | {"shape": [4]},
        X | {"shape": [2**40, 2**40]},
        X | {"data_offsets": [0, 16]},
        X | {"data_offsets": [24, 0]},
        X | {"data_offsets": [8, 24]},
        X | {"data_offsets": [0, 2**70]},
        X | {"data_offsets": "all"},
        {"dtype": "F64"},
        None,
    ],
    ids=str,
)
def test_headers_that_safetensors_refuses(path, forge, entry):
    found = message(path, forge(entries={"x_": entry}))
    assert found.startswith((f"The header of {str(path)!r} is not valid: ", f"{str(path)!r} is truncated: "))


def test_overlapping_arrays(path, forge):
    assert "is not valid: " in message(path, forge(entries={"y_": X}))


@pytest.mark.parametrize(
    "raw", [b"{", b"{\xff}", b"{" + b'"a":{' * 1000, b'{"__metadata__":{"neighboragg":3}}']
)
def test_headers_that_are_not_json(path, raw):
    assert message(path, len(raw).to_bytes(8, "little") + raw).startswith(
        f"The header of {str(path)!r} is not valid: "
    )


def test_two_digests(path, forge, content):
    again = content.replace(b'"neighboragg":', b'"sha256":"' + b"0" * 64 + b'","neighboragg":', 1)
    again = (int.from_bytes(content[:8], "little") + 76).to_bytes(8, "little") + again[8:]
    assert message(path, again).startswith((f"{str(path)!r} is damaged", "The header of"))


def test_types_beyond_ours(path, forge):
    entry = {"dtype": "BF16", "shape": [12], "data_offsets": [0, 24]}
    assert message(path, forge(entries={"x_": entry})) == (
        f"The array 'x_' of {str(path)!r} has the unknown type 'BF16'."
    )


def test_bytes_that_are_no_booleans(path, forge):
    entry = {"dtype": "BOOL", "shape": [24], "data_offsets": [0, 24]}
    assert message(path, forge(entries={"x_": entry})) == (
        f"The array 'x_' of {str(path)!r} holds bytes that are neither True nor False."
    )


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_that_are_not_aligned_still_are_after_loading(path, forge, mmap):
    path.write_bytes(forge({"a_": np.zeros(3, dtype=np.uint8), "x_": np.arange(3.0)}))
    array = neighboragg.load(path, mmap=mmap).x_
    assert array.flags.aligned
    assert array.tolist() == [0, 1, 2]


def test_what_is_not_an_array_has_a_limit(path, monkeypatch):
    monkeypatch.setattr("neighboragg._store.file._LARGEST_HEADER", 1000)
    with pytest.raises(InvalidParameterError) as caught:
        fitted(words_=["word"] * 1000).save(path)
    assert str(caught.value).startswith("What is not an array takes ")
    assert not path.exists()


def test_a_file_that_shrinks_while_it_is_read(path, monkeypatch):
    from neighboragg._store import file as _file

    fitted(more_=np.zeros(100_000)).save(path)  # more than is read ahead
    check, content = _file._checked_digests, path.read_bytes()

    def check_then_shrink(*args):
        digests = check(*args)
        os.truncate(path, 100_000)
        return digests

    monkeypatch.setattr(_file, "_checked_digests", check_then_shrink)
    assert message(path, content).endswith("cannot be made: the file changed while it was read.")


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("odd"), Interrupted()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_write_leaves_the_old_file(path, content, monkeypatch, error, step):
    def fail(*_):
        raise error

    monkeypatch.setattr(*((os, "fsync", fail) if step == "fsync" else (Path, "replace", fail)))
    with pytest.raises(type(error)) as caught:
        fitted(more_=np.zeros(1000)).save(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    if isinstance(error, OSError):
        assert str(caught.value) == (
            f"[Errno 28] Cannot save to the folder {str(path.parent)!r} (No space left on device): {str(path)!r}"
        )


def test_permission_error_names_folder_and_path(path, monkeypatch):
    opened = Path.open

    def refuse(self, *args, **kwargs):
        if self.parent == path.parent:  # versions of packages may be read by the same function
            raise PermissionError(13, "Permission denied", ".nagg-0.tmp")
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        fitted().save(path)
    assert str(caught.value) == (
        f"[Errno 13] Cannot save to the folder {str(path.parent)!r} (Permission denied): {str(path)!r}"
    )


def test_missing_folder_and_folder_as_file(tmp_path):
    target = tmp_path / "no" / "model.nagg"
    with pytest.raises(FileNotFoundError) as caught:
        fitted().save(target)
    assert str(caught.value) == (
        f"[Errno 2] Cannot save to the folder {str(target.parent)!r} (No such file or directory): {str(target)!r}"
    )
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        fitted().save(tmp_path / "folder")
    assert [item.name for item in tmp_path.iterdir()] == ["folder"]


def test_overwriting_keeps_the_mode_and_links(path, content, tmp_path):
    path.chmod(0o600)
    link = tmp_path / "link.nagg"
    link.symlink_to(path)
    fitted(new_=1).save(str(link))
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert neighboragg.load(path).new_ == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["link.nagg", "scores.nagg"]


def test_new_file_follows_the_umask(path):
    old = os.umask(0o027)
    try:
        fitted().save(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
