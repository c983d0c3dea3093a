# SPDX-License-Identifier: Apache-2.0
"""A convolution with its batch norm and activation, the usual block of vision nets."""

from torch import nn


def conv_norm(inputs, outputs, kernel=1, stride=1, activation=None, groups=1):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation] if activation is not None else []))
