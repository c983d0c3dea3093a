# SPDX-License-Identifier: Apache-2.0
"""Checks an ONNX file for `moka convert --check`.

    python3 -c SCRIPT FILE     fails when onnx.checker refuses it, or when the types that it infers contradict the file's
"""
import sys

try:
    import onnx
except ImportError as e:
    sys.exit(f"Python {sys.version.split()[0]} ({sys.executable}) has no module 'onnx', which checks the file: {e}")

try:
    onnx.checker.check_model(sys.argv[1], full_check=True)
except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
    sys.exit(f"onnx.checker {onnx.__version__} refuses it: {' '.join(str(e).split())}")
