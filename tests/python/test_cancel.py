# SPDX-License-Identifier: Apache-2.0
"""Predictions and loading that are cancelled, or that have a deadline."""

import asyncio
import pickle
import threading
import time

import numpy as np
import pytest

import moka

LOOP = """program(1.3)
{
  func main<ios18>(state<tensor<fp32, [64]>> count, tensor<fp32, [64]> x) {
    tensor<fp32, [64]> old = read_state(input = count)[name = string("old")];
    tensor<fp32, [64]> one = add(x = old, y = x)[name = string("one")];
    write_state(data = one, input = count)[name = string("write")];
    int32 n, tensor<fp32, [64]> waved = while_loop(loop_vars = (int32(0), one)) {
      block test(int32 k, tensor<fp32, [64]> v) { bool more = less(x = k, y = int32(TURNS)); } -> (more);
      block step(int32 k, tensor<fp32, [64]> v) {
        int32 after = add(x = k, y = int32(1));
        tensor<fp32, [64]> next = tanh(x = v);
      } -> (after, next);
    };
    tensor<fp32, [64]> y = add(x = waved, y = one)[name = string("y")];
  } -> (y);
}
"""
X = {"x": np.ones(64, np.float32)}


@pytest.fixture
def endless():
    return moka.Model.from_mil(LOOP.replace("TURNS", "900000"))


def test_timeout(endless):
    state = endless.new_state()
    with pytest.raises(moka.DeadlineExceededError) as raised:
        endless.predict(X, state=state, timeout=0.02)
    assert isinstance(raised.value, TimeoutError) and isinstance(raised.value, moka.Error)
    assert not state.read("count").any()
    with pytest.raises(moka.DeadlineExceededError):
        endless.predict([X, X], state=state, timeout=0.02)
    with pytest.raises(TimeoutError):
        endless.predict_future(X, state=state, timeout=0.02).result()
    short = moka.Model.from_mil(LOOP.replace("TURNS", "2"))
    assert short.predict(X, state=short.new_state(), timeout=60)["y"].shape == (64,)


def test_cancellation(endless):
    state = endless.new_state()
    cancellation = moka.Cancellation()
    future = endless.predict_future(X, state=state, cancellation=cancellation)
    threading.Timer(0.02, cancellation.cancel).start()
    with pytest.raises(moka.CancelledError):
        future.result()
    assert cancellation.is_cancelled
    assert not state.read("count").any()
    with pytest.raises(moka.CancelledError):
        endless.predict(X, state=state, cancellation=cancellation)


def test_asyncio_cancels_what_runs(endless):
    state = endless.new_state()

    async def wait():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(endless.predict_async(X, state=state), 0.05)
        # The next one waits until that one, which ends now, gives the state back.
        return await endless.predict_async(X, state=state, timeout=0.1)

    with pytest.raises(moka.DeadlineExceededError):
        asyncio.run(wait())
    assert not state.read("count").any()


def test_queue_orders_predictions_of_a_state():
    short = moka.Model.from_mil(LOOP.replace("TURNS", "50"))
    state = short.new_state()
    futures = [short.predict_future(X, state=state, outputs=["y"]) for _ in range(20)]
    counts = [future.result()["y"][0] for future in futures]
    expected = []
    for count in range(1, 21):
        waved = np.float32(count)
        for _ in range(50):
            waved = np.tanh(waved)
        expected.append(waved + count)
    np.testing.assert_allclose(counts, expected, rtol=1e-5)
    assert state.read("count")[0] == 20


def test_timeout_ends_waiting(endless):
    state = endless.new_state()
    cancellation = moka.Cancellation()
    running = endless.predict_future(X, state=state, cancellation=cancellation)
    with pytest.raises(moka.DeadlineExceededError):
        endless.predict_future(X, state=state, timeout=0.02).result()
    waiting = endless.predict_future(X, state=state)
    assert not running.done() and not waiting.done()
    assert waiting.cancel()  # it has not begun
    cancellation.cancel()
    with pytest.raises(moka.CancelledError):
        running.result()
    assert waiting.cancelled()


def test_queue_reports_what_predict_raises(endless):
    with pytest.raises(TypeError, match="expected a dict"):
        endless.predict_future(None).result()
    with pytest.raises(ValueError, match="z"):
        endless.predict_future({"z": 1}, state=endless.new_state()).result()


def test_arguments(endless):
    with pytest.raises(ValueError, match="timeout"):
        endless.predict(X, timeout=-1)
    with pytest.raises(TypeError, match="timeout"):
        endless.predict(X, timeout="soon")
    with pytest.raises(TypeError, match="cancellation"):
        endless.predict(X, cancellation=3)


def test_loading(tmp_path):
    program = moka.build.Program()
    y = program.input("x", moka.build.array((8, 8)))
    for _ in range(100):
        y = program.matmul(x=y, y=y)
    program.output(y, "y")
    model = program.save(tmp_path / "chain.mlpackage")
    seen = []
    loaded = moka.Model(str(model), progress=lambda stage, done, total: seen.append((stage, done, total)))
    assert {"import", "passes", "plan"} <= {stage for stage, _, _ in seen}
    assert all(done <= total for _, done, total in seen)
    assert pickle.loads(pickle.dumps(loaded)).predict({"x": np.eye(8)})["y"].shape == (8, 8)

    with pytest.raises(moka.DeadlineExceededError):
        moka.Model(str(model), timeout=0)
    cancellation = moka.Cancellation()
    with pytest.raises(moka.CancelledError):
        moka.Model(str(model), cancellation=cancellation, progress=lambda stage, *_: cancellation.cancel())
    with pytest.raises(KeyError):
        moka.Model(str(model), progress=lambda stage, *_: {}[stage])
