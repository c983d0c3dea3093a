# SPDX-License-Identifier: Apache-2.0
"""What commands that write replace, and what they leave alone: docs/writing.md."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import AFFINE, CONVOLUTION, PROGRAM, Case, moka
from model_files import array_feature, write_program

MODELS = Path(__file__).parents[2] / "examples/models"
USE, FILE = 2, 3
FOREIGN = b"#!/bin/sh\nkeep me\n"
SHARED = tempfile.TemporaryDirectory()
MADE = Path(SHARED.name)


def setUpModule():
    """Inputs that commands below make from the models of the examples."""
    features = [array_feature("x", [1, 4]), array_feature("y", [1, 4])]
    write_program(MADE / "affine.mlmodelc", AFFINE, features, [array_feature("z", [1, 4])])
    features = [array_feature("x", [1, 32, 12, 12]), array_feature("w", [32, 32, 3, 3])]
    write_program(MADE / "conv.mlmodelc", CONVOLUTION, features, [array_feature("z", [1, 32, 12, 12])])
    for command in (["key", "-o", MADE / "secret.key"], ["convert", MODELS / "rent.mlmodel", "-o", MADE / "rent.onnx"],
                    ["report", MODELS / "rent.mlmodel", "--seconds", "0.01", "--rates", "off", "--save", MADE / "report.json"]):
        assert moka(*command).returncode == 0, command
    recipient = moka("key", "--of", MADE / "secret.key").stdout.strip()
    assert moka("encrypt", MODELS / "rent.mlmodel", "-r", recipient, "-o", MADE / "rent.age").returncode == 0


class Row:
    """A command. `out`: what its arguments name as OUT; `file`: what it writes there; IN stands for the model. `sample`: a file of
    its kind, for commands that measure this machine and take seconds."""

    def __init__(self, model, out, *arguments, file=None, folder=False, sample=None, key=False):
        self.model, self.out, self.arguments, self.file = model, out, arguments, file
        self.is_folder, self.sample, self.is_key = folder, sample, key

    def command(self, out, model):
        return [{"OUT": out, "IN": model}.get(a, a) for a in self.arguments]


RENT, SHAPES, TOTAL = MODELS / "rent.mlmodel", MODELS / "shapes.mlmodel", MODELS / "total.mlpackage"
NETWORK = MADE / "network.mlmodel"
NEIGHBORS = MODELS.parents[1] / "tests/golden/update/neighbors_string.mlmodel"
AGE = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
INPUTS = ("-i", "rooms=2", "-i", "area=50", "-i", "kilometres=3")
ROWS = {
    "view": Row(RENT, "x.html", "view", "IN", "-o", "OUT"),
    "report page": Row(MADE / "report.json", "x.html", "report", "IN", "-o", "OUT"),
    "report": Row(MADE / "report.json", "x.json", "report", "IN", "--save", "OUT"),
    "trace": Row(RENT, "x.pftrace", "trace", "-o", "OUT", "--", PROGRAM, "predict", "IN", *INPUTS),
    "capture": Row(RENT, "x.html", "capture", "IN", *INPUTS, "--predictions", "1", "-o", "OUT"),
    "predict": Row(MADE / "affine.mlmodelc", "out", "predict", "IN", "-i", "random", "-o", "OUT", file="z.npy"),
    "predict values": Row(RENT, "out", "predict", "IN", *INPUTS, "-o", "OUT", file="values.json"),
    "predict table": Row(RENT, "out", "predict", "IN", "-i", f"@{MADE / 'rows.csv'}", "-o", "OUT", file="predictions.csv"),
    "predict --draw": Row(SHAPES, "x.png", "predict", "IN", "-i", f"image=@{MODELS / 'square.png'}", "--draw", "OUT"),
    "predict --save-state": Row(TOTAL, "out", "predict", "IN", "-i", "x=1,2", "--save-state", "OUT", file="total.npy"),
    "edit": Row(RENT, "x.mlmodel", "edit", "IN", "--author", "me", "-o", "OUT"),
    "edit package": Row(TOTAL, "x.mlpackage", "edit", "IN", "--author", "me", "-o", "OUT", folder=True),
    "update": Row(NEIGHBORS, "x.mlmodel", "update", "IN", "--data", MADE / "examples.csv", "-o", "OUT"),
    "update compiled": Row(NEIGHBORS, "x.mlmodelc", "update", "IN", "--data", MADE / "examples.csv", "-o", "OUT", folder=True),
    "update --plot": Row(NETWORK, "x.png", "update", "IN", "--data", MADE / "pairs.csv", "--plot", "OUT", "-o", MADE / "updated.mlmodel"),
    "compress": Row(SHAPES, "x.mlmodel", "compress", "IN", "--linear", "8", "--least", "16", "-o", "OUT"),
    "compress --chart": Row(SHAPES, "x.png", "compress", "IN", "--least", "16", "--target-size", "60%", "--chart", "OUT",
                            "-o", MADE / "small.mlmodel"),
    "convert to ONNX": Row(RENT, "x.onnx", "convert", "IN", "-o", "OUT"),
    "convert from ONNX": Row(MADE / "rent.onnx", "x.mlpackage", "convert", "IN", "-o", "OUT", folder=True),
    "compile": Row(RENT, "out", "compile", "IN", "OUT", file="rent.mlmodelc", folder=True),
    "compile plist": Row(RENT, "x.plist", "compile", "IN", MADE / "compiled", "--output-partial-info-plist", "OUT"),
    "decompile": Row(MADE / "affine.mlmodelc", "x.mlpackage", "decompile", "IN", "OUT", folder=True),
    "generate": Row(RENT, "out", "generate", "IN", "OUT", "--language", "C", file="rent.h"),
    "lint": Row(RENT, "x.mlmodel", "lint", "IN", "--no-run", "--fix", "-o", "OUT"),
    "encrypt": Row(RENT, "x.age", "encrypt", "IN", "-r", AGE, "-o", "OUT"),
    "decrypt": Row(MADE / "rent.age", "x.mlmodel", "decrypt", "IN", "--identity", MADE / "secret.key", "-o", "OUT"),
    "key": Row(RENT, "x.key", "key", "-o", "OUT", key=True),
    "tune": Row(MADE / "conv.mlmodelc", "kernels.json", "tune", "IN", "--threads", "1", "--again", "--kernels", "OUT",
                sample=b'{"format": "moka kernel times", "version": 1, "machines": []}'),
    "rates": Row(RENT, "rates.json", "rates", "--threads", "1", "--rates", "OUT",
                 sample=b'{"format": "moka unit rates", "version": 1, "machines": []}'),
}


def content(path):
    """Of a file or a folder, with the names of all files."""
    path = Path(path)
    if path.is_dir():
        return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}
    return path.read_bytes() if path.exists() else None


class Rows(Case):
    def setUp(self):
        super().setUp()
        plain = (NEIGHBORS.parent / "plain.mlmodel").read_bytes()
        NETWORK.write_bytes(plain.replace(b"\x28\x01", b"\x28\x00"))  # arrayInputShapeMapping: vectors
        (MADE / "pairs.csv").write_text('x,y_true\n"1,2,3","1,2"\n')
        (MADE / "examples.csv").write_text('input,label\n"1,2",a\n')
        (MADE / "rows.csv").write_text("rooms,area,kilometres\n2,50,3\n3,70,1\n")

    def each_row(self, test):
        """Calls test(row, OUT, the path that the command writes) for each row, in a new folder."""
        for name, row in ROWS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / row.out
                if row.file:
                    out.mkdir()
                test(row, out, out / row.file if row.file else out)


class Writing(Rows):
    def refused(self, row, out, written, model=None, force=True):
        before = content(written)
        message = self.ends(USE, *row.command(out, model or row.model)).stderr
        self.assertEqual("--force" in message, force, message)
        self.assertEqual(content(written), before)
        return message

    def test_what_is_not_of_the_own_kind_stays(self):
        def test(row, out, written):
            if row.is_folder:
                written.mkdir(exist_ok=True)
                (written / "letter").write_bytes(FOREIGN)
                self.assertIn("never replaced", self.refused(row, out, written, force=False))
                self.ends(USE, *row.command(out, row.model), "--force")
                self.assertEqual(content(written), {"letter": FOREIGN})
                return
            written.write_bytes(FOREIGN)
            self.assertIn("not replaced", self.refused(row, out, written))
            if row.out != "x.mlmodel":
                shutil.copy(RENT, written)
                self.assertIn("exists already" if row.is_key else "Core ML specification", self.refused(row, out, written))
            written.unlink()
            written.symlink_to(shutil.copy(MODELS / "square.png", out.parent / "other"))
            if row.out != "x.png":
                self.refused(row, out, written)
            written.unlink()
            written.mkdir()
            self.assertIn("folder", self.refused(row, out, written, force=False))

        self.each_row(test)

    def test_the_own_kind_and_empty_files_are_replaced_and_force_replaces_all(self):
        def test(row, out, written):
            command = row.command(out, row.model)
            forced = [command[0], "--force", *command[1:]]
            if row.is_folder:
                written.mkdir(exist_ok=True)
            else:
                written.write_bytes(row.sample or b"")
            for again in range(1 if row.sample else 2):
                if again and row.is_key:
                    self.assertIn("exists already", self.refused(row, out, written))
                    self.ends(0, *forced)
                    self.assertEqual(written.stat().st_mode & 0o777, 0o600)
                else:
                    self.ends(0, *command)
            if row.is_folder:
                shutil.rmtree(written)
                shutil.copytree(TOTAL if written.suffix == ".mlmodelc" else MADE / "affine.mlmodelc", written)
                self.refused(row, out, written)
            else:
                written.write_bytes(FOREIGN)
                written.chmod(0o640)
            if row.arguments[0] == "rates":
                return
            self.ends(0, *forced)
            self.assertNotEqual(content(written), FOREIGN)
            self.assertEqual([p.name for p in written.parent.iterdir() if "unfinished" in p.name or p.name.endswith(".tmp")], [])
            if not row.is_folder and not row.sample and not row.is_key:
                self.assertEqual(written.stat().st_mode & 0o777, 0o640)

        self.each_row(test)

    def test_an_input_is_no_output(self):
        for name in ("edit", "edit package", "update", "lint", "compress", "decrypt", "view", "report", "capture", "trace", "encrypt", "predict --draw"):
            row = ROWS[name]
            with self.subTest(name):
                model = self.folder / (name.replace(" ", "") + Path(row.model).suffix)
                (shutil.copytree if Path(row.model).is_dir() else shutil.copy)(row.model, model)
                ending = Path(row.out).suffix
                link = self.folder / (name + "link" + ending)
                link.symlink_to(model)
                same = name in ("edit", "edit package", "update", "lint", "compress", "report")
                self.refused(row, link, model, model, force=same)
                if not same:
                    before = content(model)
                    self.ends(USE, *row.command(link, model)[:1], "--force", *row.command(link, model)[1:])
                    self.assertEqual(content(model), before)
                if model.is_file():
                    hard = self.folder / (name + "hard" + ending)
                    os.link(model, hard)
                    self.refused(row, hard, model, model, force=same)
        model = shutil.copy(RENT, self.folder / "one.mlmodel")
        before = content(model)
        self.assertIn("is the input", self.ends(USE, "edit", model, "--author", "me", "-o", model).stderr)
        self.assertEqual(content(model), before)
        self.ends(0, "edit", model, "--author", "me", "-o", model, "--force")
        self.assertEqual(self.answer("inspect", model)["metadata"]["author"], "me")
        old = shutil.copy(MADE / "report.json", self.folder / "old.json")
        self.assertIn("is the input", self.ends(USE, "report", MADE / "report.json", "--compare", old, "--save", old).stderr)
        picture = shutil.copy(MODELS / "square.png", self.folder / "picture.png")
        self.assertIn("is the input", self.ends(USE, "predict", SHAPES, "-i", f"image=@{picture}", "--draw", picture).stderr)
        picture = shutil.copy(MODELS / "square.png", self.folder / "row-1.png")
        before = content(picture)
        for table, text, drawing in (("rows.csv", f"image\n@{picture}\n", "row.png"), ("one.json", json.dumps({"image": f"@{picture}"}), "row-1.png"),
                                     ("lines.jsonl", json.dumps({"image": f"@{picture}"}) + "\n", "row.png")):
            (self.folder / table).write_text(text)
            done = self.ends(USE, "predict", SHAPES, "-i", f"@{self.folder / table}", "--draw", self.folder / drawing)
            self.assertIn("is the input", done.stderr)
            self.assertEqual(content(picture), before)
        labels = self.folder / "labels.mlmodel"
        labels.write_text("1\n2\n3\n4\n")
        for more in ((), ("--force",)):
            self.assertIn("is the input", self.ends(USE, "edit", SHAPES, "--labels", f"{labels},type=int64", "-o", labels, *more).stderr)
            self.assertEqual(labels.read_text(), "1\n2\n3\n4\n")
        states = self.folder / "states"
        self.ends(0, "predict", TOTAL, "-i", "x=1,2", "--save-state", states)
        self.assertIn("is the input", self.ends(USE, "predict", TOTAL, "-i", "x=1,2", "--load-state", states, "--save-state", states).stderr)

    def test_nothing_is_written_into_a_model_or_over_a_folder_with_an_input(self):
        package = shutil.copytree(TOTAL, self.folder / "total.mlpackage")
        before = content(package)
        for command in (["predict", package, "-i", "x=1,2", "-o", package], ["compile", package, package]):
            self.assertIn("is the input", self.ends(USE, *command, "--force").stderr)
            self.assertEqual(content(package), before)
        for command in (["predict", package, "-i", "x=1,2", "-o", package / "Data"],
                        ["view", package, "-o", package / "page.html"],
                        ["encrypt", package, "-r", AGE, "-o", package / "x.age"],
                        ["generate", package, package / "Data", "--language", "C"]):
            self.assertIn("--force", self.ends(USE, *command).stderr)
            self.assertEqual(content(package), before)
        self.ends(0, "predict", package, "-i", "x=1,2", "--cache", package)
        self.assertEqual(content(package), before)
        inside = shutil.copytree(MADE / "affine.mlmodelc", package / "affine.mlmodelc")
        before = content(package)
        self.assertIn("contains the input", self.ends(USE, "decompile", inside, package).stderr)
        self.assertEqual(content(package), before)

    def test_caches_of_the_library_replace_nothing_else(self):
        model = shutil.copy(RENT, self.folder / "one.mlmodel")
        before = content(model)
        for command, variable in ((["rates", "--threads", "1"], "MOKA_RATES"), (["tune", MADE / "conv.mlmodelc"], "MOKA_KERNEL_CACHE"),
                                  (["predict", MADE / "conv.mlmodelc", "-i", "random"], "MOKA_KERNEL_CACHE"),
                                  (["predict", RENT, *INPUTS], "MOKA_TRACE"),
                                  (["predict", SHAPES, "-i", f"image=@{MODELS / 'square.png'}"], "MOKA_CACHE")):
            done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True, env={**os.environ, variable: str(model)})
            self.assertEqual(content(model), before, variable)
            self.assertEqual(done.returncode, USE if command[0] in ("rates", "tune") else 0, done.stderr)
            self.assertIn("one.mlmodel", done.stderr, variable)
        times = self.folder / "times.json"
        times.write_bytes(ROWS["tune"].sample)
        done = subprocess.run([PROGRAM, "tune", MADE / "conv.mlmodelc", "--json"], capture_output=True, text=True,
                              env={**os.environ, "MOKA_KERNEL_CACHE": str(times)})
        self.assertEqual(json.loads(done.stdout)["file"], str(times), done.stderr)
        cache = self.folder / "cache"
        cache.mkdir()
        (cache / "mine.packed").write_bytes(FOREIGN)
        self.ends(0, "cache", "clear", "--cache", cache)
        self.assertEqual(content(cache), {"mine.packed": FOREIGN})


class Failing(Rows):
    """Disks that are full."""

    def limited(self, *arguments, limit=16, **more):
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, restore_signals=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), **more)

    def test_the_previous_file_stays(self):
        def test(row, out, written):
            command = row.command(out, row.model)
            if row.sample:
                written.write_bytes(row.sample)
            else:
                self.ends(0, *command)
            before, names = content(written), sorted(written.parent.iterdir())
            done = self.limited(*command, *(["--force"] if row.is_key else []))
            if "could not be timed beside" in done.stdout:
                return  # other work on the machine left tune nothing to write
            self.assertEqual(done.returncode, FILE, done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertEqual(content(written), before)
            self.assertEqual(sorted(written.parent.iterdir()), names)

        self.each_row(test)

    def test_full_devices_are_errors_and_others_work(self):
        for name in ("view", "report page", "report", "capture", "trace", "predict --draw", "convert to ONNX", "encrypt", "key"):
            row = ROWS[name]
            with self.subTest(name):
                out = {"convert to ONNX": self.folder / "full.onnx"}.get(name, "/dev/full")
                if out != "/dev/full":
                    out.symlink_to("/dev/full")
                done = self.ends(FILE, *row.command(out, row.model)) if name != "trace" else moka(*row.command(out, row.model))
                self.assertEqual(done.returncode, FILE)
                self.assertIn("No space left on device", done.stderr)
                if out == "/dev/full":
                    self.ends(0, *row.command("/dev/null", row.model))
        page = self.ends(0, "view", RENT, "-o", "/dev/stdout").stdout
        self.assertTrue(page.startswith("<!doctype html>") and page.rstrip().endswith("</html>"))
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            self.ends(0, "encrypt", RENT, "-r", AGE, "-o", pipe)
            self.assertTrue(reader.stdout.read().startswith(b"age-encryption.org/v1"))

    def test_standard_output(self):
        for command in (["inspect", RENT, "--json"], ["inspect", RENT], ["view", RENT, "-o", MADE / "x.html", "--json"], ["--help"], ["completion", "bash"], ["metadata", RENT],
                        ["predict", RENT, *INPUTS], ["lint", "--rules"], ["version"], ["trace", "summary", MADE / "x.pftrace"]):
            with self.subTest(command), open("/dev/full", "wb") as full:
                if command[0] == "trace":
                    self.ends(0, "trace", "-o", MADE / "x.pftrace", "--", PROGRAM, "predict", RENT, *INPUTS)
                done = subprocess.run([PROGRAM, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, FILE, done.stderr)
                self.assertIn("standard output: No space left on device", done.stderr)

    def test_a_child_that_cannot_write_its_trace_fails_the_command(self):
        out = self.folder / "t.pftrace"
        predicts = [PROGRAM, "predict", RENT, *INPUTS]
        self.ends(0, "trace", "-o", out, "--", *predicts)
        before = content(out)
        # The limit holds for the child alone, which as `env` does not end as Moka's command does.
        limited = ["sh", "-c", f"trap '' XFSZ; ulimit -f 0; {' '.join(map(str, predicts))} > /dev/null; exit 0"]
        done = moka("trace", "-o", out, "--", *limited)
        self.assertEqual(done.returncode, FILE, done.stderr)
        self.assertIn("cannot be written: File too large", done.stderr)
        self.assertEqual(content(out), before)
        done = self.limited("predict", RENT, *INPUTS, env={**os.environ, "MOKA_TRACE": str(self.folder / "own.pftrace")})
        self.assertEqual(done.returncode, FILE, done.stderr)
        self.assertIn("own.pftrace': cannot be written: File too large", done.stderr)

    def test_places_that_do_not_exist(self):
        for name in ("view", "report", "trace", "predict --draw", "key"):
            row = ROWS[name]
            self.assertIn("No such file or directory", self.ends(FILE, *row.command("/proc/none/x", row.model)).stderr)


if __name__ == "__main__":
    unittest.main()
