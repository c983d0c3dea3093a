# SPDX-License-Identifier: Apache-2.0
"""Resizing by numpy from MIL's definitions of the sampling grids; onnxruntime confirms where its modes coincide.

Where MIL's text leaves a choice open, documented results of Core ML decide (the small literal arrays below).
"""
import itertools

import numpy as np

from case import op_case
from truth import run_onnx

rng = np.random.default_rng(13)
MODES = ["DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"]


def draw(shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def grid(mode, n_in, n_out):
    """MIL's grid points before they are clamped to the input."""
    i = np.arange(n_out, dtype=np.float64)
    if mode == "DEFAULT":
        return i * ((n_in - n_in / n_out) / (n_out - 1)) if n_out > 1 else i * 0
    if mode == "STRICT_ALIGN_CORNERS":
        return i * ((n_in - 1) / (n_out - 1)) if n_out > 1 else i * 0
    if mode == "ALIGN_CORNERS":
        return i * ((n_in - 1) / (n_out - 1)) if n_out > 1 else i * 0 + (n_in - 1) / 2
    if mode == "OFFSET_CORNERS":
        delta = max(1, n_in - 1) / n_out
        return 0.5 * delta + i * delta
    spacing = n_in / n_out
    return i * spacing + 0.5 * spacing - 0.5


def linear_matrix(points, n_in):
    """Rows of weights over the input for clamped points."""
    m = np.zeros((len(points), n_in))
    for row, p in enumerate(points):
        p = min(max(p, 0), n_in - 1)
        low = int(np.floor(p))
        high = min(low + 1, n_in - 1)
        m[row, low] += 1 - (p - low)
        m[row, high] += p - low
    return m


def linear_axis(x, axis, n_out, mode):
    m = linear_matrix(grid(mode, x.shape[axis], n_out), x.shape[axis])
    return np.moveaxis(np.tensordot(m, x, (1, axis)), 0, axis)


def bilinear(x, h, w, mode):
    return linear_axis(linear_axis(x.astype(np.float64), x.ndim - 2, h, mode), x.ndim - 1, w, mode)


def check_onnx(x, h, w, y, mode, transformation, nearest="floor"):
    sizes = np.array(list(x.shape[:-2]) + [h, w], np.int64)
    attributes = dict(mode=mode, coordinate_transformation_mode=transformation)
    if mode == "nearest":
        attributes["nearest_mode"] = nearest
    other = run_onnx("Resize", [x.astype(np.float32), None, None, sizes], attributes)
    np.testing.assert_allclose(y, other, rtol=1e-4, atol=1e-5)


ONNX_NAMES = {"DEFAULT": "asymmetric", "STRICT_ALIGN_CORNERS": "align_corners", "UNALIGN_CORNERS": "half_pixel"}
for mode in MODES:
    for xs, h, w in (((1, 2, 2, 3), 3, 5), ((1, 4, 5), 2, 3), ((1, 1, 3, 4), 1, 1)):
        x = draw(xs)
        y = bilinear(x, h, w, mode)
        if mode in ONNX_NAMES and x.ndim == 4:
            check_onnx(x, h, w, y, "linear", ONNX_NAMES[mode])
        op_case("resize_bilinear", "%s_%d_%d" % (mode.lower(), h, w), {"x": x},
                {"target_size_height": h, "target_size_width": w, "sampling_mode": mode}, [y.astype(np.float32)])
        if x.ndim == 4:
            op_case("resize", "linear_%s_%d_%d" % (mode.lower(), h, w), {"x": x},
                    {"shape": [h, w], "resized_dims": np.uint32(2), "sampling_mode": mode}, [y.astype(np.float32)], opset="ios17")
x = np.array([[[0, 1]]], np.float32)
for mode, expected in (("DEFAULT", [0, 0.4, 0.8, 1, 1]), ("STRICT_ALIGN_CORNERS", [0, 0.25, 0.5, 0.75, 1]),
                       ("OFFSET_CORNERS", [0.1, 0.3, 0.5, 0.7, 0.9]), ("UNALIGN_CORNERS", [0, 0.1, 0.5, 0.9, 1])):
    op_case("resize_bilinear", "documented_" + mode.lower(), {"x": x},
            {"target_size_height": 1, "target_size_width": 5, "sampling_mode": mode}, [np.array([[expected]], np.float32)])
x = draw((1, 1, 3, 3))
op_case("resize_bilinear", "defaults", {"x": x}, {}, [x[:, :, :1, :1]])
x = draw((2, 3, 4), np.float16)
op_case("resize_bilinear", "fp16", {"x": x}, {"target_size_height": 5, "target_size_width": 3}, [bilinear(x, 5, 3, "DEFAULT").astype(np.float16)])

x = draw((1, 2, 3, 2))
y = bilinear(x, 6, 6, "STRICT_ALIGN_CORNERS")
check_onnx(x, 6, 6, y, "linear", "align_corners")
op_case("upsample_bilinear", "align_corners", {"x": x}, {"scale_factor_height": 2, "scale_factor_width": 3, "align_corners": True}, [y.astype(np.float32)])
op_case("upsample_bilinear", "align_corners_is_default", {"x": x}, {"scale_factor_height": 2, "scale_factor_width": 3}, [y.astype(np.float32)])
y = bilinear(x, 6, 6, "UNALIGN_CORNERS")
check_onnx(x, 6, 6, y, "linear", "half_pixel")
op_case("upsample_bilinear", "half_pixels", {"x": x}, {"scale_factor_height": 2, "scale_factor_width": 3, "align_corners": False}, [y.astype(np.float32)])
op_case("upsample_bilinear", "half_pixels_given_ios16", {"x": x},
        {"scale_factor_height": 2, "scale_factor_width": 3, "align_corners": False, "half_pixel_centers": True}, [y.astype(np.float32)], opset="ios16")
y = bilinear(x, 6, 6, "DEFAULT")
op_case("upsample_bilinear", "neither_ios16", {"x": x},
        {"scale_factor_height": 2, "scale_factor_width": 3, "align_corners": False, "half_pixel_centers": False}, [y.astype(np.float32)], opset="ios16")
op_case("upsample_bilinear", "documented_fraction", {"x": np.array([[[0, 1]]], np.float32)},
        {"scale_factor_height": 1.0, "scale_factor_width": 2.6, "align_corners": False}, [np.array([[[0, 0.1, 0.5, 0.9, 1]]], np.float32)])
x = draw((1, 5, 4), np.float16)
op_case("upsample_bilinear", "smaller_fp16", {"x": x}, {"scale_factor_height": 0.5, "scale_factor_width": 0.75},
        [bilinear(x, 2, 3, "STRICT_ALIGN_CORNERS").astype(np.float16)])
x = draw((1, 1, 2, 3))
op_case("upsample_bilinear", "unknown_sizes", {"x": x}, {"scale_factor_height": 2, "scale_factor_width": 1},
        [bilinear(x, 4, 3, "STRICT_ALIGN_CORNERS").astype(np.float32)], in_shapes={"x": [1, 1, None, None]}, out_shapes={"y_0": [1, 1, None, None]})


def nearest(x, h, w, half):
    i = (np.arange(h) + half) * x.shape[-2] / h
    j = (np.arange(w) + half) * x.shape[-1] / w
    return x[..., np.floor(i + 1e-9).astype(int), :][..., np.floor(j + 1e-9).astype(int)]


for xs, sh, sw in (((1, 2, 2, 3), 2, 3), ((2, 2, 3), 1, 2), ((1, 1, 4, 5), 0.5, 0.61)):
    x = draw(xs)
    h, w = int(np.floor(np.float32(sh) * x.shape[-2])), int(np.floor(np.float32(sw) * x.shape[-1]))
    y = nearest(x, h, w, 0)
    if x.ndim == 4:
        check_onnx(x, h, w, y, "nearest", "asymmetric")
    op_case("upsample_nearest_neighbor", ("scale_%s_%s" % (sh, sw)).replace(".", "_"), {"x": x},
            {"scale_factor_height": sh, "scale_factor_width": sw}, [y])
x = np.array([[[[1.5, -2.5, 3.5]]]], np.float32)
op_case("upsample_nearest_neighbor", "documented_fraction", {"x": x}, {"scale_factor_height": 3.17, "scale_factor_width": 0.67},
        [np.array([[[[1.5, -2.5]] * 3]], np.float32)])
op_case("upsample_nearest_neighbor", "documented_slight_growth", {"x": x}, {"scale_factor_height": 2.0, "scale_factor_width": 1.12},
        [np.array([[[[1.5, -2.5, 3.5]] * 2]], np.float32)])
op_case("upsample_nearest_neighbor", "defaults_fp16", {"x": x.astype(np.float16)}, {}, [x.astype(np.float16)])

for xs, h, w in (((1, 2, 2, 3), 4, 6), ((2, 2, 3), 3, 2), ((1, 1, 2, 4), 3, 5)):
    x = draw(xs)
    y = nearest(x, h, w, 0.5)
    if x.ndim == 4:
        check_onnx(x, h, w, y, "nearest", "half_pixel", "round_prefer_ceil")
    op_case("resize_nearest_neighbor", "to_%d_%d_rank%d" % (h, w, x.ndim), {"x": x}, {"target_size_height": h, "target_size_width": w}, [y])
    op_case("resize", "nearest_to_%d_%d_rank%d" % (h, w, x.ndim), {"x": x},
            {"shape": [h, w], "resized_dims": np.uint32(2), "interpolation_mode": "NEAREST_NEIGHBOR"}, [y], opset="ios17")
x = np.array([0.37, 6.17], np.float16).reshape(1, 1, 2, 1)
op_case("resize_nearest_neighbor", "documented_fp16", {"x": x}, {"target_size_height": 2, "target_size_width": 3},
        [np.repeat(x, 3, axis=3)])

x = np.array([-6.174, 9.371], np.float32).reshape(1, 1, 1, 2, 1)
y = np.array([-6.174, -6.174, 9.371, 9.371, 9.371, 9.371], np.float32).reshape(1, 1, 1, 3, 2)
op_case("resize", "documented_nearest", {"x": x}, {"shape": [1, 1, 3, 2], "resized_dims": np.uint32(2), "interpolation_mode": "NEAREST_NEIGHBOR",
                                                   "sampling_mode": "DEFAULT"}, [y], opset="ios17")
op_case("resize", "documented_nearest_size_given", {"x": x, "shape": np.array([1, 1, 3, 2], np.int32)},
        {"resized_dims": np.uint32(2), "interpolation_mode": "NEAREST_NEIGHBOR"}, [y], opset="ios17", out_shapes={"y_0": [1, 1, 1, None, None]})
op_case("resize", "documented_linear", {"x": np.array([[[0, 1]]], np.float32)}, {"shape": [1, 1, 5], "resized_dims": np.uint32(2)},
        [np.array([[[0, 0.4, 0.8, 1, 1]]], np.float32)], opset="ios17")
x = draw((1, 2, 3))
op_case("resize", "zero_keeps_size", {"x": x}, {"shape": [1, 0, 0], "resized_dims": np.uint32(2)}, [x], opset="ios17")
op_case("resize", "size_from_int16", {"x": x}, {"shape": np.array([6], np.int16), "resized_dims": np.uint32(1), "sampling_mode": "UNALIGN_CORNERS"},
        [linear_axis(x.astype(np.float64), 2, 6, "UNALIGN_CORNERS").astype(np.float32)], opset="ios17")
x = draw((2, 2, 3))
y = x.astype(np.float64)
for axis, n in enumerate((3, 4, 2)):
    y = linear_axis(y, axis, n, "ALIGN_CORNERS")
op_case("resize", "linear_three_dimensions", {"x": x}, {"shape": [3, 4, 2], "resized_dims": np.uint32(3), "sampling_mode": "ALIGN_CORNERS"},
        [y.astype(np.float32)], opset="ios17")
op_case("resize", "fp16", {"x": x.astype(np.float16)}, {"shape": [4, 5], "resized_dims": np.uint32(2), "sampling_mode": "STRICT_ALIGN_CORNERS"},
        [bilinear(x.astype(np.float16), 4, 5, "STRICT_ALIGN_CORNERS").astype(np.float16)], opset="ios17")
x = rng.integers(-50, 50, (1, 2, 2)).astype(np.int32)
op_case("resize", "nearest_int32", {"x": x}, {"shape": [4, 2], "resized_dims": np.uint32(2), "interpolation_mode": "NEAREST_NEIGHBOR"},
        [np.repeat(x, 2, axis=1)], opset="ios17")
op_case("resize", "nothing_resized", {"x": x}, {"shape": [7], "resized_dims": np.uint32(0)}, [x], opset="ios17")
x = draw((1, 1, 3))
op_case("resize", "nearest_align_corners", {"x": x}, {"shape": [4], "resized_dims": np.uint32(1), "interpolation_mode": "NEAREST_NEIGHBOR",
                                                      "sampling_mode": "STRICT_ALIGN_CORNERS"}, [x[..., [0, 1, 1, 2]]], opset="ios17")

x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
op_case("crop", "documented", {"x": x}, {"crop_height": [0, 1], "crop_width": [1, 1]}, [x[:, :, :3, 1:3]])
op_case("crop", "nothing", {"x": x}, {"crop_height": [0, 0], "crop_width": [0, 0]}, [x])
op_case("crop", "everything", {"x": x}, {"crop_height": [2, 2], "crop_width": [0, 0]}, [x[:, :, :0]])
x = draw((2, 3, 4), np.float16)
op_case("crop", "rank3_fp16", {"x": x}, {"crop_height": [1, 0], "crop_width": [0, 3]}, [x[:, 1:, :1]])
op_case("crop", "unknown_sizes", {"x": x}, {"crop_height": [1, 1], "crop_width": [1, 0]}, [x[:, 1:2, 1:]],
        in_shapes={"x": [None, None, None]}, out_shapes={"y_0": [None, None, None]})


def crop_resize(x, boxes, images, h, w, mode="DEFAULT", normalized=False, scale=1.0, box="CORNERS_HEIGHT_FIRST", pad=0.0):
    """[N, C, h, w]: box n of image images[n]."""
    ih, iw = x.shape[2:]
    out = np.full((len(boxes), x.shape[1], h, w), float(pad))
    for n, v in enumerate(np.asarray(boxes, np.float64) * scale):
        if box.endswith("WIDTH_FIRST"):
            v = v[[1, 0, 3, 2]]
        a, b = np.array([v[0], v[1]]), np.array([v[2], v[3]])
        if box.startswith("CENTER"):
            a, b = a - b / 2, a + b / 2
        if normalized:
            a, b = a * [ih - 1, iw - 1], b * [ih - 1, iw - 1]
        points = []
        for start, end, count in ((a[0], b[0], h), (a[1], b[1], w)):
            sign = 1 if end >= start else -1
            points.append(start + sign * grid(mode, abs(end - start) + 1, count))
        for i, j in itertools.product(range(h), range(w)):
            p, q = points[0][i], points[1][j]
            if -1e-9 <= p <= ih - 1 + 1e-9 and -1e-9 <= q <= iw - 1 + 1e-9:
                weights = linear_matrix([p], ih)[0][:, None] * linear_matrix([q], iw)[0][None]
                out[n, :, i, j] = (x[images[n]].astype(np.float64) * weights).sum((1, 2))
    return out


def old_boxes(name, x, roi, h, w, dtype=np.float32, opset="ios15", **settings):
    """Before ios17: roi of four numbers for every image, or of five with the image first."""
    roi = np.asarray(roi, dtype)
    if roi.shape[1] == 4:
        y = np.stack([crop_resize(x, [r] * len(x), range(len(x)), h, w, **settings) for r in roi])
    else:
        y = crop_resize(x, roi[:, 1:], roi[:, 0].astype(int), h, w, **settings)[:, None]
    names = {"mode": "sampling_mode", "normalized": "normalized_coordinates", "scale": "spatial_scale", "box": "box_coordinate_mode", "pad": "pad_value"}
    consts = {names[k]: dtype(v) if k == "pad" else v for k, v in settings.items()}
    op_case("crop_resize", name, {"x": x.astype(dtype), "roi": roi.reshape(len(roi), 1, -1, 1, 1)}, {"target_height": h, "target_width": w, **consts},
            [y.astype(dtype)], opset=opset)


x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
roi = np.array([1, 1, 2, 2], np.float32).reshape(1, 1, 4, 1, 1)
align = {"sampling_mode": "ALIGN_CORNERS", "box_coordinate_mode": "CORNERS_HEIGHT_FIRST"}
op_case("crop_resize", "documented_box", {"x": x, "roi": roi}, dict(align, target_height=2, target_width=2),
        [np.array([6, 7, 10, 11], np.float32).reshape(1, 1, 1, 2, 2)])
op_case("crop_resize", "documented_enlarged", {"x": x, "roi": roi}, dict(align, target_height=4, target_width=4),
        [(6 + np.arange(4)[:, None] * 4 / 3 + np.arange(4) / 3).astype(np.float32).reshape(1, 1, 1, 4, 4)])
op_case("crop_resize", "documented_centre", {"x": x, "roi": roi}, dict(align, target_height=1, target_width=1), [np.full((1, 1, 1, 1, 1), 8.5, np.float32)])
op_case("crop_resize", "documented_normalized", {"x": x, "roi": np.array([0, 0, 0, 1 / 3, 1 / 3], np.float32).reshape(1, 1, 5, 1, 1)},
        dict(align, target_height=2, target_width=2, normalized_coordinates=True), [np.array([1, 2, 5, 6], np.float32).reshape(1, 1, 1, 2, 2)])
op_case("crop_resize", "documented_inverted", {"x": x, "roi": np.array([2, 2, 1, 1], np.float32).reshape(1, 1, 4, 1, 1)},
        dict(align, target_height=2, target_width=2), [np.array([11, 10, 7, 6], np.float32).reshape(1, 1, 1, 2, 2)])
op_case("crop_resize", "documented_padding_ios17",
        {"x": x, "boxes": np.array([[0.1, 0.3, 1.3, 1.0], [0.5, 1.8, 1.0, 0.3], [0.0, 0.4, 0.6, 0.7]], np.float32), "box_indices": np.zeros(3, np.int32)},
        dict(align, target_height=2, target_width=2, normalized_coordinates=True, pad_value=10.0),
        [np.array([3.1, 5.2, 10, 10, 10, 7.9, 10, 13.9, 2.2, 3.1, 9.4, 10.3], np.float32).reshape(3, 1, 2, 2)], opset="ios17")
x = draw((2, 2, 4, 5))
for mode in MODES:
    old_boxes("all_images_" + mode.lower(), x, [[0.5, 1, 2.5, 3.5], [0, 0, 3, 2]], 2, 3, mode=mode)
    old_boxes("one_sample_" + mode.lower(), x[:, :1], [[1, 0.5, 1, 2, 3]], 1, 1, mode=mode)
for box in ("CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"):
    old_boxes("of_one_image_" + box.lower(), x, [[1, 1.5, 2, 1, 1.5], [0, 1, 1, 2, 2]], 2, 2, box=box)
old_boxes("scaled", x, [[0, 1, 4, 5]], 2, 2, scale=0.5, mode="OFFSET_CORNERS")
old_boxes("outside_zero", x[:1, :1], [[-1, 1, 2, 6]], 3, 3, mode="ALIGN_CORNERS")
old_boxes("outside_padded_ios16", x[:1, :1], [[-1, 1, 2, 6]], 3, 3, mode="ALIGN_CORNERS", pad=7.5, opset="ios16")
old_boxes("fp16", x[:1, :1].astype(np.float16), [[0.5, 0.5, 2.5, 3.5]], 2, 2, dtype=np.float16, mode="STRICT_ALIGN_CORNERS")
op_case("crop_resize", "defaults", {"x": x, "roi": np.array([1, 1, 2, 2], np.float32).reshape(1, 1, 4, 1, 1)}, {}, [x[None, :, :, 1:2, 1:2]])
boxes = np.array([[0, 1, 2, 3], [1, 0, 3, 4]], np.float32)
op_case("crop_resize", "boxes_default_indices_ios17", {"x": x, "boxes": boxes}, {"target_height": 2, "target_width": 3, "sampling_mode": "UNALIGN_CORNERS"},
        [crop_resize(x, boxes, [0, 1], 2, 3, "UNALIGN_CORNERS").astype(np.float32)], opset="ios17")
op_case("crop_resize", "integer_boxes_ios17", {"x": x, "boxes": boxes.astype(np.uint16), "box_indices": np.array([1, 0], np.uint16)},
        {"target_height": 2, "target_width": 2, "sampling_mode": "ALIGN_CORNERS"},
        [crop_resize(x, boxes, [1, 0], 2, 2, "ALIGN_CORNERS").astype(np.float32)], opset="ios17")

AFFINE = {"sampling_mode": "bilinear", "padding_mode": "constant", "coordinates_mode": "normalized_minus_one_to_one"}
x = np.array([11, 22, 33, 44], np.float32).reshape(1, 1, 2, 2)
m = np.array([[-1, -2, -3.7, -1, 3.5, 1.2]], np.float32)
for h, w, expected in ((3, 3, [10.752501, 2.5025, 0, 1.9799997, 0, 0, 0, 0, 0]), (2, 5, [10.752501, 5.94, 2.5025, 0.44000006, 0, 0, 0, 0, 0, 0])):
    op_case("affine", "documented_%d_%d" % (h, w), {"x": x, "transform_matrix": m},
            dict(AFFINE, output_height=h, output_width=w, padding_value=0.0, align_corners=True), [np.array(expected, np.float32).reshape(1, 1, h, w)])
for name, batch, matrices, align, dtype in (("shared_matrix", 2, 1, True, np.float32), ("matrix_each", 2, 2, True, np.float32),
                                            ("edges", 1, 1, False, np.float32), ("fp16", 1, 1, True, np.float16)):
    x = draw((batch, 2, 3, 4), dtype)
    m = (np.array([1, 0, 0, 0, 1, 0]) + 0.3 * rng.standard_normal((matrices, 6))).astype(dtype)
    theta = np.repeat(m.astype(np.float32), batch // matrices, 0).reshape(batch, 2, 3)
    flow = run_onnx("AffineGrid", [theta, np.array([batch, 2, 3, 3], np.int64)], dict(align_corners=int(align)), opset=20)
    y = run_onnx("GridSample", [x.astype(np.float32), flow], dict(mode="linear", padding_mode="zeros", align_corners=int(align)), opset=20)
    op_case("affine", name, {"x": x, "transform_matrix": m},
            dict(AFFINE, output_height=3, output_width=3, padding_value=dtype(0), align_corners=align), [y.astype(dtype)])

x = np.array([11, 22, 33, 44], np.float32).reshape(1, 1, 2, 2)
at = np.array([-1, -2, -3.7, -1, 0, 0, 3.5, 1.2], np.float32).reshape(1, 2, 2, 2)
whole = np.array([0, 0, 1, 1, 0, 0, 1, 1]).reshape(1, 2, 2, 2)
DOCUMENTED = [("bilinear", "constant", 6.17, "normalized_minus_one_to_one", True, [8.585, 6.17, 27.5, 6.17], [27.5, 44, 27.5, 44]),
              ("nearest", "border", -1.0, "unnormalized", False, [11, 11, 11, 44], [11, 44, 11, 44]),
              ("bilinear", "reflection", -1.0, "normalized_zero_to_one", True, [22, 36.3, 11, 34.1], [11, 44, 11, 44]),
              ("nearest", "symmetric", -1.0, "normalized_zero_to_one", False, [22, 33, 11, 33], [11, 44, 11, 44])]
for sampling, padding, value, coordinates, align, expected, expected_whole in DOCUMENTED:
    settings = dict(sampling_mode=sampling, padding_mode=padding, padding_value=value, coordinates_mode=coordinates, align_corners=align)
    op_case("resample", "documented_" + padding, {"x": x, "coordinates": at}, settings, [np.array(expected, np.float32).reshape(1, 1, 2, 2)])
    for opset, dtype in (("ios15", np.int32), ("ios17", np.int8), ("ios17", np.uint16)):
        op_case("resample", "documented_%s_%s" % (padding, np.dtype(dtype).name), {"x": x, "coordinates": whole.astype(dtype)}, settings,
                [np.array(expected_whole, np.float32).reshape(1, 1, 2, 2)], opset=opset)
x = draw((2, 2, 3, 4))
at = (rng.uniform(-1.6, 1.6, (2, 2, 3, 2))).astype(np.float32)
for sampling, (padding, onnx_padding), align in itertools.product(("bilinear", "nearest"), (("constant", "zeros"), ("border", "border"), ("reflect", "reflection")), (True, False)):
    if padding == "reflect":
        padding = "reflection" if align else "symmetric"
    y = run_onnx("GridSample", [x, at], dict(mode="linear" if sampling == "bilinear" else "nearest", padding_mode=onnx_padding, align_corners=int(align)), opset=20)
    settings = dict(sampling_mode=sampling, padding_mode=padding, padding_value=0.0, align_corners=align)
    name = "%s_%s_%s" % (sampling, padding, "centres" if align else "edges")
    op_case("resample", name, {"x": x, "coordinates": at}, dict(settings, coordinates_mode="normalized_minus_one_to_one"), [y])
    if sampling == "bilinear":
        op_case("resample", name + "_from_zero", {"x": x, "coordinates": ((at.astype(np.float64) + 1) / 2).astype(np.float32)},
                dict(settings, coordinates_mode="normalized_zero_to_one"), [y], tolerance=1e-4)
half = at[:1].astype(np.float16)
y = run_onnx("GridSample", [x[:1].astype(np.float16).astype(np.float32), half.astype(np.float32)], dict(mode="linear", padding_mode="border", align_corners=0), opset=20)
op_case("resample", "fp16", {"x": x[:1].astype(np.float16), "coordinates": half},
        dict(sampling_mode="bilinear", padding_mode="border", padding_value=np.float16(0), coordinates_mode="normalized_minus_one_to_one", align_corners=False),
        [y.astype(np.float16)], opset="ios16")
odd = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32).reshape(1, 1, 2, 2)
op_case("resample", "not_finite_is_outside", {"x": x[:1], "coordinates": odd},
        dict(sampling_mode="bilinear", padding_mode="constant", padding_value=2.5, coordinates_mode="unnormalized", align_corners=False),
        [np.full((1, 2, 1, 2), 2.5, np.float32)])
