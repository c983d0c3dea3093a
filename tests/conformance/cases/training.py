# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers: torch.optim in float64."""
import numpy as np
import torch

from case import op_case

rng = np.random.default_rng(55)


def rand(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def scalars(**values):
    return {k: np.float32(v) for k, v in values.items()}


for name, shape, momentum in [("matrix", (5, 7), 0.9), ("vector", (33,), 0.0), ("kernel", (4, 3, 3, 3), 0.5)]:
    w, g, v = rand(*shape), rand(*shape), rand(*shape)
    numbers = scalars(learning_rate=0.05, momentum=momentum)
    p = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    o = torch.optim.SGD([p], lr=float(numbers["learning_rate"]), momentum=float(numbers["momentum"]))
    o.state[p]["momentum_buffer"] = torch.tensor(v, dtype=torch.float64)
    p.grad = torch.tensor(g, dtype=torch.float64)
    o.step()
    velocity = (momentum * v.astype(np.float64) + g) if momentum == 0 else o.state[p]["momentum_buffer"].numpy()
    op_case("moka_sgd_step", name, {"weight": w, "gradient": g, "velocity": v, **numbers}, {},
            [p.detach().numpy().astype(np.float32), velocity.astype(np.float32)])

for name, shape, step in [("first", (5, 7), 1), ("tenth", (33,), 10)]:
    w, g, m, s = rand(*shape), rand(*shape), rand(*shape), np.abs(rand(*shape))
    numbers = scalars(learning_rate=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-8, step=step)
    p = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    o = torch.optim.Adam([p], lr=float(numbers["learning_rate"]), betas=(float(numbers["beta_1"]), float(numbers["beta_2"])),
                         eps=float(numbers["epsilon"]))
    o.state[p] = {"step": torch.tensor(float(step - 1)), "exp_avg": torch.tensor(m, dtype=torch.float64),
                  "exp_avg_sq": torch.tensor(s, dtype=torch.float64)}
    p.grad = torch.tensor(g, dtype=torch.float64)
    o.step()
    op_case("moka_adam_step", name, {"weight": w, "gradient": g, "first_moment": m, "second_moment": s, **numbers}, {},
            [p.detach().numpy().astype(np.float32), o.state[p]["exp_avg"].numpy().astype(np.float32),
             o.state[p]["exp_avg_sq"].numpy().astype(np.float32)])
