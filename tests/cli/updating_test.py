# SPDX-License-Identifier: Apache-2.0
"""moka update: examples of every kind, what it prints and writes, and refusals before it trains."""

import base64
import json
import math
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import unittest
import zipfile
from pathlib import Path

from case import PROGRAM, Case, moka
from model_files import write_npy

ROOT = Path(__file__).resolve().parents[2]
GOLDEN, EXAMPLES = ROOT / "tests/golden/update", ROOT / "examples"
NEIGHBORS = GOLDEN / "neighbors_string.mlmodel"
DRAWINGS, HOUSE = EXAMPLES / "drawings/mine", EXAMPLES / "drawings/house.png"
USE, FILE, INTERRUPTED = 2, 3, 130


def target(x):
    """What plain() is to learn."""
    return [x[0] - 0.5 * x[1], x[2] + 0.25]


def inputs(count):
    return [[((7 * i + 3 * k) % 11) / 5 - 1 for k in range(3)] for i in range(count)]


class Updating(Case):
    def setUp(self):
        """A regressor whose arrays are vectors of channels; in the golden model they are arrays as they are."""
        super().setUp()
        self.plain = self.folder / "plain.mlmodel"
        data = (GOLDEN / "plain.mlmodel").read_bytes()
        self.assertEqual(data.count(b"\x28\x01"), 1)  # arrayInputShapeMapping
        self.plain.write_bytes(data.replace(b"\x28\x01", b"\x28\x00"))

    def drawings(self):
        """A model of three classes, which learned others."""
        out = self.folder / "drawings.mlmodel"
        self.ends(0, "edit", EXAMPLES / "models/shapes.mlmodel", "--labels",
                  f"{EXAMPLES / 'drawings/labels.txt'},label=shape,probabilities=probabilities", "--updatable", "edges,scores", "--loss",
                  "cross-entropy", "--optimizer", "adam", "--learning-rate", "0.03", "--mini-batch", "5", "--epochs", "20,allowed=2:20",
                  "-o", out)
        return out

    def table(self, count=12, name="rows.csv"):
        path = self.folder / name
        if name.endswith("csv"):
            lines = ["x,y_true"] + [f'"{json.dumps(x)}","{json.dumps(target(x))}"' for x in inputs(count)]
        else:
            lines = [json.dumps({"x": x, "y_true": target(x)}) for x in inputs(count)]
        path.write_text("\n".join(lines) + "\n")
        return path

    def epochs(self, count):
        """plain.mlmodel with another number of epochs."""
        out = self.folder / f"plain{count}.mlmodel"
        self.ends(0, "edit", self.plain, "--epochs", f"{count},allowed=1:3:{count}", "-o", out)
        return out

    def test_a_folder_of_drawings(self):
        model, out, plot = self.drawings(), self.folder / "mine.mlmodel", self.folder / "plot.png"
        self.assertEqual(self.answer("predict", model, "-i", f"image=@{HOUSE}")["outputs"]["shape"]["value"], "cross")
        shown = self.ends(0, "update", model, "--data", DRAWINGS, "-o", out, "--plot", plot).stdout
        self.assertEqual(self.answer("predict", out, "-i", f"image=@{HOUSE}")["outputs"]["shape"]["value"], "house")
        lines = shown.splitlines()
        self.assertRegex(lines[0], r"^epoch +loss +learning rate +mini-batches +time +examples/s$")
        losses = [float(line.split()[1]) for line in lines[2:22]]
        self.assertEqual([line.split()[0] for line in lines[2:22]], [str(i) for i in range(1, 21)])
        self.assertLess(losses[-1], losses[0] / 10)
        self.assertEqual(len({len(line) for line in lines[2:22]}), 1)
        self.assertIn(". loss of a mini-batch  o mean of an epoch", shown)
        self.assertIn("20 epochs", shown)
        self.assertRegex(shown, rf"examples +15 from {DRAWINGS}\n")
        self.assertRegex(shown, r"updated +edges, scores\n")
        self.assertRegex(shown, rf"written +{out}\n")
        self.assertEqual(plot.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_labels_in_a_table(self):
        shutil.copytree(DRAWINGS, self.folder / "flat")
        rows = [f"{p.relative_to(self.folder / 'flat')},{p.parent.name}" for p in sorted((self.folder / "flat").glob("*/*.png"))]
        (self.folder / "flat/labels.csv").write_text("file,label\n" + "\n".join(rows) + "\n")
        by_table, by_folder = self.folder / "a.mlmodel", self.folder / "b.mlmodel"
        self.ends(0, "update", self.drawings(), "--data", self.folder / "flat", "-o", by_table)
        self.ends(0, "update", self.drawings(), "--data", DRAWINGS, "-o", by_folder)
        self.assertEqual(by_table.read_bytes(), by_folder.read_bytes())
        (self.folder / "flat/labels.csv").write_text("image,shape,by\n" + "\n".join(row + ",me" for row in rows) + "\n")
        done = self.ends(0, "update", self.drawings(), "--data", self.folder / "flat", "-o", by_table, "--epochs", "2")
        self.assertIn("labels.csv: not used: column 'by'", done.stderr)
        (self.folder / "flat/labels.csv").write_text("file,label\ncross/1.png,cross\ncross/9.png,cross\n")
        self.assertRegex(self.ends(USE, "update", self.drawings(), "--data", self.folder / "flat", "-o", by_table).stderr,
                         r"labels.csv: row 2: input 'image': there is no file .*cross/9.png")

    def test_json(self):
        out = self.folder / "new.mlmodel"
        answer = self.answer("update", self.plain, "--data", self.table(), "--parameter", "shuffle=no", "-o", out)
        self.assertEqual(answer["examples"], 12)
        self.assertEqual(answer["parameters"], {"epochs": 3, "learningRate": 0.05, "miniBatchSize": 4, "momentum": 0.5, "shuffle": False})
        self.assertEqual((len(answer["epochs"]), len(answer["losses"])), (3, 9))
        for i, epoch in enumerate(answer["epochs"]):
            self.assertAlmostEqual(epoch["loss"], sum(answer["losses"][3 * i:3 * i + 3]) / 3, places=6)
            self.assertEqual((epoch["miniBatches"], epoch["learningRate"]), (3, 0.05))
        self.assertEqual(answer["written"], str(out))
        self.assertNotIn("plot", answer)

    def test_forms_of_examples_give_the_same_weights(self):
        arrays = self.folder / "rows.npz"
        with zipfile.ZipFile(arrays, "w") as archive:
            for name, rows in (("x", inputs(12)), ("y_true", [target(x) for x in inputs(12)])):
                write_npy(self.folder / f"{name}.npy", (12, len(rows[0])), [v for row in rows for v in row])
                archive.write(self.folder / f"{name}.npy", f"{name}.npy")
        listed = self.folder / "rows.json"
        listed.write_text(json.dumps([{"x": x, "y_true": target(x)} for x in inputs(12)]))
        weights = []
        for data in (self.table(), self.table(name="rows.jsonl"), listed, arrays):
            out = self.folder / "new.mlmodel"
            done = self.ends(0, "update", self.plain, "--data", data, "-o", out, "--threads", "2")
            self.assertEqual(done.stderr, "")
            weights.append(self.answer("predict", out, "-i", "x=0.5,-0.25,1")["outputs"]["y"]["values"])
        for other in weights[1:]:  # .npz has the inputs in float32
            for a, b in zip(weights[0], other):
                self.assertAlmostEqual(a, b, places=6)

    def test_columns_that_are_not_used(self):
        data = self.folder / "rows.csv"
        data.write_text('x,by,y_true\n"1,2,3",me,"1,2"\n')
        done = self.ends(0, "update", self.plain, "--data", data, "-o", self.folder / "new.mlmodel")
        self.assertEqual(done.stderr, f"moka update: {data}: not used: column 'by'\n")
        for name, text in (("rows.jsonl", '{"x": [1, 2, 3], "by": "me", "y_true": [1, 2]}\n'), ("rows.json", '[{"x": [1, 2, 3], "by": 1, "y_true": [1, 2]}]')):
            data = self.folder / name
            data.write_text(text)
            done = self.ends(0, "update", self.plain, "--data", data, "-o", self.folder / "new.mlmodel")
            self.assertEqual(done.stderr, f"moka update: {data}: not used: key 'by'\n")
            data.write_text(text.replace("y_true", "true"))
            self.assertIn("no value for 'y_true'", self.ends(USE, "update", self.plain, "--data", data, "-o", self.folder / "new.mlmodel").stderr)

    def test_kinds_of_output(self):
        data = self.table()
        predicted = set()
        for name in ("a.mlmodel", "a.mlpackage", "a.mlmodelc"):
            self.ends(0, "update", self.plain, "--data", data, "-o", self.folder / name)
            predicted.add(json.dumps(self.answer("predict", self.folder / name, "-i", "x=1,2,3")["outputs"]))
            self.ends(0, "update", self.folder / name, "--data", data, "-o", self.folder / "again.mlmodel")
        self.assertEqual(len(predicted), 1)
        self.ends(0, "update", self.folder / "a.mlmodel", "--data", data, "-o", self.folder / "a.mlmodel", "--force")
        self.assertNotIn(json.dumps(self.answer("predict", self.folder / "a.mlmodel", "-i", "x=1,2,3")["outputs"]), predicted)

    def test_nearest_neighbors(self):
        out, data = self.folder / "near.mlmodel", self.folder / "rows.csv"
        data.write_text('input,label\n"9,9",d\n"9,8",d\n')
        shown = self.ends(0, "update", NEIGHBORS, "--data", data, "--parameter", "numberOfNeighbors=1", "-o", out).stdout
        self.assertRegex(shown, r"samples +8, 6 before\n")
        self.assertNotIn("epoch", shown)
        self.assertEqual(self.answer("predict", out, "-i", "input=9,9")["outputs"]["label"]["value"], "d")
        answer = self.answer("update", NEIGHBORS, "--data", data, "-o", out)
        self.assertEqual((answer["examples"], answer["parameters"]), (2, {"numberOfNeighbors": 2}))
        self.assertNotIn("epochs", answer)

    def test_a_pipeline_and_a_folder_of_arrays(self):
        out, data = self.folder / "pipeline.mlmodel", self.folder / "data"
        for label, numbers in (("near", [1, 2, 3]), ("far", [-70, 80, 90])):
            (data / label).mkdir(parents=True)
            write_npy(data / label / "1.npy", (3,), numbers)
        done = self.ends(0, "update", GOLDEN / "pipeline.mlmodel", "--data", data, "--parameter", "numberOfNeighbors=1", "-o", out)
        self.assertIn("examples    2 from", done.stdout)
        (data / "near/notes.md").write_text("mine")
        self.assertIn("not used: 'near/notes.md'", self.ends(0, "update", GOLDEN / "pipeline.mlmodel", "--data", data, "-o", out).stderr)
        answer = self.answer("predict", out, "-i", "x=-70,80,90")["outputs"]["label"]["value"]
        self.assertEqual(answer, "far")

    def test_the_seed_gives_the_order(self):
        data, written = self.table(), []
        for seed in ((), ("--seed", "0"), ("--seed", "5"), ("--seed", "5", "--threads", "3")):
            out = self.folder / "new.mlmodel"
            self.ends(0, "update", self.plain, "--data", data, *seed, "-o", out)
            written.append(out.read_bytes())
        self.assertEqual(written[0], written[1])
        self.assertNotEqual(written[0], written[2])
        self.assertEqual(written[2], written[3])

    def test_many_epochs_are_few_rows(self):
        shown = self.ends(0, "update", self.epochs(100), "--data", self.table(), "-o", self.folder / "new.mlmodel").stdout
        rows = [int(line.split()[0]) for line in shown.splitlines()[2:22]]
        self.assertEqual((rows[0], rows[-1], len(rows)), (1, 100, 20))
        self.assertEqual(shown.splitlines()[22], "")

    def test_refusals_before_training(self):
        data, out = self.table(), self.folder / "new.mlmodel"
        foreign = self.folder / "foreign.mlmodel"
        foreign.write_text("mine")
        bad = self.folder / "bad.csv"
        folder = self.folder / "folder"
        (folder / "none").mkdir(parents=True)
        for arguments, code, message in [
            ([self.plain, "--data", data, "-o", self.folder / "new.txt"], USE, "expected a name that ends with .mlmodel, .mlpackage or .mlmodelc"),
            ([self.plain, "--data", data, "-o", out, "--plot", self.folder / "plot.jpg"], USE, "--plot: expected a name that ends with .png"),
            ([NEIGHBORS, "--data", data, "-o", out, "--plot", self.folder / "plot.png"], USE, "--plot: a nearest-neighbors classifier"),
            ([self.plain, "--data", data, "-o", foreign], USE, "foreign.mlmodel"),
            ([self.plain, "--data", data, "-o", data], USE, "rows.csv"),
            ([self.folder / "absent.mlmodel", "--data", data, "-o", out], FILE, "absent.mlmodel"),
            ([EXAMPLES / "models/rent.mlmodel", "--data", data, "-o", out], USE, "the model is not updatable"),
            ([self.plain, "--data", self.folder / "absent.csv", "-o", out], FILE, "absent.csv"),
            ([self.plain, "--data", folder, "-o", out], USE, "folders give labels"),
            ([self.drawings(), "--data", folder, "-o", out], USE, "expected a folder of files for each label, or labels.csv"),
            ([self.plain, "--data", foreign, "-o", out], USE, "expected a folder, a table (.csv), a list of objects"),
            ([self.plain, "--data", data, "-o", out, "--epochs", "7"], USE, "epochs: the model allows 3, got 7"),
            ([self.plain, "--data", data, "-o", out, "--learning-rate", "2"], USE, "learningRate: the model allows 0 to 1, got 2"),
            ([self.plain, "--data", data, "-o", out, "--parameter", "beta1=0.5"], USE, "the model has no parameter 'beta1'"),
            ([self.plain, "--data", data, "-o", out, "--parameter", "momentum"], USE, "--parameter momentum: expected NAME=VALUE"),
            ([self.plain, "--data", data, "-o", out, "--parameter", "momentum=much"], USE, "expected a number, yes or no, got 'much'"),
            ([self.plain, "--data", data, "-o", out, "--epochs", "3", "--parameter", "epochs=3"], USE, "the parameter 'epochs' is given twice"),
        ]:
            with self.subTest(message):
                self.assertIn(message, self.ends(code, "update", *arguments).stderr)
        for text, message in [
            ('x,y_true\n"1,2,3","1,2"\n"1,2","1,2"\n', "bad.csv: row 2: input 'x': expected MultiArray (Double 3), got 2 numbers"),
            ('x,y_true\n"1,2,3","1,2"\n"1,two,3","1,2"\n', "bad.csv: row 2: input 'x': expected"),
            ('x,y_true\n"1,2,3",\n', "bad.csv: row 1: no value for 'y_true'; expected x: MultiArray (Double 3); y_true"),
            ('a,b\n1,2\n', "no column is named like a training input; expected x: MultiArray (Double 3); y_true: MultiArray (Double 2), got 'a', 'b'"),
            ("x,y_true\n", "expected a header and at least one row"),
            ('x,y_true\n"1,2,3","nan,2"\n', "'y_true'"),
        ]:
            with self.subTest(text):
                bad.write_text(text)
                done = moka("update", self.plain, "--data", bad, "-o", out)
                self.assertIn(done.returncode, (USE, FILE))
                self.assertIn(message, done.stderr)
        wrong = self.folder / "wrong"
        shutil.copytree(DRAWINGS, wrong)
        (wrong / "house").rename(wrong / "boat")
        self.assertRegex(self.ends(USE, "update", self.drawings(), "--data", wrong, "-o", out).stderr,
                         r"boat/1.png: 'shape': expected one of the classes 'cross', 'house', 'wave', got 'boat'")
        self.assertFalse(out.exists())
        self.assertEqual(foreign.read_text(), "mine")

    def test_errors_in_training_name_the_row(self):
        out, data = self.folder / "new.mlmodel", self.folder / "rows.csv"
        data.write_text('x,y_true\n"1,2,3","1,2"\n"1,inf,3","1,2"\n')
        self.assertRegex(self.ends(FILE, "update", self.plain, "--data", data, "-o", out).stderr, r"rows.csv: row 2: input 'x': expected finite numbers, got inf")
        arrays = self.folder / "rows.npz"
        for name, x, y in (("x", math.nan, 1), ("y_true", 1, math.inf)):
            with zipfile.ZipFile(arrays, "w") as archive:
                for key, shape, last in (("x", (12, 3), x), ("y_true", (12, 2), y)):
                    write_npy(self.folder / f"{key}.npy", shape, [1] * (shape[0] * shape[1] - 1) + [last])
                    archive.write(self.folder / f"{key}.npy", f"{key}.npy")
            self.assertRegex(moka("update", self.plain, "--data", arrays, "-o", out).stderr,
                             rf"^moka update: {arrays}: row 12: (input )?'{name}': expected finite numbers, got (nan|inf)\n$")
        data.write_text('x,y_true\n"1,2,3","1,2"\n"1,2,3","1e38,2"\n')
        self.assertIn("diverges", self.ends(FILE, "update", self.plain, "--data", data, "-o", out).stderr)
        case = next(c for c in json.loads((ROOT / "tests/update/cases.json").read_text()) if c["name"] == "lstm")
        lstm, sequences = self.folder / "lstm.mlmodel", self.folder / "sequences.jsonl"
        lstm.write_bytes(base64.b64decode(case["model"]))
        with sequences.open("w") as lines:
            for steps in (5, 5, 4, 5):
                lines.write(json.dumps({"x": [[[[[1]], [[2]], [[3]]]]] * steps, "label": "a"}) + "\n")
        self.assertRegex(self.ends(FILE, "update", lstm, "--data", sequences, "-o", out).stderr,
                         r"sequences.jsonl: line 3: input 'x': expected \[5, 1, 3, 1, 1\], the shape in .*sequences.jsonl: line 1 of the same "
                         r"mini-batch, got \[4, 1, 3, 1, 1\]; mini-batches of 1 take any shape")
        broken = self.folder / "broken"
        shutil.copytree(DRAWINGS, broken)
        (broken / "wave/3.png").write_bytes(b"no picture")
        self.assertIn("wave/3.png: ", self.ends(FILE, "update", self.drawings(), "--data", broken, "-o", out).stderr)
        self.assertFalse(out.exists())

    def test_a_plot_that_cannot_be_written(self):
        out, data = self.folder / "new.mlmodel", self.table(400)
        done = self.ends(FILE, "update", self.plain, "--data", data, "-o", out, "--plot", self.folder / "absent/plot.png")
        self.assertEqual(done.stdout, "")
        self.assertFalse(out.exists())

        def allow_small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        plot = self.folder / "plot.png"
        done = subprocess.run([PROGRAM, "update", str(self.plain), "--data", str(data), "-o", str(out), "--plot", str(plot)], capture_output=True,
                              text=True, preexec_fn=allow_small_files)
        self.assertEqual(done.returncode, FILE)
        self.assertRegex(done.stderr, rf"^moka update: '{plot}': cannot be written: ")
        self.assertRegex(done.stdout, rf"written +{out}\n$")
        self.assertTrue(out.exists())
        self.assertFalse(plot.exists())

    def test_control_c_writes_nothing(self):
        model, out = self.epochs(1_000_000_000), self.folder / "kept.mlmodel"
        self.ends(0, "update", self.plain, "--data", self.table(), "-o", out)
        before = out.read_bytes()
        leader, follower = pty.openpty()
        command = [PROGRAM, "update", str(model), "--data", str(self.table()), "-o", str(out), "--plot", str(self.folder / "plot.png")]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, text=True)
        os.close(follower)
        seen = b""
        while b"examples/s" not in seen:
            seen += os.read(leader, 4096)
        self.assertRegex(seen.decode(), r"epoch [\d]+ of [\d.e+]+  loss \S+  \S+ examples/s  \[-{20}\]  0%")
        child.send_signal(signal.SIGINT)
        try:
            while data := os.read(leader, 4096):
                seen += data
        except OSError:  # the terminal is closed
            pass
        output, _ = child.communicate(timeout=60)
        os.close(leader)
        self.assertEqual((child.returncode, output), (INTERRUPTED, ""))
        self.assertRegex(re.sub(r"[\r\n]", "", seen.decode()), r"moka update: interrupted in epoch \d+ after mini-batch \d of 3; nothing was written$")
        self.assertEqual(out.read_bytes(), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["kept.mlmodel", "plain.mlmodel", "plain1000000000.mlmodel", "rows.csv"])


if __name__ == "__main__":
    unittest.main()
