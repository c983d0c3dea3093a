# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import literal, op_case, program_case, type_text

rng = np.random.default_rng(4)
f32, f16, i8, u8 = np.float32, np.float16, np.int8, np.uint8


class Packed:
    """An array whose MIL element type numpy does not have."""

    def __init__(self, dtype, values):
        self.dtype, self.values = dtype, np.asarray(values)


def text(v):
    if isinstance(v, str):
        return 'tensor<string, []>("%s")' % v
    if isinstance(v, Packed):
        a = v.values
        return "tensor<%s, [%s]>(%s)" % (v.dtype, ", ".join(map(str, a.shape)), a.astype(np.int64).tolist())
    return literal(v)


def type_of(v):
    return text(v).split("(")[0]


def statement(out_types, outs, op, params, as_attributes):
    """Text of one operation; a str that starts with % names a value."""
    body, args = [], []
    for k, v in params.items():
        if isinstance(v, str) and v.startswith("%"):
            args.append("%s = %s" % (k, v[1:]))
        elif as_attributes:
            args.append("%s = %s" % (k, text(v)))
        else:
            n = outs[0] + "_" + k
            body.append('%s %s = const()[name = tensor<string, []>("%s"), val = %s];' % (type_of(v), n, n, text(v)))
            args.append("%s = %s" % (k, n))
    inner = ", ".join(args)
    name = 'name = tensor<string, []>("%s")' % outs[0]
    results = ", ".join("%s %s" % p for p in zip(out_types, outs))
    body.append("%s = %s(%s)[%s];" % (results, op, "" if as_attributes else inner, inner + ", " + name if as_attributes else name))
    return body


def run(op, name, steps, outputs, opset):
    """steps: (types, names, operation, parameters); outputs: name -> array."""
    body = [s for step in steps for s in statement(*step, as_attributes=opset == "ios16")]
    program_case(op, name, "program(1.0)\n{\n    func main<%s>() {\n%s\n        } -> (%s);\n}\n" % (
        opset, "\n".join("            " + s for s in body), ", ".join(outputs)), {}, outputs)


def one(op, name, params, y, opset):
    run(op, name, [([type_text(y)], ["y"], op, params)], {"y": y}, opset)


def pack(values, bits):
    """Lowest bits first, without gaps, as bytes."""
    out = np.zeros((len(values) * bits + 7) // 8, u8)
    for i, v in enumerate(values):
        for b in range(bits):
            if (int(v) >> b) & 1:
                out[(i * bits + b) // 8] |= 1 << ((i * bits + b) % 8)
    return out


# iOS16: constexpr_affine_dequantize
for dtype, src in [(f32, u8), (f16, i8), (f32, i8)]:
    q = rng.integers(0 if src == u8 else -128, 256 if src == u8 else 128, (3, 2, 2)).astype(src)
    tag = "%s_%s" % (np.dtype(dtype).name, np.dtype(src).name)
    scale, zero = dtype(0.125), src(5)
    one("constexpr_affine_dequantize", "scalar_" + tag, {"quantized_data": q, "zero_point": zero, "scale": scale, "axis": np.int32(0)},
        ((q.astype(f32) - f32(5)) * f32(0.125)).astype(dtype), "ios16")
    for axis in (0, 1, -1):
        n = q.shape[axis]
        s, z = (rng.random(n) + 0.5).astype(dtype), rng.integers(0, 9, n).astype(src)
        shape = [1, 1, 1]
        shape[axis] = n
        one("constexpr_affine_dequantize", "axis%d_%s" % (axis + 1, tag), {"quantized_data": q, "zero_point": z, "scale": s, "axis": np.int32(axis)},
            ((q.astype(f32) - z.reshape(shape).astype(f32)) * s.reshape(shape).astype(f32)).astype(dtype), "ios16")
q = rng.integers(0, 256, (2, 3)).astype(u8)
z, s = np.array([0.5, 1.5], f32), f32(2)
one("constexpr_affine_dequantize", "float_zero_point_one_scale", {"quantized_data": q, "zero_point": z, "scale": s, "axis": np.int32(0)},
    ((q - z[:, None]) * s).astype(f32), "ios16")

# constexpr_cast
x = np.array([[1.5, -np.inf, 6e-8], [65504, 0, 0.1]], f16)
for opset in ("ios16", "ios18"):
    one("constexpr_cast", opset, {"source_val": x, "output_dtype": "fp32"}, x.astype(f32), opset)

# iOS16: constexpr_lut_to_dense
for bits in (1, 2, 4, 6, 8):
    for dtype in (f32, f16, i8, u8):
        shape = (3, 5) if bits != 6 else (2, 3, 3)
        ix = rng.integers(0, 2**bits, int(np.prod(shape)))
        lut = (rng.standard_normal(2**bits) * 4).astype(dtype) if dtype in (f32, f16) else rng.integers(0, 120, 2**bits).astype(dtype)
        one("constexpr_lut_to_dense", "ios16_%d_bits_%s" % (bits, np.dtype(dtype).name),
            {"indices": pack(ix, bits), "lut": lut, "shape": np.array(shape, np.uint32)}, lut[ix].reshape(shape), "ios16")

# iOS16: constexpr_sparse_to_dense
for dtype in (f32, f16, i8, u8):
    for shape in [(3, 5), (2, 4), (1, 70)]:
        mask = rng.integers(0, 2, shape)
        data = rng.integers(1, 100, mask.sum()).astype(dtype)
        y = np.zeros(shape, dtype)
        y[mask == 1] = data
        one("constexpr_sparse_to_dense", "ios16_%s_%d" % (np.dtype(dtype).name, y.size),
            {"nonzero_data": data, "mask": pack(mask.reshape(-1), 1), "shape": np.array(shape, np.uint32)}, y, "ios16")
one("constexpr_sparse_to_dense", "ios16_all_zero", {"nonzero_data": np.zeros(0, f32), "mask": np.zeros(1, u8), "shape": np.array([2, 2], np.uint32)},
    np.zeros((2, 2), f32), "ios16")


# iOS18
def spread(p, shape):
    for axis, n in enumerate(shape):
        p = np.repeat(p, n // p.shape[axis], axis)
    return p


def blockwise(data, scale, offset=None):
    d = data.astype(f32) - (spread(offset, data.shape).astype(f32) if offset is not None else 0)
    return (d * spread(scale, data.shape).astype(f32)).astype(scale.dtype)


RANGES = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}
for kind, (low, high) in RANGES.items():
    for tag, shape, groups in [("tensor", (3, 5), (1, 1)), ("rows", (4, 3), (4, 1)), ("columns", (3, 4), (1, 4)), ("blocks", (4, 6), (2, 3)), ("outer_blocks", (4, 2, 3), (2, 1, 1))]:
        dtype = f16 if tag in ("rows", "blocks") else f32
        d = rng.integers(low, high, shape)
        s = (rng.random(groups) + 0.25).astype(dtype)
        o = rng.integers(max(low, -4), min(high, 8), groups)
        data = Packed(kind, d) if "4" in kind else d.astype(kind)
        offset = Packed(kind, o) if "4" in kind else o.astype(kind)
        one("constexpr_blockwise_shift_scale", "%s_%s" % (kind, tag), {"data": data, "scale": s, "offset": offset}, blockwise(d, s, o), "ios18")
        one("constexpr_blockwise_shift_scale", "%s_%s_no_offset" % (kind, tag), {"data": data, "scale": s}, blockwise(d, s), "ios18")
d, s, o = rng.standard_normal((2, 4)).astype(f32), np.array([[2, 0.5]], f32), np.array([[0.5, -1]], f32)
one("constexpr_blockwise_shift_scale", "float_data", {"data": d, "scale": s, "offset": o}, blockwise(d, s, o), "ios18")
d = rng.integers(-8, 8, (2, 4))
one("constexpr_blockwise_shift_scale", "float_offset", {"data": Packed("int4", d), "scale": s, "offset": o}, blockwise(d, s, o), "ios18")


def lut_dense(ix, lut, axis=None):
    groups, (entries, width) = lut.shape[:-2], lut.shape[-2:]
    vectors = np.empty(ix.shape + (width,), lut.dtype)
    for at in np.ndindex(*ix.shape):
        g = tuple(i * k // n for i, k, n in zip(at, groups, ix.shape))
        vectors[at] = lut[g + (ix[at],)]
    if axis is None:
        return vectors[..., 0]
    axis %= ix.ndim
    y = np.moveaxis(vectors, -1, axis + 1)
    shape = list(ix.shape)
    shape[axis] *= width
    return np.ascontiguousarray(y.reshape(shape))


def indices(bits, v):
    return np.asarray(v).astype(u8) if bits == 8 else Packed("uint%d" % bits, v)


for bits in (1, 2, 3, 4, 6, 8):
    for tag, shape, groups in [("tensor", (3, 5), (1, 1)), ("rows", (4, 3), (2, 1)), ("columns", (2, 4), (1, 4)), ("blocks", (4, 6), (2, 3))]:
        if bits == 8 and tag == "blocks":
            continue
        dtype = [f32, f16, i8, u8][bits % 4]
        ix = rng.integers(0, 2**bits, shape)
        lut = rng.integers(0, 100, groups + (2**bits, 1)).astype(dtype)
        one("constexpr_lut_to_dense", "ios18_%d_bits_%s" % (bits, tag), {"indices": indices(bits, ix), "lut": lut}, lut_dense(ix, lut), "ios18")
for bits, shape, groups, width, axis in [(1, (2, 2, 2), (1, 1, 1), 3, 1), (1, (2, 2, 2), (1, 1, 1), 3, 2), (2, (3, 2), (1, 1), 2, 0), (2, (4, 3), (2, 1), 2, 0),
                                         (3, (2, 4), (1, 2), 2, -1), (4, (2, 3), (1, 1), 4, -2), (2, (2, 2), (1, 1), 1, 1)]:
    ix = rng.integers(0, 2**bits, shape)
    lut = rng.integers(0, 100, groups + (2**bits, width)).astype(f16)
    one("constexpr_lut_to_dense", "ios18_vector_%d_%d_%d_%d" % (bits, width, axis + 2, groups[0] * 10 + groups[-1]),
        {"indices": indices(bits, ix), "lut": lut, "vector_axis": np.int32(axis)}, lut_dense(ix, lut, axis), "ios18")

for dtype in (f32, f16, i8, u8):
    mask = rng.integers(0, 2, (3, 23))
    data = rng.integers(1, 100, mask.sum()).astype(dtype)
    y = np.zeros(mask.shape, dtype)
    y[mask == 1] = data
    one("constexpr_sparse_to_dense", "ios18_" + np.dtype(dtype).name, {"nonzero_data": data, "mask": Packed("uint1", mask)}, y, "ios18")
for kind in ("int4", "uint4"):
    low, high = RANGES[kind]
    mask = rng.integers(0, 2, (3, 7))
    data = rng.integers(low, high, mask.sum())
    y = np.zeros(mask.shape, np.int64)
    y[mask == 1] = data
    s = np.array([[0.5]], f32)
    run("constexpr_sparse_to_dense", "ios18_" + kind,
        [(["tensor<%s, [3, 7]>" % kind], ["dense"], "constexpr_sparse_to_dense", {"nonzero_data": Packed(kind, data), "mask": Packed("uint1", mask)}),
         (["tensor<fp32, [3, 7]>"], ["y"], "constexpr_blockwise_shift_scale", {"data": "%dense", "scale": s})], {"y": blockwise(y, s)}, "ios18")


def then_dense(op, name, params, mask, values, dense):
    """Both outputs of a sparse operation: the values, and what they make with the mask."""
    d, m = ", ".join(map(str, dense.shape)), ", ".join(map(str, mask.shape))
    t = type_text(values)
    run(op, name, [(["tensor<uint1, [%s]>" % m, t], ["mask", "values"], op, params),
                   ([t.split(",")[0] + ", [%s]>" % d], ["y"], "constexpr_sparse_to_dense", {"nonzero_data": "%values", "mask": "%mask"})],
        {"values": values, "y": dense}, "ios18")


for bits, shape, groups, width, axis in [(1, (4, 6), (1, 1), 1, None), (1, (4, 6), (1, 1), 2, 0), (2, (4, 3), (2, 1), 1, None), (3, (2, 6), (1, 3), 1, None),
                                         (2, (2, 5), (1, 1), 3, 1), (4, (3, 2, 2), (1, 1, 2), 2, 1), (6, (4, 4), (2, 2), 2, 0), (8, (3, 3), (1, 1), 1, 0)]:
    mask = rng.integers(0, 2, shape)
    ix = np.where(mask, rng.integers(0, 2**bits, shape), 0)
    lut = rng.integers(1, 100, groups + (2**bits, width)).astype(f16)
    wide = np.repeat(mask, width, axis if axis is not None else 0)
    dense = np.where(wide, lut_dense(ix, lut, axis), 0).astype(f16)
    params = {"indices_mask": Packed("uint1", mask), "indices_nonzero_data": indices(bits, ix[mask == 1]), "lut": lut}
    if axis is not None:
        params["vector_axis"] = np.int32(axis)
    then_dense("constexpr_lut_to_sparse", "%d_bits_%d_%s_%d" % (bits, width, axis, groups[0] * 10 + groups[-1]), params, wide, dense[wide == 1], dense)

for kind, (low, high) in RANGES.items():
    for tag, shape, groups in [("tensor", (3, 5), (1, 1)), ("rows", (4, 3), (4, 1)), ("columns", (3, 4), (1, 4)), ("blocks", (4, 6), (2, 3))]:
        mask = rng.integers(0, 2, shape)
        d = np.where(mask, rng.integers(low, high, shape), 0)
        s = (rng.random(groups) + 0.25).astype(f32)
        o = rng.integers(max(low, -4), min(high, 8), groups)
        data = Packed(kind, d[mask == 1]) if "4" in kind else d[mask == 1].astype(kind)
        offset = Packed(kind, o) if "4" in kind else o.astype(kind)
        dense = np.where(mask, blockwise(d, s, o), 0).astype(f32)
        then_dense("constexpr_sparse_blockwise_shift_scale", "%s_%s" % (kind, tag), {"data_mask": Packed("uint1", mask), "nonzero_data": data, "scale": s, "offset": offset},
                   mask, dense[mask == 1], dense)


def scaled_weights(w, by_input, by_output, groups, transposed):
    """The first two dimensions of w are output and input channels of a group, or with `transposed` the reverse."""
    a, b = (by_input, by_output) if transposed else (by_output, by_input)
    y = w.astype(np.float64)
    rows = w.shape[0] // groups
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            y[i, j] *= np.resize(a, w.shape[0])[i] * np.resize(b, w.shape[1] * groups)[i // rows * w.shape[1] + j]
    return y.astype(w.dtype)


for name, shape, inputs, outputs, groups, transposed, dtype in [
        ("linear", (5, 7), 7, 5, 1, False, f32), ("one_factor", (3, 4), 1, 3, 1, False, f32),
        ("grouped", (4, 3, 2, 2), 6, 4, 2, False, f32), ("transposed", (4, 3, 3), 4, 6, 2, True, f32),
        ("no_taps", (2, 3, 0), 3, 2, 1, False, f32), ("fp64", (3, 2, 1), 2, 1, 1, False, np.float64)]:
    w = rng.standard_normal(shape).astype(dtype)
    by_input, by_output = rng.standard_normal(inputs), rng.standard_normal(outputs)
    op_case("moka_scale_weights", name, {"weight": w},
            {"input_scale": by_input, "output_scale": by_output, "groups": groups, "transposed": transposed},
            [scaled_weights(w, by_input, by_output, groups, transposed)])
