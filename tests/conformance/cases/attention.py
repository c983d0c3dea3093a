# SPDX-License-Identifier: Apache-2.0
"""scaled_dot_product_attention and moka_attention by numpy in float64."""
import numpy as np

from case import op_case

rng = np.random.default_rng(17)


def attention(name, qs, ks, vs, mask=None, dtype=np.float32, in_shapes=None, out_shapes=None):
    q, k, v = (rng.standard_normal(s).astype(dtype) for s in (qs, ks, vs))
    scores = q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2) / np.sqrt(qs[-1])
    inputs = {"query": q, "key": k, "value": v}
    if mask is not None:
        inputs["attn_mask"] = mask
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True)) @ v.astype(np.float64)
    op_case("scaled_dot_product_attention", name, inputs, {}, [y.astype(dtype)], opset="ios18", in_shapes=in_shapes, out_shapes=out_shapes)


attention("rank3", (2, 3, 4), (2, 2, 4), (2, 2, 3))
attention("heads", (1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 2))
attention("rank5", (1, 2, 1, 2, 3), (1, 2, 1, 3, 3), (1, 2, 1, 3, 2))
attention("causal", (1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2), np.tril(np.ones((3, 3), bool)))
attention("mask_per_image", (2, 2, 2, 2), (2, 2, 3, 2), (2, 2, 3, 2), rng.random((2, 1, 1, 3)) < 0.8)
attention("mask_vector", (2, 2, 2), (2, 3, 2), (2, 3, 1), np.array([True, False, True]))
attention("float_mask", (1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2), rng.standard_normal((1, 1, 3, 3)).astype(np.float32))
attention("float_mask_infinite", (1, 3, 2), (1, 3, 2), (1, 3, 2), np.where(np.tri(3) > 0, 0, -np.inf).astype(np.float32))
attention("nothing_to_see", (1, 2, 2), (1, 2, 2), (1, 2, 2), np.array([[True, True], [False, False]]))
attention("fp16", (1, 2, 2, 4), (1, 2, 3, 4), (1, 2, 3, 4), dtype=np.float16)
attention("fp16_mask", (1, 2, 4), (1, 3, 4), (1, 3, 4), (rng.standard_normal((2, 3)) * 2).astype(np.float16), np.float16)
attention("one_query", (1, 2, 1, 8), (1, 2, 4, 8), (1, 2, 4, 8))
attention("large_scores", (1, 2, 70), (1, 3, 70), (1, 3, 2))
attention("more_keys_than_a_block", (1, 1, 2), (1, 70, 2), (1, 70, 1))
attention("no_queries", (1, 0, 2), (1, 3, 2), (1, 3, 2))
attention("unknown_lengths", (1, 2, 2), (1, 3, 2), (1, 3, 2), in_shapes={"query": [1, None, 2], "key": [1, None, 2], "value": [1, None, 2]},
          out_shapes={"y_0": [1, None, 2]})


def in_place(name, batch, heads, rows, keys, width, made, mask=None, rows_first=True, dtype=np.float32, hidden=-np.inf):
    """Query, key and value side by side in one tensor, with the heads of each side by side."""
    first = {"query": 0, "key": heads * width, "value": 2 * heads * width}
    columns = 2 * heads * width + heads * made
    length = max(rows, keys)
    x = rng.standard_normal((batch, length, columns)).astype(dtype)
    part = {p: x[:, :n, first[p]:first[p] + heads * w].reshape(batch, n, heads, w).swapaxes(1, 2).astype(np.float64)
            for p, n, w in [("query", rows, width), ("key", keys, width), ("value", keys, made)]}
    scores = part["query"] @ np.swapaxes(part["key"], -1, -2) * 0.75
    inputs = {"query": x, "key": x, "value": x}
    if mask is not None:
        inputs["attn_mask"] = mask
        scores = np.where(mask, scores, hidden) if mask.dtype == bool else scores + mask.astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True)) @ part["value"]
    steps = {"%s_steps" % p: [first[p], length * columns, w, columns, 1] for p, w in [("query", width), ("key", width), ("value", made)]}
    more = {} if hidden == -np.inf else {"hidden": np.float32(hidden)}
    op_case("moka_attention", name, inputs,
            {"sizes": [batch, heads, rows, keys, width, made], **steps, "scale": np.float32(0.75), "rows_first": rows_first, **more},
            [(y.swapaxes(1, 2) if rows_first else y).astype(dtype)])


in_place("side_by_side", 2, 3, 4, 4, 2, 2)
in_place("heads_first", 1, 2, 2, 5, 3, 1, rows_first=False)
in_place("one_row", 1, 2, 1, 6, 4, 3)
in_place("mask", 2, 1, 3, 3, 2, 2, np.where(np.tri(3) > 0, 0, -np.inf).astype(np.float32))
in_place("mask_per_head", 2, 2, 2, 3, 2, 2, rng.random((2, 2, 1, 3)) < 0.8)
in_place("nothing_to_see", 1, 1, 2, 2, 2, 2, np.array([[True, True], [False, False]]))
in_place("fp16", 1, 2, 3, 3, 4, 4, dtype=np.float16)
in_place("hidden_by_a_number", 1, 2, 3, 4, 2, 2, np.array([[True, True, False, True], [False] * 4, [True, False, False, True]]), hidden=-2.5)
