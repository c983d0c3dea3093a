# SPDX-License-Identifier: Apache-2.0
"""Writes the drawings of the README next to this script: five of each class in folders, from which a model learns, and another house.

Needs Pillow."""

import math
import pathlib
import random

from PIL import Image, ImageDraw

FOLDER = pathlib.Path(__file__).parent
SIZE, SCALE = 32, 8

#: Lines of points, between -1 and 1.
CLASSES = {
    "cross": [[(-1, -1), (1, 1)], [(-1, 1), (1, -1)]],
    "house": [[(-0.8, 1), (-0.8, -0.1), (0, -1), (0.8, -0.1), (0.8, 1), (-0.8, 1)], [(-0.8, -0.1), (0.8, -0.1)]],
    "wave": [[(x / 8, math.sin(x * 0.9) * 0.5) for x in range(-8, 9)]],
}


def drawn(name, rng):
    """A drawing by an unsteady hand: white strokes on black."""
    size = SIZE * SCALE
    picture = Image.new("L", (size, size))
    draw = ImageDraw.Draw(picture)
    radius = rng.uniform(0.3, 0.42) * size
    x, y, turn = size / 2 + rng.uniform(-20, 20), size / 2 + rng.uniform(-20, 20), rng.uniform(-0.12, 0.12)
    for line in CLASSES[name]:
        points = [(a + rng.uniform(-0.06, 0.06), b + rng.uniform(-0.06, 0.06)) for a, b in line]
        turned = [(x + radius * (a * math.cos(turn) - b * math.sin(turn)), y + radius * (a * math.sin(turn) + b * math.cos(turn))) for a, b in points]
        draw.line(turned, fill=255, width=int(1.6 * SCALE), joint="curve")
    return picture.resize((SIZE, SIZE), Image.LANCZOS)


if __name__ == "__main__":
    rng = random.Random(1)
    for name in CLASSES:
        (FOLDER / "mine" / name).mkdir(parents=True, exist_ok=True)
        for i in range(1, 6):
            drawn(name, rng).save(FOLDER / "mine" / name / f"{i}.png", optimize=True)
    drawn("house", rng).save(FOLDER / "house.png", optimize=True)
    (FOLDER / "labels.txt").write_text("".join(name + "\n" for name in CLASSES))
