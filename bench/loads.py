#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times loads and first predictions on Moka and on other engines, cold and warm. README.md explains.

loads.py                                                  the nets of NETS
loads.py --nets bert_base,resnet50 --engines moka,onnxruntime --threads 1 --rounds 5 --json
loads.py --page docs/performance/loads.md                 also writes the page, of all results in --out

Keeps the results of other nets in the file. Exits with 1 if Moka fails or its outputs are wrong.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import sys
import time

import engines
import nets
import report
import run
from harness import client, machine, models, samples, stats

NETS = ("bert_base", "decoder_110m", "deit_small", "mobilenet_v2", "resnet50", "t5_encoder", "yolov3")
WAYS = ("cold", "warm")
GOALS = {"cold": 0.6, "warm": 0.5}
COMPACT = pathlib.Path("/proc/sys/vm/compact_memory")


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS), help="names with commas")
    parser.add_argument("--engines", default="all", help="names with commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", default="fp32", choices=list(samples.TOLERANCE))
    parser.add_argument("--rounds", type=int, default=3, help="cold loads of each net and engine, each followed by warm ones")
    parser.add_argument("--warm", type=int, default=2, help="warm loads after each cold one")
    parser.add_argument("--idle", type=float, default=10, help="seconds without any work before a cold load")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which engines take turns")
    parser.add_argument("--out", default="build/bench/loads.json", help="the results")
    run.add_page(parser)
    options = parser.parse_args(given)
    options.nets = run.chosen(parser, "--nets", options.nets, nets.every())
    options.engines = run.chosen(parser, "--engines", options.engines, engines.names())
    options.cpus = machine.pick_cpus(os.sched_getaffinity(0))
    if not 1 <= options.threads <= len(options.cpus):
        parser.error(f"--threads: expected 1 to {len(options.cpus)}, the cores there are, got {options.threads}")
    return options


def give_back(idle):
    """Merges free memory into large blocks, if that is allowed, and waits until the host of a virtual machine has taken them back."""
    try:
        COMPACT.write_text("1")
    except OSError:  # only root may; the wait alone still lets the machine idle
        pass
    time.sleep(idle)


class Loads:
    """Loads one net in one engine, each time in a new process that `start` makes."""

    def __init__(self, name, start):
        self.start = start
        self.result = {"engine": name, "cold": [], "warm": []}

    def once(self, way):
        worker = self.start()
        try:
            answer = worker.ask("load")
            self.result[way].append([answer["load"], answer["first"]])
            self.result["error"] = max(self.result.get("error", 0), worker.ask("check")["error"])
        except client.Failed as failure:
            self.result["reason"] = str(failure)
        finally:
            worker.close()

    def round(self, idle, warm):
        give_back(idle)
        for way in ("cold", *["warm"] * warm):
            if "reason" not in self.result:
                self.once(way)


def measure(options, say):
    logs = pathlib.Path(options.out).parent / "logs"
    cache, order = models.Cache(options.models, logs), random.Random(options.seed)
    present = [name for name in options.engines if not engines.unavailable(name, sys.prefix)]
    with cache.locked():
        for net in options.nets:
            folder, reason = cache.net(net)
            row = {"net": net, "title": nets.module(net).TITLE, "precision": options.precision, "threads": options.threads, "engines": []}
            every = []
            for name in present if not reason else ():
                precision = options.precision if options.precision in engines.module(name).PRECISIONS else "fp32"
                model, done = cache.model(net, folder, name, precision)
                loads = Loads(name, lambda name=name, model=model, precision=precision: client.Worker(
                    name, model, folder, options.threads, precision, options.cpus[:options.threads], logs / f"{net}-{name}-loads.log"))
                row["engines"].append(loads.result)
                if done.get("reason"):
                    loads.result["reason"] = done["reason"]
                    continue
                models.read_through(model)
                every.append(loads)
            for _ in range(options.rounds):
                for loads in order.sample(every, len(every)):
                    loads.round(options.idle, options.warm)
            if reason:
                row["reason"] = reason
            say(f"{net}: " + (reason or ", ".join(f"{way} {report.ratio_text(ratio(row, way))}" for way in WAYS)))
            yield row


def answer(result, way):
    """Seconds of the load and the first prediction, the median over processes."""
    return statistics.median(map(sum, result[way]))


def is_right(result, precision):
    return "reason" not in result and samples.is_right({**result, "precision": precision})


def mine(row):
    return next((e for e in row["engines"] if e["engine"] == samples.MOKA), None)


def best(row, way):
    peers = [e for e in row["engines"] if e["engine"] != samples.MOKA and is_right(e, row["precision"])]
    return min(peers, key=lambda e: answer(e, way), default=None)


def is_good(row):
    moka = mine(row)
    return moka is not None and is_right(moka, row["precision"])


def ratio(row, way):
    peer = best(row, way)
    return answer(mine(row), way) / answer(peer, way) if peer and is_good(row) else None


def together(old, new):
    """All rows in the order of the nets, the new ones in place of old ones."""
    of = {(r["net"], r["precision"], r["threads"]): r for r in [*old, *new]}
    return sorted(of.values(), key=lambda r: (r["precision"], r["threads"], nets.every().index(r["net"])))


def name_of(row):
    return row["title"] if row["precision"] == "fp32" else f"{row['title']}, {row['precision']}"


def milliseconds(row, result, way):
    if result is None:
        return "-"
    if not is_right(result, row["precision"]):
        return "failed" if "reason" in result else f"off by {report.exact(result['error'])}"
    return report.milliseconds(answer(result, way))


def table(rows, way):
    lines = []
    for row in rows:
        peer, moka = best(row, way), mine(row)
        parts = [report.milliseconds(statistics.median(t[i] for t in moka[way])) for i in (0, 1)] if is_good(row) else ["-", "-"]
        sums = sorted(map(sum, moka[way])) if is_good(row) else []
        between = f"{report.milliseconds(sums[0])} to {report.milliseconds(sums[-1])}" if sums else "-"
        lines.append([name_of(row), row["threads"], *parts, milliseconds(row, moka, way), between, len(sums), milliseconds(row, peer, way),
                      engines.module(peer["engine"]).TITLE if peer else "-", report.ratio_text(ratio(row, way))])
    return report.table(["net", "threads", "load", "first prediction", "Moka", "range", "loads", "best peer", "", "Moka / best"], lines)


def summary(rows, way):
    ratios = {name_of(row): r for row in rows if (r := ratio(row, way)) is not None}
    if not ratios:
        return f"{report.capital(way)}: no net has a peer with right outputs."
    behind = [title for title, r in ratios.items() if r > 1]
    return (f"{report.capital(way)}: geometric mean **{stats.geometric_mean(ratios.values()):.3f}** over {len(ratios)} nets (goal {GOALS[way]}). "
            + (f"Behind: {'; '.join(behind)}." if behind else "Ahead on each."))


def left_out(rows):
    """The peers that cannot be the best one, and why."""
    lines = [f"- {name_of(row)}, {engines.module(e['engine']).TITLE}: {e.get('reason') or 'off by ' + report.exact(e['error'])}\n"
             for row in rows for e in row["engines"] if e["engine"] != samples.MOKA and not is_right(e, row["precision"])]
    return "\n## Left out\n\n" + "".join(lines) if lines else ""


def results(rows):
    return "\n".join(f"## {report.capital(way)}\n\n{table(rows, way)}\n{summary(rows, way)}\n" for way in WAYS) + left_out(rows)


def page(data):
    versions = "; ".join(f"{package} {version}" for package, version in data["versions"].items())
    return f"""# The first answer, cold and warm

<!-- Made by `make bench-loads`; do not edit. -->

Milliseconds from a file in the page cache to the first outputs: loading plus the first prediction, each in a new process that has
imported its engine. The median over processes. A cold load follows {data['idle']:g} s in which the machine did nothing and the host of a virtual machine
took back free memory, so that new memory is slow to touch. Warm loads follow at once. The best peer is the fastest with right outputs.
Few cold loads scatter widely: the range of Moka's is beside their number.
Moka's first prediction reads most weights from the file, and the following ones pack them. [weights.md](../weights.md) has the
slowest of these.

{results(data['rows'])}
On {data['machine']['cpu']}, {data['machine']['cores']} cores ({data['date']}; load {data['machine']['load_average']:.1f} when it began); {versions}.
"""


def main():
    options = arguments()
    reason = engines.unavailable(samples.MOKA, sys.prefix)
    if reason:
        sys.exit(f"loads: {reason}")
    out = pathlib.Path(options.out)
    data = {"machine": machine.facts(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "idle": options.idle,
            "versions": {p: v for e in options.engines for p, v in engines.versions(e).items() if v}}
    rows = []
    try:
        for row in measure(options, lambda text: print(text, file=sys.stderr, flush=True)):
            rows.append(row)
            data["rows"] = together(json.loads(out.read_text())["rows"] if out.is_file() else [], rows)
            samples.write(out, data)
    except models.InUse as error:
        sys.exit(f"loads: {error}")
    print(json.dumps(rows, indent=1) if options.json else results(rows))
    if options.page:
        pathlib.Path(options.page).write_text(page(data))
    sys.exit(0 if all(map(is_good, rows)) else 1)


if __name__ == "__main__":
    main()
