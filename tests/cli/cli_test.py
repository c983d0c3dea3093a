"""The command line from outside: its output, the files it writes and its exit codes."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from model_files import FLOAT16, array_feature, field, read_npy, write_npy, write_program

PROGRAM = os.environ["MOKA_PROGRAM"]
EXAMPLES = Path(os.environ.get("MOKA_EXAMPLES", "."))
MODELS = Path(os.environ.get("MOKA_TEST_MODELS") or os.environ.get("MOKA_TEST_MODELS_DEFAULT", "models"))

AFFINE = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x, tensor<fp32, [1, 4]> y) {
        tensor<fp32, [1, 4]> doubled = add(x = x, y = x)[name = string("doubled")];
        tensor<fp32, [1, 4]> sum = add(x = doubled, y = y)[name = string("sum")];
        tensor<fp32, [1, 4]> z = relu(x = sum)[name = string("z")];
    } -> (z);
}
"""

CONVOLUTION = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 32, 12, 12]> x, tensor<fp32, [32, 32, 3, 3]> w) {
        tensor<fp32, [1, 32, 12, 12]> z = conv(x = x, weight = w, pad_type = string("same"))[name = string("z")];
    } -> (z);
}
"""

ACCUMULATOR = """program(1.3)
{
    func main<ios18>(state<tensor<fp16, [3]>> total, tensor<fp16, [3]> x) {
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, [3]> sum = add(x = before, y = x)[name = string("sum")];
        write_state(data = sum, input = total)[name = string("after")];
    } -> (sum);
}
"""


def moka(*arguments, program=PROGRAM):
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=600)


class Case(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = Path(keeper.name)

    def ends(self, code, *arguments):
        done = moka(*arguments)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        if code:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("moka"), done.stderr)
        return done

    def answer(self, *arguments):
        return json.loads(self.ends(0, *arguments, "--json").stdout)

    def affine(self):
        metadata = field(1, "Twice x and y, never below 0") + field(3, "Someone")
        features = [array_feature("x", [1, 4]), array_feature("y", [1, 4])]
        return write_program(self.folder / "affine.mlmodelc", AFFINE, features, [array_feature("z", [1, 4])], metadata=metadata)

    def convolution(self):
        features = [array_feature("x", [1, 32, 12, 12]), array_feature("w", [32, 32, 3, 3])]
        return write_program(self.folder / "convolution.mlmodelc", CONVOLUTION, features, [array_feature("z", [1, 32, 12, 12])])

    def accumulator(self):
        return write_program(self.folder / "sum.mlmodelc", ACCUMULATOR, [array_feature("x", [3], FLOAT16)],
                             [array_feature("sum", [3], FLOAT16)], [array_feature("total", [3], FLOAT16, state=True)])


class General(Case):
    def test_overview_version_help(self):
        overview = self.ends(0).stdout
        for command in ("inspect", "predict", "explain", "bench", "tune", "cache"):
            self.assertIn(f"$ moka {command}", overview)
            self.assertIn("Example", self.ends(0, command, "--help").stdout)
        self.assertRegex(self.ends(0, "--version").stdout, r"^moka \d+\.\d+\.\d+\n$")

    def test_wrong_use(self):
        self.assertIn("did you mean 'inspect'", self.ends(2, "inspct").stderr)
        self.assertIn("moka: no option '--bogus' (moka --help)", self.ends(2, "--bogus").stderr)
        self.assertIn("moka bench: no option '--thread'; did you mean '--threads'? (moka bench --help)",
                      self.ends(2, "bench", "x.mlmodel", "--thread=2").stderr)
        self.assertIn("not expected: y.mlmodel", self.ends(2, "bench", "x.mlmodel", "y.mlmodel").stderr)
        self.ends(2, "inspect")
        self.ends(2, "bench", "x.mlmodel", "--iterations", "0")
        self.ends(2, "predict", "x.mlmodel", "--compute-units", "some")

    def test_values_of_options(self):
        for option, value, message in (
            ("--threads", "many", "--threads: expected a whole number from 1 to 1024, got 'many'"),
            ("--threads", "0", "got '0'"),
            ("--seed", "x", "--seed: expected a whole number"),
            ("--repeat", "1.5", "got '1.5'"),
            ("--compute-units", "cpuonly", "did you mean 'cpuOnly'?"),
            ("--processors", "0,a", "--processors: expected a whole number"),
        ):
            self.assertIn(message, self.ends(2, "predict", "x.mlmodel", option, value).stderr)

    def test_files_at_fault(self):
        self.ends(3, "inspect", self.folder / "absent.mlmodel")
        self.ends(3, "inspect", self.folder)
        (self.folder / "noise.mlmodel").write_bytes(bytes(range(256)) * 8)
        self.ends(3, "predict", self.folder / "noise.mlmodel", "--input", "random")

    def test_other_files_are_named(self):
        for name, content, kind in (
            ("a.mlmodel", b"\x89PNG\r\n\x1a\n" + bytes(64), "a PNG picture"),
            ("b.mlmodel", b"just some words\n", "text ('just some words')"),
            ("c.mlpackage", b"PK\x03\x04" + bytes(60), "a zip archive"),
            ("d.mlmodel", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
        ):
            (self.folder / name).write_bytes(content)
            self.assertIn(kind, self.ends(3, "predict", self.folder / name, "-i", "random").stderr)
        model = self.affine()
        self.assertIn("is a part of", self.ends(3, "predict", Path(model) / "model.mil", "-i", "random").stderr)
        self.assertIn("; it holds '", self.ends(3, "predict", self.folder, "-i", "random").stderr)

    def test_models_from_the_future(self):
        feature = field(1, "x") + field(3, field(2, b""))  # a double
        known = field(1, 99) + field(2, field(1, feature) + field(10, feature)) + field(900, b"")
        model = self.folder / "future.mlmodel"
        model.write_bytes(known)
        done = self.ends(0, "predict", model, "-i", "x=2", "--json")
        self.assertEqual(json.loads(done.stdout)["outputs"]["x"]["value"], 2)
        self.assertIn("specification version 99 is newer", done.stderr)
        self.assertIn("specification", [r["pass"] for r in self.answer("explain", model)["remarks"]])
        model.write_bytes(known + field(700, 1))
        self.assertIn("has not: field 700", self.ends(3, "predict", model, "-i", "x=2").stderr)

    def weighty(self):
        weight = 'BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))'
        mil = AFFINE.replace(
            "tensor<fp32, [1, 4]> doubled = add(x = x, y = x)",
            f"tensor<fp32, [4]> w = const()[val = tensor<fp32, [4]>({weight})];\n"
            "        tensor<fp32, [1, 4]> doubled = add(x = x, y = w)")
        features = [array_feature("x", [1, 4]), array_feature("y", [1, 4])]
        return Path(write_program(self.folder / "weighty.mlmodelc", mil, features, [array_feature("z", [1, 4])]))

    def test_weights(self):
        model = self.weighty()
        message = self.ends(3, "predict", model, "-i", "random").stderr
        self.assertRegex(message, r"^moka predict: (model\.mil: )?weight file 'weights/weight.bin' is missing")
        (model / "weights").mkdir()
        for content, kind in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64, "a Git LFS pointer"),
                              (b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "a PNG picture"),
                              (b"", "an empty file")):
            (model / "weights" / "weight.bin").write_bytes(content)
            message = self.ends(3, "predict", model, "-i", "random").stderr
            self.assertIn("weight.bin", message)
            self.assertIn(f"expected Core ML's weights, got {kind}", message)

    def test_no_color_in_a_pipe(self):
        self.assertNotIn("\x1b", self.ends(0, "inspect", self.affine()).stdout)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full on this system")
    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)


class Inspect(Case):
    def test_for_people(self):
        shown = self.ends(0, "inspect", self.affine(), "--layers").stdout
        for text in ("mlProgram", "iOS 18, macOS 15", "Someone", "MultiArray (Float32 1 x 4)", "3 operations", "doubled"):
            self.assertIn(text, shown)

    def test_json(self):
        model = self.affine()
        facts = self.answer("inspect", model, "--layers", "--weights")
        self.assertEqual(facts["specificationVersion"], 9)
        self.assertEqual(facts["bytes"], sum(f.stat().st_size for f in Path(model).rglob("*") if f.is_file()))
        self.assertEqual([i["name"] for i in facts["functions"][0]["inputs"]], ["x", "y"])
        self.assertEqual(facts["functions"][0]["inputs"][0]["shape"], [1, 4])
        self.assertEqual(facts["operations"]["byType"], {"add": 2, "relu": 1})
        self.assertEqual([o["name"] for o in facts["operations"]["list"]], ["doubled", "sum", "z"])

    def test_mil(self):
        shown = self.ends(0, "inspect", self.affine(), "--mil").stdout
        self.assertTrue(shown.startswith("program("))
        self.assertIn("relu(", shown)
        self.ends(0, "inspect", self.affine_again(), "--mil", "--optimized")
        self.ends(2, "inspect", self.affine_again(), "--optimized")

    def affine_again(self):
        return str(self.folder / "affine.mlmodelc")


class Predict(Case):
    def values(self, *arguments, output="z"):
        return self.answer("predict", *arguments)["outputs"][output]["values"]

    def test_numbers(self):
        model = self.affine()
        self.assertEqual(self.values(model, "--input", "x=1,2,3,4", "--input", "y=[[0.5,0,-10,1]]"), [[2.5, 4, 0, 9]])

    def test_npy_in_and_out(self):
        model = self.affine()
        write_npy(self.folder / "x.npy", [1, 4], [1, -2, 3, 0.25])
        out = self.folder / "out"
        self.ends(0, "predict", model, "-i", f"x=@{self.folder}/x.npy", "-i", "y=0,0,0,0", "-o", out)
        self.assertEqual(read_npy(out / "z.npy"), ((1, 4), [2, 0, 6, 0.5]))

    def test_json_file_by_names(self):
        model = self.affine()
        (self.folder / "in.json").write_text('{"x": [1, 2, 3, 4], "y": [[1, 1, 1, 1]]}')
        self.assertEqual(self.values(model, "-i", f"@{self.folder}/in.json"), [[3, 5, 7, 9]])

    def test_batch(self):
        model = self.affine()
        (self.folder / "in.csv").write_text('x,y\n"1,2,3,4","0,0,0,0"\n"[1,1,1,1]","1,2,3,4"\n')
        rows = self.answer("predict", model, "-i", f"@{self.folder}/in.csv")["batch"]
        self.assertEqual([r["z"]["values"] for r in rows], [[[2, 4, 6, 8]], [[3, 4, 5, 6]]])
        self.ends(0, "predict", model, "-i", f"@{self.folder}/in.csv", "-o", self.folder / "rows")
        self.assertEqual(read_npy(self.folder / "rows" / "z_002.npy")[1], [3, 4, 5, 6])

    def test_random_is_reproducible(self):
        model = self.affine()
        first = self.values(model, "-i", "random")
        self.assertEqual(first, self.values(model, "-i", "random"))
        self.assertNotEqual(first, self.values(model, "-i", "random", "--seed", "2"))

    def test_options_give_the_same_numbers(self):
        model = self.affine()
        plain = self.values(model, "-i", "random")
        for options in (["--device", "reference"], ["--compute-units", "cpuOnly"], ["--threads", "1"], ["--precision", "exact"], ["--repeat", "3"]):
            self.assertEqual(plain, self.values(model, "-i", "random", *options), options)

    def test_mistakes(self):
        model = self.affine()
        self.assertIn("no inputs given", self.ends(2, "predict", model).stderr)
        self.assertIn("no value for input 'y'", self.ends(2, "predict", model, "-i", "x=1,2,3,4").stderr)
        self.assertIn("no input 'X'; did you mean 'x'?", self.ends(2, "predict", model, "-i", "X=1,2,3,4").stderr)
        self.assertIn("got 2 numbers", self.ends(2, "predict", model, "-i", "x=1,2", "-i", "y=random").stderr)
        self.ends(3, "predict", model, "-i", f"x=@{self.folder}/absent.npy", "-i", "y=random")
        self.ends(2, "predict", model, "-i", "random", "--state")
        self.ends(2, "predict", model, "-i", "random", "--function", "other")
        self.ends(2, "predict", model, "-i", "random", "--device", "abacus")

    def test_a_wrong_shape_in_a_file(self):
        model = self.affine()
        write_npy(self.folder / "x.npy", [2, 4], [0] * 8)
        self.assertIn("'x'", self.ends(2, "predict", model, "-i", f"x=@{self.folder}/x.npy", "-i", "y=random").stderr)

    def test_state(self):
        model = self.accumulator()
        arguments = (model, "-i", "x=1,2,3", "--repeat", "3")
        self.assertEqual(self.values(*arguments, "--state", output="sum"), [3, 6, 9])
        self.assertEqual(self.values(*arguments, output="sum"), [1, 2, 3])

    def test_steps_on_one_state(self):
        model = self.accumulator()
        (self.folder / "steps.json").write_text('[{"x": [1, 2, 3]}, {"x": [10, 20, 30]}]')
        (self.folder / "steps.jsonl").write_text('{"x": [1, 2, 3]}\n{"x": [10, 20, 30]}\n')
        (self.folder / "steps.csv").write_text('x\n"1,2,3"\n"10,20,30"\n')
        for name in ("steps.json", "steps.jsonl", "steps.csv"):
            sums = lambda *more: [s["sum"]["values"] for s in self.answer("predict", model, "-i", f"@{self.folder}/{name}", *more)["batch"]]
            self.assertEqual(sums("--state"), [[1, 2, 3], [11, 22, 33]], name)
            self.assertEqual(sums(), [[1, 2, 3], [10, 20, 30]], name)

    def test_states_are_saved_and_loaded(self):
        model, kept = self.accumulator(), self.folder / "kept"
        saved = self.answer("predict", model, "-i", "x=1,2,3", "--repeat", "2", "--save-state", kept)
        self.assertEqual(saved["states"], [str(kept / "total.npy")])
        self.assertEqual(self.values(model, "-i", "x=1,1,1", "--load-state", kept, output="sum"), [3, 5, 7])
        self.assertEqual(self.values(model, "-i", "x=1,1,1", output="sum"), [1, 1, 1])
        write_npy(kept / "total.npy", [3], [0.5, 0, -1])
        self.assertEqual(self.values(model, "-i", "x=1,1,1", "--load-state", kept, output="sum"), [1.5, 1, 0])
        write_npy(kept / "total.npy", [4], [0] * 4)
        self.assertIn("state 'total': expected shape", self.ends(2, "predict", model, "-i", "x=1,1,1", "--load-state", kept).stderr)
        self.ends(3, "predict", model, "-i", "x=1,1,1", "--load-state", self.folder / "absent")
        self.ends(2, "predict", self.affine(), "-i", "random", "--save-state", kept)

    def test_random_in_any_order(self):
        model = self.affine()
        first = self.values(model, "-i", "random", "-i", "x=-9,-9,-9,-9")
        self.assertEqual(first, [[0, 0, 0, 0]])
        self.assertEqual(first, self.values(model, "-i", "x=-9,-9,-9,-9", "-i", "random"))


class Explain(Case):
    def test_json(self):
        plan = self.answer("explain", self.affine(), "--measure", "--device", "reference")
        self.assertEqual(plan["operationsInSource"], 3)
        self.assertGreaterEqual(plan["measuredSeconds"], 0)
        memory = plan["memory"]
        self.assertGreaterEqual(memory["unsharedBytes"], memory["arenaBytes"])
        held = sum(memory[k] for k in ("mappedBytes", "packedBytes", "cachedBytes", "constantBytes", "sessionBytes", "heapBytes"))
        self.assertEqual(memory["totalBytes"], held)
        self.assertGreater(memory["sessionBytes"], 0)
        named = {name for o in plan["operations"] for name in [o["name"], *o["fused"]]}
        self.assertLessEqual({"z"}, named)
        self.assertEqual({o["device"] for o in plan["operations"] if o["type"] in ("add", "relu")}, {"reference"})

    def test_for_people(self):
        model = self.affine()
        for options in ([], ["--all"], ["--measure"], ["--measure", "--input", "random"]):
            shown = self.ends(0, "explain", model, *options).stdout
            self.assertIn("device", shown)
            self.assertIn("operation", shown)

    def test_state(self):
        plan = self.answer("explain", self.accumulator(), "--measure")
        types = {o["type"] for o in plan["operations"]}
        self.assertIn("write_state", types)
        self.assertNotIn("read_state", types)  # the value that is read is a view of the state


class Tune(Case):
    def tuned(self, *arguments):
        """The output of `moka tune`, repeated while other processes disturb it."""
        for _ in range(20):
            answer = self.answer("tune", *arguments)
            if answer["disturbedOperations"] == 0:
                break
        return answer

    def test_measures_writes_and_is_used(self):
        model, cache = self.convolution(), self.folder / "cache" / "kernels.json"
        tuned = self.tuned(model, "--threads", "1", "--kernels", cache)
        self.assertEqual(tuned["file"], str(cache))
        self.assertEqual(tuned["measured"], 1)
        shape = tuned["shapes"][0]
        self.assertEqual((shape["operation"], shape["operations"], shape["chosenBy"]), ("z", 1, "measured"))
        self.assertIn(shape["kernel"], shape["seconds"])
        self.assertGreaterEqual(len(shape["seconds"]), 2)
        self.assertEqual(json.loads(cache.read_text())["machines"][0]["entries"][0]["shape"], shape["shape"])
        self.assertEqual(self.answer("tune", model, "--threads", "1", "--kernels", cache)["measured"], 0)
        self.assertEqual(self.tuned(model, "--threads", "1", "--kernels", cache, "--again")["measured"], 1)
        planned = self.answer("explain", model, "--threads", "1", "--kernels", cache)["operations"][0]
        self.assertEqual((planned["chosenBy"], planned["shape"]), ("cache", shape["shape"]))
        self.assertIn("the others", self.ends(0, "explain", model, "--threads", "1", "--kernels", cache).stdout)
        self.assertNotIn("candidates", self.answer("explain", model, "--threads", "1")["operations"][0])

    def test_for_people(self):
        shown = self.ends(0, "tune", self.convolution(), "--kernels", self.folder / "kernels.json").stdout
        for text in ("operation", "chosen", "the rules'", "measured", str(self.folder / "kernels.json")):
            self.assertIn(text, shown)

    def test_pins(self):
        model = self.convolution()
        planned = self.answer("explain", model, "--pin", "z=reference")["operations"][0]
        self.assertEqual((planned["kernel"], planned["chosenBy"]), ("reference", "pin"))
        self.assertIn("does not exist", self.ends(2, "explain", model, "--pin", "z=cpu.conv.fast").stderr)
        self.assertIn("'y', pinned", self.ends(2, "explain", model, "--pin", "y=reference").stderr)
        self.assertIn("expected OPERATIONS=DEVICE", self.ends(2, "explain", model, "--pin", "z").stderr)

    def test_pins_of_devices(self):
        model = self.convolution()
        pins = self.folder / "my.pins"
        pins.write_text("# all\n*=reference\ntype:conv = simulator\n")
        plan = self.answer("explain", model, "--pins", pins)
        planned = next(o for o in plan["operations"] if o["name"] == "z")
        self.assertEqual((planned["device"], planned["chosenBy"], planned["region"]), ("simulator", "pin", 0))
        self.assertEqual({u["device"] for u in planned["units"]}, {"cpu", "simulator"})
        self.assertEqual([r["device"] for r in plan["regions"]], ["simulator"])
        reasons = [(o["bytes"] > 0, o["reason"]) for o in plan["operations"] if o["type"] == "transfer"]
        self.assertIn((True, "an input"), reasons)
        self.assertEqual(plan["rates"], "table")
        shown = self.ends(0, "explain", model, "--pins", pins, "--all").stdout
        for text in ("the choice between units", "region", "transfer", "* where it runs"):
            self.assertIn(text, shown)
        # Nothing is refused, and no kernel was measured.
        for text in ("refused, since", "kernel chosen for"):
            self.assertNotIn(text, shown)
        self.assertIn("line 1: expected OPERATIONS=DEVICE", self.ends(2, "explain", model, "--pin", "conv").stderr)
        self.assertIn("got 'tpu'", self.ends(2, "explain", model, "--pin", "*=tpu").stderr)
        self.assertIn("cannot be read", self.ends(2, "explain", model, "--pins", self.folder / "none").stderr)
        self.assertIn("not among the compute units",
                      self.ends(2, "explain", model, "--pin", "*=simulator", "--compute-units", "cpuOnly").stderr)

    def test_what_stays_off_the_neural_engine(self):
        model = self.convolution()
        shown = self.ends(0, "explain", model, "--unit", "neuralEngine").stdout
        self.assertIn("there is no Neural Engine off Apple's chips", shown)
        answer = self.answer("explain", model, "--unit", "neuralEngine")
        self.assertEqual(answer["unit"], "neuralEngine")
        self.assertEqual(answer["takes"], 0)
        self.assertIn("ct.precision.FLOAT16", answer["staysOff"][0]["remedy"])
        self.assertIn("https://", answer["staysOff"][0]["source"])
        shown = self.ends(0, "explain", model, "--compute-units", "cpuAndNeuralEngine").stdout
        self.assertIn("refused, since", shown)

    def test_what_stays_off_a_gpu_that_has_no_driver(self):
        model = self.convolution()
        with unittest.mock.patch.dict(os.environ, VK_ICD_FILENAMES="/nonexistent", VK_DRIVER_FILES="/nonexistent"):
            answer = self.answer("explain", model, "--unit", "gpu")
            self.assertIn("device 'vulkan' is not used: no GPU", answer["staysOff"][0]["reason"])
            self.ends(0, "predict", model, "--input", "random", "--device", "vulkan")
            refused = self.ends(3, "predict", model, "--input", "random", "--device", "vulkan", "--strict").stderr
            self.assertIn("device 'vulkan' is not used: no GPU", refused)

    def test_rates(self):
        file = self.folder / "rates.json"
        answer = json.loads(self.ends(0, "rates", "--rates", file, "--threads", "1", "--json").stdout)
        cpu = answer["units"][0]
        self.assertEqual((answer["file"], cpu["device"], cpu["unit"]), (str(file), "cpu", "cpu"))
        self.assertGreater(cpu["fp32"], 1e8)
        known = json.loads(self.ends(0, "rates", "--rates", file, "--threads", "1", "--known", "--json").stdout)
        self.assertEqual(known["units"], answer["units"])
        self.assertIn("GF/s", self.ends(0, "rates", "--rates", file, "--threads", "1", "--known").stdout)

    def test_wrong_shapes(self):
        model = self.convolution()
        for shape in ("x", "q=1x2", "x=0x4", "x=2x", "x=axb", "x=3x4"):
            self.ends(2, "tune", model, "--kernels", "off", "--shape", shape)

    def test_damaged_cache(self):
        cache = self.folder / "kernels.json"
        cache.write_text("{")
        done = self.ends(0, "predict", self.convolution(), "--input", "random", "--kernels", cache)
        self.assertEqual(done.stderr.count("kernel cache"), 1)


class Cache(Case):
    def test_compile_plans_ahead(self):
        model = Path(__file__).resolve().parent.parent / "golden" / "cached" / "model.mlpackage"
        cache = self.folder / "packed"
        answer = self.answer("compile", model, self.folder / "out", "--plan", "--cache", cache)
        self.assertEqual(Path(answer["cache"]).parent, cache)
        listed = self.answer("cache", "list", "--cache", cache)["models"]
        self.assertEqual([(m["file"], m["usable"]) for m in listed], [(answer["cache"], True)])
        load = self.answer("bench", answer["compiled"], "--iterations", "1", "--cache", cache)["load"]
        self.assertEqual(load["packedBytes"], 0)
        self.assertGreater(load["cachedBytes"], 0)
        self.assertEqual(self.answer("cache", "clear", "--cache", cache)["removed"], 1)

    def test_compile_plans_for_another_place_and_machine(self):
        model = Path(__file__).resolve().parent.parent / "golden" / "cached" / "model.mlpackage"
        cache = self.folder / "packed"
        made = self.answer("compile", model, self.folder / "out", "--plan", "--cache", cache, "--isa", "base", "--threads", "1")
        elsewhere = Path(shutil.copytree(self.folder, self.folder.parent / (self.folder.name + "-copy")))
        self.addCleanup(shutil.rmtree, elsewhere)

        with unittest.mock.patch.dict(os.environ, MOKA_MAX_CPU_ISA="base"):
            there = self.answer("bench", elsewhere / Path(made["compiled"]).relative_to(self.folder), "--iterations", "1",
                                "--threads", "1", "--cache", elsewhere / "packed")["load"]
        self.assertEqual(there["packedBytes"], 0)
        self.assertGreater(there["cachedBytes"], 0)
        self.ends(2, "compile", model, self.folder / "out", "--plan", "--isa", "mmx")
        self.ends(2, "compile", model, self.folder / "out", "--isa", "base")

    def test_processes_share_it_and_may_be_killed(self):
        model = Path(__file__).resolve().parent.parent / "golden" / "cached" / "model.mlpackage"
        folder = self.folder / "packed"
        plain = self.answer("predict", model, "--input", "random", "--threads", "1")
        command = [PROGRAM, "predict", str(model), "--input", "random", "--threads", "1", "--json", "--cache", str(folder)]
        chance = random.Random(1)
        for _ in range(8):
            running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
            for killed in running[:2]:
                time.sleep(chance.uniform(0, 0.02))
                killed.kill()
            for process in running:
                out, err = process.communicate(timeout=60)
                if process not in running[:2]:
                    self.assertEqual((process.returncode, err), (0, ""))
                    self.assertEqual(json.loads(out)["outputs"], plain["outputs"])
            for file in folder.iterdir():
                if chance.random() < 0.5:
                    file.unlink()
        self.assertEqual(json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["outputs"], plain["outputs"])
        self.assertEqual([m["usable"] for m in self.answer("cache", "list", "--cache", folder)["models"]], [True])
        self.ends(0, "cache", "clear", "--cache", folder)
        self.assertEqual(list(folder.iterdir()), [])

    def test_is_written_used_listed_and_cleared(self):
        model = Path(__file__).resolve().parent.parent / "golden" / "cached" / "model.mlpackage"
        folder = self.folder / "packed"
        plain = self.answer("predict", model, "--input", "random")
        first = self.answer("bench", model, "--iterations", "1", "--cache", folder)["load"]
        again = self.answer("bench", model, "--iterations", "1", "--cache", folder)["load"]
        self.assertEqual((first["cachedBytes"], again["packedBytes"]), (0, 0))
        self.assertEqual(first["packedBytes"], again["cachedBytes"])
        self.assertEqual(self.answer("predict", model, "--input", "random", "--cache", folder)["outputs"], plain["outputs"])
        self.assertIn("more from the cache", self.ends(0, "explain", model, "--cache", folder).stdout)
        listed = self.answer("cache", "list", "--cache", folder)["models"]
        self.assertEqual([(m["model"], m["usable"]) for m in listed], [(str(model), True)])
        self.assertIn("1 file", self.ends(0, "cache", "list", "--cache", folder).stdout)
        self.assertEqual(self.answer("cache", "clear", "--cache", folder)["removed"], 1)
        self.assertEqual(self.answer("cache", "list", "--cache", folder)["models"], [])
        self.ends(2, "cache", "remove")


class Compile(Case):
    def source(self):
        if not MODELS.is_dir():
            self.skipTest("no folder of published models: MOKA_TEST_MODELS names one")
        return MODELS / "silero_vad/silero-vad-encoder-v6.0.0.mlpackage"

    def test_the_compiled_model_is_in_the_folder(self):
        out = self.folder / "silero-vad-encoder-v6.0.0.mlmodelc"
        for _ in range(2):  # an older one is replaced
            done = self.ends(0, "compile", self.source(), self.folder, "--platform", "macOS", "--sdkroot", "/")
            self.assertEqual(done.stdout.strip(), str(out / "coremldata.bin"))
        names = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
        self.assertEqual(names, {"coremldata.bin", "metadata.json", "model.mil", "weights/weight.bin", "analytics/coremldata.bin"})
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), [out.name])
        self.assertIn("encoder_output", self.answer("predict", out, "-i", "random")["outputs"])

    def test_what_killed_processes_left_goes(self):
        out = self.folder / "silero-vad-encoder-v6.0.0.mlmodelc"
        mine = self.folder / f".{out.name}.{os.getpid()}"  # of a process that runs
        for left in (mine, self.folder / f".{out.name}.999999999", self.folder / f".{out.name}.kept"):
            left.mkdir()
        for _ in range(2):
            self.ends(0, "compile", self.source(), self.folder)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), sorted([out.name, mine.name, f".{out.name}.kept"]))

    def test_apples_names_and_flags(self):
        plist = self.folder / "partial.plist"
        program = Path(PROGRAM).parent / "coremlcompiler"
        done = moka("compile", self.source(), self.folder, "--output-partial-info-plist", plist, "--deployment-target", "9.0",
                    "--target-device", program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("'--target-device' is not known", done.stderr)
        self.assertIn("needs iOS 15.0 or later", done.stderr)
        self.assertIn("<dict/>", plist.read_text())

    def test_lines_of_xcode(self):
        program = Path(PROGRAM).parent / "coremlc"
        out, plist = self.folder / "App.app" / "Resources", self.folder / "partial.plist"
        flags = ["--deployment-target", "26.0", "--sdkroot", "/sdk", "--platform", "xros", "--output-partial-info-plist", plist]
        done = moka("compile", self.source(), f"{out}/", *flags, "--container", "bundle-resources", program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([p.name for p in out.iterdir()], ["silero-vad-encoder-v6.0.0.mlmodelc"])
        sources = self.folder / "CoreMLGenerated"
        done = moka("generate", self.source(), sources, "--dry-run", "yes", *flags, "--container", "bundle-resources", "--language",
                    "Swift", "--swift-version", "6.0", "--public-access", "--globalmodule", program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{sources}/silero_vad_encoder_v6_0_0.swift\n")
        self.assertFalse(sources.exists())
        done = moka("compile", "--language", "Swift", self.source(), out, "--swift-version", "4.0", program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = moka("compile", self.source(), out, "--deployment-target", "17.0", "--platform", "beos", program=program)
        self.assertIn("'beos' is not known", done.stderr)

    def test_the_benchmark_compiles_what_it_writes(self):
        script = Path(__file__).resolve().parent.parent.parent / "bench" / "compile" / "run.py"
        done = subprocess.run([sys.executable, script, "--program", PROGRAM, "--rounds", "1", "--models", "linear", "--json", "--page",
                               self.folder / "page.md"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (row,) = json.loads(done.stdout)["rows"]
        self.assertTrue(row["same"])
        self.assertEqual(row["bytes"], 104_963_264)
        self.assertIn("| 25 linear layers | 105 |", (self.folder / "page.md").read_text())

    def test_an_embedded_specification_keeps_every_byte(self):
        source = self.folder / "Plane.mlmodel"
        plane = Path(__file__).resolve().parent.parent.parent / "examples" / "cmake" / "Plane.mlmodel"
        entries = [field(100, field(1, key) + field(2, "value")) for key in ("z", "a", "m", "b")]
        source.write_bytes(plane.read_bytes() + field(2, field(100, b"".join(entries))))
        self.ends(0, "compile", source, self.folder, "--embed-specification")
        self.ends(0, "decompile", self.folder / "Plane.mlmodelc", self.folder / "again.mlmodel")
        self.assertEqual((self.folder / "again.mlmodel").read_bytes(), source.read_bytes())

    def test_operations_without_a_name_get_none(self):
        mil = """program(1.3)
[buildInfo = dict<string, string>({{"moka-version", "%s"}})]
{
    func main<ios17>(tensor<fp32, [2]> x) {
            fp32 half = const()[val = fp32(0x1p-1)];
            tensor<fp32, [2]> scaled = mul(x = x, y = half)[name = string("scale")];
            tensor<fp32, [2]> y = relu(x = scaled);
        } -> (y);
}""" % self.answer("version")["version"]
        model = write_program(self.folder / "a" / "M.mlmodelc", mil, [array_feature("x", [2])], [array_feature("y", [2])])
        self.ends(0, "decompile", model, self.folder / "M.mlpackage")
        self.ends(0, "compile", self.folder / "M.mlpackage", self.folder)
        self.assertEqual((self.folder / "M.mlmodelc" / "model.mil").read_text(), mil)

    def test_wrong_use(self):
        self.ends(2, "compile")
        self.assertIn("encrypt", self.ends(2, "compile", self.source(), self.folder, "--encrypt", "key").stderr)
        other = self.folder / "silero-vad-encoder-v6.0.0.mlmodelc"
        other.mkdir()
        (other / "letter").write_text("keep me")
        self.assertIn("not a compiled model", self.ends(2, "compile", self.source(), self.folder).stderr)
        self.assertEqual((other / "letter").read_text(), "keep me")

    def test_metadata(self):
        compiled = MODELS / "silero_vad/unified_int8.mlmodelc"
        if not MODELS.is_dir():
            self.skipTest("no folder of published models: MOKA_TEST_MODELS names one")
        apples = json.loads((compiled / "metadata.json").read_text())
        for model in (compiled, compiled.with_suffix(".mlpackage")):
            self.assertEqual(json.loads(self.ends(0, "metadata", model).stdout), apples)
        refused = json.loads(self.ends(0, "metadata", MODELS / "nsfw_visionfeatureprint/NSFW.mlmodel").stdout)[0]
        self.assertEqual([s["name"] for s in refused["modelType"]["structure"]],
                         ["MLModelType_visionFeaturePrint", "MLModelType_glmClassifier"])

    def test_decompile(self):
        if not MODELS.is_dir():
            self.skipTest("no folder of published models: MOKA_TEST_MODELS names one")
        compiled, again = MODELS / "image_quality/ImageQualityCP20.mlmodelc", self.folder / "again.mlmodel"
        self.ends(0, "decompile", compiled, again)
        answers = [self.answer("predict", m, "-i", "random")["outputs"] for m in (compiled, again)]
        # The weights are the same, but their position in the file decides which kernel reads them.
        for a, b in zip(answers[0]["Identity"]["values"][0], answers[1]["Identity"]["values"][0], strict=True):
            self.assertAlmostEqual(a, b, places=6)
        self.assertIn("exists", self.ends(2, "decompile", compiled, again).stderr)
        program = MODELS / "silero_vad/unified_int8.mlmodelc"
        self.assertIn("ends with .mlpackage", self.ends(2, "decompile", program, self.folder / "p.mlmodel").stderr)
        self.ends(0, "decompile", program, self.folder / "p.mlpackage")
        answers = [self.answer("predict", m, "-i", "random")["outputs"] for m in (program, self.folder / "p.mlpackage")]
        self.assertEqual(answers[0], answers[1])

    def test_version(self):
        self.assertEqual(self.ends(0, "version").stdout.strip(), self.answer("version")["version"])


class Bench(Case):
    def test_json(self):
        times = self.answer("bench", self.affine(), "--iterations", "20", "--threads", "1")
        self.assertEqual(times["predictions"], 20)
        steady = times["steady"]
        self.assertLessEqual(steady["min"], steady["p50"])
        self.assertLessEqual(steady["p50"], steady["p90"])
        self.assertLessEqual(steady["p99"], steady["max"])
        self.assertLessEqual(times["load"]["open"] + times["load"]["import"], times["load"]["total"])

    def test_bench_of_a_stream(self):
        models = Path(__file__).parents[2] / "examples" / "models"
        picture = ["--input", f"image=@{models / 'square.png'}", "--fit", "scaleFit", "--seconds", "0.05", "--stream"]
        for device in ([], ["--device", "simulator"]):
            rates = self.answer("bench", models / "shapes.mlmodel", *picture, *device)["stream"]
            self.assertGreaterEqual(rates["predictions"], 3)
            slower = min(rates["reading"], rates["predicting"])
            self.assertGreater(slower, 0)
            self.assertAlmostEqual(rates["share"], rates["stream"] / slower)
        shown = self.ends(0, "bench", models / "shapes.mlmodel", *picture).stdout
        for text in ("reading inputs alone", "predicting alone", "both as a stream", "of the slower stage's rate"):
            self.assertIn(text, shown)
        self.assertIn("--input", self.ends(2, "bench", models / "shapes.mlmodel", "--stream").stderr)

    def test_state_and_time_limit(self):
        shown = self.ends(0, "bench", self.accumulator(), "--seconds", "0.05").stdout
        for row in ("open file", "first", "p90", "peak memory"):
            self.assertIn(row, shown)


class Examples(Case):
    def run_example(self, name, *arguments):
        program = EXAMPLES / f"example_{name}"
        if not program.exists():
            self.skipTest(f"{program.name} is not built")
        done = moka(*arguments, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_load_and_predict(self):
        line = [l for l in self.run_example("load_and_predict").splitlines() if l.startswith("probabilities")][0]
        self.assertAlmostEqual(sum(map(float, line.split(")")[1].split())), 1, places=4)
        self.assertIn("z: MultiArray (Float32 1 x 4)", self.run_example("load_and_predict", self.affine()))

    def test_batch(self):
        self.assertIn("32 predictions at once", self.run_example("batch"))

    def test_flexible_shape(self):
        shown = self.run_example("flexible_shape")
        for line in ("1 x 4 gives sums: MultiArray (Float32 1)", "5 x 4 gives sums: MultiArray (Float32 5)"):
            self.assertIn(line, shown)

    def test_state(self):
        lines = [l.split(":") for l in self.run_example("state").splitlines()]
        self.assertEqual([name for name, _ in lines], ["sum", "sum", "sum", "state total"])
        self.assertEqual(lines[2][1], lines[3][1])

    def test_image_in(self):
        models = Path(__file__).parents[2] / "examples/models"
        lines = self.run_example("image_in", models / "shapes.mlmodel", models / "square.png").splitlines()
        self.assertIn("shape: String", lines[-1])
        ranked = [line.split()[1] for line in lines if "%" in line]
        self.assertEqual((ranked[0], sorted(ranked)), ("square", ["circle", "square", "triangle"]))


@unittest.skipUnless(MODELS.is_dir(), "no folder of published models: MOKA_TEST_MODELS names one")
class RealModels(Case):
    def test_sleep_from_a_table(self):
        (self.folder / "nights.csv").write_text("wake,estimatedSleep,coffee\n6,8,2\n7,7,1\n")
        model = MODELS / "glm_sleep/SleepCalculator.mlmodel"
        rows = self.answer("predict", model, "-i", f"@{self.folder}/nights.csv")["batch"]
        one = self.answer("predict", model, "-i", "wake=6", "-i", "estimatedSleep=8", "-i", "coffee=2")["outputs"]
        self.assertEqual(rows[0]["actualSleep"], one["actualSleep"])

    def test_words_from_json(self):
        model = MODELS / "sentiment_glm/SentimentPolarity.mlmodel"
        good = self.answer("predict", model, "-i", 'input={"excellent": 3, "wonderful": 2}')["outputs"]
        self.assertEqual(good["classLabel"]["value"], "Pos")
        self.assertAlmostEqual(sum(good["classProbability"]["value"].values()), 1, places=6)

    def test_sound_wants_the_right_length(self):
        model, sound = MODELS / "basic_pitch/nmp.mlpackage", MODELS / "basic_pitch/vocadito_10.wav"
        message = self.ends(2, "predict", model, "-i", f"input_2=@{sound}").stderr
        self.assertIn("expected 43844 samples", message)
        done = self.ends(0, "predict", model, "-i", f"@{sound}", "--rate", "22050", "--pad", "-o", self.folder)
        self.assertIn("using the first 43844", done.stderr)
        self.assertEqual(read_npy(self.folder / "Identity_1.npy")[0], (1, 172, 88))

    def test_picture_in_and_out(self):
        model, picture = MODELS / "custom_and_image_io/Image2Image.mlmodel", MODELS / "card_detector/quickread.jpg"
        for fit in ("scaleFill", "scaleFit", "centerCrop"):
            self.ends(0, "predict", model, "-i", picture, "--fit", fit, "-o", self.folder / fit)
            written = (self.folder / fit / "generatedImage.png").read_bytes()
            self.assertEqual(written[16:24], (256).to_bytes(4, "big") * 2)

    def test_what_cannot_run_says_so(self):
        for name, word in (("nsfw_visionfeatureprint/NSFW.mlmodel", "visionFeaturePrint"), ("rules_apple_samples/sample.mlmodel", "textClassifier")):
            self.assertIn(word, self.ends(3, "predict", MODELS / name, "-i", "random").stderr)

    def test_every_command_on_every_small_model(self):
        for name in ("silero_vad/unified_int8.mlmodelc", "random_forest/RandomForest.mlmodel", "rnn_forecast/MyModel.mlpackage",
                     "dtln_aec/DTLN_AEC_128_Part1.mlpackage", "compiled_weightless/add_model.mlmodelc"):
            with self.subTest(name):
                self.answer("inspect", MODELS / name, "--layers", "--weights", "--mil")
                self.answer("predict", MODELS / name, "-i", "random")
                self.answer("explain", MODELS / name, "--measure")
                self.answer("bench", MODELS / name, "-n", "2")


if __name__ == "__main__":
    unittest.main()
