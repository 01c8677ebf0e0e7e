"""Probabilities averaged over several networks, or over passes of one network with dropout on."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_integer
from neighboragg._core.progress import add_total, advance, begin_stage
from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods import TrustMethod
from neighboragg.torch._batches import batches
from neighboragg.torch._network import Runner, to_proba

DROPOUTS = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)


class _Averaged(TrustMethod):
    """Mean of the probabilities of several passes. Rows are inputs of the networks, not vectors."""

    output: str
    batch_size: int
    device: Any

    @abstractmethod
    def _passes(self) -> AbstractContextManager[Sequence[Runner]]:
        """The network of each pass, ready to run within the block."""

    def _trust(self, X: Any, proba: FloatArray) -> FloatArray:
        total = np.zeros_like(proba)
        if not len(X):
            return total
        owner = type(self).__name__
        begin_stage(f"Running {owner}")
        with self._passes() as runners:
            add_total(len(runners))
            for runner in runners:
                outputs = [runner.run(batch).cpu().numpy() for batch in batches(X, self.batch_size)]
                given = np.concatenate(outputs)
                if given.shape[1] != proba.shape[1]:
                    raise InvalidInputError(
                        f"A network of {owner} has {given.shape[1]} outputs, but there are {proba.shape[1]} classes.\n"
                        "Hint: its outputs must be those of the network that gave the probabilities, in that order."
                    )
                total += to_proba(given, self.output)
                advance()
        return total / len(runners)

    def _check_vectors(self, X: Any, name: str, *, n_features: int | None = None) -> Any:
        rows = X.detach().cpu().numpy() if isinstance(X, torch.Tensor) else np.asarray(X)
        owner = type(self).__name__
        if rows.ndim < 2:
            raise InvalidInputError(
                f"{name} passed to {owner} must be inputs of the network. Got an array of shape "
                f"{rows.shape}.\nHint: x[None] for a single sample."
            )
        if n_features is not None and rows.shape[1] != n_features:
            raise InvalidInputError(
                f"{name} passed to {owner} has {rows.shape[1]} features, but {n_features} were seen in fit."
            )
        return rows


class DeepEnsemble(_Averaged):
    """Mean probability of several networks that were trained in the same way from different seeds.

    Parameters
    ----------
    modules : sequence of torch.nn.Module
        Trained networks, with outputs in the order of the classes.
    output, batch_size, device
        As for :func:`embed`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Rows are inputs of the networks, such as images; nothing is learned. Trust in a class is its mean probability.
    The scored prediction is still the one of the probabilities passed along: that an ensemble may predict better than
    each of its networks is another question. It costs as much as training all of them.

    References
    ----------
    Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty Estimation using Deep
    Ensembles", NeurIPS 2017.

    Examples
    --------
    >>> import torch
    >>> from neighboragg.torch import DeepEnsemble, embed
    >>> X = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    >>> nets = [torch.nn.Sequential(torch.nn.Linear(4, 2)) for _ in range(3)]
    >>> proba = embed(nets[0], X).proba
    >>> method = DeepEnsemble(nets).fit(X, [0, 1] * 10, proba_val=proba)
    >>> method.score_samples(X, proba).shape
    (20,)
    """

    def __init__(
        self,
        modules: Sequence[torch.nn.Module],
        *,
        output: str = "logits",
        batch_size: int = 256,
        device: Any = None,
    ) -> None:
        self.modules = modules
        self.output = output
        self.batch_size = batch_size
        self.device = device

    def _fit(self, data: FitData) -> None:
        check_integer(self.batch_size, "batch_size", type(self).__name__, minimum=1)
        if not len(self.modules):
            raise InvalidParameterError(
                f"The 'modules' parameter of {type(self).__name__} must contain a network. "
                f"Got {self.modules!r} instead."
            )

    @contextmanager
    def _passes(self) -> Iterator[Sequence[Runner]]:
        runners = [Runner(module, self.device, None, type(self).__name__) for module in self.modules]
        with ExitStack() as stack:
            for runner in runners:
                stack.enter_context(runner.evaluating())
            yield runners


class MCDropout(_Averaged):
    """Mean probability of one network over several passes with dropout on.

    Parameters
    ----------
    module : torch.nn.Module
        A trained network with dropout layers, and outputs in the order of the classes.
    n_passes : int, default=50
        Forward passes; each costs as much as a prediction.
    output, batch_size, device
        As for :func:`embed`.
    random_state : int, RandomState instance or None, default=0
        Seed of the dropout masks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    seed_ : int
        Every call starts from this seed, so the same rows get the same trust.

    Notes
    -----
    Rows are inputs of the network, such as images; nothing is learned. Only the dropout layers run in training mode;
    all others (such as batch normalization) run in evaluation mode, and the network's modes are restored afterward.
    Trust in a class is its mean probability over the passes.

    References
    ----------
    Gal and Ghahramani, "Dropout as a Bayesian Approximation: Representing Model Uncertainty in Deep Learning",
    ICML 2016.

    Examples
    --------
    >>> import torch
    >>> from neighboragg.torch import MCDropout, embed
    >>> X = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 2))
    >>> proba = embed(net, X).proba
    >>> method = MCDropout(net, n_passes=10).fit(X, [0, 1] * 10, proba_val=proba)
    >>> method.score_samples(X, proba).shape
    (20,)
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        n_passes: int = 50,
        output: str = "logits",
        batch_size: int = 256,
        device: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.module = module
        self.n_passes = n_passes
        self.output = output
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        check_integer(self.n_passes, "n_passes", owner, minimum=1)
        check_integer(self.batch_size, "batch_size", owner, minimum=1)
        if not dropouts(self.module):
            raise InvalidParameterError(
                f"The 'module' parameter of {owner} does not have a dropout layer, so all passes would be equal.\n"
                "Hint: only modules such as torch.nn.Dropout are found, not torch.nn.functional.dropout."
            )
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))

    @contextmanager
    def _passes(self) -> Iterator[Sequence[Runner]]:
        runner = Runner(self.module, self.device, None, type(self).__name__)
        with runner.evaluating(), torch.random.fork_rng():
            torch.manual_seed(self.seed_)
            for part in dropouts(self.module):
                part.train()
            yield [runner] * self.n_passes


def dropouts(module: torch.nn.Module) -> list[torch.nn.Module]:
    """Layers that drop values in training."""
    return [part for part in module.modules() if isinstance(part, DROPOUTS) and part.p > 0]
