#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times updates: moka.UpdateTask beside PyTorch and scikit-learn.

update.py [--only head,neighbors] [--rounds N] [--epochs N] [--examples N] [--threads N] [--json]

head: MobileNetV2 in front, which stays as it is, and a dense layer with 10 classes, trained with mini-batches of 8. PyTorch runs the
front without gradients, in each epoch as scripts do, and once ("kept") with its results kept, as Moka does; eager, and compiled by
torch.compile. neighbors: 2000 samples of 64 numbers are added to 20,000 in a nearest-neighbors classifier, and 200 rows are
predicted; scikit-learn fits and predicts the same. Engines take turns; times are medians. The weights, and the labels, must agree.
"""

import argparse
import json
import os
import statistics
import tempfile
import time


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="head,neighbors")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--examples", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def in_turns(engines, rounds):
    """The median of the seconds of each function in `engines`, and the last results."""
    times, results = {name: [] for name in engines}, {}
    for r in range(rounds):
        order = list(engines) if r % 2 == 0 else list(engines)[::-1]
        for name in order:
            begin = time.perf_counter()
            results[name] = engines[name]()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(t) for name, t in times.items()}, results


def head(given, folder):
    import coremltools as ct
    import numpy as np
    import torch
    import torchvision

    import moka

    torch.manual_seed(0)
    torch.set_num_threads(given.threads)
    net = torchvision.models.mobilenet_v2(num_classes=10).eval()
    net.classifier[1].weight.data *= 0.1
    front = torch.nn.Sequential(net.features, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    whole = torch.nn.Sequential(front, net.classifier[1], torch.nn.Softmax(-1)).eval()
    traced = torch.jit.trace(whole, torch.zeros(1, 3, 224, 224))
    model = ct.convert(traced, inputs=[ct.TensorType("x", (1, 3, 224, 224))], convert_to="neuralnetwork",
                       classifier_config=ct.ClassifierConfig([str(i) for i in range(10)], "label"))
    dense = [layer.name for layer in model.get_spec().neuralNetworkClassifier.layers if layer.WhichOneof("layer") == "innerProduct"]
    path = os.path.join(folder, "head.mlmodel")
    moka.update.mark(model.get_spec(), dense, learning_rate=0.05, mini_batch=8, momentum=0.9, epochs=(given.epochs, [given.epochs]),
                     shuffle=False).save(path)
    random = np.random.RandomState(1)
    x = random.rand(given.examples, 3, 224, 224).astype(np.float32)
    y = random.randint(0, 10, given.examples)
    rows = [{"x": x[i:i + 1], "label": str(y[i])} for i in range(given.examples)]
    begin = net.classifier[1].weight.detach().clone(), net.classifier[1].bias.detach().clone()
    compiled = torch.compile(front)
    xt, yt = torch.tensor(x), torch.tensor(y)

    def with_moka():
        weights = moka.UpdateTask(path, rows, threads=given.threads).run().weights
        return next(v for k, v in weights.items() if k.endswith("weights"))

    def with_torch(run_front, keeps):
        w, b = (v.clone().requires_grad_() for v in begin)
        optimizer = torch.optim.SGD([w, b], lr=0.05, momentum=0.9)
        kept = {}
        for _ in range(given.epochs):
            for i in range(0, given.examples, 8):
                if i not in kept or not keeps:
                    with torch.no_grad():
                        kept[i] = run_front(xt[i:i + 8])
                loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(kept[i], w, b), yt[i:i + 8])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return w.detach().numpy()

    compiled(xt[:8])
    engines = {"moka": with_moka, "eager": lambda: with_torch(front, False), "compiled": lambda: with_torch(compiled, False),
               "eager, kept": lambda: with_torch(front, True), "compiled, kept": lambda: with_torch(compiled, True)}
    times, weights = in_turns(engines, given.rounds)
    scale = np.abs(weights["eager"]).max()
    for name, w in weights.items():
        if not np.allclose(w, weights["eager"], atol=1e-4 * scale):
            raise SystemExit(f"update.py: head: the weights of {name} differ by {np.abs(w - weights['eager']).max():g}")
    return times


def neighbors(given, folder):
    import numpy as np
    from coremltools.models.nearest_neighbors import KNearestNeighborsClassifierBuilder
    from sklearn.neighbors import KNeighborsClassifier

    import moka

    random = np.random.RandomState(1)
    old, new, asked = (random.rand(n, 64).astype(np.float32) for n in (20000, 2000, 200))
    labels = [f"{v:.0f}" for v in (np.concatenate([old, new])[:, 0] * 4)]
    builder = KNearestNeighborsClassifierBuilder(input_name="x", output_name="label", number_of_dimensions=64, default_class_label="none",
                                                 number_of_neighbors=5, weighting_scheme="uniform", index_type="linear")
    builder.add_samples(old, labels[:20000])
    path = os.path.join(folder, "neighbors.mlmodel")
    with open(path, "wb") as file:
        file.write(builder.spec.SerializeToString())
    rows = [{"x": new[i], "label": labels[20000 + i]} for i in range(2000)]

    def with_moka():
        model = moka.UpdateTask(path, rows, threads=given.threads).run().model
        return list(model.predict_rows({"x": asked})["label"])

    def with_sklearn():
        model = KNeighborsClassifier(5, algorithm="brute", n_jobs=given.threads).fit(np.concatenate([old, new]), labels)
        return list(model.predict(asked))

    times, found = in_turns({"moka": with_moka, "sklearn": with_sklearn}, given.rounds)
    differ = sum(a != b for a, b in zip(found["moka"], found["sklearn"]))
    if differ > 2:  # neighbors at equal distances
        raise SystemExit(f"update.py: neighbors: {differ} of 200 labels differ")
    return times


def main():
    given = options()
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only.split(","):
            out[name] = {"head": head, "neighbors": neighbors}[name](given, folder)
    if given.json:
        print(json.dumps(out))
        return
    print(f"{'update':<12}{'engine':<18}{'seconds':>10}{'moka / engine':>16}")
    for name, times in out.items():
        for engine, seconds in times.items():
            ratio = "" if engine == "moka" else f"{times['moka'] / seconds:.2f}"
            print(f"{name:<12}{engine:<18}{seconds:>10.3f}{ratio:>16}")


if __name__ == "__main__":
    main()
