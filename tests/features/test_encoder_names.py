"""Encoders by name: what is found, what is refused, and what makes two runs of one the same."""

import sys

import numpy as np
import pytest

from neighboragg.exceptions import InvalidParameterError
from neighboragg.features._encode import Encoder, find_encoder


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Write a module that can be imported; twice writes another version of it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written = set()

    def write(source, name="own_encoder"):
        (tmp_path / f"{name}.py").write_text(source)
        sys.modules.pop(name, None)
        written.add(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)


LENGTHS = "def encode(texts):\n    return [[len(text)] for text in texts]\n"


def message_of(encoder):
    with pytest.raises(InvalidParameterError) as caught:
        find_encoder(encoder)
    return str(caught.value)


def test_a_function_of_a_module(write_module):
    module = write_module(LENGTHS)
    encoder = find_encoder(f"{module}:encode")
    assert encoder.name == "own_encoder:encode"
    assert encoder.vectors_of(["abc"], ["text 0"]).tolist() == [[3.0]]
    assert find_encoder(encoder) is encoder


def test_a_method_of_an_object(write_module):
    module = write_module(
        "class Model:\n    def encode(self, texts):\n        return [[1]] * len(texts)\nmodel = Model()\n"
    )
    assert find_encoder(f"{module}:model.encode").vectors_of(["a", "b"], ["0", "1"]).tolist() == [
        [1.0],
        [1.0],
    ]


@pytest.mark.parametrize("name", ["encode", ":encode", "own_encoder:", "own_encoder:a b", "a.py"])
def test_names_are_written_with_a_colon(name):
    assert message_of(name) == (
        f"The encoder {name!r} must be written as package:callable.\n"
        "Hint: my_encoder:encode for the function encode in my_encoder.py."
    )


@pytest.mark.parametrize("module", ["no_such_module", "no_such_package.module"])
def test_a_module_that_does_not_exist(module):
    missing = module.partition(".")[0]
    assert message_of(f"{module}:encode") == (
        f"The module {missing!r} of the encoder '{module}:encode' was not found.\n"
        "Hint: install it, or put it as a .py file into the folder where Python was started."
    )


def test_a_module_that_needs_another_one_is_not_missing(write_module):
    module = write_module("import no_such_thing\n")
    assert message_of(f"{module}:encode") == (
        "Importing 'own_encoder' for the encoder 'own_encoder:encode' failed: ModuleNotFoundError: No module named "
        "'no_such_thing'"
    )
    write_module("1 / 0\n")
    assert message_of(f"{module}:encode").endswith("failed: ZeroDivisionError: division by zero")


def test_a_callable_that_does_not_exist(write_module):
    module = write_module(LENGTHS)
    assert message_of(f"{module}:embed") == (
        "The module 'own_encoder' does not define 'embed'.\nHint: it has encode."
    )
    write_module("encode = 3\nclass Model: pass\n")
    assert message_of(f"{module}:encode").startswith("The encoder 'own_encoder:encode' is not callable.\n")
    assert message_of(f"{module}:Model").startswith(
        "The encoder 'own_encoder:Model' is a class, not one of its"
    )


@pytest.mark.parametrize("encoder", [3, None, dict])
def test_what_is_no_encoder(encoder):
    assert message_of(encoder) == (
        f"An encoder must be a callable or the name of one, written package:callable. Got {encoder!r} instead."
    )


def test_the_identity_changes_with_source_version_and_name(write_module):
    module = write_module(LENGTHS)
    first = find_encoder(f"{module}:encode").identity
    write_module(LENGTHS)
    assert find_encoder(f"{module}:encode").identity == first
    found = {first}
    for source in (
        LENGTHS + "# changed\n",
        LENGTHS + "encode.version = 'weights 1'\n",
        LENGTHS + "encode.version = 'weights 2'\n",
        LENGTHS + "__version__ = '3'\n",
    ):
        write_module(source)
        found.add(find_encoder(f"{module}:encode").identity)
    write_module(LENGTHS + "embed = encode\n")
    found |= {find_encoder(f"{module}:{name}").identity for name in ("encode", "embed")}
    assert len(found) == 7


def test_the_identity_changes_with_the_module_that_defines_the_function(write_module):
    write_module(LENGTHS, "defining_module")
    module = write_module("from defining_module import encode\n")
    first = find_encoder(f"{module}:encode").identity
    write_module(LENGTHS + "# changed\n", "defining_module")
    write_module("from defining_module import encode\n")
    assert find_encoder(f"{module}:encode").identity != first


def lengths(texts):
    return np.array([[len(text)] for text in texts])


def test_only_what_can_be_found_again_has_an_identity():
    assert find_encoder(lengths).identity is not None
    assert find_encoder(lambda texts: lengths(texts)).identity is None

    class Model:
        def __call__(self, texts):
            return lengths(texts)

        def encode(self, texts):
            return lengths(texts)

    assert find_encoder(Model()).identity is None
    assert find_encoder(Model().encode).identity is None
    versions = []
    for version in ("1", "2"):
        model = Model()
        model.version = version
        versions.append(find_encoder(model).identity)
    assert None not in versions
    assert versions[0] != versions[1]
    assert isinstance(find_encoder(lengths), Encoder)
