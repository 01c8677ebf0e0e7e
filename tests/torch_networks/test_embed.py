"""embed: one pass over data of any form, with the module left as it was."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.torch import embed
from torch_networks.networks import ByName, ConvNet, Returning

FORMS = {
    "tensor": lambda logits: logits,
    "tuple": lambda logits: (logits, logits.sum()),
    "list": lambda logits: [logits],
    "object": lambda logits: SimpleNamespace(logits=logits, loss=None),
    "mapping": lambda logits: {"logits": logits},
}


@pytest.fixture
def images():
    return torch.randn(23, 1, 8, 8)


@pytest.fixture
def net():
    return ConvNet().eval()


@pytest.mark.parametrize("form", FORMS)
def test_outputs_of_any_form(form, net, images):
    with torch.inference_mode():
        logits = net(images)
    found = embed(Returning(FORMS[form], net), images, batch_size=5)
    np.testing.assert_allclose(found.output, logits.numpy(), atol=1e-5)
    np.testing.assert_allclose(found.proba, torch.softmax(logits.double(), 1).numpy(), atol=1e-6)


def test_embeddings_are_what_the_last_linear_layer_gets(net, images):
    found = embed(net, images, batch_size=7)
    with torch.inference_mode():
        again = net.head(torch.from_numpy(found.embeddings)).numpy()
    assert found.embeddings.shape == (23, 16)
    np.testing.assert_allclose(again, found.output, atol=1e-5)


def test_named_layers_give_their_output(net, images):
    found = embed(net, images, layer=["hidden", "conv", "penultimate"])
    assert {name: rows.shape for name, rows in found.views.items()} == {
        "hidden": (23, 16), "conv": (23, 144), "penultimate": (23, 16),
    }  # fmt: skip
    with torch.inference_mode():
        np.testing.assert_array_equal(found.views["conv"], net.conv(images).flatten(1).numpy())
    assert repr(found) == (
        "<Embedded 23 rows, 10 classes, without labels; hidden: 16 dimensions, conv: 144 dimensions, "
        "penultimate: 16 dimensions>"
    )


def test_images_are_averaged_to_a_number_of_values(net, images):
    found = embed(net, images, layer="conv", max_dimensions=20).embeddings
    with torch.inference_mode():
        pooled = nn.functional.adaptive_avg_pool2d(net.conv(images), 2).flatten(1).numpy()
    np.testing.assert_array_equal(found, pooled)
    assert embed(net, images, layer="conv", max_dimensions=200).embeddings.shape == (23, 144)


def test_nested_modules(images):
    net = nn.Sequential(
        nn.Flatten(), nn.Sequential(nn.Linear(64, 9), nn.ReLU()), nn.Sequential(nn.Linear(9, 4))
    )
    assert embed(net, images).embeddings.shape == (23, 9)
    assert embed(net, images, layer="1.0").embeddings.shape == (23, 9)


@pytest.mark.parametrize("batch_size", [1, 2, 11, 22, 23, 100])
def test_any_batch_size_gives_the_same(net, images, batch_size):
    """Also where one row is left for the last batch."""
    whole, parts = embed(net, images), embed(net, images, batch_size=batch_size)
    np.testing.assert_allclose(parts.embeddings, whole.embeddings, atol=1e-5)
    np.testing.assert_allclose(parts.proba, whole.proba, atol=1e-6)


def test_loaders_data_sets_and_arrays(net, images):
    labels = torch.arange(23) % 10
    data = TensorDataset(images, labels)
    by_tensor = embed(net, images, batch_size=8)
    for given in (data, DataLoader(data, batch_size=8)):
        found = embed(net, given, batch_size=8)
        np.testing.assert_array_equal(found.output, by_tensor.output)
        np.testing.assert_array_equal(found.labels, labels.numpy())
    for given in (images.numpy(), TensorDataset(images), DataLoader(images, batch_size=8)):
        found = embed(net, given, batch_size=8)
        np.testing.assert_array_equal(found.output, by_tensor.output)
        assert found.labels is None


def test_a_shuffled_loader_keeps_rows_and_labels_together(net, images):
    data = TensorDataset(images, torch.arange(23) % 10)
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1))
    ordered, shuffled = embed(net, data), embed(net, loader)
    keys = {tuple(np.round(row, 4)): label for row, label in zip(ordered.output, ordered.labels, strict=True)}
    assert [keys[tuple(np.round(row, 4))] for row in shuffled.output] == shuffled.labels.tolist()


class ByPosition(ByName):
    """The same network, for inputs by position; without a mask all tokens count."""

    def forward(self, input_ids, attention_mask=None):
        return super().forward(
            input_ids, torch.ones_like(input_ids) if attention_mask is None else attention_mask
        )


def test_a_mask_in_a_data_set_is_an_input(tokens):
    net, labels = ByPosition(), torch.arange(21) % 3
    expected = embed(net, tokens).output
    data = TensorDataset(tokens["input_ids"], tokens["attention_mask"])
    found = embed(net, data, batch_size=4)
    np.testing.assert_allclose(found.output, expected, atol=1e-6)
    assert found.labels is None
    found = embed(net, TensorDataset(*data.tensors, labels), batch_size=4)
    np.testing.assert_allclose(found.output, expected, atol=1e-6)
    assert found.labels.tolist() == labels.tolist()


def test_a_few_logits_may_look_like_probabilities(net, images):
    assert len(embed(Returning(lambda z: z.clamp(0, 1), net), images[:2])) == 2


def test_rows_in_training_mode_get_the_answers_of_evaluation(net, images):
    expected = embed(net, images).output
    net.train()
    for _ in range(2):
        np.testing.assert_array_equal(embed(net, images).output, expected)
    assert net.training and net.drop.training


def test_batches_with_names(tokens):
    net = ByName()
    found = embed(net, tokens, batch_size=4)
    rows = [{name: value[i] for name, value in tokens.items()} | {"labels": i % 3} for i in range(21)]
    from_loader = embed(net, DataLoader(rows, batch_size=4))
    np.testing.assert_array_equal(from_loader.output, found.output)
    assert from_loader.labels.tolist() == [i % 3 for i in range(21)]
    assert found.labels is None


def test_tokens_are_averaged_where_the_mask_is(tokens):
    net = ByName()
    found = embed(net, tokens, layer="embedding").embeddings
    with torch.inference_mode():
        first = net.embedding(tokens["input_ids"])[0, :4].mean(0).numpy()
    np.testing.assert_allclose(found[0], first, atol=1e-6)


def test_half_precision(images):
    net = ConvNet().eval()
    exact = embed(net, images)
    for found in (embed(net, images, autocast=torch.bfloat16), embed(net.bfloat16(), images)):
        assert found.embeddings.dtype == found.output.dtype == np.float32
        np.testing.assert_allclose(found.proba, exact.proba, atol=0.05)


def test_the_module_is_as_before(images):
    net = ConvNet().train()
    net.norm.eval()
    images.requires_grad_(True)
    net(images).sum().backward()
    gradients = {name: p.grad.clone() for name, p in net.named_parameters()}
    state = {name: value.clone() for name, value in net.state_dict().items()}
    embed(net, images)
    assert (net.training, net.norm.training, net.drop.training) == (True, False, True)
    assert all(torch.equal(net.state_dict()[name], value) for name, value in state.items())
    assert all(torch.equal(p.grad, gradients[name]) for name, p in net.named_parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    assert torch.is_grad_enabled()


def test_a_failing_network_is_left_as_it_was(images, tmp_path):
    class Failing(ConvNet):
        def forward(self, x):
            if len(x) < 8:
                raise RuntimeError("out of memory")
            return super().forward(x)

    net = Failing().train()
    with pytest.raises(RuntimeError, match="out of memory"):
        embed(net, images, batch_size=8, folder=tmp_path)
    assert net.training
    assert not any(part._forward_pre_hooks for part in net.modules())
    assert list(tmp_path.iterdir()) == []


def test_vectors_on_disk_are_those_in_memory(net, images, tmp_path):
    found = embed(net, images, layer=["penultimate", "conv"], batch_size=6, folder=tmp_path)
    inside = embed(net, images, layer=["penultimate", "conv"], batch_size=6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conv.npy", "penultimate.npy"]
    for name, rows in found.views.items():
        assert isinstance(rows, np.memmap)
        np.testing.assert_array_equal(rows, inside.views[name])
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), rows)


def test_progress_is_told(net, images):
    told = []
    embed(net, images, batch_size=10, progress=lambda *args: told.append(args))
    assert told[-3:] == [("Running the network", done, 23) for done in (10, 20, 23)]


def test_other_kinds_of_output(net, images):
    logits = embed(net, images)
    softmax = embed(Returning(lambda z: torch.softmax(z, 1), net), images, output="probabilities")
    logs = embed(Returning(lambda z: torch.log_softmax(z, 1), net), images, output="log_probabilities")
    np.testing.assert_allclose(softmax.proba, logits.proba, atol=1e-6)
    np.testing.assert_allclose(logs.proba, logits.proba, atol=1e-6)
    assert softmax.embeddings.shape == (23, 16)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_module_on_a_gpu(net, images):
    inside = embed(net, images)
    found = embed(net.cuda(), images)
    np.testing.assert_allclose(found.proba, inside.proba, atol=1e-3)


ERRORS = {
    "no such layer": (
        lambda net, x: embed(net, x, layer="haed"),
        "ConvNet has no layer 'haed'.\nHint: its layers are 'conv', 'drop', 'norm', 'hidden', 'head'.",
    ),
    "one logit": (
        lambda net, x: embed(Returning(lambda z: z[:, :1], net), x),
        "The network gives a tensor of shape (23, 1) for a batch of 23 rows, one number for each; (n, n_classes) with "
        "at least two classes is needed.\nHint: wrap it in a module that gives torch.stack([-z, z], dim=1) / 2 for its "
        "output z, where z is the logit of the second class.",
    ),
    "one sigmoid": (
        lambda net, x: embed(Returning(lambda z: torch.sigmoid(z[:, 0]), net), x),
        "The network gives a tensor of shape (23,) for a batch of 23 rows, one number for each; (n, n_classes) with "
        "at least two classes is needed.\nHint: wrap it in a module that gives torch.stack([1 - p, p], dim=1) for its "
        "output p, and pass output='probabilities'.",
    ),
    "sigmoids": (
        lambda net, x: embed(Returning(torch.sigmoid, net), x),
        "The network's outputs look like probabilities of a sigmoid for each class: all 230 are between 0 and 1, but "
        "rows do not sum to one.\nHint: leave out the sigmoid at its end, or divide each row by its sum and pass "
        "output='probabilities'.",
    ),
    "sigmoids as probabilities": (
        lambda net, x: embed(Returning(torch.sigmoid, net), x, output="probabilities"),
        "With output='probabilities' each row must sum to one, but row ",
    ),
    "positive logarithms": (
        lambda net, x: embed(net, x, output="log_probabilities"),
        "With output='log_probabilities' each value must be below 0, but row 0 has ",
    ),
    "negative values that sum to one": (
        lambda net, x: embed(Returning(lambda z: z - z.mean(1, keepdim=True) + 0.1, net), x, output="probabilities"),
        "With output='probabilities' each value must be between 0 and 1, but row 0 has ",
    ),
    "a map": (
        lambda net, x: embed(net.conv, x, layer="penultimate"),
        "The network gives a tensor of shape (23, 4, 6, 6) for a batch of 23 rows",
    ),
    "no tensor": (
        lambda net, x: embed(Returning(lambda z: "cat", net), x),
        "The network gives a str, in which no tensor of logits was found.",
    ),
    "no linear layer": (
        lambda net, x: embed(nn.Sequential(nn.Conv2d(1, 5, 8), nn.Flatten()), x),
        "No linear layer of Sequential has an output for each class, so the layer before it is not known.\n"
        "Hint: name a layer, one of '0', '1'.",
    ),
    "probabilities": (
        lambda net, x: embed(Returning(lambda z: torch.softmax(z, 1), net), x),
        "The network's outputs look like probabilities: none is negative, and each row sums to one.\n"
        "Hint: pass output='probabilities', or leave out the softmax at its end.",
    ),
    "no probabilities": (
        lambda net, x: embed(net, x, output="probabilities"),
        "With output='probabilities' each value must be between 0 and 1, but row 0 has ",
    ),
    "unknown kind": (
        lambda net, x: embed(net, x, output="scores"),
        "The 'output' parameter must be one of 'logits', 'probabilities', 'log_probabilities'. Got 'scores' instead.",
    ),
    "not finite": (
        lambda net, x: embed(net, x * torch.nan),
        "The network's output for row 0 is not finite: [nan, nan, nan, nan, nan].",
    ),
    "label out of range": (
        lambda net, x: embed(net, TensorDataset(x, torch.arange(23))),
        "Label 10 of row 10 is outside 0 to 9: the network has 10 outputs.",
    ),
    "labels with a fraction": (
        lambda net, x: embed(net, TensorDataset(x, torch.ones(23))),
        "The last part of a batch of 23 rows is an array of float32 with shape (23,), which could be an input or "
        "labels.\nHint: labels are one whole number per row. Pass inputs by name, as a dict or a data set of dicts: "
        "{'input_ids': ids, 'attention_mask': mask}.",
    ),
    "labels of other rows": (
        lambda net, x: embed(net, [(x, torch.arange(5))]),
        "The last part of a batch of 23 rows is an array of int64 with shape (5,), which could be an input or labels.",
    ),
    "labels in one batch of two": (
        lambda net, x: embed(net, [(x, torch.arange(23) % 10), (x,)]),
        "The data passed to embed has 46 rows, but labels for 23 of them.",
    ),
    "a tuple of inputs": (
        lambda net, x: embed(net, (x, x)),
        "A network got a tuple of 2 arrays, which could be several inputs of the same rows, inputs with labels, or "
        "batches.\nHint: pass several inputs as a dict",
    ),
    "an input too many": (
        lambda net, x: embed(net, TensorDataset(x, x)),
        "The network takes the inputs (x), but a batch has 2 by position: too many positional arguments.",
    ),
    "names it does not know": (
        lambda net, x: embed(net, {"pixels": x}),
        "The network takes the inputs (x), but a batch has the names 'pixels': ",
    ),
    "shuffled, without labels": (
        lambda net, x: embed(net, DataLoader(x, shuffle=True)),
        "embed got a DataLoader with a RandomSampler, so results cannot be matched to rows.",
    ),
    "a device that is not there": (
        lambda net, x: embed(net, x, device="cuda:77"),
        "The 'device' parameter of embed cannot be used: ",
    ),
    "a device that does not exist": (
        lambda net, x: embed(net, x, device="nowhere"),
        "The 'device' parameter of embed cannot be used: ",
    ),
    "another device than that of the network": (
        lambda net, x: embed(net, x, device="meta"),
        "The 'device' parameter of embed is 'meta', but the network is on 'cpu'.\n"
        "Hint: move it first, network.to('meta'), or leave out 'device'.",
    ),
    "bytes": (
        lambda net, x: embed(net, (255 * x).to(torch.uint8)),
        "The network cannot compute with inputs of uint8 and shape (23, 1, 8, 8): ",
    ),
    "no network": (
        lambda net, x: embed("net", x),
        "The network of embed must be a torch.nn.Module. Got a str instead.",
    ),
    "dropout that is always on": (
        lambda net, x: embed(Returning(nn.functional.dropout, net), x),
        "The network gives two different outputs for the same rows, although it is in evaluation mode.\n"
        "Hint: torch.nn.functional.dropout(x, training=self.training) in its forward",
    ),
    "no batch": (
        lambda net, x: embed(net, DataLoader(TensorDataset(x[:0]))),
        "The data passed to embed has no rows.\nHint: pass at least one batch.",
    ),
    "no rows": (
        lambda net, x: embed(net, x[:0]),
        "The data passed to embed has no rows.\nHint: pass at least one batch.",
    ),
    "one dimension": (
        lambda net, x: embed(net, torch.ones(5)),
        "A network needs rows with at least two dimensions. Got an array of shape (5,).\n"
        "Hint: x[None] for a single sample.",
    ),
    "no data": (
        lambda net, x: embed(net, 5),
        "A network cannot be fed with a int.\n"
        "Hint: pass a DataLoader, a Dataset, a tensor, an array, or a dict of tensors.",
    ),
    "lengths": (
        lambda net, x: embed(net, {"a": x, "b": x[:3]}),
        "The tensors passed to a network have different numbers of rows: {'a': 23, 'b': 3}.",
    ),
    "not a vector a row": (
        lambda net, x: embed(Returning(lambda z: z, nn.Sequential(Transposed(), net)), x, layer="net.0.inner"),
        "Layer 'net.0.inner' gives a tensor of shape (64, 23) for a batch of 23 rows",
    ),
    "a layer that does not run": (
        lambda net, x: embed(Returning(lambda z: z, nn.ModuleDict({"used": net, "idle": nn.Linear(2, 2)})["used"]), x,
                             layer="wrap"),
        "Returning has no layer 'wrap'.",
    ),
}  # fmt: skip


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x):
        return self.inner(x.flatten(1).T).T.reshape(x.shape)


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case, net, images):
    action, message = ERRORS[case]
    with pytest.raises((InvalidInputError, InvalidParameterError), match=f"^{re.escape(message)}"):
        action(net, images)


def test_a_layer_that_does_not_run(images):
    class Idle(ConvNet):
        def __init__(self):
            super().__init__()
            self.idle = nn.Linear(2, 2)

    with pytest.raises(
        InvalidInputError, match=r"^Layer 'idle' did not run in the forward pass of the module.$"
    ):
        embed(Idle(), images, layer="idle")


def test_a_real_transformer():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        num_labels=4,
    )
    net = transformers.BertForSequenceClassification(config).eval()
    ids = torch.randint(0, 60, (9, 6))
    data = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    found = embed(net, data, layer=["penultimate", "bert.encoder.layer.0"], batch_size=4)
    assert found.proba.shape == (9, 4)
    assert {name: rows.shape for name, rows in found.views.items()} == {
        "penultimate": (9, 16), "bert.encoder.layer.0": (9, 16),
    }  # fmt: skip
