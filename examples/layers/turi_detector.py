# SPDX-License-Identifier: Apache-2.0
"""Completes an object detector of Turi Create that was exported without its non-maximum suppression.

    python turi_detector.py detector.mlmodel complete.mlmodel
    moka predict complete.mlmodel --input image=@street.jpg --draw boxes.png

Such an export, as of Turi Create 4 or with include_non_maximum_suppression=False, returns every box of its grid: `confidence`
[boxes, classes] and `coordinates` [boxes, 4], the center, width and height in parts of the image. This script appends the
suppression with the names and thresholds of Turi Create 5.
"""

import argparse

import numpy as np

from moka import build, edit


def complete(path):
    """The detector and its suppression as a pipeline."""
    detector = edit.rename(build.open(path), {"confidence": "raw_confidence", "coordinates": "raw_coordinates"}, inputs=False)
    description = detector.specification.description
    classes = description.metadata.userDefined["classes"].split(",")
    columns = {"confidence": len(classes), "coordinates": 4}
    thresholds = {"iouThreshold": build.double(optional=True), "confidenceThreshold": build.double(optional=True)}
    kept = {name: build.array(((0, -1), n), np.float64, default=(0, n)) for name, n in columns.items()}

    raw = {output.name: output for output in description.output}
    suppression = build.model("nonMaximumSuppression", thresholds, kept, version=3)
    suppression.description.input = [raw["raw_confidence"], raw["raw_coordinates"], *suppression.description.input]
    suppression.nonMaximumSuppression = {
        "iouThreshold": 0.45,
        "confidenceThreshold": 0.25,
        "confidenceInputFeatureName": "raw_confidence",
        "coordinatesInputFeatureName": "raw_coordinates",
        "iouThresholdInputFeatureName": "iouThreshold",
        "confidenceThresholdInputFeatureName": "confidenceThreshold",
        "confidenceOutputFeatureName": "confidence",
        "coordinatesOutputFeatureName": "coordinates",
        "pickTop": {"perClass": True},
        "stringClassLabels": {"vector": classes},
    }
    whole = build.pipeline([("detector", detector), ("suppression", suppression)], thresholds, kept, version=3)
    whole.specification.description.input = [*description.input, *suppression.description.input[2:]]
    return whole


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("detector")
    parser.add_argument("destination")
    options = parser.parse_args()
    complete(options.detector).save(options.destination)
