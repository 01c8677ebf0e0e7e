"""The file itself: its layout, damage of every byte and length, foreign files, and atomic writes."""

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
from neighboragg._store import file
from neighboragg._store.file import FORMAT, read_file, write_file
from neighboragg.exceptions import FileFormatError, InvalidParameterError
from neighboragg.features._quantiles import QuantileScores

AGAIN = "Hint: copy the file again, or save the model again."


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.nagg"


def fitted(**attributes):
    scores = QuantileScores().fit(np.arange(12.0).reshape(4, 3))
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
    assert document["format"] == FORMAT == 4
    assert document["kind"] == "QuantileScores"
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
        assert message(path, content + more) == (
            f"{str(path)!r} is damaged: it has {len(content + more)} bytes, and should have {len(content)}.\n{AGAIN}"
        )


def npz(path):
    with path.open("wb") as file:
        np.savez(file, x=np.arange(3))


@pytest.mark.parametrize(
    "write",
    [
        lambda path: joblib.dump({"a": 1}, path),
        lambda path: joblib.dump([1], path, compress=3),
        npz,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"x,y\n1,2\n3,4\n"),
        lambda path: path.write_bytes(b"\xff" * 8 + b"{"),
        lambda path: path.write_bytes(bytes(8) + b"{}"),
        lambda path: path.write_bytes(b"\x02" + bytes(7) + b"{}"),
        lambda path: path.write_bytes(b"\x08" + bytes(7) + b'{"a":' + b"[[["),
        lambda path: save_file({"weight": np.ones(2)}, path),
        lambda path: save_file({"weight": np.ones(2)}, path, {"format": "pt"}),
    ],
)
def test_foreign_files_are_named(path, write):
    write(path)
    assert message(path, path.read_bytes()) == (
        f"{str(path)!r} is not a neighboragg file.\nHint: load reads only files that save has written."
    )


def test_missing_file_and_folder(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="scores\\.nagg"):
        neighboragg.load(path)
    with pytest.raises(IsADirectoryError):
        neighboragg.load(tmp_path)


@pytest.mark.parametrize(
    ("number", "remedy"), [(5, "upgrade neighboragg"), (3, "save the model again with this version")]
)
def test_other_formats(path, content, number, remedy):
    document, arrays = read_file(path)
    write_file(path, document | {"format": number}, arrays)
    assert message(path, path.read_bytes()) == (
        f"{str(path)!r} has the format number {number}, and this version of neighboragg reads 4.\nHint: {remedy}."
    )


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_are_aligned(path, mmap):
    fitted(a_=np.zeros(3, dtype=np.uint8), z_=np.arange(3.0)).save(path)
    array = neighboragg.load(path, mmap=mmap).z_
    assert array.flags.aligned
    assert array.tolist() == [0, 1, 2]


def test_what_is_not_an_array_has_a_limit(path, monkeypatch):
    monkeypatch.setattr("neighboragg._store.file._LARGEST_HEADER", 1000)
    with pytest.raises(InvalidParameterError) as caught:
        fitted(words_=["word"] * 1000).save(path)
    assert str(caught.value).startswith("The parts of this object that are not arrays take ")
    assert not path.exists()


def test_a_file_that_shrinks_while_it_is_read(path, monkeypatch):
    fitted(more_=np.zeros(100_000)).save(path)  # more than is read ahead
    read, content = file._read_header, path.read_bytes()

    def read_then_shrink(*args):
        header = read(*args)
        os.truncate(path, 100_000)
        return header

    monkeypatch.setattr(file, "_read_header", read_then_shrink)
    assert "the digest of its array" in message(path, content)


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
