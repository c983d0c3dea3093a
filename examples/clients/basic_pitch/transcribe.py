# SPDX-License-Identifier: Apache-2.0
"""Runs Spotify's unmodified basic-pitch from the Python index on Linux, with its Core ML model.

Usage: transcribe.py [RECORDING.wav]   (default: a scale that this script plays)
"""

import pathlib
import sys
import tempfile

import numpy as np
import soundfile

RATE = 22050
SCALE = [60, 62, 64, 65, 67, 69, 71, 72]


def play(pitches, seconds=0.5):
    """A scale of additive tones with a decaying envelope."""
    t = np.arange(int(RATE * seconds)) / RATE
    envelope = np.minimum(t / 0.01, 1) * np.exp(-3 * t)
    notes = []
    for pitch in pitches:
        frequency = 440 * 2 ** ((pitch - 69) / 12)
        notes.append(envelope * sum(np.sin(2 * np.pi * k * frequency * t) / k**1.5 for k in range(1, 6)))
    sound = np.concatenate(notes)
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def main():
    import basic_pitch
    from basic_pitch.inference import Model, predict

    path = pathlib.Path(basic_pitch.__file__).parent / "saved_models" / "icassp_2022" / "nmp.mlpackage"
    model = Model(path)
    if model.model_type != Model.MODEL_TYPES.COREML:
        sys.exit(f"basic-pitch chose {model.model_type}, not Core ML")
    with tempfile.TemporaryDirectory() as folder:
        recording = sys.argv[1] if len(sys.argv) > 1 else f"{folder}/scale.wav"
        if len(sys.argv) == 1:
            soundfile.write(recording, play(SCALE), RATE)
        _, _, notes = predict(recording, model)
    notes.sort()
    print("start   end     pitch")
    for start, end, pitch, *_ in notes:
        print(f"{start:5.2f} s {end:5.2f} s   {pitch}")
    if len(sys.argv) == 1:
        found = {note[2] for note in notes}
        missing = [p for p in SCALE if p not in found]
        print(f"played {len(SCALE)} notes, found {len(SCALE) - len(missing)}")
        sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
