#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the nets mean the same as ONNX to moka and to onnxruntime: torch.onnx exports each net, moka converts the file, and both
predict the same inputs. README.md explains.

exported.py                                              all nets, about half an hour at first
exported.py --nets mobilenet_v2,gru_2x512 --json
exported.py --page docs/onnx-nets.md                     also writes the page, once all nets are in the results

Results of nets that are not asked for stay in the file. Exits with 1 where the two differ by more than 1e-4 of the largest number.
"""

import argparse
import datetime
import json
import pathlib
import sys

import engines
import nets
import report
import run
from harness import machine, models, samples

LIMIT = 1e-4
PAIRS = ("moka and onnxruntime", "moka", "onnxruntime")


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="all", help="names with commas")
    parser.add_argument("--out", default="build/bench/exported.json", help="the results")
    run.add_page(parser)
    options = parser.parse_args(given)
    options.nets = run.chosen(parser, "--nets", options.nets, nets.every())
    return options


def rows(cache, names):
    for name in names:
        folder, reason = cache.net(name)
        row = {"net": name, "title": nets.module(name).TITLE}
        found = {"reason": reason} if reason else cache.exported(name, folder)
        yield {**row, **{key: found[key] for key in ("reason", "inputs", "nodes", "operations", "errors") if key in found}}


def verdict(row):
    if "reason" in row:
        return "failed"
    return "equal" if row["errors"][PAIRS[0]] <= LIMIT else "differs"


def together(old, new):
    """All rows in the order of the nets, the new ones in place of old ones."""
    of = {row["net"]: row for row in [*old, *new]}
    return [of[name] for name in nets.every() if name in of]


def table(rows):
    lines = []
    for row in rows:
        if "reason" in row:
            lines.append([row["title"], f"`{row['reason']}`", *[""] * 5])
            continue
        lines.append([row["title"], verdict(row), row["nodes"], row["operations"], *(f"{row['errors'][pair]:.1e}" for pair in PAIRS)])
    return report.table(["net", "", "nodes", "operations", "difference", "Moka's error", "onnxruntime's error"], lines, left=2)


def summary(rows):
    equal = [row for row in rows if verdict(row) == "equal"]
    return f"{len(equal)} of {len(rows)} nets are equal."


def page(data):
    rows = data["rows"]
    versions = ", ".join(f"{package} {version}" for package, version in data["versions"].items())
    return f"""# Exported nets

The nets of [the benchmark](../bench/README.md) as ONNX: `torch.onnx.export` writes each one (opset {data['opset']}), `moka convert` makes an
ML program of the file, and onnxruntime and Moka predict {max(row.get('inputs', 0) for row in rows)} sets of inputs. The difference is the largest one between the two over the
largest magnitude of the output, of the worst output; up to {LIMIT:.0e} counts as equal. The errors are the distances of each from PyTorch in float32.
Operations are those that Moka runs. `make bench-exported` writes this page.

{summary(rows)}

{table(rows)}
On {data['machine']['cpu']}, {data['date']}; {versions}.
"""


def main():
    from harness import network

    options = arguments()
    for engine in ("moka", "onnxruntime"):
        if reason := engines.unavailable(engine, sys.prefix):
            sys.exit(f"exported: {reason}")
    cache = models.Cache(options.models, pathlib.Path(options.out).parent / "logs")
    found = []
    try:
        with cache.locked():
            for row in rows(cache, options.nets):
                found.append(row)
                print(f"{row['net']:<28} {verdict(row)}", file=sys.stderr, flush=True)
    except models.InUse as error:
        sys.exit(f"exported: {error}")
    every = together(samples.rows_of(options.out), found)
    versions = {package: version for engine in ("moka", "onnxruntime") for package, version in engines.versions(engine).items() if package != "coremltools"}
    data = {"machine": machine.facts(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "versions": versions, "opset": network.ONNX_OPSET,
            "rows": every}
    samples.write(options.out, data)
    print(json.dumps(found, indent=1) if options.json else f"{table(found)}\n{summary(found)}")
    if options.page:
        if len(every) == len(nets.every()):
            pathlib.Path(options.page).write_text(page(data))
        else:
            print("exported: no page, since not all nets are in the results", file=sys.stderr)
    sys.exit(0 if all(verdict(row) == "equal" for row in found) else 1)


if __name__ == "__main__":
    main()
