"""A check of the source: nothing reaches for an underscore attribute of an object that another module defines.

A private attribute belongs to its class and to the functions next to it. ``x._name`` is allowed where x is self, cls or
super(), where the module itself defines ``_name``, and where a library's documented protocol has such a name.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["violations"]

#: Protocols of libraries, whose names begin with an underscore.
PROTOCOLS = {"_repr_html_", "_asdict", "_replace", "_fields", "_get_param_names"}
#: To be removed: accesses that are known.
KNOWN = {"search/_streamed.py: index._lasting"}


def violations(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each access in a file that is not allowed."""
    tree = ast.parse(path.read_text())
    own = set(_defined(tree))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and node.attr not in own | PROTOCOLS
            and not _is_own(node.value)
        ):
            yield node.lineno, ast.unparse(node)


def _is_own(value: ast.expr) -> bool:
    """Whether this is self, cls or super()."""
    if isinstance(value, ast.Call):
        value = value.func
    return isinstance(value, ast.Name) and value.id in ("self", "cls", "super")


def _defined(tree: ast.Module) -> Iterator[str]:
    """Names of functions, methods, classes and attributes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _targets(target)


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _targets(part)
    elif isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute) and _is_own(target.value):
        yield target.attr


def main() -> int:
    """Print every violation; 1 if there is any."""
    root = Path(__file__).parents[1] / "src" / "neighboragg"
    found = [
        f"{path.relative_to(root)}:{line}: {text} is private to another module"
        for path in sorted(root.rglob("*.py"))
        for line, text in violations(path)
        if f"{path.relative_to(root).as_posix()}: {text}" not in KNOWN
    ]
    if found:
        hint = "Hint: give the object a public method, or move the function to the module of the class."
        sys.stderr.write("\n".join([*found, hint, ""]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
