#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains whole nets for 100 steps with Moka and with PyTorch, and compares their weights with PyTorch's in float64.

nets.py --program PROGRAM [--only CASE,...] [--threads 1,2,3] [--folder FOLDER] [--json]

The distance is the root of the sum of all squared differences, with running statistics. Moka's may be twice that of PyTorch in
float32, and must be the same to the bit with all numbers of threads. Images have 64 x 64 pixels, and every step has another
mini-batch. Rectifiers make two trainings part for good once a value is above zero in one and below in the other, so the rates
are small enough for PyTorch's float32 to stay near its float64. PROGRAM is moka_bench_training.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "training"))

STEPS = 100
IMAGE = (3, 64, 64)
CLASSES = 1000
MOMENTUM = 0.875
MOVE = 0.125  # of running statistics
LIMIT = 2  # of the distance, relative to PyTorch's

# The net, whether batch norms use the statistics of the mini-batch, what the names of trained weights begin with, the size of
# mini-batches, and the learning rate.
CASES = {
    "resnet18_head": ("resnet18", False, "fc.", 4, 2**-9),
    "resnet18": ("resnet18", False, "", 4, 2**-18),
    "resnet18_batch": ("resnet18", True, "", 8, 2**-18),
    "mobilenet_v2": ("mobilenet_v2", False, "", 4, 2**-18),
}


def batches(count):
    import torch

    random = torch.Generator().manual_seed(5)
    return [(torch.randn(count, *IMAGE, generator=random), torch.randint(CLASSES, (count,), generator=random)) for _ in range(STEPS)]


def is_statistic(name):
    return "running_" in name


def with_pytorch(case, dtype):
    """(losses, the weights that change)"""
    import torch
    import trained

    net_name, of_batch, prefix, count, rate = case
    net = trained.model(net_name, IMAGE).to(dtype)
    for module in net.modules():
        if of_batch and isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = MOVE
            module.train()
    for name, weight in net.named_parameters():
        weight.requires_grad_(name.startswith(prefix))
    optimizer = torch.optim.SGD([w for w in net.parameters() if w.requires_grad], lr=rate, momentum=MOMENTUM)
    losses = []
    for x, target in batches(count):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x.to(dtype)), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    changed = [*((n, w) for n, w in net.named_parameters() if w.requires_grad), *((n, b) for n, b in net.named_buffers() if of_batch and is_statistic(n))]
    return losses, {n: w.detach().double().numpy().reshape(-1) for n, w in changed}


def with_moka(case, program, threads, folder):
    """(losses, the weights that change, of float32, by PyTorch's names)"""
    import numpy as np
    import trained

    net_name, of_batch, prefix, count, rate = case
    net, all_batches = trained.model(net_name, IMAGE), batches(count)
    model = folder / f"{net_name}-{count}.mlpackage"
    names = trained.convert(net, all_batches[0][0], model)
    core_ml = {n: "net_" + n.replace(".", "_") for n, _ in [*net.named_parameters(), *net.named_buffers()]}
    arrays = {}
    for name, kind, parts in (("x", "fp32", [x.numpy() for x, _ in all_batches]), ("target", "int32", [t.numpy().astype(np.int32) for _, t in all_batches])):
        arrays[name] = {"file": str(folder / f"{name}.bin"), "type": kind, "shape": list(parts[0].shape)}
        np.stack(parts).tofile(arrays[name]["file"])
    wanted = [core_ml[n] for n, _ in net.named_parameters() if n.startswith(prefix)]
    missing = set(wanted) - set(names)
    if missing:
        raise ValueError(f"the model has no weights {', '.join(sorted(missing))}")
    task = folder / "task.json"
    task.write_text(json.dumps({
        "model": str(model), "parameters": wanted, "loss": "cross_entropy", "input": "y", "target": "target", "optimizer": "sgd", "momentum": True,
        "batch_statistics": MOVE if of_batch else None, "threads": threads, "batches": STEPS, "arrays": arrays}))
    requests = [{"do": "load"}, {"do": "steps", "count": STEPS, "numbers": {"learning_rate": rate, "momentum": MOMENTUM}}, {"do": "save", "folder": str(folder)}]
    done = subprocess.run([program, str(task)], input="".join(json.dumps(r) + "\n" for r in requests), stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer in answers:
        if "reason" in answer:
            raise ValueError(answer["reason"])
    torch_name = {v: k for k, v in core_ml.items()}
    return answers[1]["losses"], {torch_name[n]: np.fromfile(folder / n, np.float32) for n in answers[2]["names"]}


def distance(a, b):
    if a.keys() != b.keys():
        raise ValueError(f"different weights change: {', '.join(sorted(a.keys() ^ b.keys()))}")
    return float(sum(((a[n] - b[n]) ** 2).sum() for n in a) ** 0.5)


def compare(name, options):
    import torch
    import trained

    case = CASES[name]
    folder = options.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    exact_losses, exact = with_pytorch(case, torch.float64)
    _, single = with_pytorch(case, torch.float32)
    runs = {n: with_moka(case, options.program, n, folder) for n in options.threads}
    losses, found = runs[options.threads[0]]
    start, weights = trained.model(case[0], IMAGE).state_dict(), [n for n in exact if not is_statistic(n)]
    row = {"case": name, "first_loss": losses[0], "last_loss": losses[-1], "exact_last_loss": exact_losses[-1],
           "moved": distance({n: exact[n] for n in weights}, {n: start[n].double().numpy().reshape(-1) for n in weights}),
           "pytorch": distance(exact, single), "moka": distance(exact, found), "wrong": []}
    row["ratio"] = row["moka"] / row["pytorch"]
    if not row["ratio"] <= LIMIT:
        row["wrong"].append(f"Moka is {row['ratio']:.2f} times as far from float64 as PyTorch")
    row["wrong"] += [f"{n} threads give other bits than {options.threads[0]}: {weight}" for n, (_, more) in runs.items() for weight in found
                     if more[weight].tobytes() != found[weight].tobytes()][:3]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--only", default=",".join(CASES), help=f"of {', '.join(CASES)}, with commas")
    parser.add_argument("--threads", default="1,2,3", type=lambda t: [int(n) for n in t.split(",")])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/training-nets"), help="for models and weights")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    if not options.json:
        print("| net | loss of the first and the last step | weights move by | PyTorch float32 | Moka | ratio |\n|---|---|---:|---:|---:|---:|", flush=True)
    for name in options.only.split(","):
        row = compare(name, options)
        rows.append(row)
        if not options.json:
            print(f"| {name} | {row['first_loss']:.4f}, {row['last_loss']:.4f} | {row['moved']:.2g} | {row['pytorch']:.2e} | {row['moka']:.2e} | {row['ratio']:.2f} |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))
    wrong = [f"{row['case']}: {text}" for row in rows for text in row["wrong"]]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
