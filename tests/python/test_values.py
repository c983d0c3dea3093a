# SPDX-License-Identifier: Apache-2.0
"""Values that users have: arrays of other libraries, pictures, files; and models in all forms."""

import collections
import io
import json
import pathlib
import shutil
import wave
import zipfile

import numpy as np
import pytest
from conftest import ROOT, program, relu

import moka

GOLDEN = ROOT / "tests" / "golden"
EXPECTED = [[0.0, 0.5, 2.0]]


def relu_of(value):
    return relu().predict({"x": value})["y"]


def test_big_endian_and_odd_types(numbers):
    for dtype in (">f4", ">f8", ">f2", np.longdouble, object):
        np.testing.assert_array_equal(relu_of(numbers.astype(dtype)), EXPECTED)
    for dtype in (">i2", ">i4", ">u8", bool):
        np.testing.assert_array_equal(relu_of(np.array([[1, 0, 1]], dtype)), [[1, 0, 1]])


def test_unaligned_arrays(numbers):
    """Parts of a file or a message begin anywhere."""
    part = np.frombuffer(b"\0" + numbers.tobytes(), np.uint8)[1:].view(np.float32).reshape(numbers.shape)
    assert not part.flags.aligned
    np.testing.assert_array_equal(relu_of(part), EXPECTED)


def ids():
    body = 'tensor<int32, [1, 3]> y = add(x = ids, y = int32(1))[name = string("y_op")];'
    return moka.Model.from_mil(program("tensor<int32, [1, 3]> ids", body, "y"))


def test_whole_numbers_become_integers():
    for value in ([[1, 2, 3]], np.array([[1.0, 2.0, 3.0]]), np.array([[1, 2, 3]], np.uint64), np.array([[1, 2, 3]], np.float16)):
        assert ids().predict({"ids": value})["y"].tolist() == [[2, 3, 4]]


@pytest.mark.parametrize(
    "value, got",
    [
        ([[1, 2**40, 3]], "1099511627776 at [0, 1]"),
        ([[1, 2, 2**63]], "9223372036854775808 at [0, 2]"),
        ([[1, 2, 3.7]], "3.7 at [0, 2]"),
        (np.array([[-0.5, 2, 3]], np.float16), "-0.5 at [0, 0]"),
        (np.array([[0, float("nan"), 3]]), "nan at [0, 1]"),
    ],
)
def test_other_numbers_do_not_become_integers(value, got):
    with pytest.raises(moka.InvalidArgumentError) as error:
        ids().predict({"ids": value})
    assert str(error.value) == f"input 'ids': expected whole numbers of type int32, got {got}"


def test_bfloat16_of_ml_dtypes(numbers):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        np.testing.assert_array_equal(relu_of(numbers.astype(dtype)), EXPECTED)


def test_tensors_of_torch(numbers):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(numbers)
    for given in (
        tensor,
        tensor.bfloat16(),
        tensor.half(),
        tensor.clone().requires_grad_(),
        torch.nn.Parameter(tensor.bfloat16()),
        (tensor * 2).requires_grad_() / 2,
        tensor.to_sparse(),
        [tensor[0].clone().requires_grad_()],
        tensor.t().contiguous().t(),
    ):
        np.testing.assert_array_equal(relu_of(given), EXPECTED)


def test_arrays_of_jax(numbers):
    jnp = pytest.importorskip("jax.numpy")
    for dtype in (jnp.float32, jnp.bfloat16):
        np.testing.assert_array_equal(relu_of(jnp.asarray(numbers, dtype)), EXPECTED)


def test_rows_of_tables():
    """The inputs are the columns of a table. In a row, pandas turns its whole numbers into floats."""
    pandas = pytest.importorskip("pandas")
    model = moka.Model(GOLDEN / "classic" / "glm_exact.mlmodel")
    table = pandas.DataFrame({"feature_1": [1.5, 2.5], "feature_2": [3, 4]})
    want = [model.predict({"feature_1": a, "feature_2": b}) for a, b in ((1.5, 3.0), (2.5, 4.0))]
    assert want[0] != want[1]
    assert [model.predict(table.iloc[i]) for i in range(2)] == want
    assert model.predict(table[1:]) == want[1]
    assert model.predict(table.to_dict("records")) == want
    assert model.predict([row for _, row in table.iterrows()]) == want
    assert [model.predict(row) for row in table.itertuples(index=False)] == want
    assert model.predict(table.to_records(index=False)[0]) == want[0]
    assert model.predict(table.convert_dtypes().iloc[0]) == want[0]
    assert model.predict(collections.ChainMap({"feature_1": 1.5}, {"feature_2": 3})) == want[0]
    with pytest.raises(ValueError, match="one row, got 2"):
        model.predict(table)
    with pytest.raises(ValueError, match="'feature_3'"):
        model.predict(table.assign(feature_3=0).iloc[0])


def test_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    for value in (pandas.DataFrame([[-1, 0.5, 2]]), pandas.DataFrame([[-1, 0.5, 2]], dtype=object)):
        np.testing.assert_array_equal(relu_of(value), EXPECTED)
    line = relu(shape="3")
    np.testing.assert_array_equal(line.predict({"x": pandas.Series([-1, 0.5, 2])})["y"], EXPECTED[0])
    vectors = moka.Model(GOLDEN / "classic" / "dict_vectorizer.mlmodel")
    words = {"amount": 2.0}
    given = pandas.Series(words)
    np.testing.assert_array_equal(vectors.predict({"input": given})["output"], vectors.predict({"input": words})["output"])


def test_files_of_numbers(tmp_path, numbers):
    np.save(tmp_path / "x.npy", numbers)
    np.savez(tmp_path / "x.npz", x=numbers)
    (tmp_path / "x.json").write_text(json.dumps(numbers.tolist()))
    for name in ("x.npy", "x.npz", "x.json"):
        path = tmp_path / name
        for given in (path, str(path), open(path, "rb"), io.BytesIO(path.read_bytes())):
            np.testing.assert_array_equal(relu_of(given), EXPECTED)
            if hasattr(given, "close"):
                given.close()
    with pytest.raises(moka.NotFoundError, match="absent.npy"):
        relu_of(str(tmp_path / "absent.npy"))
    with pytest.raises(TypeError, match="'x'.*'rb'"):
        relu_of(io.StringIO("[1]"))


def test_sound_files(tmp_path):
    samples = np.array([0, 8192, -16384, 32767], np.int16)
    with wave.open(str(tmp_path / "s.wav"), "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(8000)
        f.writeframes(samples.tobytes())
    model = relu(shape="1, 4")
    expected = np.maximum(samples / 32768, 0)[None]
    for given in (tmp_path / "s.wav", open(tmp_path / "s.wav", "rb"), io.BytesIO((tmp_path / "s.wav").read_bytes())):
        np.testing.assert_allclose(model.predict({"x": given})["y"], expected, atol=1e-7)
    longer = relu(shape="1, 6")
    with pytest.raises(ValueError, match="expected 6 samples, got 4.*pad=True"):
        longer.predict({"x": tmp_path / "s.wav"})
    np.testing.assert_allclose(
        longer.predict({"x": tmp_path / "s.wav"}, pad=True)["y"], np.pad(expected, ((0, 0), (0, 2))), atol=1e-7
    )
    assert relu(shape="1, 8").predict({"x": tmp_path / "s.wav"}, rate=16000)["y"].shape == (1, 8)


PIXELS = np.arange(0, 240, 10, dtype=np.uint8).reshape(2, 3, 4)[..., :3]


def halved(picture, **options):
    """The output of the model for 3 x 2 pixels, which halves them."""
    return np.asarray(moka.Model(GOLDEN / "boundary" / "image_rgb.mlmodel").predict({"x": picture}, **options)["y"])[..., :3]


def gray(picture, **options):
    return np.asarray(moka.Model(GOLDEN / "boundary" / "image_grayscale.mlmodel").predict({"x": picture}, **options)["y"])


def test_pictures_of_every_mode():
    image = pytest.importorskip("PIL.Image")
    rgb = image.fromarray(np.ascontiguousarray(PIXELS))
    want = halved(rgb)
    assert want.shape == (2, 3, 3)
    palette = rgb.quantize(6)
    assert palette.mode == "P"
    np.testing.assert_array_equal(halved(palette), halved(palette.convert("RGB")))
    with_alpha = rgb.convert("RGBA")
    for mode in ("RGBX", "RGBa"):
        np.testing.assert_array_equal(halved(rgb.convert("RGBA").convert(mode)), want)
    np.testing.assert_array_equal(halved(with_alpha), want)
    bits = image.fromarray(np.array([[0, 255, 0], [255, 255, 0]], np.uint8)).convert("1")
    np.testing.assert_array_equal(gray(bits), gray(np.array([[0, 255, 0], [255, 255, 0]], np.uint8)))
    np.testing.assert_array_equal(gray(np.array([[0, 1, 0], [1, 1, 0]], bool)), gray(bits))
    deep = np.array([[0, 257, 514], [65535, 32896, 25700]], np.uint16)
    for sixteen in (image.fromarray(deep), image.fromarray(deep.astype(np.int32))):
        np.testing.assert_array_equal(gray(sixteen), gray((deep // 257).astype(np.uint8)))
    shades = image.fromarray(np.array([[0, 50, 100], [150, 200, 250]], np.uint8))
    np.testing.assert_array_equal(gray(shades.convert("LA")), gray(shades))
    np.testing.assert_array_equal(gray(np.asarray(shades)[..., None]), gray(shades))
    with pytest.raises(TypeError, match="'x'.*CMYK"):
        halved(rgb.convert("CMYK"))
    with pytest.raises(moka.InvalidArgumentError, match="input 'x'.*0 x 0 pixels"):
        halved(image.new("RGB", (0, 0)))


def test_pictures_as_tensors():
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(halved(torch.from_numpy(PIXELS.copy())), halved(PIXELS))


def test_pictures_are_resized():
    image = pytest.importorskip("PIL.Image")
    big = image.fromarray(np.repeat(np.repeat(PIXELS, 4, axis=0), 4, axis=1))
    with pytest.raises(ValueError, match="'x'.*3 x 2.*12 x 8"):
        halved(big)
    pillows = big.resize((3, 2), image.Resampling.BILINEAR)
    np.testing.assert_allclose(halved(big, resize=True).astype(int), halved(pillows), atol=1)
    wide = np.full((2, 6, 3), 200, np.uint8)
    fitted = halved(wide, fit="scaleFit")
    # Half as high as the target: black above and below.
    assert fitted.shape == (2, 3, 3) and fitted.sum() < halved(wide, fit="centerCrop").sum()
    np.testing.assert_array_equal(halved(wide, fit="centerCrop"), np.full((2, 3, 3), 100))
    np.testing.assert_array_equal(halved(PIXELS, resize=True), halved(PIXELS))
    assert gray(big, resize=True).shape == (2, 3)
    with pytest.raises((ValueError, moka.Error), match="scaleSome"):
        halved(wide, fit="scaleSome")


def test_picture_files(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "p.png"
    image.fromarray(np.ascontiguousarray(PIXELS)).save(path)
    want = halved(PIXELS)
    for given in (path, str(path), open(path, "rb"), path.read_bytes(), io.BytesIO(path.read_bytes())):
        np.testing.assert_array_equal(halved(given), want)
    with pytest.raises(moka.NotFoundError, match="absent.png"):
        halved(str(tmp_path / "absent.png"))
    for damaged in (path.read_bytes()[:40], b"no picture"):
        with pytest.raises((moka.Error, TypeError)):
            halved(damaged)


def model_file():
    return GOLDEN / "classic" / "glm_exact.mlmodel"


INPUTS = {"feature_1": 1.5, "feature_2": 3.0}


def test_models_as_specifications_and_open_files():
    want = moka.Model(model_file()).predict(INPUTS)
    with open(model_file(), "rb") as f:
        assert moka.Model(f).predict(INPUTS) == want
    assert moka.Model(io.BytesIO(model_file().read_bytes())).predict(INPUTS) == want
    with open(model_file(), errors="replace") as f, pytest.raises(TypeError, match="'rb'"):
        moka.Model(f)
    ct = pytest.importorskip("coremltools")
    specification = ct.utils.load_spec(str(model_file()))
    assert moka.Model(specification).predict(INPUTS) == want
    assert moka.Model(moka.ModelAsset(specification)).predict(INPUTS) == want
    assert moka.Model(ct.models.MLModel(str(model_file()))).predict(INPUTS) == want
    with pytest.raises(TypeError, match="Specification"):
        moka.Model(specification.description)


def test_zipped_models(tmp_path):
    want = moka.Model(model_file()).predict(INPUTS)
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write(model_file(), "folder/m.mlmodel")
        z.writestr("__MACOSX/folder/._m.mlmodel", b"x")
    for given in (tmp_path / "m.zip", open(tmp_path / "m.zip", "rb"), (tmp_path / "m.zip").read_bytes()):
        assert moka.Model(given).predict(INPUTS) == want
    package = GOLDEN / "cached" / "model.mlpackage"
    for name, base in (("outside", package.parent), ("inside", package)):
        archive = shutil.make_archive(str(tmp_path / name), "zip", base)
        model, plain = moka.Model(archive), moka.Model(package)
        inputs = plain.random_inputs()
        for key, value in plain.predict(inputs).items():
            np.testing.assert_array_equal(model.predict(inputs)[key], value)
        folder = pathlib.Path(model._unpacked.path)
        assert folder.exists()
        del model
        assert not folder.exists()
    (tmp_path / "empty.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(moka.MalformedModelError, match="empty.zip.*none"):
        moka.Model(tmp_path / "empty.zip")
    data = bytearray((tmp_path / "m.zip").read_bytes())
    data[60] ^= 0xFF
    with pytest.raises(moka.MalformedModelError, match="unpacked"):
        moka.Model(bytes(data))
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as z:
        z.writestr("../../escaped.mlmodel", model_file().read_bytes())
    assert moka.Model(tmp_path / "out.zip").predict(INPUTS) == want
    assert not (tmp_path.parent / "escaped.mlmodel").exists()


def test_inputs_of_earlier_predictions_are_forgotten():
    model = moka.Model(GOLDEN / "classic" / "feature_vectorizer.mlmodel")
    names = [f.name for f in model.inputs]
    assert len(names) > 1
    first, other = model.random_inputs(1), model.random_inputs(2)
    (output,) = (f.name for f in model.outputs)
    want = model.predict(first)[output].copy()
    for inputs in (other, dict(reversed(list(first.items()))), first, {**first}):
        got = model.predict(inputs)[output]
        assert np.array_equal(got, want) == (inputs is not other)
    with pytest.raises(moka.InvalidArgumentError, match=names[0]):
        model.predict({n: v for n, v in first.items() if n != names[0]})
    with pytest.raises(moka.InvalidArgumentError, match="nobody"):
        model.predict({**{n: v for n, v in first.items() if n != names[0]}, "nobody": 1.0})
    np.testing.assert_array_equal(model.predict(first)[output], want)


def test_pictures_of_half_floats():
    model = moka.Model(GOLDEN / "boundary" / "image_grayscale_float16.mlmodel")
    numbers = (np.arange(6).reshape(2, 3) / 4 - 1).astype(np.float16)
    expected = numbers / 2
    out = model.predict({"x": numbers})["y"]
    np.testing.assert_array_equal(np.asarray(out), expected)
    assert getattr(out, "mode", "F") == "F"
    padded = np.full((2, 5), 9, np.float16)
    padded[:, :3] = numbers
    backing = np.full((2, 4), 7, np.float16)
    for given in (padded[:, :3], numbers[::-1][::-1], memoryview(numbers), np.asfortranarray(numbers), numbers.astype(">f2")):
        backing[:] = 7
        room = backing[:, :3]
        result = model.predict({"x": given}, outputs={"y": room})
        assert result["y"] is room
        np.testing.assert_array_equal(room, expected)
        assert (backing[:, 3] == 7).all()
    floats = np.zeros((2, 3), np.float32)
    model.predict({"x": numbers.astype(np.float32)}, outputs={"y": floats})
    np.testing.assert_array_equal(floats, expected)


def test_output_backings_that_images_do_not_fit():
    model = moka.Model(GOLDEN / "boundary" / "image_grayscale_float16.mlmodel")
    numbers = np.zeros((2, 3), np.float16)
    with pytest.raises(ValueError, match="output 'y'.*3 x 2"):
        model.predict({"x": numbers}, outputs={"y": np.zeros((3, 2), np.float16)})
    with pytest.raises(ValueError, match="output 'y'.*float16 of shape"):
        model.predict({"x": numbers}, outputs={"y": np.zeros((2, 3), np.float64)})
    with pytest.raises(ValueError, match="output 'y'.*pixel format"):
        model.predict({"x": numbers}, outputs={"y": np.zeros((2, 3), np.uint8)})
    with pytest.raises(ValueError, match="output 'y'.*rows from top to bottom"):
        model.predict({"x": numbers}, outputs={"y": np.zeros((2, 3), np.float16)[::-1]})
    with pytest.raises(ValueError, match="output 'y'.*without gaps between"):
        model.predict({"x": numbers}, outputs={"y": np.zeros((2, 6), np.float16)[:, ::2]})
