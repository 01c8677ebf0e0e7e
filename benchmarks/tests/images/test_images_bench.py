"""Table 2 end to end on few images: training, resuming, every method, and what is kept."""

import gzip
import json
import shutil
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from benchmarks.datasets._errors import DatasetNotFoundError
from benchmarks.images import (
    ARCHITECTURES,
    IMAGE_METHODS,
    Training,
    _training,
    load_images,
    table2,
    train_network,
)
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import MaxConfidence

METHODS = (
    "Confidence",
    "TrustScore",
    "GCN-2hop",
    "MaxLogit, p-norm",
    "NNGuide",
    "MC-dropout",
    "Deep ensemble",
    "Pool",
    "Pool, two layers",
    "Pool, three layers",
)


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Digits in the files of Fashion-MNIST, and color images as those of CIFAR-10."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_digits(return_X_y=True)
    images = np.kron(X.reshape(-1, 8, 8) * 15, np.ones((3, 3)))
    images = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    (folder / "fashion_mnist").mkdir()
    for name, rows in (("train", slice(0, 1200)), ("t10k", slice(1200, None))):
        write_idx(folder / "fashion_mnist" / f"{name}-images-idx3-ubyte.gz", images[rows])
        write_idx(folder / "fashion_mnist" / f"{name}-labels-idx1-ubyte.gz", y[rows])
    with tarfile.open(folder / "cifar10_jpeg.tar.xz", "w:xz") as archive:
        for i in range(240):
            part = "train" if i < 160 else "test"
            path = folder / f"{i}.jpg"
            color = np.stack([images[i]] * 3, axis=-1).clip(0, 255).astype(np.uint8)
            Image.fromarray(np.pad(color, ((2, 2), (2, 2), (0, 0)))).save(path)
            archive.add(path, f"{part}/class{y[i]}/{i:04}.jpg")
    return folder


@pytest.fixture(autouse=True)
def at_hand(data, monkeypatch):
    monkeypatch.setenv("NEIGHBORAGG_DATA", str(data))


@pytest.mark.full
def test_every_method_has_a_row(tmp_path):
    found = table2(tmp_path, sets=["fashion_mnist"], methods=METHODS, epochs=2, n_seeds=2)
    rows = [json.loads(line) for line in (tmp_path / "images.jsonl").read_text().splitlines()]
    assert {(row["method"], row["seed"]) for row in rows} == {
        (name, seed) for name in METHODS for seed in (0, 1)
    }
    assert {(row["n_train"], row["n_val"], row["n_test"]) for row in rows} == {(960, 240, 597)}
    assert all(row["epochs"] == 2 and row["limit"] is None for row in rows)
    assert "Table 2" in found.to_markdown()
    assert (tmp_path / "table2.png").read_bytes().startswith(b"\x89PNG")
    networks = {path.name for path in (tmp_path / "networks").glob("*.pt")}
    assert networks == {
        Training("fashion_mnist", "cnn", epochs, None, seed, False).name()
        for seed, epochs in ((0, 2), (1, 1), (2, 1))
    }
    best = {row["method"]: row["auroc"] for row in rows if row["seed"] == 0}
    assert best["Pool"] > best["Confidence"]


def test_what_is_finished_is_not_done_again(tmp_path, monkeypatch):
    table2(tmp_path, sets=["fashion_mnist"], methods=["Confidence"], epochs=1, limit=300, n_seeds=1)
    before = (tmp_path / "images.jsonl").read_text()
    monkeypatch.setattr("benchmarks.images._study.load_images", None)
    table2(tmp_path, sets=["fashion_mnist"], methods=["Confidence"], epochs=1, limit=300, n_seeds=1)
    assert (tmp_path / "images.jsonl").read_text() == before


def test_a_method_without_chance_is_computed_once(tmp_path, monkeypatch):
    fits = []

    def counted(self, data):
        fits.append(type(self).__name__)
        return original(self, data)

    original = MaxConfidence._fit
    monkeypatch.setattr(MaxConfidence, "_fit", counted)
    table2(tmp_path, sets=["fashion_mnist"], methods=["Confidence"], epochs=1, limit=300, n_seeds=3)
    rows = [json.loads(line) for line in (tmp_path / "images.jsonl").read_text().splitlines()]
    assert fits == ["MaxConfidence"]
    assert [row["seed"] for row in rows] == [0, 1, 2]
    assert len({row["auroc"] for row in rows}) == 1


@pytest.mark.full
def test_no_label_of_a_test_image_reaches_a_method(tmp_path, monkeypatch):
    """With other labels of the test images all methods give the same trust."""
    given = []
    monkeypatch.setattr(
        "benchmarks.images._study.trust_metrics",
        lambda correct, trust: given.append((correct.mean(), trust)) or {"auroc": 0.5, "ap_error": 0.5},
    )
    for shift in (0, 1):
        folder = tmp_path / str(shift)
        if shift:
            shutil.copytree(tmp_path / "0" / "networks", folder / "networks")

        def shifted(name, *, limit, shift=shift):
            images = load_images(name, limit=limit)
            codes = images.codes.copy()
            codes[images.test] = (codes[images.test] + shift) % 10
            return replace(images, codes=codes)

        monkeypatch.setattr("benchmarks.images._study.load_images", shifted)
        table2(folder, sets=["fashion_mnist"], methods=["ConfidNet", "Energy", "Relative Mahalanobis", "TrustScore"],
               epochs=1, limit=300, n_seeds=1)  # fmt: skip
    for (right, trust), (wrong, again) in zip(given[:4], given[4:], strict=True):
        assert right != wrong
        np.testing.assert_array_equal(trust, again)


@pytest.mark.full
def test_large_networks_have_no_dropout_to_ask(tmp_path):
    table2(tmp_path, sets=["fashion_mnist"], methods=["Confidence", "MC-dropout", "Deep ensemble"],
           architecture="resnet20", epochs=1, limit=100, n_seeds=1)  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "images.jsonl").read_text().splitlines()]
    assert [row["method"] for row in rows] == ["Confidence"]


@pytest.mark.full
def test_color_images_by_the_largest_network(tmp_path):
    table2(tmp_path, sets=["cifar10"], methods=["Confidence", "Pool"], architecture="resnet50", epochs=1, limit=50,
           n_seeds=1)  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "images.jsonl").read_text().splitlines()]
    assert {(row["base"], row["n_train"], row["n_val"], row["n_test"]) for row in rows} == {
        ("resnet50", 40, 10, 50)
    }


def images_of(n):
    X, y = load_digits(return_X_y=True)
    return (X[:n] / 8 - 1).astype(np.float32).reshape(-1, 1, 8, 8), y[:n].astype(np.int64)


@pytest.mark.parametrize("changed", [False, True])
def test_an_interrupted_training_goes_on_as_if_it_had_not_been(tmp_path, changed, monkeypatch):
    X, y = images_of(300)
    X = np.kron(X, np.ones((1, 1, 2, 2), dtype=np.float32))
    training = Training("digits", "cnn", 3, None, 0, changed)
    whole = train_network(training, X, y, 10, tmp_path / "whole")

    def stop_after_two(path, parts, epochs):
        original(path, parts, epochs)
        if epochs == 2:
            raise KeyboardInterrupt

    original = _training._save
    monkeypatch.setattr(_training, "_save", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        train_network(training, X, y, 10, tmp_path / "parts")
    monkeypatch.setattr(_training, "_save", original)
    resumed = train_network(training, X, y, 10, tmp_path / "parts")
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_another_configuration_is_another_network():
    names = {
        Training("mnist", "cnn", epochs, limit, 0, False).name() for epochs in (1, 2) for limit in (None, 5)
    }
    assert len(names) == 4


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures_take_images(name):
    size = 28 if name == "cnn" else 32
    network = ARCHITECTURES[name](3, size, 7).eval()
    with torch.inference_mode():
        assert network(torch.zeros(2, 3, size, size)).shape == (2, 7)


def test_resnets_have_their_published_sizes():
    """Parameters of the networks for 32 x 32 images with ten classes: 11.2 and 23.5 million."""
    sizes = {
        name: sum(p.numel() for p in ARCHITECTURES[name](3, 32, 10).parameters()) / 1e6
        for name in ("resnet18", "resnet50")
    }
    assert sizes["resnet18"] == pytest.approx(11.17, abs=0.01)
    assert sizes["resnet50"] == pytest.approx(23.52, abs=0.01)


def test_errors(tmp_path, monkeypatch):
    with pytest.raises(InvalidParameterError, match="Got 'vgg' instead"):
        table2(tmp_path, architecture="vgg")
    monkeypatch.setenv("NEIGHBORAGG_DATA", str(tmp_path))
    with pytest.raises(DatasetNotFoundError, match=r"cifar10_jpeg\.tar\.xz"):
        table2(tmp_path, sets=["cifar10"], n_seeds=1)


def test_all_methods_are_named():
    assert set(METHODS) <= set(IMAGE_METHODS)
