"""How much memory the bytes of an estimator take to unpack, known before they are unpacked."""

import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from neighboragg.persistence._file import MalformedError

__all__ = ["check_archive", "functions_in_partials"]

# Sparse matrices are compressed by SciPy and may hold few distinct numbers; more than this is not believed.
LARGEST_RATIO = 200


def check_archive(content: bytes) -> None:
    """Raise if an archive of skops, which compresses nothing itself, would unpack to more than it can need."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise MalformedError("its archive is compressed, which no saving does")
        if sum(entry.file_size for entry in entries) > len(content):
            raise MalformedError("the parts of its archive are larger than the whole")
        sizes = {entry.filename: entry.file_size * _ratio(archive, entry) for entry in entries}
        if _referred_to(json.loads(archive.read("schema.json")), sizes) > LARGEST_RATIO * len(content):
            raise MalformedError("it refers to the same part of its archive again and again")


def _ratio(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """How much larger an entry may become: 1, unless it is an archive itself, as a sparse matrix is."""
    with archive.open(entry) as part:
        if part.read(2) != b"PK":
            return 1
        part.seek(0)
        with zipfile.ZipFile(part) as inner:
            unpacked = sum(item.file_size for item in inner.infolist())
    if unpacked > LARGEST_RATIO * entry.file_size:
        raise MalformedError("a sparse matrix in it would unpack to more than 200 times its size")
    return -(-unpacked // max(1, entry.file_size))


def functions_in_partials(content: bytes) -> set[str]:
    """Names of what the partial calls within an archive call, whatever it is."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        schema = json.loads(archive.read("schema.json"))
    found = set()
    for node in _nodes(schema):
        if node.get("__loader__") == "PartialNode":
            inner = node["content"]["func"]
            plain = inner["__loader__"] == "FunctionNode"
            found.add(
                f"{inner['__module__']}.{inner['__class__']}" if plain else "something that is no function"
            )
    return found


def _referred_to(schema: Any, sizes: dict[str, int]) -> int:
    """Bytes of all parts that the nodes of a schema read; nodes with one id are read once."""
    total, seen = 0, set()
    for node in _nodes(schema):
        key = (node.get("__id__"), node.get("file"))
        if isinstance(key[1], str) and (key[0] is None or str(key) not in seen):
            seen.add(str(key))
            total += sizes.get(key[1], 0)
    return total


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every dict within a schema, however deep."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
            yield node
