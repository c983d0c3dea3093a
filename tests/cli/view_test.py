# SPDX-License-Identifier: Apache-2.0
"""moka view from outside: the page, and what the server answers and refuses."""

import base64
import json
import math
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import MODELS, PROGRAM, Case
from model_files import array_feature, write_npy, write_program

NET = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> k = const()[name = string("k"), val = tensor<fp32, [1, 4]>([[-1, 0, 1, 4]])];
        tensor<int8, [6]> codes = const()[name = string("codes"), val = tensor<int8, [6]>([1, 1, 2, 3, 3, 3])];
        tensor<fp32, [1, 4]> sum = add(x = x, y = k)[name = string("sum")];
        tensor<fp32, [1, 4]> z = softmax(x = sum, axis = int32(1))[name = string("z")];
    } -> (z);
}
"""
HALF = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 2, 16, 16]> x) {
        tensor<fp16, [1, 2, 16, 16]> h = cast(x = x, dtype = string("fp16"))[name = string("h")];
        tensor<fp16, [1, 2, 16, 16]> same = relu(x = h)[name = string("same")];
        tensor<fp16, [1, 2, 16, 16]> grown = mul(x = same, y = fp16(1000))[name = string("grown")];
        tensor<fp16, [1, 2, 16, 16]> back = mul(x = grown, y = fp16(0.001))[name = string("back")];
        tensor<fp32, [1, 2, 16, 16]> z = cast(x = back, dtype = string("fp32"))[name = string("z")];
    } -> (z);
}
"""
GOLDEN = Path(__file__).parents[1] / "golden/classic"
UNKNOWN = NET.replace("softmax(", "not_an_operation(")


def document_of(page):
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


class View(Case):
    answer_of = Case.answer

    def model(self, mil=NET):
        return write_program(self.folder / "Net.mlmodelc", mil, [array_feature("x", [1, 4])], [array_feature("z", [1, 4])])

    def page(self, model):
        out = self.folder / "page.html"
        self.ends(0, "view", model, "-o", out)
        return out.read_text()

    def serve(self, *arguments):
        server = subprocess.Popen([PROGRAM, "view", *map(str, arguments), "--no-open"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.address = server.stdout.readline().strip()
        self.assertRegex(self.address, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")

    def ask(self, path="", body=None, headers={}, address=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request((address or self.address) + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers

    def answer(self, path, body):
        status, text, _ = self.ask("api/" + path, body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_page_holds_graph_and_statistics_and_refers_to_nothing(self):
        page = self.page(self.model())
        self.assertEqual(re.findall(r'(?:src|href)="(?!data:)[^"]*"', page.split('id="document"')[0]), [])
        graph = document_of(page)["graphs"][0]
        nodes = {n["type"]: n for n in graph["nodes"] if n["kind"] == "operation"}
        self.assertEqual({t: n["name"] for t, n in nodes.items()}, {"add": "sum", "softmax": "z"})
        self.assertEqual(nodes["softmax"]["values"], [["axis", "1"]])
        weights = {w["name"]: w["statistics"] for w in graph["weights"]}
        k = weights["k"]
        self.assertEqual((k["count"], k["zeros"], k["minimum"], k["maximum"], k["mean"], k["bits"]), (4, 1, -1, 4, 1, 32))
        self.assertAlmostEqual(k["deviation"] ** 2, ((4 + 1 + 0 + 9) / 4), places=9)
        self.assertEqual((sum(k["histogram"]), k["histogram"][0], k["histogram"][-1]), (4, 1, 1))
        self.assertEqual((weights["codes"]["distinct"], weights["codes"]["bits"]), (3, 8))

    def test_text_of_the_model_cannot_end_the_script(self):
        page = self.page(self.model(NET.replace('string("sum")', 'string("</script><b>")')))
        self.assertIn("</script><b>", [n["name"] for n in document_of(page)["graphs"][0]["nodes"]])

    def test_refused_models_are_shown_and_say_why_they_do_not_predict(self):
        model = self.model(UNKNOWN)
        self.assertIn("not_an_operation", [n["type"] for n in document_of(self.page(model))["graphs"][0]["nodes"]])
        self.serve(model)
        status, text, _ = self.ask("api/predict", {"inputs": {"x": {"random": True}}})
        self.assertEqual(status, 400)
        self.assertIn("not_an_operation", json.loads(text)["error"])

    def test_server_answers(self):
        self.serve(self.model())
        status, page, headers = self.ask()
        self.assertEqual(status, 200)
        self.assertTrue(document_of(page)["live"])
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertEqual(self.answer("weight", {"index": 0})["maximum"], 4)
        file = self.folder / "x.npy"
        write_npy(file, [1, 4], [1, 0, -1, -4])
        for given in ({"text": "1,0,-1,-4"}, {"file": base64.b64encode(file.read_bytes()).decode(), "name": "x.npy"}):
            output = self.answer("predict", {"inputs": {"x": given}})["outputs"][0]
            self.assertEqual((output["name"], output["form"], output["shape"]), ("z", "array", [1, 4]))
            self.assertAlmostEqual(output["maximum"], 0.25, places=6)
            self.assertAlmostEqual(output["minimum"], 0.25, places=6)
        report = self.answer("report", {})
        self.assertLessEqual({"sum", "z"}, {o["name"] for o in report["operations"]} | {f for o in report["operations"] for f in o["fused"]})

    def test_every_value_has_facts_and_maps(self):
        self.serve(write_program(self.folder / "Half.mlmodelc", HALF, [array_feature("x", [1, 2, 16, 16])],
                                 [array_feature("z", [1, 2, 16, 16])]))
        file = self.folder / "x.npy"
        write_npy(file, [1, 2, 16, 16], [i - 100 for i in range(512)])
        inputs = {"x": {"file": base64.b64encode(file.read_bytes()).decode(), "name": "x.npy"}}
        exact = {"precision": "exact", "device": "reference"}
        answer = self.answer("values", {"inputs": inputs, "setting": exact})
        self.assertTrue(answer["complete"])
        values = {v["value"]: (i, v) for i, v in enumerate(answer["values"])}
        index, same = values["same"]
        self.assertEqual((same["shape"], same["type"], same["minimum"], same["maximum"]), ([1, 2, 16, 16], "float16", 0, 411))
        self.assertAlmostEqual(same["mean"], sum(range(412)) / 512, places=3)
        # Products above 65519 round to infinity in float16.
        self.assertEqual(values["grown"][1]["infinite"], sum(1000 * v > 65519 for v in range(412)))
        shown = self.answer("values", {"inputs": inputs, "setting": exact, "index": index})
        self.assertEqual((shown["value"], shown["maps"]["planes"], shown["maps"]["shown"]), ("same", 2, 2))
        self.assertTrue(base64.b64decode(shown["maps"]["png"]).startswith(b"\x89PNG"))
        self.assertEqual(self.ask("api/values", {"inputs": inputs, "index": 999})[0], 400)
        self.assertEqual(self.ask("api/values", {"inputs": inputs, "setting": {"precision": "rough"}})[0], 400)
        self.assertEqual(self.ask("api/values", {"inputs": inputs, "setting": {"device": "abacus"}})[0], 400)

        # Without rounding to float16 nothing overflows.
        compared = self.answer("values", {"inputs": inputs, "setting": exact, "other": {"precision": "at-least", "device": "reference"}})
        first = compared["values"][compared["first"]]
        self.assertEqual((first["value"], first["differs"], first["other"]["infinite"]), ("grown", True, 0))
        self.assertFalse(compared["values"][index]["differs"])
        self.assertNotIn("first", self.answer("values", {"inputs": inputs, "setting": exact, "other": exact}))

    def test_passes_and_what_they_fused(self):
        self.serve(self.model(NET.replace("softmax(x = sum, axis = int32(1))", "relu(x = sum)")))
        answer = self.answer("passes", {})
        nodes = [n["type"] for n in answer["graph"]["nodes"] if n["kind"] == "operation"]
        self.assertEqual(answer["operationsInSource"], 2)
        self.assertIn("add", nodes)
        # relu runs in the step of add, be it by a pass or by the planner.
        self.assertEqual([o["fused"] for o in answer["operations"] if o["name"] == "sum"], [["z"]])

    def test_copies_are_saved_and_nothing_is_replaced(self):
        package = self.folder / "Net.mlpackage"
        self.ends(0, "decompile", self.model(), package)
        self.serve(package)
        copy = self.folder / "copy.mlpackage"
        self.assertEqual(self.answer("save", {"path": str(copy)})["written"], str(copy))
        self.ends(0, "predict", copy, "--input", "x=1,2,3,4")
        compiled = self.folder / "copy.mlmodelc"
        self.answer("save", {"path": str(compiled)})
        self.ends(0, "predict", compiled, "--input", "x=1,2,3,4")
        self.answer("save", {"path": str(self.folder / "flexible.mlpackage"), "shapes": ["x=1x4"]})
        for path, reason in ((copy, "exists already"), (self.folder / "copy.txt", ".mlpackage"), ("", "expected a file")):
            status, text, _ = self.ask("api/save", {"path": str(path)})
            self.assertEqual(status, 400)
            self.assertIn(reason, json.loads(text)["error"])

    def test_random_values_of_a_size(self):
        mil = NET.replace("[1, 4]> x)", "[?, 4]> x)").replace("[1, 4]> sum", "[?, 4]> sum").replace("[1, 4]> z", "[?, 4]> z")
        self.serve(self.model(mil))
        output = self.answer("predict", {"inputs": {"x": {"random": True, "shape": [1, 4]}}})["outputs"][0]
        self.assertEqual(output["shape"], [1, 4])
        for shape in ([0, 4], [1 << 20, 1 << 20], "4"):
            self.assertEqual(self.ask("api/predict", {"inputs": {"x": {"random": True, "shape": shape}}})[0], 400, shape)

    def test_general_has_the_precisions(self):
        model = document_of(self.page(self.model()))["model"]
        # The program has a constant of int8; nothing is in a weights file.
        self.assertEqual((model["computePrecision"], "storagePrecision" in model), ("Mixed (Float32, Int8)", False))
        self.assertIn("iOS", model["availability"])

    def test_texts_mean_themselves(self):
        self.serve(GOLDEN / "identity.mlmodel")
        for text in ("random", "@file", "@@file"):
            answer = self.answer("predict", {"inputs": {"s": {"text": text}, "x": {"text": "1"}}})
            self.assertIn(text, [o.get("text") for o in answer["outputs"]])

    def test_json_and_slashes(self):
        page = self.folder / "page.html"
        plain = document_of(self.page(self.model()))
        slash = f"{self.folder / 'Net.mlmodelc'}/"
        self.assertEqual(self.answer_of("view", slash, "-o", page), {"written": str(page)})
        self.assertEqual(document_of(page.read_text())["name"], plain["name"])

    def test_answers_are_drawn(self):
        self.serve(self.model())
        answer = self.answer("predict", {"inputs": {"x": {"text": "0,0,0,0"}}})
        # softmax of -1, 0, 1, 4
        powers = [math.exp(v) for v in (-1, 0, 1, 4)]
        self.assertEqual(answer["drawing"]["what"], "4 classes")
        self.assertEqual([f.split()[0] for f in answer["drawing"]["found"]], ["3", "2", "1", "0"])
        self.assertAlmostEqual(float(answer["drawing"]["found"][0].split()[1].rstrip("%")), 100 * powers[3] / sum(powers), delta=0.06)
        self.assertTrue(base64.b64decode(answer["drawing"]["png"]).startswith(b"\x89PNG"))

    def test_reports_are_measured_apart_again_and_again(self):
        self.serve(self.model())
        self.answer("predict", {"inputs": {"x": {"random": True}}})
        for _ in range(2):
            self.assertIn("steady", self.answer("report", {}))
        self.assertIn("not_a_function", self.answer("report", {"function": "not_a_function"})["error"])

    def test_server_refuses_others(self):
        self.serve(self.model())
        base, port = self.address[:-33], self.address.split(":")[2].split("/")[0]
        self.assertEqual(self.ask(address=base)[0], 404)
        self.assertEqual(self.ask(address=base + "0" * 32 + "/")[0], 404)
        for path in ("../../etc/passwd", "%2e%2e/etc/passwd", "coremldata.bin", "api", "api/"):
            self.assertEqual(self.ask(path)[0], 404, path)
        self.assertEqual(self.ask(headers={"Host": "evil.example:" + port})[0], 403)
        self.assertEqual(self.ask(headers={"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.ask(headers={"Origin": "http://127.0.0.1:" + port})[0], 200)
        self.assertEqual(self.ask("api/weight")[0], 405)

    def test_bad_requests_are_errors(self):
        self.serve(self.model())
        secret = self.folder / "secret.npy"
        write_npy(secret, [1, 4], [1, 2, 3, 4])
        for path, body in (("weight", {"index": 9}), ("weight", {}), ("weight", {"index": 0, "models": [3]}), ("weight", []),
                           ("predict", {}), ("predict", {"inputs": []}), ("predict", {"inputs": {"y": {"text": "1"}}}),
                           ("predict", {"inputs": {"x": {"file": "*", "name": "x.npy"}}}),
                           ("predict", {"inputs": {"x": {"text": f"@{secret}"}}})):
            status, text, _ = self.ask("api/" + path, body)
            self.assertEqual(status, 400, (path, body, text))
            self.assertTrue(json.loads(text)["error"])
        self.assertEqual(self.answer("weight", {"index": 0})["count"], 4)

    def test_typed_names_of_pictures_are_no_files(self):
        examples = Path(__file__).parents[2] / "examples/models"
        self.serve(examples / "shapes.mlmodel")
        picture = examples / "square.png"
        status, text, _ = self.ask("api/predict", {"inputs": {"image": {"text": str(picture)}}})
        self.assertEqual(status, 400, text)
        content = base64.b64encode(picture.read_bytes()).decode()
        self.answer("predict", {"inputs": {"image": {"file": content, "name": "square.png"}}})

    def test_address_in_use_is_an_error(self):
        self.serve(self.model())
        port = self.address.split(":")[2].split("/")[0]
        self.assertIn("cannot listen on 127.0.0.1:" + port, self.ends(3, "view", self.folder / "Net.mlmodelc", "--port", port).stderr)

    @unittest.skipUnless(MODELS.is_dir(), "no folder of models")
    def test_every_model_becomes_a_page(self):
        models = [p for p in MODELS.rglob("*.ml*") if p.suffix in (".mlmodel", ".mlpackage", ".mlmodelc")
                  and not any(parent.suffix in (".mlpackage", ".mlmodelc") for parent in p.parents)]
        self.assertGreater(len(models), 20)
        for model in models:
            with self.subTest(model=str(model.relative_to(MODELS))):
                document = document_of(self.page(model))
                self.assertGreater(len(document["graphs"][0]["nodes"]), 1)


if __name__ == "__main__":
    unittest.main()
