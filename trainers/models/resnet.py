"""Residual networks (He et al. 2015, arXiv:1512.03385).

The names of the weights are those of torchvision's resnet18 and resnet50, whose files can be
loaded: with the same weights, the logits equal those of torchvision 0.28 (float32 on a CPU, to the
bit). As there, a bottleneck has its stride in the 3x3 convolution ("v1.5").
"""

from __future__ import annotations

from torch import Tensor, nn


class ResNet(nn.Module):
    """A first convolution, four stages of blocks, and the mean over all positions."""

    def __init__(
        self, channels: int, height: int, width: int, classes: int,
        *, depths: tuple[int, ...], bottleneck: bool, small_images: bool = False, first: int = 64,
    ) -> None:  # fmt: skip
        """Build it for images of any `height` and `width`.

        `depths` has the blocks in each of the four stages. A `bottleneck` has three convolutions
        per block, the middle one narrow, instead of two. For `small_images`, such as CIFAR's 32x32,
        the first convolution is 3x3 without pooling. The first stage has `first` channels; each
        later one has twice as many.
        """
        super().__init__()
        kernel, stride = (3, 1) if small_images else (7, 2)
        self.conv1 = nn.Conv2d(channels, first, kernel, stride, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.relu = nn.ReLU()
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, 2, padding=1)
        block = Bottleneck if bottleneck else BasicBlock
        stages, taken = [], first
        for number, depth in enumerate(depths):
            inner, blocks = first * 2**number, []
            for place in range(depth):
                blocks.append(block(taken, inner, stride=2 if number and not place else 1))
                taken = inner * block.expansion
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(taken, classes)
        self.init_weights()

    def forward(self, images: Tensor) -> Tensor:
        """Logits of a batch."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits

    def init_weights(self) -> None:
        """Draw new weights for the convolutions (He et al. 2015, arXiv:1502.01852)."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d | nn.Linear):
                module.reset_parameters()


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with a skip connection."""

    expansion = 1

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        """Build it, from `channels` to `inner`."""
        super().__init__()
        self.conv1 = nn.Conv2d(channels, inner, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.downsample = short_cut(channels, inner, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add the convolutions' output to the input."""
        found = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        result: Tensor = self.relu(found + self.downsample(x))
        return result


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a skip connection and 4 x `inner` output channels."""

    expansion = 4

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        """Build it, from `channels` to four times `inner`."""
        super().__init__()
        self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, 4 * inner, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * inner)
        self.relu = nn.ReLU()
        self.downsample = short_cut(channels, 4 * inner, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add the convolutions' output to the input."""
        found = self.relu(self.bn1(self.conv1(x)))
        found = self.relu(self.bn2(self.conv2(found)))
        result: Tensor = self.relu(self.bn3(self.conv3(found)) + self.downsample(x))
        return result


def short_cut(channels: int, becomes: int, stride: int) -> nn.Module:
    """Return the identity, or a 1x1 convolution if the shape changes."""
    if channels == becomes and stride == 1:
        return nn.Identity()
    conv = nn.Conv2d(channels, becomes, 1, stride, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(becomes))
