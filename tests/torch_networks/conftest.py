"""Data and a trained network."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from torch_networks.networks import ConvNet


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    drawn = np.random.default_rng(0).permutation(len(X))  # the file has the digits of one writer together
    X, y = X[drawn], y[drawn]
    return torch.tensor(X / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), y


@pytest.fixture(scope="session")
def trained(digits):
    """A network trained on the first 700 digits, well but not too well."""
    torch.manual_seed(0)
    X, y = digits
    net, labels = ConvNet(), torch.tensor(y)
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(4):
        for start in range(0, 700, 50):
            optimizer.zero_grad()
            batch = slice(start, start + 50)
            nn.functional.cross_entropy(net(X[batch]), labels[batch]).backward()
            optimizer.step()
    return net.eval()


@pytest.fixture
def tokens():
    rng = np.random.default_rng(0)
    mask = np.ones((21, 7), dtype=np.int64)
    mask[::2, 4:] = 0
    return {
        "input_ids": torch.tensor(rng.integers(0, 50, (21, 7))),
        "attention_mask": torch.tensor(mask),
    }
