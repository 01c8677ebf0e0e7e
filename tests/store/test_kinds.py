"""The written list of classes that a file may name: complete, and enough for a process that has imported nothing."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import neighboragg
import sizes
from neighboragg._store.file import read_file
from neighboragg._store.objects import KINDS, Savable, Stored, class_of
from neighboragg.exceptions import MissingExtraError
from store.models import LARGE, MODELS, network

#: Tested where PyTorch is installed.
OF_TORCH = {kind for kind, module in KINDS.items() if module.startswith("neighboragg.torch")}


def derived(cls):
    for child in cls.__subclasses__():
        yield child
        yield from derived(child)


def test_every_stored_class_of_the_package_is_in_the_list():
    folder = Path(neighboragg.__file__).parent
    for path in folder.rglob("*.py"):
        name = ".".join(("neighboragg", *path.relative_to(folder).with_suffix("").parts))
        if path.stem not in ("__init__", "__main__"):
            try:
                import_module(name)
            except MissingExtraError:
                assert name.startswith("neighboragg.torch")
    ours = {cls for cls in derived(Stored) if cls.__module__.partition(".")[0] == "neighboragg"}
    concrete = {cls for cls in ours if not inspect.isabstract(cls) and cls is not Savable}
    assert {cls.__name__ for cls in concrete} <= set(KINDS)
    assert all(class_of(cls.__name__) is cls for cls in concrete)


SCRIPT = """
import sys
import warnings

import neighboragg
from neighboragg._store.objects import KINDS, class_of

class Network:
    fit = embed = predict_proba = None

warnings.simplefilter("ignore")
for path in sys.argv[1:]:
    given = {"estimator": Network()} if path.endswith("network") else {}
    print(type(neighboragg.load(path, **given)).__name__)
for kind, module in KINDS.items():
    if not module.startswith("neighboragg.torch"):
        assert class_of(kind).__name__ == kind
"""


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.filterwarnings("ignore::neighboragg.exceptions.TrustWarning")
def test_every_kind_loads_in_a_fresh_process(tmp_path):
    models = {name: MODELS[name] for name in MODELS if sizes.FULL or name not in LARGE} | {"network": network}
    kinds, expected = set(), []
    for name, make in models.items():
        item, path = make(), tmp_path / name
        item.save(path)
        expected.append(type(item).__name__)
        kinds |= {entry["kind"] for entry in read_file(path)[0]["objects"]}
    if sizes.FULL:
        assert kinds == set(KINDS) - OF_TORCH
    command = [sys.executable, "-c", SCRIPT, *(str(tmp_path / name) for name in models)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected
