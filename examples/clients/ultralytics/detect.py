# SPDX-License-Identifier: Apache-2.0
"""Runs the unmodified ultralytics from the Python index: exports detectors to Core ML and predicts with them on Linux.

Each export predicts with YOLO("x.mlpackage"), which uses coremltools, and with moka. Both must find PyTorch's boxes.
PyTorch computes in float32 with the weights of the export: the weights of a half export are rounded to float16 first, and
those of an int8 export are read back from the file.

ultralytics asks coremltools for the Neural Engine, where float16 exports compute in float16. The boxes of
YOLO("x.mlpackage") may therefore have twice the error of PyTorch in float16, since both sides round.

Trained weights would have to be downloaded, so the nets are random. Their statistics and class scores are adjusted to
generated pictures, so that a few dozen overlapping boxes pass the threshold.

Usage: detect.py [NET ...]   (default: yolov8n)
"""

import contextlib
import copy
import io
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_AUTOINSTALL", "false")

import numpy as np
import torch
from PIL import Image
from ultralytics import YOLO

import moka

PICTURES = range(4)
SIZE, CLASSES, CONFIDENCE, IOU = 160, 80, 0.25, 0.7
# Allowed errors of confidences, and of edges in pixels, against PyTorch when both compute in float32.
FLOAT32 = (1e-3, 0.05)
# Options of the export, and what its weights are.
EXPORTS = {
    "plain": (dict(format="coreml"), "float32"),
    "nms": (dict(format="coreml", nms=True, quantize=32), "float32"),
    "half": (dict(format="coreml", quantize=16), "float16"),
    "half-nms": (dict(format="coreml", nms=True), "float16"),
    "int8": (dict(format="coreml", quantize=8), "int8"),
    "mlmodel": (dict(format="mlmodel"), "float32"),
    "mlmodel-nms": (dict(format="mlmodel", nms=True), "float32"),
}


def picture(seed):
    """Rectangles on noise. Every value survives ultralytics' division by 255 and truncation to an integer."""
    values = np.array([v for v in range(256) if np.uint8(np.float32(v) / np.float32(255) * 255) == v], np.uint8)
    rng = np.random.RandomState(seed)
    pixels = rng.randint(0, 60, (SIZE, SIZE, 3))
    for _ in range(60):
        x, y = rng.randint(-20, SIZE, 2).clip(0)
        width, height = rng.randint(12, 60, 2)
        pixels[y : y + height, x : x + width] = rng.randint(60, 256, 3)
    return Image.fromarray(values[np.searchsorted(values, pixels).clip(max=len(values) - 1)])


def tensor(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float() / 255


def detector(net, folder):
    """A random net in a .pt file, with normalization and class scores adjusted to the pictures."""
    torch.manual_seed(0)
    yolo = YOLO(f"{net}.yaml", task="detect")
    model = yolo.model
    batch = torch.cat([tensor(picture(seed)) for seed in PICTURES])
    with torch.no_grad():
        norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
        for m in norms:
            m.reset_running_stats()
            m.momentum = None
        model.train()
        for _ in range(2):
            model(batch)
        model.eval()
        head = model.model[-1]
        for branch in {id(b): b for b in (head.cv3, getattr(head, "one2one_cv3", head.cv3))}.values():
            for level in branch:
                last = level[-1]
                logits = []
                hook = last.register_forward_hook(lambda _m, _i, out, logits=logits: logits.append(out))
                model(batch)
                hook.remove()
                values = logits[0]
                scale = 1.5 / values.std()
                last.weight *= scale
                last.bias[:] = (last.bias - values.mean((0, 2, 3))) * scale - 5.5
    path = folder / f"{net}.pt"
    yolo.save(path)
    return path


def boxes(results):
    found = results[0].boxes
    return np.concatenate([found.xyxy.numpy(), found.conf.numpy()[:, None], found.cls.numpy()[:, None]], 1)


def outputs(model, image, dtype=torch.float32):
    """The output of PyTorch's net for all places of the picture, [1, 4 + classes, places] or [1, boxes, 6]."""
    with torch.no_grad():
        out = model.to(dtype)(tensor(image).to(dtype))
    return (out[0] if isinstance(out, (tuple, list)) else out).float().numpy()


def stored_weights(path):
    """The weights of a compressed ML program from its file, by name without the converter's suffix."""
    import coremltools as ct

    spec = ct.optimize.coreml.decompress_weights(ct.models.MLModel(str(path), skip_model_load=True))
    found = ct.optimize.coreml.get_weights_metadata(spec, weight_threshold=0)
    return {name.split("_to_fp16")[0].split("_palettized")[0].split("_quantized")[0]: w.val for name, w in found.items()}


def truth_of(weights, kind, target):
    """PyTorch's net with the weights of the export, computed in float32."""
    net = YOLO(weights)
    model = net.model.eval().fuse()
    found = 0
    with torch.no_grad():
        if kind == "float16":
            for p in model.parameters():
                p.copy_(p.half().float())
        if kind == "int8":
            left = stored_weights(target)
            known = list(model.named_parameters())
            for name, p in known:
                value = left.pop(name.replace(".", "_"), None)
                if value is None:
                    p.copy_(p.half().float())  # the converter computes these again, in float16
                elif value.size == p.numel():
                    p.copy_(torch.from_numpy(np.asarray(value, np.float32)).reshape(p.shape))
                else:
                    sys.exit(f"{target}: weight {name} has shape {value.shape}, PyTorch's has {tuple(p.shape)}")
                found += value is not None
            if found < 0.9 * len(known):
                sys.exit(f"{target}: has {found} of the {len(known)} weights by PyTorch's names; others are {sorted(left)[:4]}")
            head = model.model[-1]
            outputs(model, picture(0))  # creates the anchors
            # coremltools' palettes may change these weights considerably, and the file's own are the ones that it
            # computes with.
            for attribute in ("anchors", "strides"):
                exact = getattr(head, attribute)
                values = [v for v in left.values() if v.size == exact.numel()]
                if len(values) != 1:
                    sys.exit(f"{target}: {len(values)} constants are as large as PyTorch's {attribute}, expected one")
                setattr(head, attribute, torch.from_numpy(np.asarray(values[0], np.float32)).reshape(exact.shape))
    return net


def float16_error(model):
    """(confidence, pixels): the largest differences between PyTorch in float16 and in float32 over the pictures."""
    confidence, pixels = 0.0, 0.0
    for seed in PICTURES:
        exact = outputs(model, picture(seed))
        off = abs(outputs(copy.deepcopy(model), picture(seed), torch.float16) - exact)[0]
        if exact.shape[1] == 4 + CLASSES:
            off = off[:, ((exact[0, :2] >= 0) & (exact[0, :2] <= SIZE)).all(0)]
        else:
            off = off[exact[0, :, 4] >= CONFIDENCE / 2].T
        confidence, pixels = max(confidence, off[4:].max()), max(pixels, off[:4].max())
    return confidence, pixels


def could_overlap(a, b, pixels):
    """The largest intersection over union of boxes whose edges may be off by the given number of pixels."""
    wide = lambda box, by: np.concatenate([box[:2] - by, box[2:4] + by])
    area = lambda box: np.prod(np.maximum(box[2:4] - box[:2], 0))
    common = lambda p, q: np.prod(np.maximum(np.minimum(p[2:4], q[2:4]) - np.maximum(p[:2], q[:2]), 0))
    inner = common(wide(a, pixels), wide(b, pixels))
    union = area(wide(a, -pixels)) + area(wide(b, -pixels)) - common(wide(a, -pixels), wide(b, -pixels))
    return min(1.0, inner / union) if union > 0 else 1.0


def compare(what, got, expected, confidence, pixels):
    """Compares the results of suppression when edges and confidences may be off by the given amounts. A box clearly above the
    threshold is in the other list, with its class and place, or a box of at least similar confidence there suppresses it."""
    for name, these, those in (("PyTorch's", expected, got), ("its own", got, expected)):
        for box in these:
            if box[4] < CONFIDENCE + 2 * confidence:
                continue
            # In float16 several classes may have the same confidence, and the first wins. compare_places checks the
            # class.
            alike = those if confidence > FLOAT32[0] else those[those[:, 5] == box[5]]
            near = [b for b in alike if abs(b[:4] - box[:4]).max() <= pixels and abs(b[4] - box[4]) <= confidence]
            rivals = [b for b in alike if b[4] > box[4] - 2 * confidence and could_overlap(b, box, 2 * pixels) > IOU]
            if not near and not rivals:
                nearest = sorted(alike, key=lambda b: abs(b[:4] - box[:4]).max())[:2]
                sys.exit(f"{what}: one of {name} boxes is not in the other list: {box}; nearest there are {nearest} "
                         f"({pixels:.3g} pixels and {confidence:.3g} in confidence are allowed)")
    # Boxes that the picture's border cuts had a smaller overlap before.
    whole = [box for box in got if box[:2].min() > 0 and box[2:4].max() < SIZE]
    for i, box in enumerate(whole):
        for other in whole[:i]:
            if box[5] == other[5] and could_overlap(box, other, 0) > IOU + 1e-3:
                sys.exit(f"{what}: {box} and {other} overlap more than {IOU}")
    return np.array([len(got), len(expected), sum(expected[:, 4] >= CONFIDENCE + 2 * confidence)])


def compare_places(what, got, raw, confidence, pixels):
    """Every box is at a place of the net's output and has that place's confidence in its class."""
    if raw.shape[1] != 4 + CLASSES:
        return
    center, size = raw[0, :2], raw[0, 2:4]
    places = np.concatenate([center - size / 2, center + size / 2]).clip(0, SIZE)
    for box in got:
        off = abs(places - box[:4, None]).max(0)
        if not any((off <= pixels) & (abs(raw[0, 4 + int(box[5])] - box[4]) <= confidence)):
            sys.exit(f"{what}: PyTorch's net has no place for the box {box}; the nearest is {off.min():.3g} pixels away")


def by_moka(model, image):
    """The boxes of a model that ends in a non-maximum suppression, from Moka alone."""
    out = model.predict({"image": image})
    center, size = out["coordinates"][:, :2] * SIZE, out["coordinates"][:, 2:] * SIZE
    best = out["confidence"]
    corners = np.concatenate([center - size / 2, center + size / 2], 1).clip(0, SIZE)
    return np.concatenate([corners, best.max(1)[:, None], best.argmax(1)[:, None]], 1)


def check(net, name, options, kind, weights):
    with contextlib.redirect_stdout(io.StringIO()):
        exported = YOLO(weights).export(imgsz=SIZE, conf=CONFIDENCE, iou=IOU, **options)
    target = pathlib.Path(exported)
    target = target.rename(target.with_name(f"{net}-{name}{target.suffix}"))
    model = moka.Model(str(target))
    suppresses = any(o.name == "coordinates" for o in model.outputs)
    settings = dict(imgsz=SIZE, conf=CONFIDENCE, iou=IOU, max_det=1000, verbose=False)
    truth = truth_of(weights, kind, target)
    engine = FLOAT32 if kind == "float32" else tuple(2 * e for e in float16_error(truth.model))
    # YOLO() no longer accepts legacy .mlmodel files, but Moka does.
    exported_net = None if target.suffix == ".mlmodel" else YOLO(target, task="detect")
    counts, off = np.zeros(3, int), np.zeros(2)
    for seed in PICTURES:
        image = picture(seed)
        raw = outputs(truth.model, image)
        expected = boxes(truth.predict(image, **settings))
        if exported_net is not None:
            found = boxes(exported_net.predict(image, **settings))
            counts += compare(f"{net} {name}, YOLO", found, expected, *engine)
            compare_places(f"{net} {name}, YOLO", found, raw, *engine)
        if suppresses:
            found = by_moka(model, image)
            counts += compare(f"{net} {name}, moka", found, expected, *FLOAT32)
            compare_places(f"{net} {name}, moka", found, raw, *FLOAT32)
            continue
        got = next(v for v in model.predict({"image": image}).values() if v.ndim == 3)
        if got.shape != raw.shape:
            sys.exit(f"{net} {name}, moka: shape {got.shape}, PyTorch's is {raw.shape}")
        if raw.shape[1] == 4 + CLASSES:
            worst = abs(got - raw)
            off = np.maximum(off, [worst[:, :4].max(), worst[:, 4:].max()])
        else:
            kept = [t[0][t[0][:, 4] >= CONFIDENCE] for t in (got, raw)]
            counts += compare(f"{net} {name}, moka", *kept, *FLOAT32)
    said = f"{counts[0]} boxes, PyTorch {counts[1]}, {counts[2]} compared"
    if off.any():
        said += f"; outputs within {off[0]:.2g} pixels and {off[1]:.2g} in confidence"
    if engine != FLOAT32:
        said += f"; float16 may take {engine[1]:.2g} and {engine[0]:.2g}"
    print(f"{net:8} {name:12} {said}", flush=True)
    if off[0] > FLOAT32[1] or off[1] > FLOAT32[0]:
        sys.exit(f"{net} {name}, moka: more than {FLOAT32[1]} pixels or {FLOAT32[0]} in confidence from PyTorch's")
    if counts[2] < 20 and not off.any():
        sys.exit(f"{net} {name}: too few boxes to compare")


def main():
    nets = sys.argv[1:] or ["yolov8n"]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for net in nets:
            weights = detector(net, pathlib.Path(name))
            end_to_end = getattr(YOLO(weights).model, "end2end", False)
            for export, (options, kind) in EXPORTS.items():
                # A net that already returns suppressed boxes cannot be exported with a suppression.
                if not (end_to_end and options.get("nms")):
                    check(net, export, options, kind, weights)


if __name__ == "__main__":
    main()
