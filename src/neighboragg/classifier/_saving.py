"""What of a fitted model is stored, and what must hold when it is loaded again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from neighboragg._base_classifier import check_same_classes
from neighboragg._typing import Array
from neighboragg.classifier._fitted_rows import FittedRows
from neighboragg.exceptions import InvalidParameterError
from neighboragg.features import Vectorizer
from neighboragg.methods import TrustMethod
from neighboragg.persistence import require

__all__ = ["Saving"]


class Saving:
    """The half of TrustedClassifier that goes to a file and comes back."""

    features: Any
    cv: Any
    estimator_: Any
    classes_: Array
    method_: TrustMethod
    _vectorizer: Vectorizer
    _fitted_rows: FittedRows

    def _saved_state(self) -> dict[str, Any]:
        state = self.__getstate__()
        if isinstance(self.features, Mapping) and any(_is_code(view) for view in self.features.values()):
            raise InvalidParameterError(
                f"This {type(self).__name__} cannot be saved: a view of its features is a callable, which is code.\n"
                "Hint: make it a transformer, or pass the vectors of the views to NeighborAgg."
            )
        if _is_code(self.features):
            del state["features"]  # code, which is never stored
        if hasattr(self.cv, "__next__"):
            state["cv"] = None  # folds that have been used up
        return state

    def _after_load(self) -> None:
        if not hasattr(self, "method_"):
            return  # a parameter of another estimator, not fitted
        require(isinstance(self._vectorizer, Vectorizer), "its rows do not become vectors")
        require(isinstance(self.method_, TrustMethod), "it has no trust method")
        require(isinstance(self._fitted_rows, FittedRows), "its rows of fit cannot be known again")
        require(
            np.array_equal(self.classes_, self.method_.classes_), "its classes are not those of its method"
        )
        if not hasattr(self, "estimator_"):
            raise InvalidParameterError(
                "This model was saved without its classifier.\n"
                "Hint: neighboragg.load(path, estimator=classifier)."
            )
        check_same_classes(self.estimator_, self.classes_, type(self).__name__)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_frames_in_fit"}


def _is_code(features: Any) -> bool:
    """Whether it is a callable, which is never stored."""
    return callable(features) and not hasattr(features, "transform")
