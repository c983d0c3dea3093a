# SPDX-License-Identifier: Apache-2.0
"""Trains a net with PyTorch: torch_step.py NET BATCH THREADS eager|compiled fixed|batch

"batch": batch norms use the statistics of the mini-batch. Requests and answers are those of step.cpp.
"""

import json
import os
import sys
import time

NET, BATCH, THREADS, MODE, STATISTICS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
os.environ["OMP_NUM_THREADS"] = str(THREADS)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import trained  # noqa: E402


def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


class Worker:
    def load(self):
        torch.set_num_threads(THREADS)
        self.x, self.target = trained.batch(NET, BATCH)
        self.before = memory("VmRSS:")
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # VmHWM begins anew
        start = time.perf_counter()
        net = trained.model(NET)
        for module in net.modules():
            if STATISTICS == "batch" and isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 0.1
                module.train()
        weights = [p for p in net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(weights, lr=0, momentum=0, fused=True)

        def loss(x, target):
            return F.cross_entropy(net(x), target)

        self.loss = torch.compile(loss) if MODE == "compiled" else loss
        return {"plan": time.perf_counter() - start, "parameters": sum(p.numel() for p in weights)}

    def steps(self, count, numbers):
        for group in self.optimizer.param_groups:
            group["lr"], group["momentum"] = numbers["learning_rate"], numbers["momentum"]
        losses, times = [], []
        for _ in range(count):
            start = time.perf_counter()
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(self.x, self.target)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            times.append(time.perf_counter() - start)
        return {"losses": losses, "times": times}

    def peak(self):
        return {"peak": memory("VmHWM:") - self.before}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the compiler prints goes to the log
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"reason": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(answer), file=answers, flush=True)


main()
