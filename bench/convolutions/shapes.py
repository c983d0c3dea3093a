# SPDX-License-Identifier: Apache-2.0
"""The convolutions of the benchmark: windows of one pixel and one-dimensional windows."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution of x, [images, inputs, *size]."""

    net: str
    inputs: int
    outputs: int
    size: tuple
    taps: int = 1
    dilation: int = 1
    stride: int = 1
    groups: int = 1
    images: int = 1
    after: str = ""  # "relu", "silu", "add" (the sum with another input), "add relu"

    @property
    def pad(self):
        return (self.taps - 1) * self.dilation // 2

    @property
    def made(self):
        return tuple((s + 2 * self.pad - (self.taps - 1) * self.dilation - 1) // self.stride + 1 for s in self.size)

    @property
    def weight(self):
        return (self.outputs, self.inputs // self.groups, *(self.taps for _ in self.size))

    @property
    def x(self):
        return (self.images, self.inputs, *self.size)

    @property
    def y(self):
        return (self.images, self.outputs, *self.made)

    @property
    def flops(self):
        return 2 * product(self.y) * product(self.weight[1:])

    @property
    def bytes(self):
        """What must be read and written once."""
        return 4 * (product(self.x) + product(self.weight) + product(self.y) * (2 if "add" in self.after else 1))

    @property
    def name(self):
        parts = [f"{self.inputs} -> {self.outputs}, {' x '.join(map(str, self.size))}"]
        parts += [f"{self.taps} taps"] * (self.taps > 1) + [f"dilation {self.dilation}"] * (self.dilation > 1)
        parts += [f"stride {self.stride}"] * (self.stride > 1) + [f"{self.groups} groups"] * (self.groups > 1)
        parts += [f"{self.images} images"] * (self.images > 1) + [self.after] * bool(self.after)
        return ", ".join(parts)


def product(sizes):
    n = 1
    for s in sizes:
        n *= s
    return n


def square(n):
    return (n, n)


CONVOLUTIONS = [
    Conv("resnet50", 64, 256, square(56)),
    Conv("resnet50", 1024, 256, square(14), after="relu"),
    Conv("mobilenet_v2", 320, 1280, square(14), after="relu"),
    Conv("mobilenet_v2", 1280, 320, square(14)),
    Conv("mobileone", 448, 1792, square(7), after="relu"),
    Conv("resnet50", 256, 64, square(56), after="relu"),
    Conv("resnet50", 512, 128, square(28), after="relu"),
    Conv("resnet50", 128, 512, square(28), after="add relu"),
    Conv("resnet50", 256, 1024, square(14), after="add relu"),
    Conv("resnet50", 2048, 512, square(7), after="relu"),
    Conv("resnet50", 512, 2048, square(7), after="add relu"),
    Conv("resnet50", 256, 512, square(56), stride=2),
    Conv("resnet50", 512, 1024, square(28), stride=2),
    Conv("shufflenet", 480, 480, square(28), groups=4),
    Conv("regnet", 1024, 1024, square(14), groups=8),
    Conv("yolov3", 1024, 512, square(13), after="relu"),
    Conv("yolov8n", 128, 64, square(80), after="silu"),
    Conv("resnet50", 256, 256, square(14), images=8, after="relu"),
    Conv("resnet50", 512, 512, square(7), images=4),
    Conv("ecapa_tdnn", 1536, 1536, (200,)),
    Conv("ecapa_tdnn", 1024, 1024, (199,), after="relu"),
    Conv("ecapa_tdnn", 128, 128, (200,), 3, dilation=4, after="relu"),
    Conv("conformer", 512, 1024, (200,)),
    Conv("wav2vec2", 512, 512, (4096,)),
    Conv("hifigan", 64, 64, (4096,), 11, dilation=5),
    Conv("hifigan", 32, 32, (8192,), 7, dilation=3),
    Conv("hifigan", 128, 128, (2048,), 3),
    Conv("hifigan", 256, 256, (512,), 11, dilation=1, after="add"),
    Conv("hifigan", 80, 512, (128,), 7),
    Conv("wav2vec2", 512, 512, (3200,), 3, stride=2),
    Conv("wav2vec2", 768, 768, (199,), 127, groups=16),
    Conv("tcn", 256, 256, (1000,), 3, dilation=8, images=4, after="relu"),
]
