"""ConfidNet: a head on a network's embedding that learns the probability of the true class."""

import itertools
from typing import Any

import numpy as np
import torch
from scipy.special import expit, softmax
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.progress import add_total, advance, begin_stage
from neighboragg._core.types import BoolArray, FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.exceptions import InvalidInputError
from neighboragg.methods import LogitMethod, spread_trust
from neighboragg.metrics import average_precision_error

BATCH_ROWS = 128
# Inputs are clipped at this many standard deviations.
LARGEST_INPUT = 10.0


class ConfidNet(LogitMethod):
    """Predicted probability of the true class, by a head that continues a trained network.

    Parameters
    ----------
    n_hidden : int, default=400
        Units of each hidden layer.
    n_layers : int, default=4
        Hidden layers.
    max_epochs : int, default=20
        Passes over the training rows.
    learning_rate : float, default=1e-4
        Learning rate of Adam, as in the paper. At ten times this rate the output saturates, where its gradient is zero.
    random_state : int, RandomState instance or None, default=0
        Seed of the initial weights and of the batches.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    weights_, offsets_ : list of ndarray
        Weights and biases of each layer.
    center_, scale_ : ndarray of shape (n_dimensions,)
        Mean and standard deviation of the training embeddings.
    epoch_ : int
        The epoch whose weights were kept.

    See Also
    --------
    neighboragg.methods.TrueClassProbability : The same target for any classifier, learned from validation rows.

    Notes
    -----
    Vectors are logits followed by the embedding. As in the paper, the head sees only the embedding and learns, by mean
    squared error, the probability that the network gives to the true class of its own *training* rows. The epoch whose
    scores find errors among the validation rows with the highest average precision is kept, or the one with the least
    squared error if none or all of these rows are wrong. Embeddings are standardized. The paper also trains the network
    itself in a second step, which is not done here. Trust in the most probable class is the output of the head; other
    classes share the rest in proportion to their probabilities.

    Without `X_val`, the epoch is chosen on a fifth of the rows.

    References
    ----------
    Corbière, Thome, Bar-Hen, Cord and Pérez, "Addressing Failure Prediction by Learning Model Confidence",
    NeurIPS 2019.

    Examples
    --------
    A network that is confident and right for e > 0, and guesses for e < 0:

    >>> import numpy as np
    >>> from neighboragg.torch import ConfidNet
    >>> rng = np.random.default_rng(0)
    >>> e, y = rng.normal(size=2000), rng.integers(0, 2, 2000)
    >>> logits = np.where((e > 0)[:, None], 8.0 * np.eye(2)[y], rng.normal(size=(2000, 2)))
    >>> proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    >>> rows = np.column_stack([logits, e])
    >>> head = ConfidNet(n_hidden=32, n_layers=1, learning_rate=1e-2).fit(rows, y, proba_val=proba)
    >>> queries = np.array([[1.0, 0.0, -1.0], [1.0, 0.0, 1.0]])
    >>> unsure, sure = head.score_samples(queries, [[0.731, 0.269]] * 2)
    >>> bool(unsure < 0.7), bool(sure > 0.9)
    (True, True)
    """

    def __init__(
        self,
        *,
        n_hidden: int = 400,
        n_layers: int = 4,
        max_epochs: int = 20,
        learning_rate: float = 1e-4,
        random_state: Any = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.n_layers = n_layers
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        check_integer(self.n_hidden, "n_hidden", owner, minimum=1)
        check_integer(self.n_layers, "n_layers", owner, minimum=1)
        check_integer(self.max_epochs, "max_epochs", owner, minimum=1)
        check_real(self.learning_rate, "learning_rate", owner, low=0, high=np.inf)
        n_classes = data.n_classes
        if data.X.shape[1] == n_classes:
            raise InvalidInputError(
                f"X passed to {owner} has {n_classes} columns, the logits, without an embedding.\n"
                "Hint: pass np.hstack([logits, embeddings])."
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        proba_train = softmax(data.X[:, :n_classes].astype(np.float64), axis=1)
        targets = proba_train[np.arange(len(proba_train)), data.codes]
        train = val = np.arange(len(data.X))
        if data.shared and len(train) >= 5:
            val, train = np.split(np.random.default_rng(seed).permutation(len(train)), [len(train) // 5])
        embeddings = data.X[:, n_classes:].astype(np.float64)
        self.center_, spread = embeddings[train].mean(axis=0), embeddings[train].std(axis=0)
        # The spread of a constant column is rounding error.
        self.scale_ = np.where(spread > 1e-9 * np.abs(self.center_), spread, 1.0)
        if data.shared:
            validation = self._standardized(embeddings[val]), data.proba_val[val], data.codes_val[val]
        else:
            vectors = self._standardized(data.X_val[:, n_classes:].astype(np.float64))
            validation = vectors, data.proba_val, data.codes_val
        inputs, proba, codes = validation
        true_class = proba[np.arange(len(proba)), codes]
        correct = proba.argmax(axis=1) == codes
        head = Head(embeddings.shape[1], self.n_hidden, self.n_layers, self.learning_rate, seed)
        self._learn(head, self._standardized(embeddings[train]), targets[train], inputs, true_class, correct)

    def _learn(
        self,
        head: "Head",
        rows: FloatArray,
        targets: FloatArray,
        inputs: FloatArray,
        true_class: FloatArray,
        correct: BoolArray,
    ) -> None:
        """Train for all epochs, and keep the weights of the best one."""
        begin_stage("Training ConfidNet")
        add_total(self.max_epochs)
        best = -np.inf
        for epoch in range(self.max_epochs):
            head.train(rows, targets)
            weights, offsets = head.weights()
            predicted = head_output(weights, offsets, inputs)
            if 0 < correct.sum() < len(correct):
                quality = average_precision_error(correct, predicted)
            else:
                quality = -float(((predicted - true_class) ** 2).mean())
            if quality > best:
                best, self.epoch_, self.weights_, self.offsets_ = quality, epoch, weights, offsets
            advance()

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        n_classes = proba.shape[1]
        if n_classes == 1:
            return np.ones_like(proba)
        inputs = self._standardized(X[:, n_classes:].astype(np.float64))
        return spread_trust(head_output(self.weights_, self.offsets_, inputs), proba)

    def _standardized(self, embeddings: FloatArray) -> FloatArray:
        return np.clip((embeddings - self.center_) / self.scale_, -LARGEST_INPUT, LARGEST_INPUT)


class Head:
    """The layers during training, with their own random generator."""

    def __init__(self, n_inputs: int, n_hidden: int, n_layers: int, learning_rate: float, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        widths = [n_inputs, *[n_hidden] * n_layers, 1]
        # Weights come from this generator only: the caller's is not advanced.
        self._layers = [
            torch.nn.utils.skip_init(torch.nn.Linear, *shape) for shape in itertools.pairwise(widths)
        ]
        for layer in self._layers:
            torch.nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=self._generator)
            torch.nn.init.zeros_(layer.bias)
        parameters = [p for layer in self._layers for p in layer.parameters()]
        self._optimizer = torch.optim.Adam(parameters, lr=learning_rate)

    def train(self, rows: FloatArray, targets: FloatArray) -> None:
        """One epoch."""
        inputs, true_class = (torch.from_numpy(part.astype(np.float32)) for part in (rows, targets))
        with torch.enable_grad():
            for batch in torch.randperm(len(inputs), generator=self._generator).split(BATCH_ROWS):
                values = inputs[batch]
                for layer in self._layers[:-1]:
                    values = torch.relu(layer(values))
                predicted = torch.sigmoid(self._layers[-1](values))[:, 0]
                self._optimizer.zero_grad()
                torch.nn.functional.mse_loss(predicted, true_class[batch]).backward()
                self._optimizer.step()

    def weights(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Current weights and offsets of each layer."""
        return (
            [layer.weight.detach().numpy().T.astype(np.float64) for layer in self._layers],
            [layer.bias.detach().numpy().astype(np.float64) for layer in self._layers],
        )


def head_output(weights: list[FloatArray], offsets: list[FloatArray], inputs: FloatArray) -> FloatArray:
    """Sigmoid of the last layer, after the others with relu."""
    values = inputs
    for weight, offset in zip(weights[:-1], offsets[:-1], strict=True):
        values = np.maximum(values @ weight + offset, 0.0)
    return expit(values @ weights[-1] + offsets[-1])[:, 0]
