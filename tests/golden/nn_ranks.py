# SPDX-License-Identifier: Apache-2.0
"""Writes nn_layers/ranks.json and nn_layers/rare.json, as nn_layers.py does: blobs whose rank is known only at run time, and rare
settings of layers.

    nn_ranks.py
"""
import base64

import numpy as np
from coremltools.proto import Model_pb2

from nn_layers import CASES, array, case, conv2d, deconv2d, write

sigmoid = lambda v: 1 / (1 + np.exp(-v))
hard = lambda v: np.clip(0.3 * v + 0.4, 0, 1)


def declare(**shapes):
    """The shapes for which the last case is imported: -1 is an unknown size, None an unknown rank. The model says the same."""
    case = CASES[-1]
    case["declared"] = shapes
    spec = Model_pb2.Model()
    spec.ParseFromString(base64.b64decode(case["model"]))
    for f in spec.description.input:
        if f.name not in shapes:
            continue
        a = f.type.multiArrayType
        if shapes[f.name] is None:
            for shape in (a.shape, list(a.shape) + [2]):
                a.enumeratedShapes.shapes.add().shape.extend(shape)
            continue
        for size in shapes[f.name]:
            a.shapeRange.sizeRanges.add(lowerBound=max(size, 1), upperBound=size)
    case["model"] = base64.b64encode(spec.SerializeToString()).decode()


def of_rank(bd, x, n, name):
    """A blob with the elements of `x` whose rank is the length of `n`."""
    bd.add_reshape_dynamic(name, [x, n], name)


def ranks():
    n = lambda *sizes: np.array(sizes, np.float32)

    def unknown(name, x, shape, outputs, build, **more):
        def layers(bd):
            of_rank(bd, "x", "n", "v")
            build(bd)
        case(name, {"x": x.reshape(-1), "n": n(*shape)}, outputs, layers, exact=True, **more)
        declare(n=[-1])

    for shape in ((2, 3), (2, 3, 2), (1, 2, 2, 1, 3)):
        x = array(int(np.prod(shape)))
        v = x.reshape(shape)

        def elementwise(bd):
            bd.add_activation("relu", "RELU", "v", "positive")
            bd.add_unary("square", "positive", "squares", "power", alpha=2)
            bd.add_add_broadcastable("sum", ["v", "squares"], "sum")
            bd.add_greater_than("more", ["sum"], "more", alpha=0.5)
            bd.add_where_broadcastable("choose", ["more", "v", "squares"], "chosen")
            bd.add_tanh("tanh", "chosen", "tanh")
            bd.add_copy("copy", "tanh", "y")
        positive = np.maximum(v, 0)
        unknown("elementwise_%d" % len(shape), x, shape, {"y": np.tanh(np.where(v + positive**2 > 0.5, v, positive**2))}, elementwise)

        def shapes(bd):
            bd.add_get_shape("shape", "v", "shape")
            bd.add_fill_like("ones", "v", "ones", 1.5)
            bd.add_reshape_like("back", ["x", "v"], "back")
            bd.add_reshape_static("flat", "v", "flat", [-1])
            bd.add_expand_dims("wide", "v", "wide", [0])
            bd.add_flatten_to_2d("two", "v", "two", 1)
            bd.add_squeeze("narrow", "v", "narrow", squeeze_all=True)
        unknown("shapes_%d" % len(shape), x, shape,
                {"shape": n(*shape), "ones": np.full(shape, 1.5), "back": v, "flat": x, "wide": v[None], "two": v.reshape(shape[0], -1), "narrow": v.squeeze()}, shapes)

        def along_axes(bd):
            bd.add_reduce_sum("last", "v", "last", axes=[-1], keepdims=False)
            bd.add_reduce_max("all", "v", "all", reduce_all=True, keepdims=False)
            bd.add_argmax("at", "v", "at", axis=-1, keepdims=True)
            bd.add_softmax_nd("soft", "v", "soft", axis=-1)
            bd.add_cumsum("running", ["v"], "running", axis=-1)
            bd.add_concat_nd("twice", ["v", "v"], "twice", 0)
            bd.add_stack("pile", ["v", "v"], "pile", 0)
            bd.add_load_constant_nd("i", "i", n(1, 0, 1), [3])
            bd.add_gather("take", ["v", "i"], "taken", axis=-1)
        e = np.exp(v - v.max(-1, keepdims=True))
        unknown("along_axes_%d" % len(shape), x, shape,
                {"last": v.sum(-1), "all": v.max().reshape(1), "at": v.argmax(-1, keepdims=True).astype(float), "soft": e / e.sum(-1, keepdims=True),
                 "running": v.cumsum(-1), "twice": np.concatenate([v, v]), "pile": np.stack([v, v]), "taken": v[..., [1, 0, 1]]}, along_axes)

    # Settings of these layers say the rank.
    x = array(24)
    v = x.reshape(2, 3, 4)

    def says_rank(bd):
        bd.add_transpose("turn", [2, 0, 1], "v", "turned")
        bd.add_slice_static("cut", "v", "cut", [0, 1, 0], [2, 3, -1], [1, 1, 2], [False] * 3, [False, False, True])
        bd.add_reverse("back", "v", "back", [False, True, True])
        bd.add_constant_pad("pad", ["v"], "padded", value=2.0, pad_to_given_output_size_mode=False, pad_amounts=[0, 1, 1, 0, 0, 2])
    unknown("known_from_settings", x, (2, 3, 4), {"turned": v.transpose(2, 0, 1), "cut": v[0:2, 1:3, 0::2], "back": v[:, ::-1, ::-1],
                                                  "padded": np.pad(v, ((0, 1), (1, 0), (0, 2)), constant_values=2)}, says_rank)

    # Layers that work on images fold what is before the last three dimensions.
    for shape in ((3, 5, 4), (2, 3, 5, 4), (2, 1, 3, 5, 4)):
        x = array(int(np.prod(shape)))
        w = array(2, 3, 3, 2)

        def images(bd):
            bd.add_convolution("conv", 3, 2, 3, 2, 1, 1, "valid", 1, np.transpose(w, (2, 3, 1, 0)), None, False, input_name="v", output_name="c")
            bd.add_activation("relu", "RELU", "c", "r")
            bd.add_pooling("pool", 2, 2, 1, 1, "AVERAGE", "VALID", "r", "y")
            bd.add_upsample("up", 2, 1, "v", "up")
        planes = x.reshape(-1, 3, 5, 4)
        r = np.maximum(np.stack([conv2d(p, w) for p in planes]), 0)
        y = sum(r[:, :, a:a + 2, b:b + 2] for a in (0, 1) for b in (0, 1)) / 4
        unknown("images_%d" % len(shape), x, shape, {"y": y.reshape(shape[:-3] + y.shape[1:]),
                                                     "up": np.repeat(planes, 2, 2).reshape(shape[:-3] + (3, 10, 4))}, images)

    x = array(12)

    def product(bd):
        of_rank(bd, "x", "n", "v")
        bd.add_load_constant_nd("w", "w", x.reshape(3, 4)[:, :2].reshape(-1), [3, 2])
        bd.add_batched_mat_mul("mm", ["v", "w"], "y")
    case("product", {"x": x, "n": n(2, 2, 3)}, {"y": x.reshape(2, 2, 3) @ x.reshape(3, 4)[:, :2]}, product, exact=True)
    declare(n=[-1])

    # Each iteration adds a dimension.
    x = array(2, 3)

    def grows(bd):
        bd.add_copy("start", "x", "v")
        inner = type(bd)(nn_spec=bd.add_loop("loop", max_iterations=2).loop.bodyNetwork, disable_rank5_shape_mapping=True)
        inner.add_expand_dims("wide", "v", "wide", [0])
        inner.add_concat_nd("twice", ["wide", "wide"], "twice", 0)
        inner.add_activation("more", "LINEAR", "twice", "more", params=[1.0, 1.0])
        inner.add_copy("keep", "more", "v")
        bd.add_activation("end", "LINEAR", "v", "y", params=[2.0, 0.0])
    y = x
    for _ in range(2):
        y = np.stack([y, y]) + 1
    case("loop_that_adds_dimensions", {"x": x}, {"y": 2 * y}, grows, exact=True)

    # The branches give different ranks.
    for sign in (1.0, -1.0):
        x = array(2, 3)
        flag = np.array([sign], np.float32)

        def branches(bd):
            bd.add_activation("positive", "RELU", "flag", "yes")
            layer = bd.add_branch("branch", "yes")
            one, other = (type(bd)(nn_spec=way, disable_rank5_shape_mapping=True) for way in (layer.branch.ifBranch, layer.branch.elseBranch))
            one.add_expand_dims("wide", "x", "v", [2])
            other.add_reshape_static("flat", "x", "v", [6])
            bd.add_activation("end", "LINEAR", "v", "y", params=[2.0, 1.0])
        case("branches_of_ranks_%s" % ("yes" if sign > 0 else "no"), {"x": x, "flag": flag}, {"y": 2 * (x[..., None] if sign > 0 else x.reshape(-1)) + 1},
             branches, exact=True)

    # An input of several ranks.
    for shape in ((4,), (2, 2, 3)):
        x = array(*shape)
        case("input_of_rank_%d" % len(shape), {"x": x}, {"y": np.maximum(x, 0) + 1}, lambda bd: (
            bd.add_activation("relu", "RELU", "x", "r"), bd.add_activation("more", "LINEAR", "r", "y", params=[1.0, 1.0])), exact=True)
        declare(x=None)


def rare():
    # Deconvolutions with weights, and with a bias, as inputs; and of a given output size for an input of unknown size.
    x, w, b = array(1, 4, 3, 5), array(4, 3, 3, 2), array(3)
    full = deconv2d(x[0], w, (2, 1))[None]

    def deconvolution(inputs, output_shape=None, weights=True):
        def build(bd):
            layer = bd.add_convolution("d", 4, 3, 3, 2, 2, 1, "valid", 1, np.transpose(w, (2, 3, 0, 1)), None, False, is_deconv=True, output_shape=output_shape,
                                       input_name="x", output_name="y")
            if weights:
                layer.convolution.ClearField("weights")
                layer.input.extend(inputs)
        return build
    case("deconvolution_of_weights", {"x": x, "w": w}, {"y": full}, deconvolution(["w"]), exact=True)
    case("deconvolution_of_weights_and_bias", {"x": x, "w": w, "b": b}, {"y": full + b[:, None, None]}, deconvolution(["w", "b"]), exact=True)
    middle = lambda h, v: full[:, :, (7 - h) // 2:(7 - h) // 2 + h, (6 - v) // 2:(6 - v) // 2 + v]
    case("deconvolution_of_weights_and_shape", {"x": x, "w": w, "b": b}, {"y": middle(5, 5) + b[:, None, None]}, deconvolution(["w", "b"], [5, 5]), exact=True)
    declare(x=[-1, 4, -1, -1])
    wide = np.pad(full, ((0, 0), (0, 0), (2, 1), (0, 0)))
    for name, sizes, y in (("smaller", (4, 5), middle(4, 5)), ("larger", (10, 6), wide)):
        for known in (True, False):
            case("deconvolution_%s_%s" % (name, "known" if known else "unknown"), {"x": x}, {"y": y}, deconvolution([], list(sizes), False), exact=True)
            if not known:
                declare(x=[-1, 4, -1, -1])

    # Without padding, the last window of includeLastPixel may begin behind the input.
    x = array(1, 2, 4, 7)

    def windows(kernel, stride, exclude, kind):
        y = np.zeros((1, 2) + tuple(-(-(s - k) // t) + 1 for s, k, t in zip(x.shape[2:], kernel, stride)))
        for i, j in np.ndindex(*y.shape[2:]):
            part = x[:, :, i * stride[0]:i * stride[0] + kernel[0], j * stride[1]:j * stride[1] + kernel[1]]
            size = part.shape[2] * part.shape[3]
            if kind == "L2":
                y[:, :, i, j] = np.sqrt((part**2).sum((2, 3)))
            else:
                y[:, :, i, j] = part.sum((2, 3)) / ((size or 1) if exclude else kernel[0] * kernel[1])
        return y
    for name, kernel, stride, exclude, kind in (("mean", (1, 2), (2, 3), False, "AVERAGE"), ("mean_of_inner", (1, 2), (2, 3), True, "AVERAGE"), ("l2", (1, 1), (2, 4), False, "L2"),
                                                ("partial", (2, 2), (3, 4), True, "AVERAGE")):
        for exact in (True, False):
            y = windows(kernel, stride, exclude, kind)
            given = x if exact else x[0]
            case("last_pixel_%s_%s" % (name, "exact" if exact else "legacy"), {"x": given}, {"y": y if exact else y[None]}, lambda bd: bd.add_pooling(
                "p", kernel[0], kernel[1], stride[0], stride[1], kind, "INCLUDE_LAST_PIXEL", "x", "y", exclude_pad_area=exclude), exact=exact)

    # Raw bytes that no quantization describes.
    x, w, b = array(3, 4), array(2, 4), array(2)
    for name, dtype in (("floats", np.float32), ("halves", np.float16)):
        kept, kept_b = w.astype(dtype), b.astype(dtype)

        def raw(spec):
            p = spec.neuralNetwork.layers[0].innerProduct
            for field, values in ((p.weights, kept), (p.bias, kept_b)):
                field.Clear()
                field.rawValue = values.tobytes()
        case("raw_" + name, {"x": x}, {"y": x @ kept.astype(np.float32).T + kept_b.astype(np.float32)}, lambda bd: bd.add_inner_product("ip", w, b, 4, 2, True, "x", "y"), exact=True, edit=raw)
    q = np.array([[3, 0, 7, 1], [5, 2, 6, 4]], np.uint8)

    def integers(spec):
        p = spec.neuralNetwork.layers[0].innerProduct
        p.weights.Clear()
        p.weights.rawValue = q.tobytes()
        p.weights.quantization.numberOfBits = 8
    case("raw_integers", {"x": x}, {"y": x @ q.T.astype(float)}, lambda bd: bd.add_inner_product("ip", w, None, 4, 2, False, "x", "y"), exact=True, edit=integers)

    # Recurrent layers.
    S, B, I, H = 4, 2, 3, 5
    m = lambda *s: array(*s, low=-0.6, high=0.6)
    x = array(S, B, I)
    functions = {"TANH": np.tanh, "SIGMOID": sigmoid, "SIGMOID_HARD": lambda v: np.clip(0.2 * v + 0.5, 0, 1), "LINEAR": lambda v: v, "RELU": lambda v: np.maximum(v, 0)}

    def run(x, h, c, W, R, b, gate, cell, out, p=None, coupled=False):
        ys = []
        for v in x:
            i, f, o, g = (v @ W[k].T + h @ R[k].T + b[k] for k in range(4))
            i = gate(i + (p[0] * c if p else 0))
            f = 1 - i if coupled else gate(f + (p[1] * c if p else 0))
            c = np.clip(c * f + i * cell(g), -50, 50)
            h = gate(o + (p[2] * c if p else 0)) * out(c)
            ys.append(h)
        return np.array(ys), h, c
    weights = lambda: ([m(H, I) for _ in range(4)], [m(H, H) for _ in range(4)], [m(H) for _ in range(4)], [m(H) for _ in range(3)])
    state = lambda v: v.reshape(1, B, H, 1, 1)
    h0, c0, h1, c1 = (array(B, H) for _ in range(4))
    for name, peep in (("TANH", False), ("SIGMOID_HARD", True), ("LINEAR", False), ("RELU", True)):
        W, R, b, p = weights()
        y, h, c = run(x, h0, c0, W, R, b, functions[name], np.tanh, np.tanh, p if peep else None, True)
        case("coupled_" + name.lower(), {"x": x.reshape(S, B, I, 1, 1), "h": state(h0), "c": state(c0)},
             {"y": y.reshape(S, B, H, 1, 1), "h_out": state(h), "c_out": state(c)},
             lambda bd: bd.add_unilstm("l", R, W, b, H, I, ["x", "h", "c"], ["y", "h_out", "c_out"], inner_activation=name, output_all=True, coupled_input_forget_gate=True,
                                       peep=p if peep else None, cell_clip_threshold=50.0), exact=True)
    for all_steps in (True, False):
        W, R, b, p = weights()
        W2, R2, b2, p2 = weights()
        yf, hf, cf = run(x, h0, c0, W, R, b, sigmoid, np.tanh, np.tanh, p)
        yb, hb, cb = run(x[::-1], h1, c1, W2, R2, b2, functions["SIGMOID_HARD"], functions["RELU"], functions["LINEAR"], p2)
        y = np.concatenate([yf, yb[::-1]], 2) if all_steps else np.concatenate([hf, hb], 1)[None]
        case("directions_" + ("all" if all_steps else "last"), {"x": x.reshape(S, B, I, 1, 1), "h": state(h0), "c": state(c0), "h2": state(h1), "c2": state(c1)},
             {"y": y.reshape(-1, B, 2 * H, 1, 1), "hf": state(hf), "cf": state(cf), "hb": state(hb), "cb": state(cb)},
             lambda bd: bd.add_bidirlstm("l", R, W, b, R2, W2, b2, H, I, ["x", "h", "c", "h2", "c2"], ["y", "hf", "cf", "hb", "cb"], output_all=all_steps, peep=p, peep_back=p2,
                                         inner_activation="SIGMOID", cell_state_update_activation="TANH", output_activation="TANH", cell_clip_threshold=50.0), exact=True,
             edit=backward_activations)


def sizes():
    """Networks that are imported for each size of their inputs. The default sizes are others than those given."""
    def case_of(name, x, y, default, build, **more):
        case(name, {"x": x}, {"y": y}, build, **more)
        spec = Model_pb2.Model()
        spec.ParseFromString(base64.b64decode(CASES[-1]["model"]))
        a = spec.description.input[0].type.multiArrayType
        del a.shape[:]
        a.shape.extend(default)
        if len(default) == x.ndim:
            for size, other in zip(default, x.shape):
                a.shapeRange.sizeRanges.add(lowerBound=min(size, other), upperBound=-1 if size != other else size)
        else:
            for shape in (default, x.shape):
                a.enumeratedShapes.shapes.add().shape.extend(shape)
        CASES[-1]["model"] = base64.b64encode(spec.SerializeToString()).decode()

    x = array(1, 2, 5, 7)
    case_of("last_pixel", x, x[:, :, ::2, ::2], [1, 2, 4, 4], lambda bd: bd.add_pooling("p", 1, 1, 2, 2, "MAX", "INCLUDE_LAST_PIXEL", "x", "y"), exact=True)
    x = array(2, 1, 3)
    case_of("squeeze_all", x, x[:, 0], [3, 2, 4], lambda bd: bd.add_squeeze("s", "x", "y", squeeze_all=True), exact=True)
    x = array(2, 3)
    case_of("pad_to_size", x, np.pad(x, ((2, 0), (0, 2))), [4, 5], lambda bd: bd.add_constant_pad(
        "p", ["x"], "y", value=0.0, pad_to_given_output_size_mode=True, pad_amounts=[4, 0, 0, 5]), exact=True)
    slope = np.array([0.25], np.float32)
    x = array(3, 2, 2)
    case_of("prelu", x, np.where(x > 0, x, 0.25 * x), [5, 2, 2], lambda bd: bd.add_activation("a", "PRELU", "x", "y", params=slope), exact=True)
    # Several ranks, through layers that depend on them.
    w = array(2, 3, 2, 2)
    conv = lambda bd: bd.add_convolution("c", 3, 2, 2, 2, 1, 1, "valid", 1, np.transpose(w, (2, 3, 1, 0)), None, False, input_name="x", output_name="y")
    x = array(2, 2, 3, 4, 3)
    y = np.stack([conv2d(p, w) for p in x.reshape(4, 3, 4, 3)]).reshape(2, 2, 2, 3, 2)
    case_of("convolution_of_ranks", x, y, [1, 3, 4, 3], conv, exact=True)
    x = array(3, 3)
    case_of("triangle_of_ranks", x, np.tril(x), [2, 3, 3], lambda bd: bd.add_lower_triangular("t", "x", "y", k=0), exact=True)


def backward_activations(spec):
    layer = spec.neuralNetwork.layers[0].biDirectionalLSTM
    del layer.activationsBackwardLSTM[:]
    for name in ("sigmoidHard", "ReLU", "linear"):
        f = getattr(layer.activationsBackwardLSTM.add(), name)
        f.SetInParent()
        if name == "sigmoidHard":
            f.alpha, f.beta = 0.2, 0.5
        if name == "linear":
            f.alpha = 1.0


if __name__ == "__main__":
    write((ranks, rare, sizes))
