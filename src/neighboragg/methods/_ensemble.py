"""Deep ensembles: the mean opinion of classifiers trained again from other seeds."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from neighboragg._typing import FloatArray, IntArray
from neighboragg._validation import check_integer
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods._base import FitData, TrustMethod
from neighboragg.persistence import dump_estimator, load_estimator

__all__ = ["EnsembleConfidence"]

# Training rows on which members are compared.
COMPARED_ROWS = 1000


class EnsembleConfidence(TrustMethod):
    """Mean probability of the class over classifiers fitted anew to the training rows.

    Parameters
    ----------
    estimator : classifier with predict_proba, default=None
        Recipe of the members; it is cloned. None is a network with one hidden layer of 64 units on standardized
        features.
    n_members : int, default=5
    bootstrap : bool, default=None
        Fit each member to a bootstrap sample of every class. None does so only if seeds alone make no difference,
        as for :class:`~sklearn.linear_model.LogisticRegression`.
    random_state : int, RandomState instance or None, default=0
        Seeds the members, every parameter `random_state` of `estimator`, and the bootstrap samples.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    members_ : list of classifiers
        Fitted to positions in `classes_`.
    bootstrap_ : bool
        Whether the members saw bootstrap samples.

    Notes
    -----
    Needs training rows and a learning algorithm; uses neither validation rows nor the classifier's probabilities
    except for the predicted class. This is *not* a post-hoc method: it trains `n_members` models on the vectors,
    and what they know of training rows is over-confident. It says how far an independent ensemble agrees with the
    frozen classifier; to follow the publication, pass the recipe of that classifier as `estimator`. Members that a
    class is missing for give it probability 0. Saving needs skops.

    References
    ----------
    Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty Estimation using Deep
    Ensembles", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg.methods import EnsembleConfidence
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    >>> method = EnsembleConfidence(LogisticRegression(), n_members=3).fit(X, y, proba_val=np.full((4, 2), 0.5))
    >>> method.predict_trust([[9.0]], [[0.5, 0.5]]).round(1)
    array([[0., 1.]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_members: int = 5,
        bootstrap: bool | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.n_members = n_members
        self.bootstrap = bootstrap
        self.random_state = random_state

    def _fit(self, data: FitData) -> None:
        n_members = check_integer(self.n_members, "n_members", type(self).__name__, minimum=2)
        recipe = self._recipe(data)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_members).tolist()
        self.bootstrap_ = bool(self.bootstrap)
        with warnings.catch_warnings():
            if self.estimator is None:
                # That the default network stops before it converges is our choice, not the user's mistake.
                warnings.simplefilter("ignore", ConvergenceWarning)
            first = [fit_member(recipe, data, seed, bootstrap=self.bootstrap_) for seed in seeds[:2]]
            if self.bootstrap is None and alike(first, data.X[:COMPARED_ROWS]):
                self.bootstrap_, first = True, []
            rest = [fit_member(recipe, data, seed, bootstrap=self.bootstrap_) for seed in seeds[len(first) :]]
        self.members_ = first + rest

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        trust = np.zeros_like(proba)
        if len(X):  # classifiers refuse to predict nothing
            for member in self.members_:
                trust[:, member.classes_] += member.predict_proba(X)
        return trust / len(self.members_)

    def _recipe(self, data: FitData) -> Any:
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            raise InvalidParameterError(
                f"The 'estimator' parameter of {type(self).__name__} must be a classifier with predict_proba. "
                f"Got {self.estimator!r} instead."
            )
        if len(np.unique(data.codes)) == 1:
            return DummyClassifier()  # most classifiers refuse to learn a single class
        if self.estimator is None:
            return make_pipeline(
                StandardScaler(),
                MLPClassifier(hidden_layer_sizes=(64,), learning_rate_init=0.005, max_iter=100),
            )
        return self.estimator

    def _params_to_record(self) -> dict[str, Any]:
        params = super()._params_to_record()
        params["estimator"] = None  # part of the state, where it is loaded with the caller's trusted types
        if not isinstance(self.random_state, int | None):
            params["random_state"] = None  # a generator's past does not matter once fitted
        return params

    def _state_to_record(self) -> dict[str, Any]:
        return {
            "estimator": None if self.estimator is None else dump_estimator(self.estimator),
            "bootstrap": self.bootstrap_,
            "members": [dump_estimator(member) for member in self.members_],
        }

    def _state_from_record(self, state: Mapping[str, Any], trusted: tuple[str, ...]) -> None:
        if state["estimator"] is not None:
            self.estimator = load_estimator(state["estimator"], trusted=trusted)
        self.bootstrap_ = state["bootstrap"]
        self.members_ = [load_estimator(member, trusted=trusted) for member in state["members"]]


def fit_member(recipe: Any, data: FitData, seed: int, *, bootstrap: bool) -> Any:
    """A clone of the recipe with this seed wherever it takes one, fitted to all rows or a bootstrap sample."""
    member = clone(recipe)
    seeded = [name for name in member.get_params() if name.split("__")[-1] == "random_state"]
    member.set_params(**dict.fromkeys(seeded, seed))
    rows = resampled(data.codes, np.random.default_rng(seed)) if bootstrap else slice(None)
    return member.fit(data.X[rows], data.codes[rows])


def resampled(codes: IntArray, rng: np.random.Generator) -> IntArray:
    """As many rows of every class as there are, drawn with replacement: no class is lost."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)[codes[order]]
    starts = np.searchsorted(codes[order], codes[order])
    return np.sort(order[starts + rng.integers(0, sizes)])


def alike(members: list[Any], X: FloatArray) -> bool:
    """Whether the first two members say the same of every row."""
    return bool(np.array_equal(members[0].predict_proba(X), members[1].predict_proba(X)))
