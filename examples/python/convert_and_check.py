# SPDX-License-Identifier: Apache-2.0
"""Converts a PyTorch model with coremltools, predicts, and prints the difference to PyTorch. Runs on Linux.

Needs torch, coremltools and moka-coreml: pip install torch coremltools moka-coreml
"""

import coremltools as ct
import numpy as np
import torch


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=2, padding=1),
            torch.nn.BatchNorm2d(16),
            torch.nn.Hardswish(),
            torch.nn.Conv2d(16, 32, 3, stride=2, padding=1, groups=16),
            torch.nn.GELU(),
            torch.nn.AdaptiveAvgPool2d(1),
        )
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1)).softmax(-1)


def main():
    torch.manual_seed(0)
    net = Classifier().eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        expected = net(x).numpy()
    traced = torch.jit.trace(net, x)
    for precision in (ct.precision.FLOAT32, ct.precision.FLOAT16):
        model = ct.convert(
            traced,
            inputs=[ct.TensorType(name="x", shape=x.shape)],
            outputs=[ct.TensorType(name="probabilities")],
            minimum_deployment_target=ct.target.iOS17,
            compute_precision=precision,
        )
        got = model.predict({"x": x.numpy()})["probabilities"]
        print(f"{precision.value}: largest difference to PyTorch {np.abs(got - expected).max():.2e}")


if __name__ == "__main__":
    main()
