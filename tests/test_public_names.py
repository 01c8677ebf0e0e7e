"""The public surface: names, extras, and the modules that a bare import loads."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import neighboragg

ROOT = Path(neighboragg.__file__).parent
PROJECT = Path(__file__).parents[1]


def public_modules():
    missing = {"neighboragg.torch"} if find_spec("torch") is None else set()
    # An extra that is not installed says so when it is imported; tests/test_without_torch.py looks at that.
    for info in pkgutil.walk_packages([str(ROOT)], "neighboragg.", onerror=lambda name: None):
        if info.name not in missing and not any(part.startswith("_") for part in info.name.split(".")):
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


def published():
    for name in ["neighboragg", *public_modules()]:
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{name}.{public}", value


def test_public_names_say_a_module_they_are_public_in():
    written_elsewhere = {
        path: value.__module__
        for path, value in published()
        if value.__module__.startswith("neighboragg")
        and (
            "._" in value.__module__
            or getattr(importlib.import_module(value.__module__), value.__qualname__, None) is not value
        )
    }
    assert written_elsewhere == {}
    assert neighboragg.TrustedClassifier.__module__ == "neighboragg"
    assert neighboragg.TrustedClassifier.fit.__module__ == "neighboragg"
    assert neighboragg.methods.TrustScore.__module__ == "neighboragg.methods"


def test_docs_list_every_public_name():
    page = (PROJECT / "docs" / "api.md").read_text()
    if find_spec("torch") is None:
        page = re.sub(r"## neighboragg\.torch\n.*?\n## ", "## ", page, flags=re.DOTALL)
    listed = [
        f"{section.partition(chr(10))[0]}.{name}"
        for section in page.split("\n## ")[1:]
        for name in re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    ]
    assert sorted(listed) == sorted(path for path, _ in published())


def test_sources_of_methods_are_found():
    assert "def fit(" in inspect.getsource(neighboragg.TrustedClassifier.fit)
    assert "def find_mislabeled(" in inspect.getsource(neighboragg.find_mislabeled)


def test_signatures_are_readable():
    callables = dict(published())
    for path, value in list(callables.items()):
        if inspect.isclass(value):
            callables |= {
                f"{path}.{name}": member
                for name, member in vars(value).items()
                if inspect.isfunction(member) and not name.startswith("_")
            }
    for path, value in callables.items():
        for annotation in getattr(value, "__annotations__", {}).values():
            text = inspect.formatannotation(annotation)
            assert len(text) < 120, f"{path}: {text}"
            assert "_typing" not in text, f"{path}: {text}"
    assert str(inspect.signature(neighboragg.TrustedClassifier.score_labels)) == (
        "(self, X: Any, y: numpy.typing.ArrayLike) -> numpy.ndarray"
    )


def test_types_are_shipped():
    assert (ROOT / "py.typed").is_file()


def test_extras_named_in_errors_exist():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = set()
    for path in ROOT.rglob("*.py"):
        named |= set(re.findall(r'extra="(\w+)"', path.read_text()))
    assert named
    assert named <= set(extras)


def test_a_bare_import_needs_no_extra():
    heavy = [
        "PIL",
        "sqlite3",
        "pandas",
        "matplotlib",
        "typer",
        "rich",
        "skops",
        "torch",
        "fastapi",
        "pyarrow",
        "faiss",
        "dask",
        "distributed",
    ]
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


def test_the_package_and_its_version_need_no_other_package():
    """A lazy package: a name brings its room along, and the command answers `--version` at once."""
    code = """
import sys
sys.argv = ["neighboragg", "--version"]
from neighboragg._cli import main
main()
print(*{name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, loaded = done.stdout.split("\n", 1)
    assert version == neighboragg.__version__
    assert {"neighboragg"} <= set(loaded.split()) and not set(loaded.split()) & {"sklearn", "numpy", "typer"}


@pytest.mark.full
def test_what_the_core_imports_is_declared():
    """Whatever else is installed here, a new environment has the declared packages only."""
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.match(r"[\w-]+", line)[0].replace("scikit-learn", "sklearn") for line in declared}
    code = """
import sys, neighboragg
for name in neighboragg.__all__:
    getattr(neighboragg, name)
print(*(module.__file__ for name, module in sys.modules.items() if name.startswith("neighboragg")), sep="\\n")
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    imported = {
        name
        for path in loaded.split("\n")[:-1]
        for name in re.findall(r"^(?:from|import) (\w+)", Path(path).read_text(), flags=re.MULTILINE)
    }
    assert "numpy" in imported
    assert imported - set(sys.stdlib_module_names) - {"neighboragg"} <= names
