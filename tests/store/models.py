"""Small objects of every kind that can be saved, and a stand-in for a network."""

import hashlib

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from neighboragg import MislabelDetector, NeighborAgg, SelectiveClassifier, TrustedClassifier, methods
from neighboragg._core.types import FloatArray
from neighboragg.features import ImageFeatures, TabularFeatures
from neighboragg.labels import FDR, Budget, FalseAlarms
from neighboragg.labels._rules import Sampled
from neighboragg.search import Approximate, ClasswiseNeighbors, Exact, Streamed

X, Y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
FRAME = pd.DataFrame(X, columns=list("abc")).assign(
    place=np.where(X[:, 0] > 0, "up", "down"), words=[f"word{i % 7} and word{i % 5} again" for i in range(60)]
)
NOISE = np.random.default_rng(0).normal(size=(60, 2))


class Embedded:
    """What a network gives for some rows."""

    def __init__(self, views: dict[str, FloatArray], proba: FloatArray) -> None:
        self.views, self.proba, self.stacked = views, proba, np.hstack(list(views.values()))


class Network(ClassifierMixin, BaseEstimator):
    """A trained network with the methods of `neighboragg.torch.TorchClassifier`, of NumPy alone."""

    is_frozen = True

    def __init__(self, weights, output="logits"):
        self.weights = weights
        self.output = output
        self.classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        return self

    def embed(self, X):
        score = np.asarray(X) @ self.weights
        proba = 1 / (1 + np.exp(-score))
        return Embedded({"last": np.tanh(X), "first": np.asarray(X)}, np.column_stack([1 - proba, proba]))

    def predict_proba(self, X):
        return self.embed(X).proba

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def transform(self, X):
        return self.embed(X).stacked

    def fingerprint(self):
        given = "" if self.output == "logits" else f", output={self.output!r}"
        digest = hashlib.sha256(np.asarray(self.weights).tobytes()).hexdigest()
        return {"call": f"Network(module{given})", "weights": digest}

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_clone__(self):
        return self


def trusted(classifier, method=None, **kwargs):
    method = NeighborAgg(n_neighbors=3, second_opinions=None) if method is None else method
    return TrustedClassifier(classifier, method, random_state=0, **kwargs).fit(X, Y)


def selective(model):
    return SelectiveClassifier(model, target_coverage=0.5).calibrate(X + 0.01, Y)


def detector(flag="estimated", rows=X, **kwargs):
    verified = np.arange(30) if isinstance(flag, FDR) else None
    return MislabelDetector(effort="fast", flag=flag, **kwargs).fit(rows, Y, verified=verified)


def bare(method, rows=X):
    return method.fit(rows, Y, proba_val=LogisticRegression().fit(X, Y).predict_proba(X))


def network(weights=(1.0, -1.0, 0.5), **kwargs):
    item = Network(np.array(weights), **kwargs)
    return TrustedClassifier(item).fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:])


#: Functions that fit an object, by what it is. Each is quick, and its file is small.
MODELS = {
    "logistic regression": lambda: trusted(LogisticRegression()),
    "forest": lambda: trusted(RandomForestClassifier(2, max_depth=3, random_state=0), methods.TrustScore()),
    "histogram boosting": lambda: trusted(
        HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5), methods.MaxConfidence()
    ),
    "neighbors": lambda: trusted(KNeighborsClassifier(), methods.MaxConfidence()),
    "perceptron": lambda: trusted(
        MLPClassifier((3,), max_iter=3, n_iter_no_change=1, tol=10.0, random_state=0), methods.MaxConfidence()
    ),
    "support vectors": lambda: trusted(CalibratedClassifierCV(SVC(), cv=2), methods.MaxConfidence()),
    "pipeline": lambda: trusted(make_pipeline(StandardScaler(), LogisticRegression())),
    "frame": lambda: TrustedClassifier(
        make_pipeline(make_column_transformer((StandardScaler(), ["a"])), LogisticRegression()),
        methods.MaxConfidence(),
        random_state=0,
    ).fit(FRAME[["a", "place"]], Y),
    "frozen": lambda: TrustedClassifier(FrozenEstimator(GaussianNB().fit(X[:30], Y[:30]))).fit(
        X[:30], Y[:30], X_val=X[30:], y_val=Y[30:]
    ),
    "second opinions": lambda: trusted(
        LogisticRegression(), NeighborAgg(second_opinions=[RandomForestClassifier(2), "kernel", "boosting"])
    ),
    "network of trust": lambda: trusted(LogisticRegression(), NeighborAgg("network")),
    "views": lambda: trusted(LogisticRegression(), features={"a": StandardScaler(), "b": "passthrough"}),
    "selective": lambda: selective(trusted(LogisticRegression())),
    "detector": detector,
    "detector with models": lambda: MislabelDetector(effort="balanced").fit(X, Y),
    "detector of a table": lambda: detector(Budget(3), FRAME),
    "detector by a sample": lambda: detector(Sampled(Budget(3))),
    "detector by FDR": lambda: detector(FDR(0.3)),
    "detector by false alarms": lambda: detector(FalseAlarms(0.1)),
    "detector without evidence": lambda: MislabelDetector(effort="fast").fit(NOISE, np.arange(60) % 2),
    "result": lambda: detector().result_,
    "table": lambda: TabularFeatures().fit(FRAME),
    "images": ImageFeatures,
    "exact index": lambda: ClasswiseNeighbors(2, search=Exact("cosine")).fit(X, Y),
    "approximate index": lambda: ClasswiseNeighbors(2, search=Approximate(recall=0.9)).fit(X, Y),
    "streamed": lambda: bare(
        NeighborAgg(second_opinions=None, search=Streamed(memory="2 GB")), [X[:20], X[20:]]
    ),
    "Mahalanobis": lambda: bare(methods.Mahalanobis()),
    "NeighborGCN": lambda: bare(methods.NeighborGCN()),
    "TemperatureScaling": lambda: bare(methods.TemperatureScaling()),
    "TopLabelCalibration": lambda: bare(methods.TopLabelCalibration()),
    "TrueClassProbability": lambda: bare(methods.TrueClassProbability()),
}
#: Those whose files are of megabytes; only the full run saves them.
LARGE = ("second opinions", "detector with models")
