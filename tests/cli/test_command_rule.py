"""Every command is a top-level function of the same name, and every option a parameter of the same word."""

import inspect

import pytest
import typer

import neighboragg
from neighboragg import Table, labels
from neighboragg._cli.app import app

#: Options with another word in Python, for every command.
OTHER_WORDS = {"jobs": "n_jobs", "cluster": "client"}
#: Commands without a function, and options that only a command line needs: what `--cluster local` starts, where
#: a command writes what its function returns, and words of a room that still differ.
WITHOUT_FUNCTION = {"demo"}
COMMAND_ONLY = {
    "audit": {"output", "overwrite"},  # Audit.write(output, overwrite=…)
}

COMMANDS = typer.main.get_command(app).commands


def parameters(function):
    return set(inspect.signature(function).parameters)


def words(name):
    """What the function of a command takes, and what the objects take that are passed to it."""
    found = parameters(getattr(neighboragg, name))
    if found & {"source", "data"}:
        found |= parameters(Table)
    if "by" in found:
        by = (labels.Columns, labels.Text, labels.Images, labels.Embeddings)
        found |= {word for kind in by for word in parameters(kind)} | {kind.__name__.lower() for kind in by}
        found |= {"image"}  # Images(column)
    return found


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_FUNCTION))
def test_every_option_is_a_parameter_of_the_same_word(name):
    known = words(name) | COMMAND_ONLY.get(name, set())
    options = [option for option in COMMANDS[name].params if option.name != "help"]
    unknown = [option.name for option in options if OTHER_WORDS.get(option.name, option.name) not in known]
    assert unknown == []
    for option in options:
        longest = max(option.opts, key=len).lstrip("-").replace("-", "_")
        assert longest in (option.name, option.name.upper()), (
            f"--{longest} is called {option.name} in the command"
        )


def test_commands_without_a_function_stay_few():
    assert {name for name in COMMANDS if not hasattr(neighboragg, name)} == WITHOUT_FUNCTION


def test_exceptions_are_still_needed():
    for name, allowed in COMMAND_ONLY.items():
        assert allowed <= {option.name for option in COMMANDS[name].params}
        assert not allowed & words(name)
