# SPDX-License-Identifier: Apache-2.0
"""Gradients of samples of images: torch.autograd in float64 through torch.nn.functional.grid_sample."""
import numpy as np
import torch
import torch.nn.functional as F

from case import op_case

rng = np.random.default_rng(57)


def rand(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def wide(a, grad=False):
    return torch.tensor(a, dtype=torch.float64, requires_grad=grad)


def normalized(at, size, mode, align):
    """Coordinates of a mode as grid_sample reads them, with the same align_corners."""
    if mode == "normalized_minus_one_to_one":
        return at
    if mode == "normalized_zero_to_one":
        return 2 * at - 1
    return 2 * at / (size - 1) - 1 if align else (2 * at + 1) / size - 1


# MIL's padding and align_corners: grid_sample's padding. Its reflection is "symmetric" without aligned corners.
PADDING = {"constant": "zeros", "border": "border", "reflection": "reflection", "symmetric": "reflection"}


def resample_case(name, padding="constant", mode="normalized_minus_one_to_one", sampling="bilinear", align=True, pad=0.0,
                  x_shape=(2, 3, 5, 4), grid=(3, 6), dtype=np.float32, wide_by=1.3):
    x = rand(*x_shape, dtype=dtype)
    size = torch.tensor([x_shape[3], x_shape[2]], dtype=torch.float64)
    at = rng.uniform(-wide_by, wide_by, (x_shape[0], *grid, 2))
    if mode == "unnormalized":
        at = (at + 1) / 2 * (size.numpy() - 1)
    elif mode == "normalized_zero_to_one":
        at = (at + 1) / 2
    at = at.astype(dtype)
    a, c = wide(x, True), wide(at, True)
    y = F.grid_sample(a - pad, normalized(c, size, mode, align), mode=sampling, padding_mode=PADDING[padding], align_corners=align) + pad
    dy = rand(*y.shape, dtype=dtype)
    y.backward(wide(dy))
    consts = {"sampling_mode": sampling, "padding_mode": padding, "padding_value": dtype(pad), "coordinates_mode": mode, "align_corners": align}
    op_case("moka_resample_gradient", name, {"x": x, "coordinates": at, "dy": dy}, consts,
            [a.grad.numpy().astype(dtype), c.grad.numpy().astype(dtype)])


for mode in ("unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"):
    for align in (True, False):
        corners = "centers" if align else "edges"
        resample_case(f"constant_{mode}_{corners}", mode=mode, align=align)
        resample_case(f"border_{mode}_{corners}", "border", mode, align=align)
        resample_case(f"{'reflection' if align else 'symmetric'}_{mode}", "reflection" if align else "symmetric", mode, align=align, wide_by=3)
        resample_case(f"nearest_{mode}_{corners}", mode=mode, sampling="nearest", align=align)
resample_case("padded_with_a_number", pad=-1.5)
resample_case("one_pixel", x_shape=(1, 2, 1, 1), padding="border")
resample_case("fp16", dtype=np.float16, x_shape=(1, 1, 4, 3), grid=(2, 2))
resample_case("no_samples", grid=(0, 2))


def positions(mode, start, end, n):
    """Where n samples along a side of a box are, by coremltools' definition of the sampling modes."""
    i = np.arange(n)
    extent = abs(end - start) + 1
    if mode == "DEFAULT":
        p = i * extent / n
    elif mode == "OFFSET_CORNERS":
        p = (i + 0.5) * max(1, extent - 1) / n
    elif mode == "UNALIGN_CORNERS":
        p = (i + 0.5) * extent / n - 0.5
    else:
        p = i * (extent - 1) / (n - 1) if n > 1 else np.zeros(1) + ((extent - 1) / 2 if mode == "ALIGN_CORNERS" else 0)
    return start + p if end >= start else start - p


def crop_case(name, boxes, images, coordinates="CORNERS_HEIGHT_FIRST", sampling="DEFAULT", target=(3, 4), x_shape=(2, 3, 6, 5),
              scale=1.0, is_normalized=False, dtype=np.float32, box_dtype=np.float32, is_known=False):
    x, boxes = rand(*x_shape, dtype=dtype), np.array(boxes, box_dtype)
    a, parts = wide(x, True), []
    for box, image in zip(boxes.astype(np.float64) * scale, images):
        if "WIDTH_FIRST" in coordinates:
            box = box[[1, 0, 3, 2]]
        if "CENTER" in coordinates:
            box = np.concatenate([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2])
        if is_normalized:
            box = box * (np.array([x_shape[2], x_shape[3]] * 2) - 1)
        rows, columns = positions(sampling, box[0], box[2], target[0]), positions(sampling, box[1], box[3], target[1])
        grid = np.stack(np.broadcast_arrays(2 * columns[None, :] / (x_shape[3] - 1) - 1, 2 * rows[:, None] / (x_shape[2] - 1) - 1), -1)
        part = F.grid_sample(a[image:image + 1], wide(grid)[None], padding_mode="border", align_corners=True)
        inside = ((rows > -1e-5) & (rows < x_shape[2] - 1 + 1e-5))[:, None] & ((columns > -1e-5) & (columns < x_shape[3] - 1 + 1e-5))[None, :]
        parts.append(part * torch.tensor(inside))
    y = torch.cat(parts)
    dy = rand(*y.shape, dtype=dtype)
    y.backward(wide(dy))
    consts = {"target_height": target[0], "target_width": target[1], "box_coordinate_mode": coordinates, "sampling_mode": sampling,
              "spatial_scale": np.float32(scale), "normalized_coordinates": is_normalized}
    inputs = {"x": x, "boxes": boxes, "box_indices": np.array(images, np.int32), "dy": dy}
    if is_known:
        consts["box_indices"] = inputs.pop("box_indices")
    op_case("moka_crop_resize_gradient", name, inputs, consts, [a.grad.numpy().astype(dtype)])


BOXES = [[0.5, 1, 4.25, 3.5], [1, 0.25, 3, 4], [4.5, 3, 1.5, 0.5]]
for sampling in ("DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"):
    crop_case(sampling.lower(), BOXES, [0, 1, 1], sampling=sampling)
for coordinates in ("CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST", "CENTER_SIZE_WIDTH_FIRST"):
    crop_case(coordinates.lower(), [[2, 1.5, 2.5, 3], [1.5, 2.5, 1, 2]], [1, 0], coordinates=coordinates)
crop_case("scaled", np.array(BOXES) * 4, [0, 0, 1], scale=0.25)
crop_case("normalized", [[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]], [0, 1], is_normalized=True, sampling="STRICT_ALIGN_CORNERS")
crop_case("outside", [[-2, -1, 3, 3], [3, 2, 9, 8]], [0, 1])
crop_case("one_sample", BOXES, [0, 1, 0], target=(1, 1), sampling="ALIGN_CORNERS")
crop_case("integer_boxes", [[1, 0, 4, 3]], [1], box_dtype=np.uint16)
crop_case("fp16", [[0.5, 1, 3.25, 2.5]], [0], x_shape=(1, 2, 5, 4), dtype=np.float16)
# Devices that cannot fail while they run want to know the numbers of the images.
crop_case("known_images", BOXES, [1, 0, 1], is_known=True)
crop_case("known_images_outside", [[-2, -1, 3, 3], [3, 2, 9, 8]], [0, 1], is_known=True)
crop_case("known_images_many_channels", BOXES, [1, 0, 1], x_shape=(2, 19, 7, 9), target=(5, 6), is_known=True, sampling="ALIGN_CORNERS")
crop_case("known_images_width_first", BOXES, [1, 1, 0], coordinates="CORNERS_WIDTH_FIRST", scale=0.75, is_known=True)
resample_case("many_channels", x_shape=(2, 35, 6, 7), grid=(5, 9))
resample_case("many_channels_border", "border", x_shape=(1, 18, 9, 3), grid=(4, 21), align=False)
