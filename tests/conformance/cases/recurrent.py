# SPDX-License-Identifier: Apache-2.0
"""lstm, gru and rnn by numpy from their equations; onnxruntime confirms the usual ones.

Steps of the result are in the order of computation: a reverse layer's first output belongs to the last step of x. The
backward half of a bidirectional layer is at the step it belongs to.
"""
import numpy as np

from case import op_case
from truth import run_onnx

rng = np.random.default_rng(11)

ACTIVATIONS = {
    "tanh": np.tanh, "scaled_tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "hard_sigmoid": lambda v: np.clip(0.2 * v + 0.5, 0, 1), "relu": lambda v: np.maximum(v, 0), "linear": lambda v: v,
    "scaled_tanh(1.7159, 0.6667)": lambda v: 1.7159 * np.tanh(0.6667 * v), "hard_sigmoid(0.3, 0.4)": lambda v: np.clip(0.3 * v + 0.4, 0, 1),
    "linear(-0.5, 2.5e-1)": lambda v: 0.25 - 0.5 * v,
}
S, B, I, H = 3, 2, 2, 3


def draw(shape, dtype=np.float32):
    return (rng.standard_normal(shape) * 0.7).astype(dtype)


def wide(a):
    return None if a is None else np.asarray(a, np.float64)


def lstm_pass(x, h, c, wi, wh, b, p, act, clip):
    ys = []
    n = h.shape[-1]
    for step in x:
        z = step @ wi.T + h @ wh.T + (0 if b is None else b)
        i, f, o, g = z[:, :n], z[:, n:2 * n], z[:, 2 * n:3 * n], z[:, 3 * n:]
        if p is not None:
            i, f = i + c * p[:n], f + c * p[n:2 * n]
        i, f, g = act[0](i), act[0](f), act[1](g)
        c = f * c + i * g
        if clip is not None:
            c = np.clip(c, -clip, clip)
        if p is not None:
            o = o + c * p[2 * n:]
        h = act[0](o) * act[2](c)
        ys.append(h)
    return np.array(ys).reshape(len(ys), *h.shape), h, c


def lstm(name, dtype=np.float32, opset="ios15", direction="forward", sequence=True, bias=True, peephole=False, clip=None,
         acts=("sigmoid", "tanh", "tanh"), seq=S, given=True, onnx=False, spare=0, **more):
    both = direction == "bidirectional"
    d = 2 if both else 1
    inputs = {"x": draw((seq, B, I), dtype), "initial_h": draw((B + spare, d * H), dtype), "initial_c": draw((B + spare, d * H), dtype)}
    consts = {"weight_ih": draw((4 * H, I), dtype), "weight_hh": draw((4 * H, H), dtype)}
    if both:
        consts.update(weight_ih_back=draw((4 * H, I), dtype), weight_hh_back=draw((4 * H, H), dtype))
    for suffix in ["", "_back"][:d]:
        if bias:
            consts["bias" + suffix] = draw((4 * H,), dtype)
        if peephole:
            consts["peephole" + suffix] = draw((3 * H,), dtype)
    v = {k: wide(a) for k, a in {**inputs, **consts}.items()}
    v["initial_h"], v["initial_c"] = v["initial_h"][:B], v["initial_c"][:B]
    act = [ACTIVATIONS[a] for a in acts]
    ys, hs, cs = [], [], []
    for k, suffix in enumerate(["", "_back"][:d]):
        back = suffix or direction == "reverse"
        part = slice(k * H, (k + 1) * H)
        y, h, c = lstm_pass(v["x"][::-1] if back else v["x"], v["initial_h"][:, part], v["initial_c"][:, part], v["weight_ih" + suffix],
                            v["weight_hh" + suffix], v.get("bias" + suffix), v.get("peephole" + suffix), act, clip)
        ys.append(h[None] if not sequence else y[::-1] if suffix else y)
        hs.append(h)
        cs.append(c)
    outputs = [np.concatenate(ys, -1), np.concatenate(hs, -1), np.concatenate(cs, -1)]
    if onnx:
        def iofc(a):  # input, forget, output, cell -> input, output, forget, cell
            i, f, o, g = np.split(a, 4)
            return np.concatenate([i, o, f, g])
        sides = ["", "_back"][:d]
        w = np.stack([iofc(consts["weight_ih" + s]) for s in sides]).astype(np.float32)
        r = np.stack([iofc(consts["weight_hh" + s]) for s in sides]).astype(np.float32)
        b = np.stack([np.concatenate([iofc(consts["bias" + s]), np.zeros(4 * H)]) for s in sides]).astype(np.float32)
        p = None
        if peephole:  # ONNX: input, output, forget
            p = np.stack([np.concatenate([np.split(consts["peephole" + s], 3)[j] for j in (0, 2, 1)]) for s in sides]).astype(np.float32)
        h0 = np.stack(np.split(inputs["initial_h"], d, -1)).astype(np.float32)
        c0 = np.stack(np.split(inputs["initial_c"], d, -1)).astype(np.float32)
        y, h, c = run_onnx("LSTM", [inputs["x"].astype(np.float32), w, r, b, None, h0, c0, p],
                           dict(hidden_size=H, direction=direction), outputs=3)
        y = np.concatenate([y[:, k] for k in range(d)], -1)
        if direction == "reverse":
            y = y[::-1]
        if sequence:
            np.testing.assert_allclose(outputs[0], y, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[1], np.concatenate(list(h), -1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[2], np.concatenate(list(c), -1), rtol=1e-4, atol=1e-5)
    consts.update(direction=direction, output_sequence=sequence)
    if given:
        consts.update(recurrent_activation=acts[0], cell_activation=acts[1], activation=acts[2])
    if clip is not None:
        consts["clip"] = dtype(clip)
    op_case("lstm", name, inputs, consts, [o.astype(dtype) for o in outputs], opset=opset, **more)


lstm("forward", onnx=True)
lstm("defaults", given=False, sequence=False)
lstm("reverse", direction="reverse", onnx=True)
lstm("reverse_last", direction="reverse", sequence=False)
lstm("bidirectional", direction="bidirectional", onnx=True)
lstm("bidirectional_last", direction="bidirectional", sequence=False, onnx=True)
lstm("no_bias", bias=False)
lstm("peephole", peephole=True, onnx=True)
lstm("peephole_bidirectional", peephole=True, direction="bidirectional", onnx=True)
lstm("clip", clip=0.25)
lstm("clip_peephole", clip=0.1, peephole=True)
lstm("hard_sigmoid", acts=("hard_sigmoid", "relu", "linear"))
lstm("scaled_tanh", acts=("sigmoid", "scaled_tanh", "scaled_tanh"))
lstm("linear_relu", acts=("linear", "linear", "relu"))
lstm("tanh_everywhere", acts=("tanh", "sigmoid", "hard_sigmoid"))
lstm("one_step", seq=1, sequence=False)
lstm("fp16", dtype=np.float16, opset="ios17", direction="bidirectional")
lstm("no_steps", seq=0, sequence=False)
lstm("unknown_steps", in_shapes={"x": [None, None, I]}, out_shapes={"y_0": [None, None, H], "y_1": [None, H], "y_2": [None, H]})


def gru(name, dtype=np.float32, opset="ios15", direction="forward", sequence=True, bias=True, input_bias=False, reset_after=None,
        acts=("sigmoid", "tanh"), given=True, onnx=False):
    inputs = {"x": draw((S, B, I), dtype), "initial_h": draw((B, H), dtype)}
    consts = {"weight_ih": draw((3 * H, I), dtype), "weight_hh": draw((3 * H, H), dtype)}
    if bias:
        consts["bias"] = draw((3 * H,), dtype)
    if input_bias:
        consts["input_bias"] = draw((3 * H,), dtype)
    v = {k: wide(a) for k, a in {**inputs, **consts}.items()}
    wr, wn, wz = np.split(v["weight_ih"], 3)
    ur, un, uz = np.split(v["weight_hh"], 3)
    br, bn, bz = np.split(v.get("bias", np.zeros(3 * H)), 3)
    cr, cn, cz = np.split(v.get("input_bias", np.zeros(3 * H)), 3)
    gate, act = ACTIVATIONS[acts[0]], ACTIVATIONS[acts[1]]
    h, ys = v["initial_h"], []
    for x in v["x"][::-1] if direction == "reverse" else v["x"]:
        r = gate(x @ wr.T + cr + h @ ur.T + br)
        z = gate(x @ wz.T + cz + h @ uz.T + bz)
        n = act(x @ wn.T + cn + (r * (h @ un.T + bn) if reset_after else (r * h) @ un.T + bn))
        h = (1 - z) * n + z * h
        ys.append(h)
    outputs = [np.array(ys) if sequence else h[None], h]
    if onnx:
        def zrn(a):
            r_, n_, z_ = np.split(a, 3)
            return np.concatenate([z_, r_, n_])
        wb, rb = consts.get("input_bias", np.zeros(3 * H)), consts.get("bias", np.zeros(3 * H))
        b = np.concatenate([zrn(wb), zrn(rb)])[None].astype(np.float32)
        y, last = run_onnx("GRU", [inputs["x"].astype(np.float32), zrn(consts["weight_ih"])[None].astype(np.float32),
                                   zrn(consts["weight_hh"])[None].astype(np.float32), b, None, inputs["initial_h"][None].astype(np.float32)],
                           dict(hidden_size=H, direction=direction, linear_before_reset=int(bool(reset_after))), outputs=2)
        y = y[::-1, 0] if direction == "reverse" else y[:, 0]
        if sequence:
            np.testing.assert_allclose(outputs[0], y, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[1], last[0], rtol=1e-4, atol=1e-5)
    consts.update(direction=direction, output_sequence=sequence)
    if given:
        consts.update(recurrent_activation=acts[0], activation=acts[1])
    if reset_after is not None:
        consts["reset_after"] = reset_after
    op_case("gru", name, inputs, consts, [o.astype(dtype) for o in outputs], opset=opset)


gru("forward", onnx=True)
gru("defaults", given=False, sequence=False)
gru("reverse", direction="reverse", onnx=True)
gru("reverse_last", direction="reverse", sequence=False, onnx=True)
gru("no_bias", bias=False, onnx=True)
gru("other_activations", acts=("hard_sigmoid", "relu"))
gru("swapped_activations", acts=("tanh", "sigmoid"))
gru("linear_scaled_tanh", acts=("linear", "scaled_tanh"))
gru("fp16", dtype=np.float16, opset="ios17")
gru("reset_after", reset_after=True, input_bias=True, opset="ios18", onnx=True)
gru("reset_after_one_bias", reset_after=True, opset="ios18", onnx=True)
gru("reset_before_two_biases", reset_after=False, input_bias=True, opset="ios18", onnx=True)
gru("reset_after_reverse_fp16", reset_after=True, input_bias=True, direction="reverse", dtype=np.float16, opset="ios18")


def rnn(name, dtype=np.float32, opset="ios15", direction="forward", sequence=True, bias=True, act="tanh", given=True, onnx=False):
    inputs = {"x": draw((S, B, I), dtype), "initial_h": draw((B, H), dtype)}
    consts = {"weight_ih": draw((H, I), dtype), "weight_hh": draw((H, H), dtype)}
    if bias:
        consts["bias"] = draw((H,), dtype)
    v = {k: wide(a) for k, a in {**inputs, **consts}.items()}
    h, ys = v["initial_h"], []
    for x in v["x"][::-1] if direction == "reverse" else v["x"]:
        h = ACTIVATIONS["hard_sigmoid" if act == "sigmoid_hard" else act](x @ v["weight_ih"].T + h @ v["weight_hh"].T + v.get("bias", 0))
        ys.append(h)
    outputs = [np.array(ys) if sequence else h[None], h]
    if onnx:
        b = np.concatenate([consts["bias"], np.zeros(H)])[None].astype(np.float32)
        y, last = run_onnx("RNN", [inputs["x"], consts["weight_ih"][None], consts["weight_hh"][None], b, None, inputs["initial_h"][None]],
                           dict(hidden_size=H, direction=direction), outputs=2)
        np.testing.assert_allclose(outputs[0], y[::-1, 0] if direction == "reverse" else y[:, 0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[1], last[0], rtol=1e-4, atol=1e-5)
    consts.update(direction=direction, output_sequence=sequence)
    if given:
        consts["activation"] = act
    op_case("rnn", name, inputs, consts, [o.astype(dtype) for o in outputs], opset=opset)


rnn("forward", onnx=True)
rnn("defaults", given=False, sequence=False)
rnn("reverse", direction="reverse", onnx=True)
rnn("no_bias", bias=False)
for name in ("relu", "sigmoid", "sigmoid_hard", "hard_sigmoid", "scaled_tanh", "linear"):
    rnn(name, act=name, sequence=name != "relu")
rnn("fp16", dtype=np.float16, opset="ios17", direction="reverse")

# Activations with their own parameters, which neural networks have.
numbers = ("hard_sigmoid(0.3, 0.4)", "scaled_tanh(1.7159, 0.6667)", "linear(-0.5, 2.5e-1)")
lstm("numbers", acts=numbers, direction="bidirectional", clip=0.5)
gru("numbers", acts=numbers[:2])
for name, act in zip(("hard_sigmoid", "scaled_tanh", "linear"), numbers):
    rnn("numbers_" + name, act=act)

# States with more items than the batch: the first ones count.
lstm("spare_states", spare=2)
lstm("spare_states_both", spare=1, direction="bidirectional")
