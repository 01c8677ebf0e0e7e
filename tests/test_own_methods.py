"""The check of `make check` that private attributes stay in their module."""

import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "own_methods.py"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("model._fit(X)", ["model._fit"]),
        ("self.index._rows", ["self.index._rows"]),
        ("make()._rows[0]", ["make()._rows"]),
        ("self._fit(X); cls._make(); super()._fit(X)", []),
        ("def _fit(): ...\nmodel._fit()", []),
        ("class A:\n    _rows: int\ndef f(a): return a._rows", []),
        ("class A:\n    def __init__(self): self._a, b = 1, 2\ndef f(a): return a._a", []),
        ("value._repr_html_(), value.__class__, value.public", []),
    ],
)
def test_which_accesses_are_refused(tmp_path, code, found):
    path = tmp_path / "module.py"
    path.write_text(code)
    assert [text for _, text in runpy.run_path(str(TOOL))["violations"](path)] == found


def test_the_source_is_clean():
    assert runpy.run_path(str(TOOL))["main"]() == 0
