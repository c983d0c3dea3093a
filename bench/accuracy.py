#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far Moka's answers are from PyTorch's on all nets, and whether they are the same bits on one and two threads and from
process to process. README.md explains.

accuracy.py                                              all nets, converted one after the other: about an hour
accuracy.py --nets mobilenet_v2,gru_2x512 --json
accuracy.py --page docs/accuracy.md                      also writes the page, once all nets are in the results

Results of nets that are not asked for stay in the file. Exits with 1 where an answer is further away than allowed and than
rounding the weights takes it, or is not the same twice.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys

import engines
import nets
import report
import run
from harness import client, machine, models, samples

LIMITS = {"fp32": 1e-4, "fp16": 2e-3}
THREADS = (1, 2)


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="all", help="names with commas")
    parser.add_argument("--precision", default="all", help=f"of {', '.join(LIMITS)}, with commas")
    parser.add_argument("--out", default="build/bench/accuracy.json", help="the results")
    run.add_page(parser)
    options = parser.parse_args(given)
    options.nets = run.chosen(parser, "--nets", options.nets, nets.every())
    options.precision = run.chosen(parser, "--precision", options.precision, list(LIMITS))
    options.cpus = machine.pick_cpus(os.sched_getaffinity(0))
    if len(options.cpus) < THREADS[-1]:
        parser.error(f"expected {THREADS[-1]} cores, got {len(options.cpus)}")
    return options


class Checker:
    def __init__(self, options):
        self.options = options
        self.logs = pathlib.Path(options.out).parent / "logs"
        self.cache = models.Cache(options.models, self.logs)
        self.build = engines.module(samples.MOKA).build()
        self.date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")

    def rows(self):
        for name in self.options.nets:
            folder, reason = self.cache.net(name)
            title = nets.module(name).TITLE if reason else models.facts(folder)["title"]
            floor = None
            if not reason and "fp16" in self.options.precision:
                floor = self.cache.floor(name, folder)
            for precision in self.options.precision:
                row = {"net": name, "title": title, "precision": precision, "limit": LIMITS[precision], "build": self.build,
                       "date": self.date}
                if precision == "fp16" and floor:
                    row["floor"] = floor
                row.update({"reason": reason} if reason else self.row(name, folder, precision))
                row["verdict"] = verdict(row)
                yield row

    def row(self, name, folder, precision):
        model, done = self.cache.model(name, folder, samples.MOKA, precision)
        if done.get("reason"):
            return {"reason": done["reason"]}
        try:
            errors, seen = [], []
            for threads in (*THREADS, THREADS[0]):
                worker = client.Worker(samples.MOKA, model, folder, threads, precision, self.options.cpus[:threads],
                                       self.logs / f"{name}-{precision}-{threads}-accuracy.log")
                try:
                    worker.ask("load")
                    worker.ask("run", seconds=0, least=3, warm=0)
                    errors.append(worker.ask("check")["error"])
                    seen += worker.ask("bits").values()
                finally:
                    worker.close()
        except client.Failed as failure:
            return {"reason": str(failure)}
        return {"error": max(errors), "same_bits": all(bits == seen[0] for bits in seen)}


def verdict(row):
    if "reason" in row:
        return "failed"
    if not row["same_bits"]:
        return "not the same bits"
    if row["error"] <= row["limit"]:
        return "within"
    floor = row.get("floor")
    return "the weights' rounding" if floor is not None and row["error"] <= samples.NEAR_FLOOR * floor else "too far"


def is_good(row):
    return row["verdict"] in ("within", "the weights' rounding")


def together(old, new):
    """All rows in the order of the nets, the new ones in place of old ones."""
    of = {(row["net"], row["precision"]): row for row in [*old, *new]}
    return [of[key] for name in nets.every() for precision in LIMITS if (key := (name, precision)) in of]


def table(rows):
    lines = []
    for row in rows:
        failed = "reason" in row
        lines.append([row["title"], row["precision"], "-" if failed else f"{row['error']:.1e}", f"{row['limit']:.0e}",
                      f"{row['floor']:.1e}" if row.get("floor") is not None else "",
                      "-" if failed else "yes" if row["same_bits"] else "no", f"`{row['reason']}`" if failed else row["verdict"]])
    return report.table(["net", "precision", "error", "allowed", "floor", "same bits", ""], lines, left=2)


def summary(rows):
    text = []
    for precision, limit in LIMITS.items():
        of = [row for row in rows if row["precision"] == precision]
        near = [row for row in of if row.get("error") is not None and row["error"] <= limit]
        rounded = sum(row["verdict"] == "the weights' rounding" for row in of)
        if of:
            text.append(f"{precision}: {len(near)} of {len(of)} nets within {limit:.0e}"
                        + (f", {rounded} as far away as the weights' rounding takes them." if rounded else "."))
    same = sum(bool(row.get("same_bits")) for row in rows)
    return " ".join(text) + f" The same bits on one and two threads and in every process: {same} of {len(rows)}."


def page(data):
    rows = data["rows"]
    facts = data["machine"]
    versions = ", ".join(f"{package} {version}" for package, version in data["versions"].items())
    builds = ", ".join(sorted({f"{row['build']} ({row['date']})" for row in rows}))
    return f"""# Accuracy

How far Moka's answers are from PyTorch's float32 ones: the largest difference over the largest magnitude expected, of the worst
output. [The benchmark](../bench/README.md) says what the nets are, and `make bench-accuracy` writes this page anew.

`floor` is the error of PyTorch itself, in float32, once all weights are rounded to float16 and batch norms are folded into them as
converters do. No engine can know more than the file holds. The file's rounding and PyTorch's constants differ in details, so
an answer may be a little nearer or further than the floor. Bits are the same when one and two threads, the first and the fourth
prediction, and two processes give the same outputs.

{summary(rows)}

{table(rows)}
On {facts['cpu']} with {', '.join(facts['isa'])}; {versions}; builds {builds}.
"""


def main():
    options = arguments()
    reason = engines.unavailable(samples.MOKA, sys.prefix)
    if reason:
        sys.exit(f"accuracy: {reason}")
    checker = Checker(options)
    rows = []
    try:
        with checker.cache.locked():
            for row in checker.rows():
                rows.append(row)
                print(f"{row['net']:<28} {row['precision']}  {row['verdict']}", file=sys.stderr, flush=True)
    except models.InUse as error:
        sys.exit(f"accuracy: {error}")
    every = together(samples.rows_of(options.out), rows)
    data = {"machine": machine.facts(), "versions": engines.versions(samples.MOKA), "rows": every}
    samples.write(options.out, data)
    print(json.dumps(rows, indent=1) if options.json else f"{table(rows)}\n{summary(rows)}")
    if options.page:
        if len(every) == len(LIMITS) * len(nets.every()):
            pathlib.Path(options.page).write_text(page(data))
        else:
            print("accuracy: no page, since not all nets are in the results", file=sys.stderr)
    sys.exit(0 if all(is_good(row) for row in rows) else 1)


if __name__ == "__main__":
    main()
