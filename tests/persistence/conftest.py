"""Files written by the documented layout, with a digest that is right: what a forger can do."""

import hashlib
import json

import numpy as np
import pytest

NAMES = {"<f8": "F64", "<f4": "F32", "<i8": "I64", "<u4": "U32", "|u1": "U8", "|b1": "BOOL"}
VALID = {
    "format": 2,
    "kind": "TamedScores",
    "versions": {},
    "objects": [{"kind": "TamedScores", "state": {"standardize": True, "x_": {"$array": "x_"}}}],
    "root": {"$object": 0},
}


def lay_out(document, tensors, *, metadata=None, entries=None, text=None):
    """Return the bytes of a safetensors file around a document, with zeros for the digest and no check at all."""
    said = json.dumps(document) if text is None else text
    head = {"__metadata__": {"sha256": "0" * 64, "neighboragg": said} if metadata is None else metadata}
    payload = b""
    for name, array in tensors.items():
        start = len(payload)
        payload += array.tobytes()
        head[name] = {
            "dtype": NAMES[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [start, len(payload)],
        }
    header = json.dumps(head | (entries or {}), separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + payload


def sign(content):
    """Put the right digest in the place of the zeros."""
    return content.replace(b"0" * 64, hashlib.sha256(content).hexdigest().encode(), 1)


@pytest.fixture
def forge():
    """A function that gives a file whose digest is right, whatever it says."""

    def forged(tensors=None, *, metadata=None, entries=None, text=None, **changes):
        tensors = {"x_": np.arange(3.0)} if tensors is None else tensors
        return sign(lay_out(VALID | changes, tensors, metadata=metadata, entries=entries, text=text))

    return forged
