"""ultralytics, as it is on the Python index, exports detectors to Core ML and predicts with them on Linux.

Each export predicts by YOLO("x.mlpackage"), which asks coremltools, and by moka; both must find PyTorch's boxes.
Trained weights would have to be fetched. The nets are random instead, with statistics and class scores adjusted to
generated pictures, so that a few dozen overlapping boxes pass the threshold.

Usage: detect.py [NET ...]   (default: yolov8n)
"""

import contextlib
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
# Options of the export; how far confidences, and edges in pixels, may be from PyTorch's, which computes in float32.
EXPORTS = {
    "plain": (dict(format="coreml"), 1e-3, 0.05),
    "nms": (dict(format="coreml", nms=True, quantize=32), 1e-3, 0.05),
    "half": (dict(format="coreml", quantize=16), 0.06, 2),
    "half-nms": (dict(format="coreml", nms=True), 0.06, 2),
    "mlmodel": (dict(format="mlmodel"), 1e-3, 0.05),
    "mlmodel-nms": (dict(format="mlmodel", nms=True), 1e-3, 0.05),
}


def picture(seed):
    """Rectangles on noise. Every value survives the division by 255 and the cut to an integer that ultralytics does."""
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
    """A random net in a .pt file, with normalisation and class scores adjusted to the pictures."""
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


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:4], b[2:4])
    inner = np.prod(np.maximum(high - low, 0))
    return inner / (np.prod(a[2:4] - a[:2]) + np.prod(b[2:4] - b[:2]) - inner)


def compare(what, got, expected, confidence, pixels):
    """Boxes that are clear of both thresholds must be in the other list, with the class, at their place: all of them in float32.
    Rounding swaps boxes of nearly the same confidence that suppress each other, so that of others one in twenty may be missing."""
    allowed = 0.05 if confidence > 0.01 else 0

    def missing(these, those):
        lost = []
        for box in these:
            if box[4] < CONFIDENCE + 2 * confidence:
                continue
            alike = those[those[:, 5] == box[5]]
            near = [b for b in alike if abs(b[:4] - box[:4]).max() <= pixels and abs(b[4] - box[4]) <= confidence]
            # A box that overlaps a better one as much as the threshold says may be kept on one side alone.
            rivals = [b for b in alike if b[4] > box[4] - confidence and abs(overlap(b, box) - IOU) < pixels / 20]
            if not near and not rivals:
                lost.append(box)
        return lost

    for name, lost in (("PyTorch's", missing(expected, got)), ("its own", missing(got, expected))):
        if len(lost) > allowed * len(expected):
            sys.exit(f"{what}: {len(lost)} of {name} boxes are not in the other list, for example {lost[0]}")
    return np.array([len(got), len(expected), sum(expected[:, 4] >= CONFIDENCE + 2 * confidence)])


def by_moka(model, image):
    """The boxes of a model that ends in a non-maximum suppression, from Moka alone."""
    out = model.predict({"image": image})
    centre, size = out["coordinates"][:, :2] * SIZE, out["coordinates"][:, 2:] * SIZE
    best = out["confidence"]
    corners = np.concatenate([centre - size / 2, centre + size / 2], 1).clip(0, SIZE)
    return np.concatenate([corners, best.max(1)[:, None], best.argmax(1)[:, None]], 1)


def check(net, name, options, confidence, pixels, weights):
    with contextlib.redirect_stdout(io.StringIO()):
        exported = YOLO(weights).export(imgsz=SIZE, conf=CONFIDENCE, iou=IOU, **options)
    target = pathlib.Path(exported)
    target = target.rename(target.with_name(f"{net}-{name}{target.suffix}"))
    model = moka.Model(str(target))
    suppresses = any(o.name == "coordinates" for o in model.outputs)
    settings = dict(imgsz=SIZE, conf=CONFIDENCE, iou=IOU, max_det=1000, verbose=False)
    # YOLO() takes legacy .mlmodel files no longer; Moka does.
    torch_net = YOLO(weights)
    exported_net = None if target.suffix == ".mlmodel" else YOLO(target, task="detect")
    counts, off = np.zeros(3, int), np.zeros(2)
    for seed in PICTURES:
        image = picture(seed)
        expected = boxes(torch_net.predict(image, **settings))
        if exported_net is not None:
            found = boxes(exported_net.predict(image, **settings))
            counts += compare(f"{net} {name}, YOLO", found, expected, confidence, pixels)
        if suppresses:
            counts += compare(f"{net} {name}, moka", by_moka(model, image), expected, confidence, pixels)
        else:
            raw = next(v for v in model.predict({"image": image}).values() if v.ndim == 3)
            with torch.no_grad():
                truth = torch_net.model(tensor(image))
            truth = (truth[0] if isinstance(truth, (tuple, list)) else truth).numpy()
            if raw.shape != truth.shape:
                sys.exit(f"{net} {name}, moka: shape {raw.shape}, PyTorch's is {truth.shape}")
            if raw.shape[1] == 4 + CLASSES:
                worst = abs(raw - truth)
                off = np.maximum(off, [worst[:, :4].max(), worst[:, 4:].max()])
            else:
                kept = [t[0][t[0][:, 4] >= CONFIDENCE] for t in (raw, truth)]
                counts += compare(f"{net} {name}, moka", *kept, confidence, pixels)
    said = f"{counts[0]} boxes, PyTorch {counts[1]}, {counts[2]} compared"
    if off.any():
        said += f"; outputs within {off[0]:.2g} pixels and {off[1]:.2g} in confidence"
    print(f"{net:8} {name:12} {said}", flush=True)
    if off[0] > 2 * pixels or off[1] > confidence:
        sys.exit(f"{net} {name}, moka: more than {2 * pixels} pixels or {confidence} in confidence from PyTorch's")
    if counts[2] < 20 and not off.any():
        sys.exit(f"{net} {name}: too few boxes to compare")


def main():
    nets = sys.argv[1:] or ["yolov8n"]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for net in nets:
            weights = detector(net, pathlib.Path(name))
            end_to_end = getattr(YOLO(weights).model, "end2end", False)
            for export, (options, confidence, pixels) in EXPORTS.items():
                # A net that gives what is left after suppression has none to be exported with.
                if not (end_to_end and options.get("nms")):
                    check(net, export, options, confidence, pixels, weights)


if __name__ == "__main__":
    main()
