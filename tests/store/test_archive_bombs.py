"""Archives that would unpack to more memory than a file of their size can need are refused before that."""

import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from neighboragg._store.estimators import dump_estimator, load_estimator
from neighboragg.exceptions import FileFormatError

REMEDY = ".\nHint: pass the estimator again instead of loading it."
MODEL = GaussianNB().fit([[0.0], [1.0]], [0, 1])


def parts(estimator):
    with zipfile.ZipFile(io.BytesIO(dump_estimator(estimator).tobytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(content, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8)


def refusal(data):
    with pytest.raises(FileFormatError) as caught:
        load_estimator(data)
    return str(caught.value)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.full
def test_a_compressed_archive():
    content = parts(MODEL)
    bomb = {name: npy(np.zeros(10**6)) if name.endswith(".npy") else data for name, data in content.items()}
    assert load_estimator(packed(content)).classes_.tolist() == [0, 1]
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert refusal(packed(bomb, compression)) == (
            f"The saved estimator is malformed: its archive is compressed, which no saving does{REMEDY}"
        )


def test_parts_that_share_their_bytes():
    data = bytearray(packed({"schema.json": b"{}", "a": bytes(1000), "b": bytes(1000)}).tobytes())
    # Let the entry of "b" in the directory point at the bytes of "a", and both be longer than all there is.
    for start in range(len(data) - 46):
        if data[start : start + 4] == b"PK\1\2" and data[start + 46 : start + 47] in b"ab":
            data[start + 20 : start + 28] = (1800).to_bytes(4, "little") * 2
    assert refusal(np.frombuffer(bytes(data), dtype=np.uint8)) == (
        f"The saved estimator is malformed: the parts of its archive are larger than the whole{REMEDY}"
    )


@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_a_sparse_matrix_of_zeros(ending):
    content = parts(KNeighborsClassifier(1).fit(sparse.csr_matrix(np.eye(3)), [0, 1, 2]))
    name = next(name for name in content if name.endswith("npz"))
    buffer = io.BytesIO()
    n = 10**6
    sparse.save_npz(
        buffer, sparse.csr_matrix((np.zeros(n), np.zeros(n, int), np.full(2, [0, n])), shape=(1, 9))
    )
    schema = json.dumps(json.loads(content.pop("schema.json"))).replace(name, f"x.{ending}")
    del content[name]
    content |= {f"x.{ending}": buffer.getvalue(), "schema.json": schema.encode()}
    assert refusal(packed(content)) == (
        "The saved estimator is malformed: a sparse matrix in it would unpack to more than 200 times its size"
        f"{REMEDY}"
    )


def test_one_part_that_is_read_again_and_again():
    content = parts(MODEL)
    name = next(name for name in content if name.endswith(".npy"))
    array = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": name,
    }
    many = {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [array] * 5000,
    }
    content["schema.json"] = json.dumps(many | {"protocol": 2}).encode()
    content[name] = npy(np.zeros(100_000))
    assert refusal(packed(content)) == (
        "The saved estimator is malformed: it refers to the same part of its archive again and again" + REMEDY
    )
