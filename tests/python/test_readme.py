# SPDX-License-Identifier: Apache-2.0
"""Runs the Python snippets of README.md line by line."""

import ast
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "readme"))
import snippets

coremltools = pytest.importorskip("coremltools", reason="coremltools is not installed")


@pytest.mark.skipif(snippets.net() is None and not snippets.DEMO.exists(), reason="no nmp.mlpackage and no program of the demo: make demo makes both")
def test_snippets(tmp_path, monkeypatch):
    snippets.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    names, compared = {}, 0
    for session in snippets.sessions(">>> ", "... "):
        for typed, shown in session:
            try:
                code = compile(ast.parse(typed, mode="eval"), "README.md", "eval")
            except SyntaxError:
                exec(compile(typed, "README.md", "exec"), names)
                continue
            value = eval(code, names)
            if shown:
                assert [l.rstrip() for l in repr(value).splitlines()] == shown
                compared += 1
    assert compared >= 2
