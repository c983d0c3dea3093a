# SPDX-License-Identifier: Apache-2.0
"""The object detector of Turi Create: its export layer by layer, completed by examples/layers/turi_detector.py, against NumPy."""

import pathlib
import subprocess
import sys

import moka
import numpy as np
import pytest

ct = pytest.importorskip("coremltools")
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples/layers/turi_detector.py"
HEIGHT, WIDTH, CLASSES = 4, 5, ["cat", "dog", "owl"]
ANCHORS = np.float32([[1, 2], [1.5, 0.75], [3, 2.5]])
BOXES, ROW = len(ANCHORS) * HEIGHT * WIDTH, 5 + len(CLASSES)
rng = np.random.default_rng(3)
FIRST = rng.standard_normal((4, 4, 3, 8)).astype(np.float32) * 0.3  # height, width, in, out
LAST = rng.standard_normal((8, len(ANCHORS) * ROW)).astype(np.float32) * 0.8


def exported(path):
    """The model that export_coreml writes without a suppression, with a convolution of stride 4 in place of its first layers."""
    arrays = ct.models.datatypes.Array
    outputs = [("confidence", arrays(BOXES, len(CLASSES))), ("coordinates", arrays(BOXES, 4))]
    b = ct.models.neural_network.NeuralNetworkBuilder([("image", arrays(3, 4 * HEIGHT, 4 * WIDTH))], outputs)
    size, count = HEIGHT * WIDTH, len(ANCHORS)
    b.add_convolution("conv1", 3, 8, 4, 4, 4, 4, "valid", 1, FIRST, None, False, input_name="image", output_name="conv1")
    b.add_activation("leaky1", "LEAKYRELU", "conv1", "leaky1", [0.1])
    b.add_pooling("pool5", 2, 2, 1, 1, "MAX", "SAME", "leaky1", "pool5")
    b.add_convolution("conv8", 8, count * ROW, 1, 1, 1, 1, "valid", 1, LAST[None, None], None, False, input_name="pool5", output_name="conv8")
    b.add_reshape("ymap_pre", "conv8", "ymap_pre", [1, count, ROW, size], 0)
    b.add_permute("ymap", [0, 2, 1, 3], "ymap_pre", "ymap")
    b.add_slice("raw_xy", "ymap", "raw_xy", "channel", 0, 2, 1)
    b.add_activation("rel_xy_sp", "SIGMOID", "raw_xy", "rel_xy_sp")
    b.add_reshape("rel_xy", "rel_xy_sp", "rel_xy", [1, 2, BOXES, 1], 0)
    grid = np.float32(np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT)))
    grid = np.tile(grid[:, None], (count, 1, 1)).reshape(2, -1, 1)
    b.add_load_constant("constant_xy", "constant_xy", grid, grid.shape)
    b.add_elementwise("xy", ["constant_xy", "rel_xy"], "xy", "ADD")
    b.add_slice("raw_wh", "ymap", "raw_wh", "channel", 2, 4, 1)
    b.add_unary("rel_wh_sp", "raw_wh", "rel_wh_sp", "exp")
    b.add_reshape("rel_wh", "rel_wh_sp", "rel_wh", [1, 2 * count, HEIGHT, WIDTH], 0)
    anchors = np.tile(ANCHORS.T.reshape(-1, 1, 1), (HEIGHT, WIDTH))
    b.add_load_constant("c_anchors", "c_anchors", anchors, anchors.shape)
    b.add_elementwise("wh_pre", ["c_anchors", "rel_wh"], "wh_pre", "MULTIPLY")
    b.add_reshape("wh", "wh_pre", "wh", [1, 2, BOXES, 1], 0)
    b.add_elementwise("boxes_t", ["xy", "wh"], "boxes_t", "CONCAT")
    b.add_permute("boxes", [0, 2, 1, 3], "boxes_t", "boxes")
    scale = np.tile(np.float32([1 / WIDTH, 1 / HEIGHT] * 2)[:, None], (BOXES, 1, 1))
    b.add_scale("coordinates", scale, 0, False, "boxes", "coordinates", scale.shape)
    b.add_slice("scores", "ymap", "scores", "channel", 5, ROW, 1)
    b.add_softmax("probs", "scores", "probs")
    b.add_slice("logit", "ymap", "logit", "channel", 4, 5, 1)
    b.add_activation("conf", "SIGMOID", "logit", "conf")
    b.add_elementwise("tiled", ["conf"] * len(CLASSES), "tiled", "CONCAT")
    b.add_elementwise("confprobs", ["tiled", "probs"], "confprobs", "MULTIPLY")
    b.add_reshape("confprobs_t", "confprobs", "confprobs_t", [1, len(CLASSES), BOXES, 1], 0)
    b.add_permute("confidence", [0, 2, 1, 3], "confprobs_t", "confidence")
    b.set_pre_processing_parameters(image_input_names=["image"], image_scale=1 / 255)
    b.spec.description.metadata.userDefined["classes"] = ",".join(CLASSES)
    ct.models.utils.save_spec(b.spec, str(path))
    return str(path)


def boxes_of(picture):
    """Confidence and coordinates of all boxes."""
    windows = (picture / 255).reshape(HEIGHT, 4, WIDTH, 4, 3)
    x = np.einsum("aubvc,uvco->oab", windows, FIRST.astype(np.float64))
    x = np.pad(np.where(x > 0, x, 0.1 * x), ((0, 0), (0, 1), (0, 1)), constant_values=-np.inf)
    x = np.maximum.reduce([x[:, i : i + HEIGHT, j : j + WIDTH] for i in (0, 1) for j in (0, 1)])
    y = np.einsum("cab,co->oab", x, LAST.astype(np.float64)).reshape(len(ANCHORS), ROW, HEIGHT, WIDTH)
    confidence, coordinates = [], []
    for anchor, row in zip(ANCHORS, y):
        for i in range(HEIGHT):
            for j in range(WIDTH):
                t = row[:, i, j]
                sigmoid = 1 / (1 + np.exp(-t))
                coordinates.append([(j + sigmoid[0]) / WIDTH, (i + sigmoid[1]) / HEIGHT, *np.exp(t[2:4]) * anchor / (WIDTH, HEIGHT)])
                confidence.append(sigmoid[4] * np.exp(t[5:]) / np.exp(t[5:]).sum())
    return np.array(confidence), np.array(coordinates)


def overlap(a, b):
    sides = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2) - np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    inner = np.prod(np.maximum(sides, 0))
    return inner / (a[2] * a[3] + b[2] * b[3] - inner)


def suppressed(confidence, coordinates, iou, least):
    kept = []
    for i in np.argsort(-confidence.max(1), kind="stable"):
        rivals = [k for k in kept if confidence[k].argmax() == confidence[i].argmax()]
        if confidence[i].max() >= least and all(overlap(coordinates[i], coordinates[k]) <= iou for k in rivals):
            kept.append(i)
    return confidence[kept], coordinates[kept]


def test_the_detector_and_its_suppression(tmp_path):
    path = exported(tmp_path / "detector.mlmodel")
    subprocess.run([sys.executable, str(SCRIPT), path, str(tmp_path / "complete.mlmodel")], check=True)
    raw, complete = moka.Model(path), moka.Model(str(tmp_path / "complete.mlmodel"))
    assert ct.utils.load_spec(str(tmp_path / "complete.mlmodel")).WhichOneof("Type") == "pipeline"
    dropped = 0
    for seed in range(3):
        picture = np.random.default_rng(seed).integers(0, 256, (4 * HEIGHT, 4 * WIDTH, 3), dtype=np.uint8)
        confidence, coordinates = boxes_of(picture)
        out = raw.predict({"image": picture})
        np.testing.assert_allclose(out["confidence"], confidence, atol=2e-6)
        np.testing.assert_allclose(out["coordinates"], coordinates, rtol=2e-5, atol=2e-6)
        for thresholds in ({}, {"iouThreshold": 0.2, "confidenceThreshold": 0.5}, {"confidenceThreshold": 0.0}):
            expected = suppressed(confidence, coordinates, thresholds.get("iouThreshold", 0.45), thresholds.get("confidenceThreshold", 0.25))
            out = complete.predict({"image": picture, **thresholds})
            np.testing.assert_allclose(out["confidence"], expected[0], atol=2e-6)
            np.testing.assert_allclose(out["coordinates"], expected[1], rtol=2e-5, atol=2e-6)
            dropped += BOXES - len(expected[0])
    assert dropped > 100
