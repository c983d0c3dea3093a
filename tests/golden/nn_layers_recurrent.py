# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: groups of tests/golden/nn_layers.py."""
import numpy as np

from nn_layers_cases import array, case


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def legacy_inputs(spec, sizes):
    """Describes inputs with the shapes [C] or [C, H, W] that the legacy mapping wants."""
    for f in spec.description.input:
        del f.type.multiArrayType.shape[:]
        size = sizes[f.name]
        f.type.multiArrayType.shape.extend([size] if isinstance(size, int) else size)


def lstm(x, h, c, W, R, b, p=None, coupled=False, forget=0.0, limit=50.0):
    """W, R, b: input, forget, output, block input; p: input, forget, output."""
    out = []
    for v in x:
        s = [W[k] @ v + R[k] @ h + b[k] for k in range(4)]
        s[1] = s[1] + forget
        i = sigmoid(s[0] + (p[0] * c if p else 0))
        f = 1 - i if coupled else sigmoid(s[1] + (p[1] * c if p else 0))
        c = np.clip(c * f + i * np.tanh(s[3]), -limit, limit)
        h = np.tanh(c) * sigmoid(s[2] + (p[2] * c if p else 0))
        out.append(h)
    return np.array(out), h, c


def recurrent():
    I, H = 3, 4
    x = array(5, I)
    seq = x.reshape(5, 1, I, 1, 1)
    h0, c0 = array(H), array(H)
    m = lambda *s: array(*s, low=-0.6, high=0.6)
    inputs = lambda: {"x": seq, "h": h0.reshape(1, 1, H, 1, 1), "c": c0.reshape(1, 1, H, 1, 1)}
    legacy = lambda spec: legacy_inputs(spec, {"x": I, "h": H, "c": H, "h2": H, "c2": H})

    W, R, b = m(H, I), m(H, H), m(H)
    h, out = h0, []
    for v in x:
        h = np.tanh(W @ v + R @ h + b)
        out.append(h)
    two = {"x": seq, "h": h0.reshape(1, 1, H, 1, 1)}
    last = lambda v: np.asarray(v).reshape(1, 1, -1, 1, 1)
    seq5 = lambda v: np.asarray(v).reshape(len(v), 1, -1, 1, 1)
    case("simple_rnn", two, {"y": seq5(out), "h_out": last(h)},
         lambda bd: bd.add_simple_rnn("r", R, W, b, H, I, "TANH", ["x", "h"], ["y", "h_out"], output_all=True), edit=legacy)
    Wz, Wr, Wo, Rz, Rr, Ro, bz, br, bo = m(H, I), m(H, I), m(H, I), m(H, H), m(H, H), m(H, H), m(H), m(H), m(H)
    for name, gate in (("SIGMOID", sigmoid), ("SIGMOID_HARD", lambda v: np.clip(0.2 * v + 0.5, 0, 1))):
        h = h0
        for v in x[::-1]:
            z, r = gate(Wz @ v + Rz @ h + bz), gate(Wr @ v + Rr @ h + br)
            o = np.tanh(Wo @ v + Ro @ (h * r) + bo)
            h = (1 - z) * o + z * h
        case("gru_reverse_" + name.lower(), two, {"y": last(h), "h_out": last(h)},
             lambda bd, n=name: bd.add_gru("g", [Rz, Rr, Ro], [Wz, Wr, Wo], [bz, br, bo], H, I, ["x", "h"], ["y", "h_out"], inner_activation=n, reverse_input=True), edit=legacy)

    def weights():
        return [m(H, I) for _ in range(4)], [m(H, H) for _ in range(4)], [m(H) for _ in range(4)], [m(H) for _ in range(3)]

    W, R, b, p = weights()
    for name, kw, bk in (("plain", {}, {}), ("peephole", {"p": p}, {"peep": p}), ("coupled", {"coupled": True}, {"coupled_input_forget_gate": True}),
                         ("forget_bias", {"forget": 1.0}, {"forget_bias": True}), ("clip", {"limit": 0.3}, {"cell_clip_threshold": 0.3})):
        y, h, c = lstm(x, h0, c0, W, R, b, **kw)
        case("lstm_" + name, inputs(), {"y": seq5(y), "h_out": last(h), "c_out": last(c)},
             lambda bd, k=bk: bd.add_unilstm("l", R, W, b, H, I, ["x", "h", "c"], ["y", "h_out", "c_out"], output_all=True, **dict({"cell_clip_threshold": 50.0}, **k)), edit=legacy)
    y, h, c = lstm(x, np.zeros(H), np.zeros(H), W, R, b)
    case("lstm_no_state", {"x": seq}, {"y": last(h)}, lambda bd: bd.add_unilstm("l", R, W, b, H, I, ["x"], ["y"], cell_clip_threshold=50.0), edit=legacy)
    W2, R2, b2, _ = weights()
    h2, c2 = array(H), array(H)
    yf, hf, cf = lstm(x, h0, c0, W, R, b)
    yb, hb, cb = lstm(x[::-1], h2, c2, W2, R2, b2)
    case("bidirectional_lstm", dict(inputs(), h2=last(h2), c2=last(c2)),
         {"y": seq5(np.concatenate([yf, yb[::-1]], 1)), "hf": last(hf), "cf": last(cf), "hb": last(hb), "cb": last(cb)},
         lambda bd: bd.add_bidirlstm("l", R, W, b, R2, W2, b2, H, I, ["x", "h", "c", "h2", "c2"], ["y", "hf", "cf", "hb", "cb"], output_all=True, cell_clip_threshold=50.0), edit=legacy)


def recurrent_numbers():
    """Activations with their own parameters, and states written as [batch, hidden, 1, 1, 1]."""
    S, B, I, H = 4, 2, 3, 5
    m = lambda *s: array(*s, low=-0.6, high=0.6)
    x, h0, c0 = array(S, B, I), array(B, H), array(B, H)
    scaled, hard, linear = (lambda v: 1.7159 * np.tanh(0.6667 * v)), (lambda v: np.clip(0.3 * v + 0.4, 0, 1)), (lambda v: 0.5 * v - 0.25)
    inputs = {"x": x.reshape(S, B, I, 1, 1), "h": h0.reshape(B, H, 1, 1, 1)}

    def numbers(*activations):
        """Replaces the layer's activations: (field of ActivationParams, alpha, beta)."""
        def edit(spec):
            layer = spec.neuralNetwork.layers[0]
            params = getattr(layer, layer.WhichOneof("layer"))
            for a, (field, alpha, beta) in zip([params.activation] if hasattr(params, "activation") else params.activations, activations):
                f = getattr(a, field)
                f.alpha, f.beta = alpha, beta
        return edit

    W, R, b = m(H, I), m(H, H), m(H)
    h, out = h0, []
    for v in x:
        h = scaled(v @ W.T + h @ R.T + b)
        out.append(h)
    case("rnn_scaled_tanh", inputs, {"y": np.reshape(out, (S, B, H, 1, 1)), "h_out": h.reshape(1, B, H, 1, 1)},
         lambda bd: bd.add_simple_rnn("r", R, W, b, H, I, "SCALED_TANH", ["x", "h"], ["y", "h_out"], output_all=True), exact=True,
         edit=numbers(("scaledTanh", 1.7159, 0.6667)))
    alone = {"x": x[:, :1].reshape(S, 1, I, 1, 1), "h": h0[:1].reshape(1, H, 1, 1, 1)}
    h = h0[:1]
    for v in x[:, :1]:
        h = np.tanh(v @ W.T + h @ R.T + b)
    case("rnn_state_of_one_batch", alone, {"y": h.reshape(1, 1, H, 1, 1), "h_out": h.reshape(1, 1, H, 1, 1)},
         lambda bd: bd.add_simple_rnn("r", R, W, b, H, I, "SCALED_TANH", ["x", "h"], ["y", "h_out"]), exact=True)

    Wz, Wr, Wo, Rz, Rr, Ro, bz, br, bo = m(H, I), m(H, I), m(H, I), m(H, H), m(H, H), m(H, H), m(H), m(H), m(H)
    h = h0
    for v in x:
        z, r = hard(v @ Wz.T + h @ Rz.T + bz), hard(v @ Wr.T + h @ Rr.T + br)
        h = (1 - z) * linear(v @ Wo.T + (h * r) @ Ro.T + bo) + z * h
    case("gru_hard_sigmoid_linear", inputs, {"y": h.reshape(1, B, H, 1, 1), "h_out": h.reshape(1, B, H, 1, 1)},
         lambda bd: bd.add_gru("g", [Rz, Rr, Ro], [Wz, Wr, Wo], [bz, br, bo], H, I, ["x", "h"], ["y", "h_out"], activation="LINEAR", inner_activation="SIGMOID_HARD"),
         exact=True, edit=numbers(("sigmoidHard", 0.3, 0.4), ("linear", 0.5, -0.25)))

    W, R, b = [m(H, I) for _ in range(4)], [m(H, H) for _ in range(4)], [m(H) for _ in range(4)]
    h, c = h0, c0
    for v in x:
        i, f, o, g = (v @ W[k].T + h @ R[k].T + b[k] for k in range(4))
        c = c * hard(f) + hard(i) * scaled(g)
        h = hard(o) * linear(c)
    last = lambda v: v.reshape(1, B, H, 1, 1)
    case("lstm_with_numbers", dict(inputs, c=c0.reshape(B, H, 1, 1, 1)), {"y": last(h), "h_out": last(h), "c_out": last(c)},
         lambda bd: bd.add_unilstm("l", R, W, b, H, I, ["x", "h", "c"], ["y", "h_out", "c_out"], inner_activation="SIGMOID_HARD", cell_state_update_activation="SCALED_TANH",
                                   output_activation="LINEAR", cell_clip_threshold=50.0), exact=True,
         edit=numbers(("sigmoidHard", 0.3, 0.4), ("scaledTanh", 1.7159, 0.6667), ("linear", 0.5, -0.25)))
