# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import dtype_name, literal, program_case, type_text

rng = np.random.default_rng(7)
f32, f16, i32 = np.float32, np.float16, np.int32


class Program:
    def __init__(self):
        self.body, self.n = [], 0

    def const(self, v):
        v = np.asarray(v)
        self.n += 1
        name = "c%d" % self.n
        self.body.append('%s %s = const()[name = tensor<string, []>("%s"), val = %s];' % (type_text(v), name, name, literal(v)))
        return name

    def op(self, out_type, op, **args):
        self.n += 1
        name = "v%d" % self.n
        given = ", ".join("%s = %s" % (k, v) for k, v in sorted(args.items()))
        self.body.append('%s %s = %s(%s)[name = tensor<string, []>("%s")];' % (out_type, name, op, given, name))
        return name

    def make(self, shape, dtype, length, dynamic, names=()):
        """A list. The dimensions in `names` are given by name."""
        dims = [self.const(np.array("dim%d" % k) if k in names else np.array(d, i32)) for k, d in enumerate(shape)]
        element = "tensor<%s, [%s]>" % (dtype, ", ".join("?" if k in names else str(d) for k, d in enumerate(shape)))
        self.type = "list<%s, %s>" % (element, "?" if dynamic else str(length))
        return self.op(self.type, "make_list", init_length=self.const(i32(length)), dynamic_length=self.const(np.bool_(dynamic)),
                       elem_shape="(%s)" % ", ".join(dims), dtype=self.const(np.array(dtype)))

    def write(self, ls, at, value):
        return self.op(self.type, "list_write", ls=ls, index=at, value=value)

    def case(self, op, name, inputs, outputs):
        params = ", ".join("%s %s" % (type_text(v), k) for k, v in inputs.items())
        program_case(op, name, "program(1.0)\n{\n    func main<ios15>(%s) {\n%s\n        } -> (%s);\n}\n" % (
            params, "\n".join("            " + s for s in self.body), ", ".join(outputs)), inputs, outputs)


for dtype in (f32, f16, i32, bool):
    x = rng.integers(0, 2 if dtype is bool else 9, (2, 3)).astype(dtype)
    kind = dtype_name(x)
    t = type_text(x)

    p = Program()
    ls = p.make((2, 3), kind, 3, False)
    n = p.op("tensor<int32, []>", "list_length", ls=ls)
    y = p.op(t, "list_read", ls=ls, index=p.const(i32(1)))
    p.case("make_list", "fixed_is_zero_" + kind, {"x": x}, {n: i32(3), y: np.zeros_like(x)})

    p = Program()
    first = p.make((2, 3), kind, 2, True)
    ls = p.write(first, p.const(i32(1)), "x")
    y = p.op(t, "list_read", ls=ls, index=p.const(i32(1)))
    z = p.op(t, "list_read", ls=ls, index=p.const(i32(0)))
    old = p.op(t, "list_read", ls=first, index=p.const(i32(1)))
    p.case("list_write", "keeps_the_old_list_" + kind, {"x": x}, {y: x, z: np.zeros_like(x), old: np.zeros_like(x)})

    p = Program()
    ls = p.make((3,), kind, 4, False)
    ls = p.op(p.type, "list_scatter", ls=ls, indices=p.const(np.array([3, 1], i32)), value="x")
    y = p.op("tensor<%s, [4, 3]>" % kind, "list_gather", ls=ls, indices=p.const(np.array([0, 1, 3, 1], i32)))
    p.case("list_scatter", "fixed_" + kind, {"x": x}, {y: np.stack([np.zeros_like(x[0]), x[1], x[0], x[1]])})
    p.case("list_gather", "repeated_" + kind, {"x": x}, {y: np.stack([np.zeros_like(x[0]), x[1], x[0], x[1]])})

x = rng.standard_normal((2, 3)).astype(f32)
p = Program()
ls = p.make((2, 3), "fp32", 1, True)
ls = p.write(ls, "at", "x")
n = p.op("tensor<int32, []>", "list_length", ls=ls)
y = p.op(type_text(x), "list_read", ls=ls, index="at")
p.case("list_write", "grows", {"x": x, "at": i32(4)}, {n: i32(5), y: x})
p.case("list_length", "after_growing", {"x": x, "at": i32(7)}, {n: i32(8), y: x})

p = Program()
ls = p.make((2, 3), "fp32", 1, True, names=(0,))
ls = p.write(ls, p.const(i32(0)), "x")
y = p.op("tensor<fp32, [?, 3]>", "list_read", ls=ls, index=p.const(i32(0)))
g = p.op("tensor<fp32, [1, ?, 3]>", "list_gather", ls=ls, indices=p.const(np.array([0], i32)))
p.case("list_read", "named_dimension", {"x": x}, {y: x, g: x[None]})

p = Program()
ls = p.make((3,), "fp32", 1, True)
ls = p.op(p.type, "list_scatter", ls=ls, indices="ix", value="x")
n = p.op("tensor<int32, []>", "list_length", ls=ls)
y = p.op("tensor<fp32, [3, 3]>", "list_gather", ls=ls, indices=p.const(np.array([2, 1, 0], i32)))
p.case("list_scatter", "grows", {"x": x, "ix": np.array([2, 0], i32)}, {n: i32(3), y: np.stack([x[0], np.zeros(3, f32), x[1]])})

p = Program()
ls = p.make((3,), "fp32", 0, True)
n = p.op("tensor<int32, []>", "list_length", ls=ls)
y = p.op("tensor<fp32, [0, 3]>", "list_gather", ls=ls, indices=p.const(np.zeros(0, i32)))
p.case("list_length", "empty", {"x": x}, {n: i32(0), y: np.zeros((0, 3), f32)})
