"""Arrays mapped from the file: the same scores, no copy, and one copy for all processes."""

import mmap as system
import subprocess
import sys

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import neighboragg
from neighboragg import NeighborAgg, SelectiveClassifier, TrustedClassifier
from neighboragg.neighbors import ClasswiseNeighbors


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
    for index in again.model.method_.indexes_.values():
        assert all(is_mapped(array) for array in (index._reference.rows, index._reference.table))
    assert is_mapped(again.classes_)
    assert not any(
        is_mapped(array) for array in vars(neighboragg.load(tmp_path / "safe.nagg").model.method_).values()
    )


CHILD = """
import sys
import neighboragg
index = neighboragg.load(sys.argv[1], mmap=sys.argv[2] == "mapped")
index.kneighbors([[0.0] * 50])
print("ready", flush=True)
sys.stdin.readline()
fields = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
print(*(int(fields[name].split()[0]) for name in ("Rss", "Pss", "Shared_Clean")), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/self/smaps_rollup is Linux's")
def test_two_processes_share_one_copy(tmp_path, record_property):
    path = tmp_path / "index.nagg"
    rng = np.random.default_rng(0)
    ClasswiseNeighbors(5).fit(rng.normal(size=(40_000, 50)), rng.integers(0, 3, 40_000)).save(path)
    proportional = {}
    for how in ("mapped", "owned"):
        children = [
            subprocess.Popen(
                [sys.executable, "-c", CHILD, str(path), how],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for child in children:
            assert child.stdout.readline() == "ready\n"
        found = [child.communicate("\n")[0] for child in children[:1]]
        found += [child.communicate("\n")[0] for child in children[1:]]
        resident, proportional[how], shared = np.array([line.split() for line in found], dtype=int).T
        sys.stdout.write(
            f"{how}: file {path.stat().st_size // 1024} kB, Rss {resident}, Pss {proportional[how]}, "
            f"Shared_Clean {shared} kB\n"
        )
    # While both live, each counts half of the file; 16 MB of rows and 8 MB of table.
    assert proportional["mapped"][0] < proportional["owned"][0] - 8_000
