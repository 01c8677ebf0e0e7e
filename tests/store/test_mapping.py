"""Arrays mapped from the file: the same scores, no copy, one copy for all processes, and damage found on opening."""

import copy
import json
import mmap as system
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.validation import check_is_fitted

import neighboragg
from neighboragg import NeighborAgg, SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import FileFormatError
from neighboragg.search import ClasswiseNeighbors


def is_mapped(array):
    """Whether an array is a view of a read-only memory map."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return isinstance(array, system.mmap)


def test_everything_large_is_mapped_and_works(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.array(["no", "yes"])[(X[:, 0] + rng.normal(size=400) > 0).astype(int)]
    model = TrustedClassifier(GaussianNB(), NeighborAgg(second_opinions=[GaussianNB()]), random_state=0).fit(
        X, y
    )
    safe = SelectiveClassifier(model, target_coverage=0.5).calibrate(X + 0.01, y)
    safe.save(tmp_path / "safe.nagg")
    again = neighboragg.load(tmp_path / "safe.nagg", mmap=True)
    np.testing.assert_array_equal(again.predict(X + 0.02), safe.predict(X + 0.02))
    assert str(again.model.explain(X[:2] + 1)) == str(model.explain(X[:2] + 1))
    for index in again.model.method_.neighborhoods_.indexes.values():
        assert all(is_mapped(array) for array in (index._reference.rows, index._reference.table))
    assert is_mapped(again.classes_)
    assert not any(
        is_mapped(array) for array in vars(neighboragg.load(tmp_path / "safe.nagg").model.method_).values()
    )


CHILD = """
import sys
import neighboragg
path, how = sys.argv[1:]
index = neighboragg.load(path, mmap=how == "mapped")
index.kneighbors([[0.0] * 50])
print("ready", flush=True)
sys.stdin.readline()
found, ours = {"Rss": 0, "Pss": 0, "Shared_Clean": 0}, False
for line in open("/proc/self/smaps"):
    name, *values = line.split()
    if not name.endswith(":"):
        ours = values[-1:] == [path]
        access = values[0] if ours else found.get("access")
        found["access"] = access
    elif ours and name[:-1] in found:
        found[name[:-1]] += int(values[0])
total = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
print(found, {name: total[name].strip() for name in ("Rss", "Pss")}, flush=True)
sys.stdin.readline()
"""


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/self/smaps is Linux's")
@pytest.mark.parametrize(("how", "access"), [("mapped", "r--s"), ("owned", None)])
def test_two_processes_share_one_copy(tmp_path, how, access):
    path = tmp_path / "index.nagg"
    rng = np.random.default_rng(0)
    ClasswiseNeighbors(5).fit(rng.normal(size=(10_000, 50)), rng.integers(0, 3, 10_000)).save(path)
    command = [sys.executable, "-c", CHILD, str(path), how]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 2
    found = []
    for child in children:  # both live while each looks at its memory
        child.stdin.write("\n")
        child.stdin.flush()
        found.append(child.stdout.readline())
    for child in children:
        child.communicate("\n")
    sys.stdout.write(f"file of {path.stat().st_size // 1024} kB, {how}, kB by process:\n{''.join(found)}")
    # How much is resident is the system's choice; that both look at the same pages of the file is not.
    assert all(f"'access': {access!r}" in line for line in found)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model, its file, and rows to ask it about."""
    path = tmp_path_factory.mktemp("mapped") / "model.nagg"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = TrustedClassifier(GaussianNB(), random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    model.save(path)
    return model, path, rng.normal(size=(20, 4))


def position_of(name, path):
    """Where the bytes of an array begin in a file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return 8 + length + json.loads(content[8 : 8 + length])[name]["data_offsets"][0]


@pytest.mark.parametrize(
    "name", ["method_/neighborhoods_/indexes/features/_reference/rows", "_fitted_rows/hashes"]
)
@pytest.mark.parametrize("mmap", [True, False])
def test_damage_is_found_on_opening(saved, tmp_path, name, mmap):
    _, path, _ = saved
    damaged = bytearray(path.read_bytes())
    damaged[position_of(name, path)] ^= 1
    (tmp_path / "damaged.nagg").write_bytes(damaged)
    with pytest.raises(FileFormatError, match=f"the digest of its array '{name}' does not match"):
        neighboragg.load(tmp_path / "damaged.nagg", mmap=mmap)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_whole(saved, copied):
    model, path, rows = saved
    again = copied(neighboragg.load(path, mmap=True))
    np.testing.assert_array_equal(again.assess(rows).trust, model.assess(rows).trust)


def test_a_mapped_model_is_saved_whole(saved, tmp_path):
    model, path, rows = saved
    neighboragg.load(path, mmap=True).save(tmp_path / "again.nagg")
    again = neighboragg.load(tmp_path / "again.nagg")
    np.testing.assert_array_equal(again.assess(rows).trust, model.assess(rows).trust)


def test_a_mapped_index_looks_like_any_other(tmp_path):
    path = tmp_path / "index.nagg"
    index = ClasswiseNeighbors(2).fit(np.arange(8.0).reshape(4, 2), ["a", "a", "b", "b"])
    index.save(path)
    mapped = neighboragg.load(path, mmap=True)
    check_is_fitted(mapped)
    assert repr(mapped) == repr(index)
    assert clone(mapped).get_params() == index.get_params()
    assert joblib.hash(mapped) == joblib.hash(index)


@pytest.mark.full
def test_processes_of_joblib_answer_as_this_one_when_the_file_is_another_by_then(saved, tmp_path):
    model, path, rows = saved
    copied = tmp_path / "copied.nagg"
    copied.write_bytes(path.read_bytes())
    again = neighboragg.load(copied, mmap=True)
    X = np.random.default_rng(1).normal(size=(300, 4))
    TrustedClassifier(GaussianNB(), random_state=0).fit(X, (X[:, 1] > 0).astype(int)).save(copied)
    (answer,) = joblib.Parallel(n_jobs=2, backend="loky")([joblib.delayed(again.assess)(rows)])
    np.testing.assert_array_equal(answer.trust, model.assess(rows).trust)
