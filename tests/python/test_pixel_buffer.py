# SPDX-License-Identifier: Apache-2.0
"""Pictures of cameras: what numpy's formulas give for them."""
import asyncio
import pathlib

import numpy as np
import pytest

import moka

ROOT = pathlib.Path(__file__).resolve().parents[2]
MATRICES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def colors(luma, u, v, bits=8, full=False, matrix="bt601"):
    """Red, green and blue from 0 to 255 of planes, whose chroma is repeated."""
    kr, kb = MATRICES[matrix]
    step, most = 2 ** (bits - 8), 2**bits - 1
    h, w = luma.shape
    u, v = (np.repeat(np.repeat(c, 2, 0), 2, 1)[:h, :w].astype(float) - 128 * step for c in (u, v))
    y = luma / most if full else (luma - 16.0 * step) / (219 * step)
    u, v = (c / (most if full else 224 * step) for c in (u, v))
    r, b = y + 2 * (1 - kr) * v, y + 2 * (1 - kb) * u
    g = (y - kr * r - kb * b) / (1 - kr - kb)
    return 255 * np.clip(np.stack([r, g, b], -1), 0, 1)


def planes(height, width, bits=8, seed=1):
    rng = np.random.default_rng(seed)
    half = ((height + 1) // 2, (width + 1) // 2)
    dtype = np.uint8 if bits == 8 else np.uint16
    return tuple(rng.integers(0, 2**bits, s, dtype) for s in ((height, width), half, half))


def interleaved(u, v):
    return np.stack([u, v], -1).reshape(u.shape[0], -1)


@pytest.mark.parametrize("matrix", list(MATRICES))
@pytest.mark.parametrize("suffix", ["", "_full"])
@pytest.mark.parametrize("height,width", [(6, 8), (5, 7)])
def test_colors_are_those_of_the_formulas(height, width, suffix, matrix):
    y, u, v = planes(height, width)
    want = colors(y, u, v, full=bool(suffix), matrix=matrix)
    nv12 = moka.PixelBuffer([y, interleaved(u, v)], format="nv12" + suffix, matrix=matrix)
    i420 = moka.PixelBuffer([y, u, v], format="i420" + suffix, matrix=matrix)
    assert np.abs(nv12.converted() - want).max() <= 0.501
    np.testing.assert_array_equal(nv12.converted(), i420.converted())
    np.testing.assert_array_equal(nv12.converted("BGRA")[..., 2::-1], nv12.converted())
    y, u, v = planes(height, width, 10)
    deep = moka.PixelBuffer([y << 6, interleaved(u, v) << 6], format="p010" + suffix, matrix=matrix)
    assert np.abs(deep.converted() - colors(y, u, v, 10, bool(suffix), matrix)).max() <= 0.501


def test_one_array_as_opencv_has_it():
    y, u, v = planes(6, 8)
    nv12 = np.concatenate([y, interleaved(u, v)])
    assert nv12.shape == (9, 8)
    one = moka.PixelBuffer(nv12)
    assert (one.width, one.height, one.format, one.matrix, one.fit, one.region) == (8, 6, "nv12", "bt601", "scaleFill", (0, 0, 1, 1))
    assert repr(one) == "moka.PixelBuffer (nv12 8 x 6)"
    want = moka.PixelBuffer([y, interleaved(u, v)]).converted()
    np.testing.assert_array_equal(one.converted(), want)
    i420 = np.concatenate([y.ravel(), u.ravel(), v.ravel()]).reshape(9, 8)
    np.testing.assert_array_equal(moka.PixelBuffer(i420, format="i420").converted(), want)
    for flat in (nv12.tobytes(), bytearray(nv12.tobytes()), memoryview(nv12).cast("B")):
        np.testing.assert_array_equal(moka.PixelBuffer(flat, 8, 6).converted(), want)
    words = (nv12.astype(np.uint16) << 8)
    assert np.abs(moka.PixelBuffer(words, format="x420").converted().astype(int) - want).max() <= 1


def test_rows_may_have_gaps():
    y, u, v = planes(6, 8)
    wide = np.zeros((6, 20), np.uint8)
    wide[:, 3:11] = y
    pairs = np.stack([u, v], -1)
    assert pairs.shape == (3, 4, 2)
    got = moka.PixelBuffer([wide[:, 3:11], pairs]).converted()
    np.testing.assert_array_equal(got, moka.PixelBuffer([y, interleaved(u, v)]).converted())


def test_predictions_fit_the_picture():
    model = moka.Model(ROOT / "tests/golden/boundary/image_rgb.mlmodel")  # half of the colors of 3 x 2 pixels
    y, u, v = planes(54, 96)
    frame = moka.PixelBuffer([y, interleaved(u, v)], matrix="bt709", fit="centerCrop", region=(0.1, 0.2, 0.5, 0.75))
    fitted = frame.fitted(3, 2)
    assert fitted.shape == (2, 3, 3)
    want = np.asarray(model.predict({"x": fitted})["y"]).astype(int)
    for inputs in ({"x": frame}, [{"x": frame}, {"x": frame}]):
        results = model.predict(inputs)
        for result in results if isinstance(results, list) else [results]:
            assert np.abs(np.asarray(result["y"]).astype(int) - want).max() <= 1
    later = asyncio.run(model.predict_async({"x": frame}))
    assert np.abs(np.asarray(later["y"]).astype(int) - want).max() <= 1


def test_the_buffer_keeps_its_memory():
    y, u, v = planes(54, 96)
    frame = moka.PixelBuffer([y.copy(), interleaved(u, v)])
    want = frame.converted()
    for _ in range(3):
        np.zeros_like(y).fill(7)
    np.testing.assert_array_equal(frame.converted(), want)
    owner = bytearray(PIXELS := 9 * 8)
    held = moka.PixelBuffer(owner, 8, 6)
    with pytest.raises(BufferError):
        owner.append(0)
    del held
    owner.append(0)
    assert len(owner) == PIXELS + 1


@pytest.mark.parametrize(
    "make,error,message",
    [
        (lambda y, u, v: moka.PixelBuffer([y]), moka.InvalidArgumentError, "PixelBuffer (nv12): expected 2 planes, got 1"),
        (lambda y, u, v: moka.PixelBuffer([y, u]), moka.InvalidArgumentError, "plane 1: expected 3 rows of 8 samples, got shape (3, 4)"),
        (lambda y, u, v: moka.PixelBuffer([y, u, v[:2]], format="i420"), moka.InvalidArgumentError,
         "PixelBuffer (i420): plane 2: expected 3 rows of 4 samples, got shape (2, 4)"),
        (lambda y, u, v: moka.PixelBuffer([y[:, ::2], u]), moka.InvalidArgumentError, "plane 0: expected rows without gaps between their samples"),
        (lambda y, u, v: moka.PixelBuffer([y[::-1], interleaved(u, v)]), moka.InvalidArgumentError, "plane 0: expected rows from top to bottom"),
        (lambda y, u, v: moka.PixelBuffer([y.astype(np.float32), u]), moka.InvalidArgumentError, "expected uint8 samples, got MultiArray (Float32"),
        (lambda y, u, v: moka.PixelBuffer(3), TypeError, "expected a buffer of uint8 samples, got int"),
        (lambda y, u, v: moka.PixelBuffer(b"123"), moka.InvalidArgumentError, "expected width and height"),
        (lambda y, u, v: moka.PixelBuffer(b"123", 2, 2), moka.InvalidArgumentError, "expected 6 bytes of planes without gaps, got 3"),
        (lambda y, u, v: moka.PixelBuffer(y, format="yuyv"), moka.InvalidArgumentError, "pixel format: expected nv12, "),
        (lambda y, u, v: moka.PixelBuffer(y, 8, 4, matrix="601"), moka.InvalidArgumentError, "matrix: expected bt601, bt709 or bt2020, got '601'"),
        (lambda y, u, v: moka.PixelBuffer(y, 8, 4, fit="crop"), moka.InvalidArgumentError, "fit: expected scaleFill, "),
        (lambda y, u, v: moka.PixelBuffer(y, 8, 4).converted("YUV"), moka.InvalidArgumentError, "mode: expected RGB, "),
        (lambda y, u, v: moka.PixelBuffer(y, 8, 4, region=(0, 0, 1, 2)).fitted(2, 2), moka.InvalidArgumentError, "region: expected a part"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error) as raised:
        make(*planes(6, 8))
    assert message in str(raised.value)


def test_other_inputs_refuse_it():
    model = moka.Model.from_mil('program(1.0)\n{\n    func main<ios15>(tensor<fp32, [2]> x) {\n'
                                '            tensor<fp32, [2]> y = add(x = x, y = x)[name = tensor<string, []>("y")];\n        } -> (y);\n}')
    with pytest.raises(TypeError, match="expected MultiArray"):
        model.predict({"x": moka.PixelBuffer(np.zeros((9, 8), np.uint8))})
