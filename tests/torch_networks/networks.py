"""Small networks in the forms that users have them."""

from types import SimpleNamespace

import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(16)
        self.hidden = nn.Linear(4 * 36, 16)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.drop(torch.relu(self.conv(x))).flatten(1)
        return self.head(torch.relu(self.norm(self.hidden(x))))


class Returning(nn.Module):
    """A network that gives its logits in another form."""

    def __init__(self, wrap, net=None):
        super().__init__()
        self.net, self.wrap = net or ConvNet(), wrap

    def forward(self, x):
        return self.wrap(self.net(x))


class ByName(nn.Module):
    """A network that takes its inputs by name, as those of Hugging Face do."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.classifier = nn.Linear(12, 3)

    def forward(self, input_ids, attention_mask):
        weight = attention_mask[:, :, None].float()
        pooled = (self.embedding(input_ids) * weight).sum(1) / weight.sum(1)
        return SimpleNamespace(logits=self.classifier(pooled))
