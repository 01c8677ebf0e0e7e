"""Reference networks: the paper's small convolutional network, and residual networks for small images."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

__all__ = ["ARCHITECTURES", "ResNet", "SmallCNN"]


class SmallCNN(nn.Module):
    """Two convolutional and two dense layers.

    Parameters
    ----------
    n_channels, size : int
        Of the images, which are squares.
    n_classes : int
    """

    def __init__(self, n_channels: int, size: int, n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_channels, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        side = ((size - 2) // 2 - 2) // 2
        self.dense = nn.Linear(64 * side * side, 128)
        self.dropout = nn.Dropout(0.25)
        self.head = nn.Linear(128, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of images."""
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.relu(self.dense(x.flatten(1)))
        return self.head(self.dropout(x))


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    widening = 1

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = _shortcut(n_in, width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        inner = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


class Bottleneck(nn.Module):
    """A narrow convolution between two of a single pixel, beside a shortcut."""

    widening = 4

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = self.widening * width
        self.conv1 = nn.Conv2d(n_in, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, n_out, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(n_out)
        self.shortcut = _shortcut(n_in, n_out, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        inner = torch.relu(self.norm1(self.conv1(x)))
        inner = torch.relu(self.norm2(self.conv2(inner)))
        return torch.relu(self.norm3(self.conv3(inner)) + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network for images of 32 × 32 pixels: no pooling at the start.

    Parameters
    ----------
    n_channels, size : int
        Of the images; any size will do.
    n_classes : int
    block : type
        :class:`BasicBlock` or :class:`Bottleneck`.
    depths, widths : sequence of int
        Blocks and channels of each stage.
    """

    def __init__(
        self,
        n_channels: int,
        size: int,
        n_classes: int,
        *,
        block: type[BasicBlock] | type[Bottleneck] = BasicBlock,
        depths: Sequence[int] = (2, 2, 2, 2),
        widths: Sequence[int] = (64, 128, 256, 512),
    ) -> None:
        super().__init__()
        n_in = widths[0]
        self.stem = nn.Sequential(
            nn.Conv2d(n_channels, n_in, 3, 1, 1, bias=False), nn.BatchNorm2d(n_in), nn.ReLU()
        )
        stages = []
        for number, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            blocks = []
            for position in range(depth):
                stride = 2 if number > 0 and position == 0 else 1
                blocks.append(block(n_in, width, stride))
                n_in = width * block.widening
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(n_in, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of images."""
        return self.head(self.stages(self.stem(x)).mean(dim=(2, 3)))


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Module:
    if stride == 1 and n_in == n_out:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))


def _resnet(block: Any, depths: Sequence[int], widths: Sequence[int]) -> Callable[[int, int, int], nn.Module]:
    return lambda n_channels, size, n_classes: ResNet(
        n_channels, size, n_classes, block=block, depths=depths, widths=widths
    )


#: Networks by name, for the number of channels, the size and the number of classes. The paper has the small one for
#: MNIST and Fashion-MNIST, and ResNet-50 for CIFAR-10; ResNet-20 is what two cores can train.
ARCHITECTURES: dict[str, Callable[[int, int, int], nn.Module]] = {
    "cnn": SmallCNN,
    "resnet20": _resnet(BasicBlock, (3, 3, 3), (16, 32, 64)),
    "resnet18": _resnet(BasicBlock, (2, 2, 2, 2), (64, 128, 256, 512)),
    "resnet50": _resnet(Bottleneck, (3, 4, 6, 3), (64, 128, 256, 512)),
}


def three_layers(network: nn.Module) -> list[str]:
    """The embedding, the last convolution, and the one halfway to it, without those of shortcuts."""
    names = [
        name
        for name, part in network.named_modules()
        if isinstance(part, nn.Conv2d) and part.kernel_size != (1, 1)
    ]
    return list(dict.fromkeys(["penultimate", *names[-1:], *names[(len(names) - 1) // 2 :][:1]]))
