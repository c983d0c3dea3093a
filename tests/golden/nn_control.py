# SPDX-License-Identifier: Apache-2.0
"""Writes nn_layers/control.json, networks of loops and branches, as nn_layers.py does.

    nn_control.py
"""
import itertools

import numpy as np
from coremltools.models.neural_network import NeuralNetworkBuilder

from nn_layers import array, case, write


class Program:
    """Layers written as statements on blobs of one number each. `run` executes the same statements in Python."""

    def __init__(self, builder, names=None):
        self.b, self.names = builder, names or itertools.count()

    def _name(self):
        return "t%d" % next(self.names)

    def set(self, to, scale, source, shift=0.0):
        t = self._name()
        self.b.add_activation(t, "LINEAR", source, t, params=[scale, shift])
        self.b.add_copy(t + "_copy", t, to)

    def add(self, to, other):
        t = self._name()
        self.b.add_add_broadcastable(t, [to, other], t)
        self.b.add_copy(t + "_copy", t, to)

    def more(self, name, than):
        t = self._name()
        self.b.add_greater_than(t, [name], t, alpha=than)
        return t

    def branch(self, name, than):
        """The branches for name > than and for the opposite."""
        layer = self.b.add_branch(self._name(), self.more(name, than))
        return self.inner(layer.branch.ifBranch), self.inner(layer.branch.elseBranch)

    def loop(self, n):
        return self.inner(self.b.add_loop(self._name(), max_iterations=n).loop.bodyNetwork)

    def inner(self, network):
        return Program(NeuralNetworkBuilder(nn_spec=network, disable_rank5_shape_mapping=True), self.names)

    def jump(self, kind):
        getattr(self.b, "add_loop_" + kind)(self._name())


def control():
    """Loops that are left early and loops whose tensors grow."""
    one = lambda v: np.array([v], np.float32)

    def leave(bd):
        p = Program(bd)
        p.set("a", 1, "x")
        p.set("b", 0, "x")
        body = p.loop(10)
        body.set("a", 2, "a")
        yes, _ = body.branch("a", 20)
        yes.set("b", 1, "b", 100)
        yes.jump("break")
        body.set("b", 1, "b", 1)
        p.set("y", 1, "a")
        p.set("z", 1, "b")

    for name, x in (("early", 3.0), ("at_once", 15.0), ("never", 0.001)):
        a, b = x, 0
        for _ in range(10):
            a *= 2
            if a > 20:
                b += 100
                break
            b += 1
        case("break_" + name, {"x": one(x)}, {"y": one(a), "z": one(b)}, leave, exact=True)

    def skip(bd):
        p = Program(bd)
        for n in "iys":
            p.set(n, 0, "x")
        body = p.loop(6)
        body.set("i", 1, "i", 1)
        body.set("s", -1, "s", 1)
        yes, no = body.branch("s", 0.5)
        yes.jump("continue")
        no.set("y", 1, "y", 1)
        body.add("y", "i")

    i = y = s = 0
    for _ in range(6):
        i, s = i + 1, 1 - s
        if s > 0.5:
            continue
        y += 1
        y += i
    case("continue", {"x": one(1)}, {"y": one(y)}, skip, exact=True)

    def nested(bd):
        """Both blocks of a branch may jump, and both may continue. Jumps of the inner loop belong to it."""
        p = Program(bd)
        for n in "oy":
            p.set(n, 0, "x")
        outer = p.loop(5)
        outer.set("o", 1, "o", 1)
        outer.set("i", 0, "o")
        inner = outer.loop(10)
        inner.set("i", 1, "i", 1)
        low, high = inner.branch("o", 2.5)[::-1]
        yes, _ = low.branch("i", 1.5)
        yes.set("y", 1, "y", 0.5)
        yes.jump("break")
        yes, no = high.branch("i", 5.5)
        yes.jump("break")
        yes, _ = no.branch("i", 2.5)
        yes.set("y", 1, "y", 0.25)
        yes.jump("continue")
        low.set("y", 1, "y", 3)
        inner.add("y", "i")
        yes, _ = outer.branch("y", 60)
        yes.jump("break")
        yes, no = outer.branch("o", 1.5)
        yes.set("y", 1, "y", 7)
        no.set("y", 1, "y", 11)
        no.jump("continue")
        outer.set("y", 2, "y")

    o = y = 0
    for _ in range(5):
        o, i = o + 1, 0
        for _ in range(10):
            i += 1
            if o <= 2.5:
                if i > 1.5:
                    y += 0.5
                    break
                y += 3
            else:
                if i > 5.5:
                    break
                if i > 2.5:
                    y += 0.25
                    continue
            y += i
        if y > 60:
            break
        if o > 1.5:
            y += 7
        else:
            y += 11
            continue
        y *= 2
    case("jumps_nested", {"x": one(0)}, {"y": one(y)}, nested, exact=True)

    def conditional(bd):
        p = Program(bd)
        p.set("a", 1, "x")
        layer = bd.add_loop("l", condition="go")
        test = NeuralNetworkBuilder(nn_spec=layer.loop.conditionNetwork, disable_rank5_shape_mapping=True)
        test.add_less_than("t", ["a"], "go", alpha=100.0)
        body = p.inner(layer.loop.bodyNetwork)
        body.set("a", 3, "a")
        yes, _ = body.branch("a", 40)
        yes.jump("break")
        body.set("a", 1, "a", 1)
        p.set("y", 1, "a")

    for name, x in (("by_condition", 35.0), ("by_break", 2.0), ("not_entered", 100.0)):
        a = x
        while a < 100:
            a *= 3
            if a > 40:
                break
            a += 1
        case("while_" + name, {"x": one(x)}, {"y": one(a)}, conditional, exact=True)

    def grow(bd):
        bd.add_copy("c", "x", "y")
        body = NeuralNetworkBuilder(nn_spec=bd.add_loop("l", max_iterations=3).loop.bodyNetwork, disable_rank5_shape_mapping=True)
        body.add_get_shape("s", "y", "shape")
        body.add_slice_static("n", "shape", "rows", [0], [1], [1], [False], [False])
        body.add_multiply_broadcastable("m", ["x", "rows"], "more")
        body.add_concat_nd("j", ["y", "more"], "longer", axis=0)
        body.add_copy("b", "longer", "y")

    x = array(2, 3)
    y = x
    for _ in range(3):
        y = np.concatenate([y, x * len(y)])
    case("loop_grows", {"x": x}, {"y": y}, grow, exact=True)

    def nested_growth(bd):
        """z grows because y does, which becomes clear only once y is known to grow."""
        for name in "yz":
            bd.add_copy(name + "0", "x", name)
        inside = lambda network: NeuralNetworkBuilder(nn_spec=network, disable_rank5_shape_mapping=True)
        outer = inside(bd.add_loop("outer", max_iterations=2).loop.bodyNetwork)
        outer.add_copy("z1", "y", "z")
        inner = inside(outer.add_loop("inner", max_iterations=2).loop.bodyNetwork)
        inner.add_concat_nd("j", ["y", "x"], "longer", axis=0)
        inner.add_copy("y1", "longer", "y")

    case("loops_grow_nested", {"x": x}, {"y": np.concatenate([x] * 5), "z": np.concatenate([x] * 3)}, nested_growth, exact=True)


if __name__ == "__main__":
    write((control,))
