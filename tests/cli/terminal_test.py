# SPDX-License-Identifier: Apache-2.0
"""The program's output to a terminal of a given width, and to a pipe."""

import base64
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import unicodedata
import unittest
from pathlib import Path

import look_files
from case import PROGRAM, Case, moka
from model_files import array_feature, write_program

CLASSIC = Path(__file__).parents[1] / "golden/classic/dict_vectorizer.mlmodel"  # types of operations with long names
LONG = "a_very_long_name_of_an_input_that_somebody_made_from_a_path_of_modules_and_that_goes_on_and_on_to_the_very_end"
MANY = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> %s) {
        tensor<fp32, [1, 4]> doubled_in_the_first_step_of_all = add(x = %s, y = %s)[name = string("doubled_in_the_first_step_of_all")];
        tensor<fp32, [1, 4]> z = tan(x = doubled_in_the_first_step_of_all)[name = string("z")];
    } -> (z);
}
""" % (LONG, LONG, LONG)

LOOP = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1]> x) {
        tensor<fp32, [1]> y = while_loop(loop_vars = (x))[name = string("y")] {
            block condition(tensor<fp32, [1]> a) {
                tensor<bool, [1]> positive = greater_equal(x = a, y = fp32(0x0p+0))[name = string("positive")];
                tensor<bool, []> on = squeeze(x = positive)[name = string("on")];
            } -> (on);
            block body(tensor<fp32, [1]> b) {
                tensor<fp32, [1]> c = add(x = b, y = fp32(0x1p+0))[name = string("c")];
            } -> (c);
        };
    } -> (y);
}
"""


def cells(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


# Closing a terminal can lose output that nobody has read yet, so the reader waits for this mark instead.
END = b"\0"


def in_terminal(width, *arguments, columns=None, variables={}, status=0):
    """The program's output in a terminal of `width` cells, without colors. Or its errors, for another status."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    for name in ("TERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX"):
        environment.pop(name, None)
    environment.update(variables)
    if columns:
        environment["COLUMNS"] = str(columns)
    out = bytearray()

    def read():
        while not out.endswith(END):
            out.extend(os.read(leader, 65536))

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=follower, stderr=subprocess.PIPE, env=environment)
    os.write(follower, END)
    reader.join()
    os.close(follower)
    os.close(leader)
    assert done.returncode == status, done.stderr
    if status:
        return done.stderr.decode()
    return re.sub(r"\x1b\[\d*m", "", out.removesuffix(END).decode()).replace("\r\n", "\n")


SCORES = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> z = softmax(x = x, axis = int32(1))[name = string("z")];
    } -> (z);
}
"""


class Pictures(Case):
    """--draw terminal: the picture of --draw FILE, in the escape sequences of the terminal."""

    def setUp(self):
        super().setUp()
        self.net = write_program(self.folder / "scores.mlmodelc", SCORES, [array_feature("x", [1, 4])], [array_feature("z", [1, 4])])
        self.arguments = ("predict", self.net, "--input", "x=0,1,2,3", "--draw")
        self.ends(0, *self.arguments, self.folder / "out.png")
        self.png = (self.folder / "out.png").read_bytes()

    def test_kitty(self):
        for variables in ({"TERM": "xterm-kitty"}, {"KITTY_WINDOW_ID": "1"}, {"TERM": "xterm-ghostty"}):
            out = in_terminal(80, *self.arguments, "terminal", variables=variables)
            parts = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", out)
            self.assertEqual(parts[0][0], f"f=100,a=T,q=2,m={int(len(parts) > 1)}")
            self.assertEqual([p for p, _ in parts[1:]], ["m=1"] * (len(parts) - 2) + ["m=0"] * (len(parts) > 1))
            self.assertTrue(all(len(data) <= 4096 for _, data in parts))
            self.assertEqual(base64.b64decode("".join(data for _, data in parts)), self.png)

    def test_iterm(self):
        for program in ("iTerm.app", "WezTerm"):
            out = in_terminal(80, *self.arguments, "terminal", variables={"TERM_PROGRAM": program})
            size, data = re.search(r"\x1b\]1337;File=inline=1;size=(\d+):([^\x07]*)\x07", out).groups()
            self.assertEqual((int(size), base64.b64decode(data)), (len(self.png), self.png))

    def test_other_terminals_are_an_error(self):
        for variables in ({"TERM": "xterm-256color"}, {"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"},
                          {"TERM_PROGRAM": "iTerm.app", "TMUX": "socket,1,0"}):
            self.assertIn("expected a terminal that shows pictures", in_terminal(80, *self.arguments, "terminal", variables=variables, status=2))
        self.assertIn("expected a terminal that shows pictures", self.ends(2, *self.arguments, "terminal").stderr)
        self.assertIn("--json", self.ends(2, *self.arguments, "terminal", "--json").stderr)


class Widths(Case):
    def model(self):
        return write_program(self.folder / "long.mlmodelc", MANY, [array_feature(LONG, [1, 4])], [array_feature("z", [1, 4])])

    def fits(self, width, text):
        for line in text.split("\n"):
            self.assertLessEqual(cells(line), width, line)

    def test_every_table_fits(self):
        model = self.model()
        for command in (["inspect", model, "--layers", "--weights"], ["explain", model], ["explain", model, "--all"],
                        ["explain", model, "--pin", "*=simulator", "--all"], ["explain", model, "--unit", "neuralEngine"],
                        ["explain", model, "--all", "--compute-units", "cpuAndNeuralEngine"],
                        ["explain", CLASSIC, "--all", "--compute-units", "cpuAndNeuralEngine"],
                        ["explain", model, "--measure"], ["predict", model, "-i", "random"], ["bench", model, "-n", "3"]):
            for width in (80, 120, 160):
                with self.subTest(command=command, width=width):
                    self.fits(width, in_terminal(width, *command))

    def test_refusals_fit(self):
        for model in (look_files.custom_layer(self.folder / "a.mlmodel"), look_files.missing_weights(self.folder / "b.mlmodelc")):
            shown = in_terminal(80, "inspect", model)
            self.fits(80, shown)
            self.assertIn("refused: ", shown)
            self.assertNotIn("…", shown)

    def test_a_wider_terminal_shows_more(self):
        model = self.model()
        narrow, wide = (in_terminal(width, "explain", model) for width in (80, 200))
        self.assertLess(max(map(cells, narrow.split("\n"))), max(map(cells, wide.split("\n"))))
        self.assertIn("doubled_in_the_first_step_of_all", wide)
        self.assertIn("fp32 1 x 4", wide)

    def test_columns_say_the_width(self):
        self.fits(80, in_terminal(200, "inspect", self.model(), columns=80))

    def test_a_pipe_cuts_nothing(self):
        model = self.model()
        shown = moka("inspect", model, "--layers").stdout
        self.assertNotIn("…", shown)
        self.assertIn(f"x={LONG} y={LONG}", shown)
        self.assertNotIn("…", moka("explain", model).stdout)


class Measured(Case):
    def endless(self):
        return write_program(self.folder / "loop.mlmodelc", LOOP, [array_feature("x", [1])], [array_feature("y", [1])])

    def test_explain_does_not_predict(self):
        model = self.endless()
        self.ends(3, "predict", model, "-i", "x=1")  # a million iterations, then the limit
        plan = self.answer("explain", model, "-i", "x=1")
        self.assertIn("while_loop", {o["type"] for o in plan["operations"]})
        self.assertIn("add", {o["type"] for o in plan["operations"]})
        self.assertTrue(plan["complete"])
        self.assertNotIn("measuredSeconds", plan)

    def test_medians_of_several(self):
        plan = self.answer("explain", self.affine(), "--measure")
        self.assertGreaterEqual(plan["predictions"], 3)
        self.assertGreater(plan["measuredSeconds"], 0)
        self.assertGreater(plan["measuredOperationsSeconds"], 0)
        self.assertEqual(self.answer("explain", self.folder / "affine.mlmodelc", "--measure", "--predictions", "7")["predictions"], 7)
        shown = self.ends(0, "explain", self.folder / "affine.mlmodelc", "--measure", "--predictions", "5").stdout
        self.assertIn("a prediction", shown)
        self.assertIn("medians of 5 predictions", shown)
        self.ends(2, "explain", self.folder / "affine.mlmodelc", "--predictions", "5")


class Folded(Case):
    def test_many_shapes_and_classes(self):
        model = look_files.many_shapes_and_classes(self.folder / "m.mlmodel", shapes=64, classes=1000)
        for shown in (in_terminal(80, "inspect", model), moka("inspect", model).stdout):
            self.assertIn("64 shapes", shown)
            self.assertIn("1,000: c0, c1", shown)
            self.assertLess(len(shown), 3000)
        facts = self.answer("inspect", model)
        self.assertEqual(facts["classLabels"]["count"], 1000)
        self.assertEqual(len(facts["functions"][0]["inputs"][0]["enumeratedShapes"]), 64)


if __name__ == "__main__":
    unittest.main()
