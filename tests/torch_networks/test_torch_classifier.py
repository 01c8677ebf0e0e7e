"""A network inside TrustedClassifier and SelectiveClassifier: any form of rows, one pass for each batch."""

import copy
import re
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import neighboragg
from neighboragg import NeighborAgg, SelectiveClassifier, TrustedClassifier, compare, find_mislabeled
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.torch import TorchClassifier, embed
from torch_networks.networks import ByName


@pytest.fixture(scope="module")
def model(digits, trained):
    X, y = digits
    return TrustedClassifier(TorchClassifier(trained)).fit(
        X[:700], y[:700], X_val=X[700:1100], y_val=y[700:1100]
    )


def test_trust_beats_the_confidence_of_the_network(model, digits):
    X, y = digits
    report = model.report(X[1100:], y[1100:], n_resamples=100).to_dict()
    assert report["auroc"]["trust"]["estimate"] > report["auroc"]["confidence"]["estimate"]


def test_trust_is_that_of_its_embeddings(digits, trained):
    X, y = digits
    model = TrustedClassifier(TorchClassifier(trained, layers="penultimate"))
    model.fit(X[:700], y[:700], X_val=X[700:1100], y_val=y[700:1100])
    found = embed(trained, X)
    method = clone(model.method_).fit(
        found.embeddings[:700], y[:700], X_val=found.embeddings[700:1100], y_val=y[700:1100],
        proba_val=found.proba[700:1100],
    )  # fmt: skip
    trust = method.predict_trust(found.embeddings[1100:], found.proba[1100:])
    np.testing.assert_allclose(model.predict_trust(X[1100:]), trust, atol=1e-6)


def test_views_are_the_layers(model, digits, trained):
    assert model.method_.spaces_.views == {"penultimate": 16, "conv": 100}
    experts = model.explain(digits[0][1100:1101]).experts
    assert "20 nearest (conv, learned metric)" in experts
    named = TrustedClassifier(TorchClassifier(trained, layers=["hidden", "conv"]))
    X, y = digits
    named.fit(X[:300], y[:300], X_val=X[300:500], y_val=y[300:500])
    assert named.method_.spaces_.views == {"hidden": 16, "conv": 100}
    distances, _ = model.kneighbors(X[1100:1103], 2)
    assert distances.shape == (3, 10, 2)


@pytest.mark.parametrize(
    ("n_convolutions", "expected"),
    [(0, []), (1, ["0"]), (3, ["2"])],
)
def test_the_usual_layers_are_the_last_two_that_pay(n_convolutions, expected):
    parts = [torch.nn.Conv2d(1, 1, 1) for _ in range(n_convolutions)]
    net = torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(64, 3))
    views = TorchClassifier(net).embed(torch.randn(5, 1, 8, 8)).views
    assert list(views) == ["penultimate", *expected]


def test_a_convolution_that_runs_again_and_again_is_one_layer():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = torch.nn.Conv2d(1, 1, 1), torch.nn.Linear(64, 3)

        def forward(self, x):
            return self.head(self.conv(self.conv(self.conv(x))).flatten(1))

    views = TorchClassifier(Recurrent()).embed(torch.randn(5, 1, 8, 8)).views
    assert list(views) == ["penultimate", "conv"]


def test_rows_of_any_form(model, digits):
    X, y = digits
    trust = model.score_samples(X[1100:])
    data = TensorDataset(X, torch.tensor(y))
    part = Subset(data, range(1100, len(X)))
    for rows in (X[1100:].numpy(), part, DataLoader(part, batch_size=256)):
        np.testing.assert_array_equal(model.score_samples(rows), trust)


def test_each_batch_goes_through_the_network_once(digits, trained):
    X, y = digits
    seen = []
    handle = trained.register_forward_hook(lambda net, inputs, output: seen.append(len(output)))
    try:
        model = TrustedClassifier(TorchClassifier(trained, batch_size=100))
        model.fit(X[:700], y[:700], X_val=X[700:1000], y_val=y[700:1000])
        # Once more for the first batch of all, to find its layers.
        assert seen == [100] * (1 + 7) + [100] * 3
        for call in (model.assess, model.score_samples, model.predict_trust, model.explain):
            seen.clear()
            call(X[1100:1300])
            assert seen == [100] * 2
    finally:
        handle.remove()


def test_selective(model, digits):
    X, y = digits
    selective = SelectiveClassifier(model, target_risk=0.1).calibrate(X[1100:1500], y[1100:1500])
    assessed = selective.assess(X[1500:])
    assert assessed.accepted.any()
    wrong = assessed.predicted != y[1500:]
    assert wrong[assessed.accepted].mean() < 0.75 * wrong.mean()


def test_explain_and_neighbors(model, digits):
    X, _ = digits
    text = str(model.explain(X[1100:1102]))
    assert "neighbors" in text
    distances, indices = model.kneighbors(X[1100:1102], 3)
    assert distances.shape == indices.shape == (2, 10, 3)


def test_wrong_labels_by_embeddings(digits, trained):
    X, y = digits
    found = embed(trained, X[700:1100])
    given = y[700:1100].copy()
    given[5] = (given[5] + 1) % 10
    result = find_mislabeled(found.embeddings, given, proba=found.proba, features="passthrough", flag=5)
    assert result.mask[5]


def test_a_network_is_not_cross_validated(digits, trained):
    X, y = digits
    with pytest.raises(InvalidParameterError, match="frozen"):
        find_mislabeled(X.flatten(1).numpy(), y, estimator=TorchClassifier(trained))
    with pytest.raises(InvalidInputError, match="frozen classifier but no X_val and y_val"):
        TrustedClassifier(TorchClassifier(trained)).fit(X, y)


def test_class_names_in_the_order_of_the_outputs(digits, trained):
    X, y = digits
    names = np.array([f"{(3 * digit) % 10} digit" for digit in range(10)])
    network = TorchClassifier(trained, classes=names)
    plain = TorchClassifier(trained)
    assert (network.predict(X[:50]) == names[plain.predict(X[:50])]).all()
    assert network.classes_.tolist() == sorted(names)
    model = TrustedClassifier(network).fit(X[:700], names[y[:700]], X_val=X[700:900], y_val=names[y[700:900]])
    other = TrustedClassifier(plain).fit(X[:700], y[:700], X_val=X[700:900], y_val=y[700:900])
    np.testing.assert_allclose(model.score_samples(X[1100:]), other.score_samples(X[1100:]), atol=1e-3)


def test_a_class_without_training_rows(digits, trained):
    """The network has ten outputs, whatever the rows at hand."""
    X, y = digits
    few = y[:700] != 3
    model = TrustedClassifier(TorchClassifier(trained))
    model.fit(X[:700][few], y[:700][few], X_val=X[700:900], y_val=y[700:900])
    assert model.classes_.tolist() == list(range(10))
    assert model.predict_trust(X[1100:1110]).shape == (10, 10)


def test_tokens(tokens):
    net, y = ByName(), np.arange(21) % 3
    val = {name: value[11:] for name, value in tokens.items()}
    train = {name: value[:11] for name, value in tokens.items()}
    model = TrustedClassifier(TorchClassifier(net)).fit(train, y[:11], X_val=val, y_val=y[11:])
    assert model.score_samples(tokens | {"labels": torch.zeros(21)}).shape == (21,)


@pytest.mark.parametrize("selective", [False, True])
def test_saved_without_the_network(model, digits, trained, tmp_path, selective):
    X, y = digits
    path = tmp_path / "m.nagg"
    if selective:
        model = SelectiveClassifier(model, target_coverage=0.5).calibrate(X[1100:1500], y[1100:1500])
    model.save(path)
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(path)
    assert str(caught.value) == (
        f"This {type(model).__name__} was saved with a network, which is never stored.\n"
        f"Hint: neighboragg.load({str(path)!r}, estimator=TorchClassifier(module))."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        again = neighboragg.load(path, estimator=TorchClassifier(copy.deepcopy(trained)))
    np.testing.assert_array_equal(again.predict(X[1500:]), model.predict(X[1500:]))
    np.testing.assert_array_equal(again.assess(X[1500:]).trust, model.assess(X[1500:]).trust)


def test_another_network_is_loaded_with_a_warning(model, trained, tmp_path):
    path = tmp_path / "m.nagg"
    model.save(path)
    other = copy.deepcopy(trained)
    with torch.no_grad():
        next(other.parameters()).view(-1)[0] += 1e-4
    for given, reason in (
        (TorchClassifier(other), "its weights differ"),
        (
            TorchClassifier(trained, layers="penultimate"),
            r"that was TorchClassifier\(module\), and this is TorchClassifier\(module, layers='penultimate'\)",
        ),
    ):
        with pytest.warns(TrustWarning, match=f"is not the one this model was saved with: {reason}"):
            neighboragg.load(path, estimator=given)


def test_a_module_that_is_not_wrapped_is_refused(model, trained, tmp_path):
    model.save(tmp_path / "m.nagg")
    with pytest.raises(InvalidParameterError) as caught:
        neighboragg.load(tmp_path / "m.nagg", estimator=trained)
    assert str(caught.value) == (
        "The 'estimator' parameter of load cannot be a bare PyTorch network. Got a ConvNet.\n"
        "Hint: load(path, estimator=TorchClassifier(module)), with TorchClassifier from neighboragg.torch."
    )


def test_the_fingerprint_is_of_names_shapes_and_numbers():
    def weights(module):
        return TorchClassifier(module).fingerprint()["weights"]

    def filled(*shape, name="a", dtype=torch.float32):
        module = torch.nn.Module()
        module.register_buffer(name, torch.ones(shape, dtype=dtype))
        return module

    assert weights(filled(2, 3)) == weights(filled(2, 3))
    others = [
        filled(3, 2),
        filled(2, 3, name="b"),
        filled(2, 3, dtype=torch.bfloat16),
        filled(),
        filled(0),
        torch.nn.BatchNorm1d(3),
    ]
    assert len({weights(module) for module in [filled(2, 3), *others]}) == 7
    compiled = torch.nn.Module()
    compiled._orig_mod = torch.nn.Linear(2, 2)
    assert weights(compiled) == weights(compiled._orig_mod)


def test_the_fingerprint_has_the_line_that_makes_the_classifier_again():
    module = torch.nn.Linear(2, 2)
    assert TorchClassifier(module, batch_size=7).fingerprint()["call"] == "TorchClassifier(module)"
    item = TorchClassifier(
        module,
        classes=np.array(["b", "a"]),
        layers=("0", "1"),
        output="probabilities",
        autocast=torch.bfloat16,
    )
    assert item.fingerprint()["call"] == (
        "TorchClassifier(module, layers=['0', '1'], classes=['b', 'a'], output='probabilities', "
        "autocast=torch.bfloat16)"
    )


def test_clones_share_the_network(trained):
    network = TorchClassifier(trained)
    assert clone(network) is network
    assert clone(TrustedClassifier(network)).estimator is network
    assert network.fit(None) is network


ERRORS = {
    "a class that is no network": (
        lambda net, X: TorchClassifier(TorchClassifier(net)).predict(X),
        "The network of TorchClassifier must be a torch.nn.Module. Got a TorchClassifier instead.\n"
        "Hint: pass the network itself; other classifiers need no wrapping.",
    ),
    "too few names": (
        lambda net, X: TorchClassifier(net, classes=list("abc")).predict(X),
        "The 'classes' parameter of TorchClassifier names 3 classes, but the network has 10 outputs.\n"
        "Hint: name the class of each output, in order.",
    ),
    "a name twice": (
        lambda net, X: TorchClassifier(net, classes=list("aabcdefghi")).predict(X),
        "The 'classes' parameter of TorchClassifier names a class twice: "
        "['a', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case, trained, digits):
    action, message = ERRORS[case]
    with pytest.raises((InvalidInputError, InvalidParameterError)) as caught:
        action(trained, digits[0][:20])
    assert str(caught.value) == message


class Stream(IterableDataset):
    def __init__(self, X, generator=None):
        self.X, self.generator = X, generator

    def __iter__(self):
        n = len(self.X)
        order = range(n) if self.generator is None else torch.randperm(n, generator=self.generator)
        return iter([self.X[i] for i in order])


class Shuffling(DataLoader):
    def __iter__(self):
        return iter([self.dataset[torch.randperm(len(self.dataset))]])


def seeded():
    return torch.Generator().manual_seed(0)


IN_NO_CERTAIN_ORDER = {
    "shuffle": (lambda X: DataLoader(X, shuffle=True), "a DataLoader with a RandomSampler"),
    "generator": (
        lambda X: DataLoader(X, shuffle=True, generator=seeded()), "a DataLoader with a RandomSampler",
    ),
    "some": (
        lambda X: DataLoader(X, sampler=SubsetRandomSampler(range(20))), "a DataLoader with a SubsetRandomSampler",
    ),
    "weighted": (
        lambda X: DataLoader(X, sampler=WeightedRandomSampler(torch.ones(20), 20)),
        "a DataLoader with a WeightedRandomSampler",
    ),
    "indices": (lambda X: DataLoader(X, sampler=[3, 1, 2]), "a DataLoader with a list"),
    "batches of indices": (lambda X: DataLoader(X, batch_sampler=[[3, 1], [2]]), "a DataLoader with a list"),
    "batches in another order": (
        lambda X: DataLoader(X, batch_sampler=BatchSampler(SubsetRandomSampler(range(20)), 4, False)),
        "a DataLoader with a SubsetRandomSampler",
    ),
    "last rows dropped": (
        lambda X: DataLoader(X, batch_size=8, drop_last=True), "a DataLoader that drops the last 4 of 20 rows",
    ),
    "stream": (lambda X: Stream(X, seeded()), "a Stream whose rows differ from one pass to the next"),
    "loader of a stream": (
        lambda X: DataLoader(Stream(X, seeded()), batch_size=4), "a Stream whose rows differ from one pass",
    ),
    "a loader of one's own": (lambda X: Shuffling(X), "a Tensor whose rows differ from one pass to the next"),
    "read once": (lambda X: iter(DataLoader(X)), "a _SingleProcessDataLoaderIter, which can be read only once"),
    "rows lost by collate": (
        lambda X: DataLoader(X, batch_size=4, collate_fn=lambda rows: torch.stack(rows[1:])),
        "data with 20 rows, but its batches have 15",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_NO_CERTAIN_ORDER)
def test_rows_in_no_certain_order_are_refused(case, trained, digits):
    make, message = IN_NO_CERTAIN_ORDER[case]
    with pytest.raises(InvalidInputError, match=f"^TorchClassifier got {re.escape(message)}.*\nHint: "):
        TorchClassifier(trained).predict(make(digits[0][:20]))


def test_rows_in_a_certain_order(trained, digits):
    X = digits[0][:20]
    network = TorchClassifier(trained)
    expected = network.predict_proba(X)
    batch_sampler = BatchSampler(SequentialSampler(X), 8, drop_last=False)
    for rows in (
        DataLoader(X, batch_size=8),
        DataLoader(X, batch_size=5, drop_last=True),
        DataLoader(X, batch_sampler=batch_sampler),
        DataLoader(Stream(X), batch_size=8),
        Stream(X),
        list(X.split(8)),
        DataLoader(TensorDataset(X), batch_size=8),
    ):
        np.testing.assert_allclose(network.predict_proba(rows), expected, atol=1e-6)


def test_layers_are_found_again_in_a_changed_network(digits):
    X = digits[0][:20]
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    network = TorchClassifier(net)
    assert network.transform(X).shape == (20, 64)
    net[1] = torch.nn.Sequential(torch.nn.Linear(64, 5), torch.nn.Linear(5, 10))
    assert network.transform(X).shape == (20, 5)


NOT_WRAPPED = {
    "TrustedClassifier": lambda net, X, y: TrustedClassifier(net).fit(X, y),
    "NeighborAgg": lambda net, X, y: NeighborAgg(net).fit(X, y, proba_val=np.full((100, 10), 0.1)),
    "MislabelDetector": lambda net, X, y: find_mislabeled(X, y, estimator=net),
    "compare": lambda net, X, y: compare(net, y),
    "compare, estimators": lambda net, X, y: compare(X, y, estimators=[net]),
}


@pytest.mark.parametrize("case", NOT_WRAPPED)
def test_a_network_that_is_not_wrapped(case, trained, digits):
    X, y = digits
    owner = case.partition(",")[0]
    with pytest.raises(
        InvalidParameterError, match=f"of {owner} cannot be a bare PyTorch network. Got a ConvNet.\nHint: "
    ):
        NOT_WRAPPED[case](trained, X[:100].flatten(1).numpy(), y[:100])


def test_rows_and_labels_must_match(digits, trained):
    X, y = digits
    with pytest.raises(InvalidInputError, match=r"700.*699|699.*700"):
        TrustedClassifier(TorchClassifier(trained)).fit(X[:700], y[:699], X_val=X[700:900], y_val=y[700:900])
