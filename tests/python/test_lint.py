# SPDX-License-Identifier: Apache-2.0
"""moka.lint: findings about models, and repairs that coremltools opens."""

import numpy as np
import pytest

from moka import InvalidArgumentError, build, lint

RNG = np.random.default_rng(5)


def wasteful(path):
    """Two equal weights, a product with 1 and an input that nobody reads."""
    weight = RNG.standard_normal((64, 64)).astype(np.float32)
    p = build.Program("ios17")
    x = p.input("x", build.array((1, 64)))
    p.input("mask", build.array((1, 64)))
    one = p.mul(x=p.linear(x=x, weight=weight), y=np.float32(1))
    p.output(p.add(x=one, y=p.linear(x=p.relu(x=x), weight=weight.copy())), "y")
    p.save(str(path))
    return str(path)


def test_findings_are_objects(tmp_path):
    report = lint.check(wasteful(tmp_path / "net.mlpackage"))
    assert [(f.level, f.rule) for f in report.findings] == [
        ("warning", "duplicate-weight"), ("warning", "idle-operation"), ("warning", "unused-input")]
    assert report.predictions == 1
    assert "mask" in repr(report.findings[2])


def test_rules_are_chosen_and_checked(tmp_path):
    path = wasteful(tmp_path / "net.mlpackage")
    assert [f.rule for f in lint.check(path, only=["unused-input"]).findings] == ["unused-input"]
    with pytest.raises(InvalidArgumentError, match="expected one of"):
        lint.check(path, ignore=["nonsense"])
    with pytest.raises(InvalidArgumentError, match="ios"):
        lint.check(path, target="ios99")
    assert {rule.name for rule in lint.rules() if rule.can_fix} >= {"duplicate-weight", "idle-operation"}


def test_values_are_measured_with_given_inputs(tmp_path):
    p = build.Program("ios17")
    half = p.cast(x=p.input("x", build.array((1, 4))), dtype="fp16")
    p.output(p.cast(x=p.mul(x=half, y=np.float16(30000)), dtype="fp32"), "y")
    path = str(tmp_path / "net.mlpackage")
    p.save(path)
    assert not lint.check(path, inputs=[{"x": np.ones((1, 4), np.float32)}]).findings
    [finding] = lint.check(path, inputs=[{"x": np.full((1, 4), 3, np.float32)}]).findings
    assert (finding.rule, finding.level) == ("float16-overflow", "error")


def test_coremltools_opens_a_repaired_model(tmp_path):
    coremltools = pytest.importorskip("coremltools")
    path = wasteful(tmp_path / "net.mlpackage")
    repair = lint.fix(path)
    assert {rule for rule, _ in repair.done} == {"duplicate-weight", "idle-operation"}
    fixed = repair.model.save(str(tmp_path / "fixed.mlpackage"))
    model = coremltools.models.MLModel(fixed)
    function = model.get_spec().mlProgram.functions["main"]
    assert "mul" not in [op.type for op in function.block_specializations["CoreML7"].operations]
    inputs = {name: RNG.standard_normal((1, 64)).astype(np.float32) for name in ("x", "mask")}
    before, after = build.open(path).load().predict(inputs), build.open(fixed).load().predict(inputs)
    np.testing.assert_allclose(after["y"], before["y"], rtol=1e-5, atol=1e-5)
