# SPDX-License-Identifier: Apache-2.0
"""moka capture from outside: its page, the JSON beside it, and the contents of buffers."""

import ast
import json
import os
import struct
import sys
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case

X, Y = [1.0, -2.0, 0.5, 4.0], [0.0, 1.0, 1.0, -10.0]


def npy(path):
    """The shape and the numbers of a float32 array."""
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["descr"] == "<f4", header
    return header["shape"], list(struct.unpack(f"<{(len(data) - 10 - length) // 4}f", data[10 + length:]))


class Capture(Case):
    def setUp(self):
        super().setUp()
        self.model = self.affine()
        self.given = []
        for name, values in (("x", X), ("y", Y)):
            path = self.folder / f"{name}.json"
            path.write_text(json.dumps([values]))
            self.given += ["--input", f"{name}=@{path}"]

    def capture(self, *arguments):
        return self.answer("capture", self.model, *self.given, "--predictions", "3", *arguments)

    def has_driver(self):
        units = self.answer("rates", "--known", "--rates", "off", "--device", "vulkan")["units"]
        return any(u["device"] == "vulkan" for u in units)

    def test_the_page_has_what_the_json_beside_it_has(self):
        page = self.folder / "capture.html"
        done = self.ends(0, "capture", self.model, *self.given, "--predictions", "3", "-o", page, "--json")
        told = json.loads(done.stdout)
        self.assertEqual(json.loads((self.folder / "capture.json").read_text()), told)
        text = page.read_text()
        self.assertIn('<meta name="generator" content="Moka">', text)
        self.assertEqual(json.loads(text.split('type="application/json">')[1].split("</script>")[0]), told)
        self.assertEqual((told["format"], told["version"], told["predictions"]), ("moka-capture", 1, 3))
        self.assertEqual(told["model"]["path"], str(self.model))
        computed = {o["name"] for c in told["commands"] for o in c["operations"]} | {f for c in told["commands"] for f in c["fused"]}
        self.assertLessEqual({"sum", "z"}, computed)
        for c in told["commands"]:
            self.assertEqual(c["seconds"]["count"], 3)
            self.assertLessEqual(c["seconds"]["minimum"], c["seconds"]["median"])
            self.assertGreater(len(c["buffers"]), 0)

    def test_values_are_what_the_model_computes(self):
        right = [max(2 * x + y, 0) for x, y in zip(X, Y)]
        for device in ("cpu", "simulator") + (("vulkan",) if self.has_driver() else ()):
            with self.subTest(device):
                folder = self.folder / device
                page = self.folder / f"{device}.html"
                choice = ["--compute-units", "cpuOnly"] if device == "cpu" else ["--device", device]
                told = self.capture(*choice, "-o", page, "--values", folder)
                written = [b for c in told["commands"] for b in c["buffers"] if b.get("value") == "z" and b["written"]]
                self.assertTrue(written)
                for b in written[-1:]:  # the simulator applies relu in a step of its own
                    self.assertEqual(npy(self.folder / b["file"]), ((1, 4), right))  # the page's folder
                    self.assertEqual(b["summary"], {"count": 4, "nanCount": 0, "infiniteCount": 0, "minimum": min(right),
                                                    "maximum": max(right), "mean": sum(right) / 4})
                kept = {f.name for f in folder.iterdir()}
                self.assertEqual({Path(b["file"]).name for c in told["commands"] for b in c["buffers"] if "file" in b}, kept)

    def test_a_dispatch_has_its_shader_and_its_barrier(self):
        if not self.has_driver():
            self.skipTest("this machine has no driver for the device vulkan")
        told = self.capture("--device", "vulkan")
        (device,) = [d for d in told["devices"] if d["name"] == "vulkan"]
        (dispatch,) = [c for c in told["commands"] if c["kind"] == "dispatch"]
        self.assertTrue(dispatch["shader"].startswith("chain"))
        self.assertEqual(dispatch["workgroups"], [1, 1, 1])
        self.assertEqual(dispatch["workgroupSize"], [256, 1, 1])
        self.assertEqual({p["name"]: p["value"] for p in dispatch["parameters"]}["count"], "4")
        self.assertEqual({o["name"] for o in dispatch["operations"]} | set(dispatch["fused"]), {"doubled", "sum", "z"})
        self.assertTrue(any(f["name"] == "program" for f in dispatch["facts"]))
        self.assertEqual([b["value"] for b in dispatch["buffers"] if b["written"]], ["z"])
        self.assertTrue(all(b["bytes"] == 16 for b in dispatch["buffers"] if not b.get("unused")))
        if "timestamps" in device:
            self.assertTrue(device["timestamps"]["queries"])
            self.assertGreater(dispatch["seconds"]["median"], 0)
        with unittest.mock.patch.dict(os.environ, MOKA_VULKAN_TIMESTAMPS="0"):
            told = self.capture("--device", "vulkan")
            self.assertNotIn("timestamps", [d for d in told["devices"] if d["name"] == "vulkan"][0])
            (dispatch,) = [c for c in told["commands"] if c["kind"] == "dispatch"]
            self.assertNotIn("seconds", dispatch)
            text = self.ends(0, "capture", self.model, *self.given, "--device", "vulkan", "--predictions", "1").stdout
            self.assertIn("its queue has no timestamps", text)

    def test_the_terminal_shows_the_slowest_or_all(self):
        text = self.ends(0, "capture", self.model, "--predictions", "1", "--device", "simulator", "--all").stdout
        for word in ("simulator.reference", "upload", "wait", "times by the host's clock"):
            self.assertIn(word, text)
        text = self.ends(0, "capture", self.model, "--predictions", "1", "--device", "simulator", "--filter", "upload").stdout
        self.assertNotIn("simulator.reference", text)

    def test_mistakes(self):
        self.assertIn("beside which the JSON goes", self.ends(2, "capture", self.model, "-o", self.folder / "new.json").stderr)
        self.assertIn("--predictions", self.ends(2, "capture", self.model, "--predictions", "0").stderr)
        self.ends(3, "capture", self.folder / "absent.mlmodel")
        foreign = self.folder / "mine.json"
        foreign.write_text("not JSON")
        self.assertIn("mine.json", self.ends(2, "capture", self.model, "-o", self.folder / "mine.html").stderr)
        self.assertEqual(foreign.read_text(), "not JSON")
        table = self.folder / "rows.jsonl"
        table.write_text('{"x": [[1,2,3,4]], "y": [[1,2,3,4]]}\n' * 2)
        self.assertIn("one prediction", self.ends(2, "capture", self.model, "--input", f"@{table}").stderr)


if __name__ == "__main__":
    unittest.main()
