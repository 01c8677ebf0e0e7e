"""The public surface: names, extras, and what a bare import brings along."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import neighboragg

ROOT = Path(neighboragg.__file__).parent
PROJECT = Path(__file__).parents[1]


def public_modules():
    for info in pkgutil.walk_packages([str(ROOT)], "neighboragg."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield info.name


@pytest.mark.parametrize("name", ["neighboragg", *public_modules()])
def test_all_is_complete(name):
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        assert hasattr(module, public)
    own = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and getattr(value, "__module__", "") == name
    }
    if not hasattr(module, "__path__"):
        assert own <= set(module.__all__)


def test_extras_named_in_errors_exist():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = set()
    for path in ROOT.rglob("*.py"):
        named |= set(re.findall(r'extra="(\w+)"', path.read_text()))
    assert named
    assert named <= set(extras)


def test_a_bare_import_needs_no_extra():
    heavy = ["pandas", "matplotlib", "typer", "rich", "skops", "torch", "fastapi", "pyarrow", "faiss"]
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {heavy}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import numpy as np
from sklearn.linear_model import LogisticRegression
from neighboragg import TrustedClassifier
X = np.random.default_rng(0).normal(size=(80, 3))
y = (X[:, 0] > 0).astype(int)
print(TrustedClassifier(LogisticRegression(), random_state=0).fit(X, y).score_samples(X).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(80,)"
