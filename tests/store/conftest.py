"""Files written by the documented layout, with digests that are right: what a forger can do."""

import hashlib
import json

import numpy as np
import pytest

NAMES = {"<f8": "F64", "<f4": "F32", "<i8": "I64", "<u4": "U32", "|u1": "U8", "|b1": "BOOL"}
VALID = {
    "format": 3,
    "kind": "TamedScores",
    "versions": {},
    "objects": [{"kind": "TamedScores", "state": {"standardize": True, "x_": {"$array": "x_"}}}],
    "root": {"$object": 0},
}


def lay_out(document, tensors, *, metadata=None, entries=None, text=None, digests=None):
    """Return the bytes of a safetensors file around a document, with zeros for the digest and no check at all."""
    said = {"neighboragg": json.dumps(document) if text is None else text}
    right = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in tensors.items()}
    said |= {"sha256": "0" * 64, "arrays": json.dumps(right if digests is None else digests)}
    head = {"__metadata__": said if metadata is None else metadata}
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
    """Put the right digest of the header in the place of the zeros."""
    header = content[: 8 + int.from_bytes(content[:8], "little")]
    return content.replace(b"0" * 64, hashlib.sha256(header).hexdigest().encode(), 1)


@pytest.fixture
def forge():
    """A function that gives a file whose digest is right, whatever it says."""

    def forged(tensors=None, *, metadata=None, entries=None, text=None, digests=None, **changes):
        tensors = {"x_": np.arange(3.0)} if tensors is None else tensors
        options = {"metadata": metadata, "entries": entries, "text": text, "digests": digests}
        return sign(lay_out(VALID | changes, tensors, **options))

    return forged
