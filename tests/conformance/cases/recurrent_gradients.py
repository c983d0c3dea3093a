# SPDX-License-Identifier: Apache-2.0
"""Steps of lstm, gru and rnn backwards: torch.autograd in float64 through loops over the steps.

torch.nn's layers confirm the loops, and the gradients of their weights, where the activations are theirs.
"""
import numpy as np
import torch

from case import op_case

rng = np.random.default_rng(56)

ACTIVATIONS = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "linear": lambda v: v,
    "hard_sigmoid": lambda v: torch.clamp(0.2 * v + 0.5, 0, 1), "scaled_tanh(1.7159, 0.6667)": lambda v: 1.7159 * torch.tanh(0.6667 * v),
    "linear(-0.5, 2.5e-1)": lambda v: 0.25 - 0.5 * v,
}
COUPLED = "; coupled"
OPERATIONS = {"lstm": "moka_lstm_gradient", "gru": "moka_gru_gradient", "rnn": "moka_rnn_gradient"}


def rand(shape, dtype, scale=0.7):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def lstm_step(z, h, c, v, act, clip):
    n = h.shape[-1]
    z = z + h @ v["weight_hh"].T
    i, f, o, g = z[:, :n], z[:, n:2 * n], z[:, 2 * n:3 * n], z[:, 3 * n:]
    p = v.get("peephole")
    if p is not None:
        i, f = i + c * p[:n], f + c * p[n:2 * n]
    gate = ACTIVATIONS[act[0].removesuffix(COUPLED)]
    i = gate(i)
    f = 1 - i if act[0].endswith(COUPLED) else gate(f)
    c = f * c + i * ACTIVATIONS[act[1]](g)
    if clip is not None:
        c = torch.clamp(c, -clip, clip)
    if p is not None:
        o = o + c * p[2 * n:]
    return gate(o) * ACTIVATIONS[act[2]](c), c


def gru_step(z, h, v, act, after):
    n = h.shape[-1]
    w, b = v["weight_hh"], v.get("bias", torch.zeros(3 * n, dtype=torch.float64))
    gate = ACTIVATIONS[act[0]]
    r = gate(z[:, :n] + h @ w[:n].T + b[:n])
    u = gate(z[:, 2 * n:] + h @ w[2 * n:].T + b[2 * n:])
    kept = h if after else r * h
    product = kept @ w[n:2 * n].T + b[n:2 * n]
    product.retain_grad()
    fresh = ACTIVATIONS[act[1]](z[:, n:2 * n] + (r * product if after else product))
    return (1 - u) * fresh + u * h, kept, product


def steps_case(kind, name, dtype=np.float32, sizes=(4, 3, 5), known=True, sequence=True, bias=True, peephole=False, clip=None,
               acts=None, after=False, given=True, scale=0.7):
    steps, batch, hidden = sizes
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[kind]
    acts = acts or {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}[kind]
    inputs = {"x_gates": rand((steps, batch, gates * hidden), dtype, scale),
              "weight_hh": rand((gates * hidden, hidden), dtype, scale), "initial_h": rand((batch, hidden), dtype, scale)}
    if kind == "lstm":
        inputs["initial_c"] = rand((batch, hidden), dtype)
        if peephole:
            inputs["peephole"] = rand((3 * hidden,), dtype)
    if kind == "gru" and bias:
        inputs["bias"] = rand((3 * hidden,), dtype)
    v = {k: torch.tensor(a, dtype=torch.float64, requires_grad=True) for k, a in inputs.items()}
    h, c, ys, before, kept, products = v["initial_h"], v.get("initial_c"), [], [], [], []
    for z in v["x_gates"]:
        before.append(h)
        if kind == "lstm":
            h, c = lstm_step(z, h, c, v, acts, clip)
        elif kind == "gru":
            h, k, p = gru_step(z, h, v, acts, after)
            kept.append(k)
            products.append(p)
        else:
            h = ACTIVATIONS[acts[0]](z + h @ v["weight_hh"].T)
        ys.append(h)
    inputs["dh"] = rand((batch, hidden), dtype)
    loss = (h * torch.tensor(inputs["dh"], dtype=torch.float64)).sum()
    if kind == "lstm":
        inputs["dc"] = rand((batch, hidden), dtype)
        loss = loss + (c * torch.tensor(inputs["dc"], dtype=torch.float64)).sum()
    if sequence:
        inputs["dy"] = rand((steps, batch, hidden), dtype)
        loss = loss + (torch.stack(ys) * torch.tensor(inputs["dy"], dtype=torch.float64)).sum()
    loss.backward()
    if known:
        inputs["y"] = torch.stack(ys).detach().numpy().astype(dtype)
    d = v["x_gates"].grad
    outputs = [d, v["initial_h"].grad]
    if kind == "lstm":
        outputs += [v["initial_c"].grad, v["peephole"].grad if peephole else torch.zeros(3 * hidden)]
    if kind == "gru":
        n = hidden
        of_product = torch.stack([p.grad for p in products])
        outputs.insert(1, torch.cat([d[..., :n], of_product, d[..., 2 * n:]], -1))
    outputs.append(torch.stack(before))
    if kind == "gru":
        outputs.append(torch.stack(kept))
    consts = {}
    if given:
        names = {"lstm": ["recurrent_activation", "cell_activation", "activation"], "gru": ["recurrent_activation", "activation"],
                 "rnn": ["activation"]}[kind]
        consts = dict(zip(names, acts))
    if kind == "gru" and given:
        consts["reset_after"] = after
    if clip is not None:
        consts["clip"] = dtype(clip)
    op_case(OPERATIONS[kind], name, inputs, consts, [o.detach().numpy().astype(dtype) for o in outputs])


def confirm(kind, order):
    """Compares the loop's gradients with those of PyTorch's layer, whose gates have another order."""
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](4, 5, dtype=torch.float64)
    x = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    ours = x.detach().clone().requires_grad_()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    parts = [getattr(layer, n).detach().chunk(len(order)) for n in names]
    w_ih, w_hh, b_ih, b_hh = (torch.cat([p[i] for i in order]).requires_grad_() for p in parts)
    v, h, c, ys = {"weight_hh": w_hh, "bias": b_hh}, torch.zeros(2, 5, dtype=torch.float64), torch.zeros(2, 5, dtype=torch.float64), []
    for step in ours:
        z = step @ w_ih.T + b_ih
        if kind == "lstm":
            h, c = lstm_step(z + b_hh, h, c, v, ("sigmoid", "tanh", "tanh"), None)
        elif kind == "gru":
            h = gru_step(z, h, v, ("sigmoid", "tanh"), True)[0]
        else:
            h = torch.tanh(z + b_hh + h @ w_hh.T)
        ys.append(h)
    dy = torch.randn(3, 2, 5, dtype=torch.float64)
    (torch.stack(ys) * dy).sum().backward()
    (layer(x)[0] * dy).sum().backward()
    torch.testing.assert_close(ours.grad, x.grad)
    for name, w in zip(names, (w_ih, w_hh, b_ih, b_hh)):
        grads = getattr(layer, name).grad.chunk(len(order))
        torch.testing.assert_close(w.grad, torch.cat([grads[i] for i in order]))


torch.manual_seed(56)
confirm("lstm", (0, 1, 3, 2))
confirm("gru", (0, 2, 1))
confirm("rnn", (0,))
for kind in ("lstm", "gru", "rnn"):
    steps_case(kind, "sequence")
    steps_case(kind, "defaults", given=False)
    steps_case(kind, "last", sequence=False, known=False)
    steps_case(kind, "sequence_of_unknown_states", known=False)
    steps_case(kind, "one_step", sizes=(1, 2, 4))
    steps_case(kind, "one_row", sizes=(5, 1, 3), known=False)
    steps_case(kind, "many_units", sizes=(3, 2, 37))
    steps_case(kind, "many_rows", sizes=(2, 19, 6))
    steps_case(kind, "fp16", dtype=np.float16, sizes=(2, 2, 3))
for act in ("relu", "linear", "hard_sigmoid", "scaled_tanh(1.7159, 0.6667)", "linear(-0.5, 2.5e-1)", "sigmoid"):
    short = act.split("(")[0] + ("_with_numbers" if "(" in act else "")
    # Gates without limits let states grow, and rounding errors with them.
    scale = 0.7 if "sigmoid" in act else 0.3
    steps_case("lstm", short, acts=(act if act != "relu" else "hard_sigmoid", act, act), scale=scale)
    steps_case("gru", short, acts=(act if act != "relu" else "hard_sigmoid", act), known=False, scale=scale)
    steps_case("rnn", short, acts=(act,))
steps_case("lstm", "peephole", peephole=True)
steps_case("lstm", "peephole_last", peephole=True, sequence=False, known=False)
steps_case("lstm", "clip", clip=0.4)
steps_case("lstm", "clip_peephole", clip=0.3, peephole=True, known=False)
steps_case("lstm", "coupled", acts=("sigmoid" + COUPLED, "tanh", "tanh"), peephole=True)
steps_case("gru", "after", after=True)
steps_case("gru", "after_last", after=True, sequence=False, known=False)
steps_case("gru", "after_no_bias", after=True, bias=False)
steps_case("gru", "no_bias", bias=False)
