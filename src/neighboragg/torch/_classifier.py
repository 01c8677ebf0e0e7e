"""TorchClassifier: a trained network as a frozen scikit-learn classifier that also gives its embeddings."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin

from neighboragg._core.checks import check_labels
from neighboragg._core.types import Array, FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.torch._batches import order_problem, row_count
from neighboragg.torch._embed import Embedded, run_network
from neighboragg.torch._network import Trace, to_proba

# Images of earlier layers are averaged over squares to this many numbers.
MAX_DIMENSIONS = 2048


class TorchClassifier(ClassifierMixin, BaseEstimator):
    """A trained network as a classifier, whose vectors are its embeddings.

    The network is frozen: nothing here trains it. Pass it to :class:`~neighboragg.TrustedClassifier` with training
    and validation rows; each batch then goes through the network once, for probabilities and embeddings.

    Parameters
    ----------
    module : torch.nn.Module
        As for :func:`embed`.
    classes : sequence, default=None
        Class of each output of the network; numbers from 0 by default.
    layers : "auto", str or sequence of str, default="auto"
        Layers whose output is used, as in :func:`embed`. Each is a view with its own neighbors, weighted by
        validation rows. "auto" is the input of the last linear layer ("penultimate") and, if the network has
        convolutions, the output of the last one. All layers but the first are reduced to 100 dimensions. Every
        layer costs about as much as all others: two find more errors than one, a third finds hardly more, and
        ``layers="penultimate"`` is the cheapest.
    output, batch_size, device, autocast
        As for :func:`embed`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted, as the columns of the probabilities. Known from the first batch on, or from `classes`.

    See Also
    --------
    embed : The same as a function, for several layers and for data that does not fit into memory.

    Notes
    -----
    Rows may be tensors, arrays, data sets, loaders, or mappings of tensors such as tokenized texts. The results are
    in the order of the rows, so a loader must go through its data set in order: samplers other than
    ``SequentialSampler`` are refused, as are streams whose first batches differ between two passes. Labels that come
    with a data set are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from neighboragg import TrustedClassifier
    >>> from neighboragg.torch import TorchClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = torch.tensor(rng.normal(size=(300, 4)) + 2 * y[:, None], dtype=torch.float32)
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> model = TrustedClassifier(TorchClassifier(net)).fit(X[:150], y[:150], X_val=X[150:250], y_val=y[150:250])
    >>> model.score_samples(X[250:]).shape
    (50,)
    """

    #: Tells estimators that wrap it not to fit it.
    is_frozen = True
    #: The layers found in the first batch, so later calls run the network once.
    _trace: Trace | None = None

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        classes: Sequence[Any] | None = None,
        layers: str | Sequence[str] = "auto",
        output: str = "logits",
        batch_size: int = 256,
        device: Any = None,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.module = module
        self.classes = classes
        self.layers = layers
        self.output = output
        self.batch_size = batch_size
        self.device = device
        self.autocast = autocast

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the classifier unchanged, because the network is already trained.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self : TorchClassifier
        """
        return self

    def embed(self, X: Any) -> Embedded:
        """Run the network once, for probabilities and vectors.

        Parameters
        ----------
        X : tensor, array, Dataset, DataLoader or mapping of tensors

        Returns
        -------
        embedded : Embedded
            With probabilities in the order of `classes_`.
        """
        owner = type(self).__name__
        if (problem := order_problem(X)) is not None:
            raise InvalidInputError(f"{owner} {problem}")
        found = run_network(
            self.module,
            X,
            self._layer_names(),
            batch_size=self.batch_size,
            device=self.device,
            autocast=self.autocast,
            max_dimensions=MAX_DIMENSIONS,
            owner=owner,
            known=self._trace,
        )
        self._trace = found.trace
        if (expected := row_count(X)) not in (None, len(found.output)):
            raise InvalidInputError(
                f"{owner} got data with {expected} rows, but its batches have {len(found.output)}, so results cannot "
                "be matched to rows.\nHint: a collate_fn must keep all rows."
            )
        order = self._order(found.output.shape[1])
        return Embedded(
            found.views, found.output[:, order], to_proba(found.output, self.output)[:, order], None
        )

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : tensor, array, Dataset, DataLoader or mapping of tensors

        Returns
        -------
        proba : ndarray of shape (n, n_classes)
        """
        return self.embed(X).proba

    def predict(self, X: Any) -> Array:
        """The most probable classes.

        Parameters
        ----------
        X : tensor, array, Dataset, DataLoader or mapping of tensors

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def transform(self, X: Any) -> FloatArray:
        """Embeddings, of all layers side by side.

        Parameters
        ----------
        X : tensor, array, Dataset, DataLoader or mapping of tensors

        Returns
        -------
        vectors : ndarray of shape (n, n_dimensions)
        """
        return self.embed(X).stacked

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        """The classifier itself, because there is nothing to fit."""
        return self

    def _layer_names(self) -> tuple[str, ...] | None:
        if isinstance(self.layers, str):
            return None if self.layers == "auto" else (self.layers,)
        return tuple(self.layers)

    def _order(self, n_outputs: int) -> Array:
        """Set `classes_`, and return the output of each class in their sorted order."""
        owner = type(self).__name__
        given = np.arange(n_outputs) if self.classes is None else check_labels(self.classes, "classes", owner)
        if len(given) != n_outputs:
            raise InvalidParameterError(
                f"The 'classes' parameter of {owner} names {len(given)} classes, but the network has {n_outputs} "
                "outputs.\nHint: name the class of each output, in order."
            )
        self.classes_, order = np.unique(given, return_index=True)
        if len(order) != n_outputs:
            raise InvalidInputError(
                f"The 'classes' parameter of {owner} names a class twice: {given.tolist()}."
            )
        return order
