"""scaled_dot_product_attention by numpy in float64."""
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
