# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case

# Draws with a certain value.
F16, F32 = np.float16, np.float32
for dtype, tag in ((F32, "fp32"), (F16, "fp16")):
    op_case("random_uniform", "one_value_" + tag, {}, {"shape": [2, 3], "low": dtype(1.5), "high": dtype(1.5)}, [np.full((2, 3), 1.5, dtype)])
    op_case("random_normal", "no_spread_" + tag, {}, {"shape": [3], "mean": dtype(-2), "stddev": dtype(0), "seed": 4}, [np.full((3,), -2, dtype)])
    op_case("random_bernoulli", "never_" + tag, {}, {"shape": [4, 1], "prob": dtype(0)}, [np.zeros((4, 1), dtype)])
    op_case("random_bernoulli", "always_" + tag, {}, {"shape": [2, 2], "prob": dtype(1), "seed": 7}, [np.ones((2, 2), dtype)])
    sure = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype)
    op_case("random_categorical", "certain_probabilities_" + tag, {"x": sure}, {"mode": "probs", "size": 4},
            [np.repeat(np.array([[1], [0], [2]]), 4, axis=1).astype(dtype)])
    op_case("random_categorical", "certain_logits_" + tag, {"x": np.where(sure > 0, 0, -np.inf).astype(dtype)}, {"seed": 3},
            [np.array([[1], [0], [2]], dtype)])
op_case("random_uniform", "empty", {}, {"shape": [0, 2]}, [np.zeros((0, 2), F32)])
op_case("random_uniform", "shape_is_an_input", {"shape": np.array([3, 2], np.int32)}, {"low": F32(2), "high": F32(2)},
        [np.full((3, 2), 2, F32)], out_shapes={"y_0": (None, None)})
op_case("random_categorical", "rank1", {"x": np.array([0, 0, 5], F32)}, {"mode": "probs", "size": 2}, [np.array([2, 2], F32)])
