import numpy as np

from case import op_case

rng = np.random.default_rng(0)
x = rng.standard_normal((2, 3, 4)).astype(np.float32) * 3

op_case("relu", "rank3_fp32", {"x": x}, {}, [np.maximum(x, 0)])
