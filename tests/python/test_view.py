# SPDX-License-Identifier: Apache-2.0
"""Models in notebooks: the table of a model, and the viewer's page as a frame."""

import html
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

import moka

SHAPES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "models" / "shapes.mlmodel"
MIL = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> y = relu(x = x)[name = string("y")];
        tensor<fp32, [1, 4]> z = relu(x = y)[name = string("z")];
    } -> (z);
}
"""


def document_of(page):
    return json.loads(re.search(r'id="document">(.*?)</script>', page, re.S).group(1))


@pytest.fixture
def view():
    view = moka.Model(SHAPES).view()
    try:
        assert view.page
    except moka.Error as error:
        if "no viewer" not in str(error):
            raise
        pytest.skip("this build has no viewer, because npm could not fetch its packages")
    return view


def test_a_table_has_inputs_size_and_layers():
    model = moka.Model(SHAPES)
    text = model._repr_html_()
    assert "<script" not in text
    assert "<th>input</th><td><code>image</code>" in text
    layers = model.structure().layers
    assert f"<th>layers</th><td colspan=3>{len(layers)}: " in text
    kilobytes = SHAPES.stat().st_size / 1e3
    assert f"{kilobytes:.3g} kB" in text
    assert "<th>operations</th><td colspan=3>2: 2 relu</td>" in moka.Model.from_mil(MIL)._repr_html_()


def test_a_frame_holds_the_page(view, tmp_path):
    frame = view._repr_html_()
    source = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" .*></iframe>', frame, re.S).group(1)
    assert html.unescape(source) == view.page
    document = document_of(view.page)
    assert document["name"] == "shapes.mlmodel" and not document.get("live")
    view.save(tmp_path / "shapes.html")
    assert (tmp_path / "shapes.html").read_text(encoding="utf-8") == view.page


def test_models_in_memory_have_a_page(view):
    held = moka.Model(SHAPES.read_bytes()).view()
    assert document_of(held.page)["graphs"] == document_of(view.page)["graphs"]
    with pytest.raises(moka.UnsupportedError, match="MIL text"):
        moka.Model.from_mil(MIL).view()


def test_a_served_page_survives_its_warnings(monkeypatch):
    monkeypatch.setenv("MOKA_CACHE", "/proc/nowhere")  # packed weights cannot be kept there, of which the server warns
    page = moka.Model(SHAPES).view()  # the server ends with it
    address = page.serve()
    body = json.dumps({"inputs": {"image": {"random": True}}}).encode()
    for _ in range(2):
        with urllib.request.urlopen(urllib.request.Request(address + "api/predict", body), timeout=60) as answer:
            assert json.load(answer)["outputs"]


def test_a_server_ends_with_its_python(tmp_path):
    code = f"import moka, time\nview = moka.Model({str(SHAPES)!r}).view()\nprint(view.serve(), flush=True)\ntime.sleep(600)\n"
    python = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        address = python.stdout.readline().strip()
        urllib.request.urlopen(address, timeout=60).close()
    finally:
        python.kill()
        python.communicate()
    for _ in range(1200):
        try:
            urllib.request.urlopen(address, timeout=60).close()
        except OSError:
            return
        time.sleep(0.05)
    raise AssertionError("the server runs a minute after its process of Python was killed")


def test_a_served_page_predicts(view):
    address = view.serve()
    assert address == view.serve()
    body = json.dumps({"inputs": {"image": {"random": True}}}).encode()
    with urllib.request.urlopen(urllib.request.Request(address + "api/predict", body), timeout=60) as answer:
        outputs = json.load(answer)["outputs"]
    expected = moka.Model(SHAPES)
    expected = expected.predict(expected.random_inputs())
    assert {o["name"] for o in outputs} == set(expected)
    for o in outputs:
        if o["form"] == "classes":
            found = dict(o["entries"])
            np.testing.assert_allclose([found[k] for k in expected[o["name"]]], list(expected[o["name"]].values()), rtol=1e-5)
