# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/basic_pitch/: what ONNX Runtime computes with Basic Pitch's own nmp.onnx.

    python basic_pitch_truth.py nmp.onnx vocadito_10.wav

nmp.onnx: saved_models/icassp_2022/ of the Python package basic-pitch 0.4.0.
The windows: samples 43844 * k of the recording at half its rate (each sample the mean of two of 16 bits, exact in
float32), k = 1 and 3, and uniform numbers of splitmix64. Every STEP-th element of contour, note and onset, in this
order, is kept as float32.
"""
import pathlib
import sys
import wave

import numpy as np
import onnxruntime

from nn_truth import draw

WINDOW, STEP = 43844, 7


def main(model, recording):
    with wave.open(recording) as w:
        assert w.getsampwidth() == 2 and w.getnchannels() == 1 and w.getframerate() == 44100
        pcm = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.int32)
    half = ((pcm[0 : len(pcm) // 2 * 2 : 2] + pcm[1::2]) / 65536).astype(np.float32)
    windows = {f"recording_{k}": half[WINDOW * k : WINDOW * (k + 1)] for k in (1, 3)}
    windows["noise"] = draw(7, (WINDOW,), -0.5, 0.5)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    folder = pathlib.Path(__file__).parent / "basic_pitch"
    for name, samples in windows.items():
        note, onset, contour = session.run(
            ["StatefulPartitionedCall:1", "StatefulPartitionedCall:2", "StatefulPartitionedCall:0"],
            {session.get_inputs()[0].name: samples.reshape(1, WINDOW, 1)},
        )
        assert contour.shape[-1] == 264 and note.shape[-1] == onset.shape[-1] == 88
        kept = np.concatenate([x.reshape(-1)[::STEP] for x in (contour, note, onset)]).astype(np.float32)
        np.save(folder / f"{name}.npy", kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
