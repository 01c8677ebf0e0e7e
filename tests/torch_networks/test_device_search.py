"""Search with candidates from a PyTorch device: the same bits as without, and what is refused."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import neighboragg
from neighboragg import NeighborAgg
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import ClasswiseNeighbors, Exact, _in_memory


def rows_of(kind, n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 11))
    if kind == "ties":
        return np.rint(rows)
    if kind == "duplicates":
        return np.repeat(rows[: -(-n // 4)], 4, axis=0)[:n]
    if kind == "far from zero":
        return 1e6 + rows
    if kind == "of all sizes":
        return rows * 10.0 ** rng.integers(-30, 30, (n, 1))
    return rows.astype(np.float32) if kind == "single precision" else rows


KINDS = ("ordinary", "ties", "duplicates", "far from zero", "of all sizes", "single precision")


def searches(kind, metric="euclidean", k=6):
    X, queries = rows_of(kind, 900, 0), rows_of(kind, 130, 1)
    y = np.random.default_rng(2).integers(0, 4, 900)
    y[:3] = 5  # a class with fewer rows than neighbors
    index = ClasswiseNeighbors(k, search=Exact(metric)).fit(X, y)
    return index, clone(index).set_params(search__device="cpu").fit(X, y), queries


def assert_equal_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_bits(kind, metric):
    usual, on_device, queries = searches(kind, metric)
    assert_equal_bits(on_device.kneighbors(queries), usual.kneighbors(queries))
    exclude = np.where(np.arange(130) % 2, np.arange(130), -1)
    assert_equal_bits(
        on_device.kneighbors(queries, exclude=exclude), usual.kneighbors(queries, exclude=exclude)
    )


def test_rows_among_themselves():
    usual, on_device, _ = searches("ties")
    assert_equal_bits(on_device.kneighbors(), usual.kneighbors())


def test_batches_do_not_matter():
    usual, on_device, queries = searches("ordinary")
    expected = usual.kneighbors(queries)
    for size in (1, 7, 1000):
        with patch.multiple(_in_memory, BATCH_ROWS=size, TILE_ROWS=1):
            assert_equal_bits(on_device.kneighbors(queries), expected)
    assert on_device.kneighbors(queries[:0])[0].shape == (0, 5, 6)


def test_products_are_asked_for_in_full_precision():
    """Also where the user allows less, which would propose other candidates than the certificate relies on."""
    usual, on_device, queries = searches("far from zero")
    torch.set_float32_matmul_precision("medium")
    try:
        assert_equal_bits(on_device.kneighbors(queries), usual.kneighbors(queries))
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_the_device_is_asked(monkeypatch):
    _, on_device, queries = searches("ordinary")
    asked = []
    original = torch.topk
    monkeypatch.setattr(torch, "topk", lambda *args, **kw: asked.append(args) or original(*args, **kw))
    on_device.kneighbors(queries)
    assert asked


def test_a_device_that_multiplies_badly_is_refused(monkeypatch):
    _, on_device, queries = searches("ordinary")
    monkeypatch.setattr(
        torch.Tensor, "__matmul__", lambda one, other: torch.mm(one.bfloat16(), other.bfloat16()).float()
    )
    with pytest.raises(InvalidParameterError) as refusal:
        on_device.kneighbors(queries)
    assert str(refusal.value) == (
        "The 'device' parameter of Exact is a device whose single-precision products are not accurate "
        "enough for an exact search. Got 'cpu'.\nHint: pass None to search without a device."
    )


def test_saved_without_the_copy_on_the_device(tmp_path):
    _, on_device, queries = searches("ordinary")
    expected = on_device.kneighbors(queries)
    on_device.save(tmp_path / "index")
    loaded = neighboragg.load(tmp_path / "index")
    assert loaded.search.device == "cpu"
    assert_equal_bits(loaded.kneighbors(queries), expected)


@pytest.mark.parametrize("device", ["nowhere", "cuda:77"])
def test_a_device_that_is_not_there(device):
    index, _, queries = searches("ordinary")
    with pytest.raises(
        InvalidParameterError, match="The 'device' parameter of Exact cannot be used"
    ) as refusal:
        index.set_params(search__device=device).kneighbors(queries)
    assert f"Got {device!r}" in str(refusal.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a graphics card")
def test_a_graphics_card():
    usual, on_device, queries = searches("ties")
    assert_equal_bits(
        on_device.set_params(search__device="cuda").kneighbors(queries), usual.kneighbors(queries)
    )


@pytest.mark.full
def test_trust_has_equal_bits():
    X, y = load_digits(return_X_y=True)
    drawn = np.random.default_rng(0).permutation(len(X))  # the file has the digits of one writer together
    X, y = X[drawn], y[drawn]
    proba = LogisticRegression(max_iter=50, tol=0.1).fit(X[:600, ::2], y[:600]).predict_proba(X[:, ::2])
    usual, on_device = (
        NeighborAgg(effort="fast", search=Exact(device=device))
        .fit(X[:600], y[:600], X_val=X[600:1000], y_val=y[600:1000], proba_val=proba[600:1000])
        .predict_trust(X[1000:], proba[1000:])
        for device in (None, "cpu")
    )
    assert usual.tobytes() == on_device.tobytes()
