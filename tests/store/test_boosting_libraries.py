"""XGBoost, LightGBM and CatBoost: saving says what loading wants, and one word is enough."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from xgboost import XGBClassifier

import neighboragg
from neighboragg import TrustedClassifier
from neighboragg._store.estimators import TRUSTED_TYPES
from neighboragg.exceptions import TrustWarning, UntrustedTypeError
from neighboragg.methods import MaxConfidence

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 3)), columns=list("abc"))
Y = (X["a"] > 0).to_numpy().astype(int)
LIBRARIES = {
    "xgboost": (
        XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1),
        ["xgboost.core.Booster", "xgboost.sklearn.XGBClassifier"],
    ),
    "lightgbm": (
        LGBMClassifier(n_estimators=2, num_leaves=4, verbose=-1, n_jobs=1),
        ["lightgbm.basic.Booster", "lightgbm.sklearn.LGBMClassifier"],
    ),
    "catboost": (
        CatBoostClassifier(iterations=2, depth=2, verbose=0, thread_count=1, allow_writing_files=False),
        ["catboost.core.CatBoostClassifier"],
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_word_is_enough(library, tmp_path):
    classifier, names = LIBRARIES[library]
    path = tmp_path / "model.nagg"
    model = TrustedClassifier(classifier, MaxConfidence(), random_state=0).fit(X, Y)
    with pytest.warns(TrustWarning) as said:
        model.save(path)
    assert [str(warning.message) for warning in said] == [
        f"This TrustedClassifier holds {', '.join(names)}, which must be allowed when it is loaded.\n"
        f"Hint: neighboragg.load(path, trusted=[{library!r}])."
    ]
    assert said[0].filename == __file__
    with pytest.raises(UntrustedTypeError) as caught:
        neighboragg.load(path)
    assert str(caught.value).endswith(
        f"Hint: if each of these is what you expect, pass trusted=[{library!r}]; or pass the estimator again instead "
        "of loading it."
    )
    for trusted in ([library], names):
        again = neighboragg.load(path, trusted=trusted)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_a_word_for_one_library_is_no_word_for_another(tmp_path):
    path = tmp_path / "model.nagg"
    model = TrustedClassifier(LIBRARIES["xgboost"][0], MaxConfidence(), random_state=0).fit(X, Y)
    with pytest.warns(TrustWarning):
        model.save(path)
    with pytest.raises(UntrustedTypeError, match="safe: xgboost"):
        neighboragg.load(path, trusted=["lightgbm", "catboost"])


def test_with_a_classifier_instead_of_the_stored_one_nothing_is_trusted(tmp_path):
    path = tmp_path / "model.nagg"
    model = TrustedClassifier(LIBRARIES["xgboost"][0], MaxConfidence(), random_state=0).fit(X, Y)
    with pytest.warns(TrustWarning):
        model.save(path)
    again = neighboragg.load(path, estimator=model.estimator_)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_nothing_of_these_libraries_is_always_trusted():
    assert not [name for name in TRUSTED_TYPES if name.partition(".")[0] in LIBRARIES]
