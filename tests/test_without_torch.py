"""Without PyTorch, the core works, and everything else tells how to install it."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""


def run(code):
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)


@pytest.mark.full
def test_the_core_imports():
    done = run("import neighboragg, neighboragg.labels, neighboragg._cli; print(neighboragg.NeighborAgg())")
    assert (done.returncode, done.stdout) == (0, "NeighborAgg()\n"), done.stderr


def test_what_needs_it_names_the_extra():
    done = run("import neighboragg.torch")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "MissingExtraError: neighboragg.torch needs the package 'torch', which is not installed.\n"
        'Hint: pip install "neighboragg[torch]"\n'
    )


@pytest.mark.full
def test_a_device_names_the_extra():
    done = run(
        "from neighboragg.search import ClasswiseNeighbors, Exact\n"
        "ClasswiseNeighbors(1, search=Exact(device='cpu')).fit([[0.0]], [0]).kneighbors([[1.0]])"
    )
    assert done.returncode == 1
    assert done.stderr.endswith(
        "MissingExtraError: The 'device' parameter of Exact needs the package 'torch', which is not installed."
        '\nHint: pip install "neighboragg[torch]"\n'
    )
