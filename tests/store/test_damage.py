"""A thousand flipped bits in a saved model of each kind: every one is found before anything is built."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import neighboragg
from neighboragg import MislabelDetector, NeighborAgg, SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import FileFormatError

X, Y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
ESTIMATORS = {
    "logistic regression": LogisticRegression(),
    "forest": RandomForestClassifier(2, max_depth=3, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
    "neighbors": KNeighborsClassifier(),
    "network": MLPClassifier((3,), max_iter=3, n_iter_no_change=1, tol=10.0, random_state=0),
    "support vectors": CalibratedClassifierCV(SVC(), cv=2),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}


def trusted(classifier, **kwargs):
    return TrustedClassifier(classifier, NeighborAgg(n_neighbors=3, **kwargs), random_state=0).fit(X, Y)


def models():
    for name, estimator in ESTIMATORS.items():
        yield name, lambda estimator=estimator: trusted(estimator)
    yield (
        "second opinions",
        lambda: trusted(LogisticRegression(), second_opinions=[RandomForestClassifier(2)]),
    )
    yield (
        "selective",
        lambda: SelectiveClassifier(trusted(LogisticRegression()), target_coverage=0.5).calibrate(
            X + 0.01, Y
        ),
    )
    yield "detector", lambda: MislabelDetector(effort="fast").fit(X, Y)
    yield "result", lambda: MislabelDetector(effort="fast").fit(X, Y).result_


MODELS = dict(models())


@pytest.mark.full(keep=1)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("name", MODELS)
def test_a_thousand_flipped_bits(name, tmp_path):
    path = tmp_path / "model.nagg"
    MODELS[name]().save(path)
    whole = path.read_bytes()
    neighboragg.load(path)
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    # Half of them in the header, which is read before the digest.
    positions = np.concatenate([rng.integers(0, header, 500), rng.integers(header, len(whole), 500)])
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            neighboragg.load(path)


@pytest.mark.parametrize("name", ["forest", "detector"])
def test_truncation_at_many_lengths(name, tmp_path):
    path = tmp_path / "model.nagg"
    MODELS[name]().save(path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 200).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            neighboragg.load(path)
