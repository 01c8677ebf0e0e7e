"""A record as a JSON tree with placeholders for what JSON cannot hold, and back.

Placeholders are dicts: ``{"$array": 3}`` is the fourth array of the directory,
``{"$float": "nan"}`` a number without a JSON literal, ``{"$strings": […], "shape": […]}`` an object
array of strings. A key of the record that begins with ``$`` is written with a second one.
"""

import math
from typing import Any

import numpy as np

from neighboragg._typing import Array
from neighboragg.exceptions import InvalidParameterError
from neighboragg.persistence._arrays import HeaderError, check_shape, storable

# Deeper than any model, and shallower than the recursion limit of the JSON reader.
MAX_DEPTH = 64
# Python itself refuses to print or read decimal numbers of more than 4,300 digits.
MAX_INT_BITS = 4096
_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(record: dict[str, Any]) -> tuple[Any, list[tuple[str, Array]]]:
    """Return the JSON tree of a record and its arrays, named by their key path."""
    arrays: list[tuple[str, Array]] = []
    return _encode(record, (), arrays), arrays


def decode(tree: Any, arrays: list[Array]) -> dict[str, Any]:
    """Return the record of a JSON tree."""
    record = _decode(tree, arrays, 0)
    if not isinstance(record, dict):
        raise HeaderError("the record is not a dict")
    return record


def _encode(value: Any, keys: tuple[str, ...], arrays: list[tuple[str, Array]]) -> Any:
    """Return the JSON form of `value`, found at the path `keys`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return _encode_int(value, keys)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(float(value))}
    # Other subclasses (masked arrays, matrices) would come back as something else.
    if type(value) in (np.ndarray, np.memmap):
        return _encode_array(value, "/".join(keys), arrays)
    if not isinstance(value, (dict, list)):
        raise InvalidParameterError(
            f"The value at {'/'.join(keys)!r} of the record has the type {type(value).__name__!r}, "
            "which cannot be saved.\n"
            "Hint: a record holds None, bool, int, float, str, NumPy arrays, lists, and dicts with str keys."
        )
    if len(keys) >= MAX_DEPTH:
        raise InvalidParameterError(
            f"The record is nested more than {MAX_DEPTH} deep at {'/'.join(keys[:3])!r} …\n"
            "Hint: does a dict or a list contain itself?"
        )
    if isinstance(value, list):
        return [_encode(item, (*keys, str(i)), arrays) for i, item in enumerate(value)]
    return {
        _encode_key(key, keys): _encode(item, (*keys, key), arrays)  # the key is checked first
        for key, item in value.items()
    }


def _encode_key(key: Any, keys: tuple[str, ...]) -> str:
    """Return a key of the record as a key of the JSON tree."""
    if isinstance(key, str):
        return "$" + key if key.startswith("$") else key
    place = f"at {'/'.join(keys)!r} of the record" if keys else "of the record"
    raise InvalidParameterError(
        f"The key {key!r} {place} must be a str. Got {type(key).__name__!r} instead.\n"
        "Hint: keep such keys in an array or a list beside the values."
    )


def _encode_int(value: int, keys: tuple[str, ...]) -> int:
    """Return `value` if it can be written in decimals."""
    if value.bit_length() > MAX_INT_BITS:
        raise InvalidParameterError(
            f"The int at {'/'.join(keys)!r} of the record has {value.bit_length()} bits, "
            f"and at most {MAX_INT_BITS} can be saved."
        )
    return int(value)


def _encode_array(value: Array, where: str, arrays: list[tuple[str, Array]]) -> dict[str, Any]:
    """Return the placeholder of an array, which is appended to `arrays` unless it holds objects."""
    if value.dtype.kind != "O":
        arrays.append((where, storable(value, where)))
        return {"$array": len(arrays) - 1}
    items = value.reshape(-1).tolist()
    for item in items:
        if not isinstance(item, str):
            raise InvalidParameterError(
                f"The object array at {where!r} of the record holds a {type(item).__name__!r}; "
                "only object arrays of str can be saved.\n"
                "Hint: convert it to a numeric or str array with astype()."
            )
    return {"$strings": items, "shape": list(value.shape)}


def _decode(node: Any, arrays: list[Array], depth: int) -> Any:
    """Return the value of a node of the JSON tree."""
    if depth > MAX_DEPTH:
        raise HeaderError(f"the record is nested more than {MAX_DEPTH} deep")
    if isinstance(node, list):
        return [_decode(item, arrays, depth + 1) for item in node]
    if not isinstance(node, dict):
        return node
    if "$array" in node:
        return _decode_array(node, arrays)
    if "$float" in node:
        return _decode_float(node)
    if "$strings" in node:
        return _decode_strings(node)
    return {_decode_key(key): _decode(item, arrays, depth + 1) for key, item in node.items()}


def _decode_key(key: str) -> str:
    """Return a key of the JSON tree as a key of the record."""
    if not key.startswith("$"):
        return key
    if not key.startswith("$$"):
        raise HeaderError(f"{key!r} is not a known placeholder")
    return key[1:]


def _decode_array(node: dict[str, Any], arrays: list[Array]) -> Array:
    """Return the array that a placeholder points at."""
    index = node["$array"]
    if len(node) != 1 or type(index) is not int or not 0 <= index < len(arrays):
        raise HeaderError("a placeholder points at no array")
    return arrays[index]


def _decode_float(node: dict[str, Any]) -> float:
    """Return the float that a placeholder names."""
    name = node["$float"]
    if len(node) != 1 or not isinstance(name, str) or name not in _SPECIAL_FLOATS:
        raise HeaderError("a placeholder names no float")
    return _SPECIAL_FLOATS[name]


def _decode_strings(node: dict[str, Any]) -> Array:
    """Return the object array of strings that a placeholder lists."""
    items = node["$strings"]
    shape = check_shape(node.get("shape"), "$strings")
    if (
        len(node) != 2
        or not isinstance(items, list)
        or not all(isinstance(item, str) for item in items)
        or math.prod(shape) != len(items)
    ):
        raise HeaderError("a placeholder lists strings that do not fill their shape")
    flat = np.empty(len(items), dtype=object)
    flat[:] = items
    try:
        return flat.reshape(shape)
    except (ValueError, OverflowError) as error:
        raise HeaderError(f"an array of strings cannot be made: {error}") from error
