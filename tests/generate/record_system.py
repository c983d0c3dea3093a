# SPDX-License-Identifier: Apache-2.0
"""Programs of `moka record`, compiled and run over Moka in Debian 13's system. Their recordings come back to Moka."""

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from case import HERE, PROGRAM, ROOT, run
from sources import array_feature, write_accumulator, write_program, write_sum

GOLDEN = ROOT / "tests" / "golden"

WIDE = """program(1.3)
{
    func main<ios18>(tensor<fp16, [1, 8]> x) {
        tensor<fp16, [1, 8]> half = relu(x = x)[name = string("half")];
        tensor<int32, [2]> reps = const()[name = string("reps"), val = tensor<int32, [2]>([600, 25])];
        tensor<fp16, [600, 200]> wide = tile(x = half, reps = reps)[name = string("wide")];
        tensor<fp16, [1, 8]> y = softmax(x = half, axis = int32(-1))[name = string("y")];
    } -> (wide, y);
}
"""


def write_wide(folder):
    """Its first output has more bytes than the test records as a whole."""
    from model_files import FLOAT16
    return write_program(folder / "Wide.mlmodelc", WIDE, [array_feature("x", [1, 8], FLOAT16)],
                         [array_feature("wide", [600, 200], FLOAT16), array_feature("y", [1, 8], FLOAT16)])


def moka(code, *arguments):
    done = subprocess.run([str(a) for a in (PROGRAM, *arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode != code:
        raise SystemExit(f"{arguments}: {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def recorded(folder, inside, model, *options, versions=("6", "5")):
    """The recording of a model, whose program is compiled under both versions of the language."""
    source = folder / "Record.swift"
    moka(0, "record", model, "-o", source, "--predictions", 3, "--force", *options)
    for version in versions:
        run(*inside, "swiftc", "-swift-version", version, "-warnings-as-errors", "-parse-as-library", "-I", ".", "-I", "c", "-L", "lib",
            "-lCoreML", "-o", "record", "Record.swift")
    out = folder / "recording.json"
    out.unlink(missing_ok=True)
    printed = run(*inside, "./record", f"/moka-test/{model.name}", "/moka-test/recording.json")
    assert printed == "/moka-test/recording.json\n", printed
    return out


def check(condition, what):
    if not condition:
        raise SystemExit(f"a recording: {what}")


def check_readers(model, recording):
    """All commands read a recording of Moka itself, whose answers and placement agree with Moka."""
    for units in ("all", "cpuOnly", "cpuAndNeuralEngine"):
        facts = json.loads(moka(0, "verify", model, "--against", recording, "--against-units", units, "--json"))
        check(facts["passed"], facts)
    plan = json.loads(moka(0, "explain", model, "--unit", "neuralEngine", "--recording", recording, "--json"))["recording"]
    # This module prefers the Neural Engine wherever the preview takes an operation, also where that doubts it.
    check(plan["previewWrongSupport"] == 0 and plan["previewRight"] + plan["previewWrongPreference"] == len(plan["operations"]) > 0, plan)
    report = json.loads(moka(0, "report", recording, "--json"))
    check([s["name"] for s in report["settings"]] == ["all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine"], report["settings"])
    check(all(len(s["load"]["samples"]) == 2 and len(s["steady"]["samples"]) == 3 for s in report["settings"]), report["settings"])
    check(json.loads(moka(0, "diff", recording, recording, "--json"))["same"], "it differs from itself")


def check_sample(recording):
    """A large array by its digest, a sample and statistics."""
    root = json.loads(recording.read_text())
    output = root["settings"][1]["outputs"][0]["wide"]
    x = base64.b64decode(root["inputs"][0]["x"]["data"])
    whole = x * 25 * 600
    check(output["sha256"] == hashlib.sha256(whole).hexdigest(), "the digest is another one")
    step = output["sample"]["step"]
    check(step == -(-len(whole) // 2 // 65536), step)
    sample = b"".join(whole[2 * i:2 * i + 2] for i in range(0, len(whole) // 2, step))
    check(base64.b64decode(output["sample"]["data"]) == sample, "the sample is another one")
    check(output["shape"] == [600, 200] and output["statistics"]["nan"] == 0, output["statistics"])


# Images of each kind, labels with probabilities, dictionaries and sequences.
OTHERS = ("boundary/image_bgr", "boundary/image_grayscale", "boundary/image_grayscale_float16", "boundary/labels_text", "boundary/labels_number",
          "classic/imputer_dict", "pipelines/sequences")


def check_values(folder, inside):
    """Every kind of value gets there and back."""
    for name in OTHERS:
        model = Path(shutil.copy(GOLDEN / f"{name}.mlmodel", folder))
        recording = recorded(folder, inside, model, "--units", "cpuOnly", versions=("6",))
        facts = json.loads(moka(0, "verify", model, "--against", recording, "--json"))
        check(facts["passed"] and facts["shapes"][0]["outputs"], facts)
    # The weights of this model are elsewhere, so its program is only compiled.
    moka(0, "record", GOLDEN / "multifunction" / "two.mlmodel", "--function", "positive", "--input", "x=[[1,2,3,4]]", "-o", folder / "Record.swift", "--force")
    run(*inside, "swiftc", "-swift-version", "6", "-warnings-as-errors", "-parse-as-library", "-I", ".", "-I", "c", "-typecheck", "Record.swift")


def record(folder, inside):
    sum_model, states, wide = (Path(write(folder)) for write in (write_sum, write_accumulator, write_wide))
    check_readers(sum_model, recorded(folder, inside, sum_model, "--runs", 2))
    check_readers(states, recorded(folder, inside, states))
    recording = recorded(folder, inside, wide, "--full-bytes", 1000)
    check_readers(wide, recording)
    check_sample(recording)
    check_values(folder, inside)
    # Another program's file is not replaced.
    (folder / "notes.json").write_text("{}")
    done = subprocess.run([str(a) for a in (*inside, "./record", f"/moka-test/{wide.name}", "/moka-test/notes.json")],
                          capture_output=True, text=True)
    check(done.returncode == 1 and "is not a recording" in done.stderr, done.stderr)
    # The test for phones.
    moka(0, "record", sum_model, "--test", "-o", folder / "RecordTests.swift", "--force")
    (folder / "xctest").mkdir(exist_ok=True)
    shutil.copy(HERE / "swift" / "XCTest.swift", folder)
    flags = ["-I", "xctest", "-I", ".", "-I", "c"]
    run(*inside, "swiftc", *flags, "-emit-module", "-module-name", "XCTest", "-emit-module-path", "xctest/XCTest.swiftmodule", "-parse-as-library",
        "-o", "xctest/XCTest.o", "-c", "XCTest.swift")
    run(*inside, "swiftc", *flags, "-warnings-as-errors", "-parse-as-library", "-typecheck", "RecordTests.swift")
