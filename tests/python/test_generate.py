# SPDX-License-Identifier: Apache-2.0
"""Classes that `moka generate --language Python` writes, imported and run."""

import asyncio
import importlib.util
import pathlib
import subprocess
import sys
import typing

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "generate"))
import sources


def generate(model, folder):
    subprocess.run([sys.executable, "-m", "moka", "generate", str(model), str(folder), "--language", "Python"], check=True)
    (file,) = folder.glob("*.py")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module, file


def test_predictions_with_names_that_are_no_identifiers(tmp_path):
    module, _ = generate(sources.write_sum(tmp_path), tmp_path)
    one, two = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    model = module.Sum_of_two()  # Sum of-two.mlmodelc lies beside the code
    given = module.Sum_of_twoInput(x=one, y=two)
    assert model.predict(x=one, y=two).z.tolist() == [4, 7]
    assert model.prediction(given).z.tolist() == [4, 7]
    assert asyncio.run(model.prediction_async(given)).z.tolist() == [4, 7]
    assert [out.z.tolist() for out in model.predictions([given, module.Sum_of_twoInput(x=two, y=two)])] == [[4, 7], [6, 10]]
    with pytest.raises(ValueError, match="input 'y'"):
        model.predict(x=one, y=np.zeros(3, np.float32))


def test_states(tmp_path):
    module, _ = generate(sources.write_accumulator(tmp_path), tmp_path)
    model = module.Accumulator(tmp_path / "Accumulator.mlmodelc", threads=1)
    state = model.new_state()
    given = module.AccumulatorInput(x=np.array([1, 2, 3], np.float16))
    model.prediction(given, state=state)
    assert model.prediction(given, state=state).sum.tolist() == [2, 4, 6]


def test_every_type_of_feature_has_an_annotation(tmp_path):
    module, _ = generate(sources.write_everything(tmp_path), tmp_path)
    inputs = typing.get_type_hints(module.Everything_2Input)
    outputs = typing.get_type_hints(module.Everything_2Output)
    assert inputs["maybe"] == typing.Optional[float]
    assert outputs["list"] == typing.List[str] and outputs["list_2"] == typing.List[int]
    assert outputs["by_number"] == typing.Dict[int, float] and outputs["matrix"] is np.ndarray


def test_a_type_checker_accepts_the_code_and_sees_mistakes(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    _, file = generate(sources.write_sum(tmp_path), tmp_path)
    user = tmp_path / "user.py"

    def check(text):
        user.write_text(f"import numpy as np\nfrom {file.stem} import Sum_of_two\nx = np.zeros(2, np.float32)\n{text}\n")
        command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path / "cache")]
        return subprocess.run(command + [str(user), str(file)], cwd=tmp_path, capture_output=True, text=True)

    good = check("print(Sum_of_two().predict(x=x, y=x).z.shape)")
    assert good.returncode == 0, good.stdout
    bad = check("Sum_of_two().predict(x=1)")
    assert 'Missing named argument "y"' in bad.stdout and 'incompatible type "int"' in bad.stdout
