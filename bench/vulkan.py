#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nets do on a GPU: Moka's device `vulkan` beside ncnn's Vulkan backend, on one driver, counted by one layer. README.md explains.

vulkan.py                                                 all nets: regions, commands, bytes, errors, times
vulkan.py --nets mobilenet_v2,resnet50 --count            only counts; dispatches are not run, so each net takes seconds
vulkan.py --page docs/performance/vulkan.md               also writes the page, once all nets are in the results

Results of nets and engines that are not asked for stay in the file, as do times where a run only counts, so a page may come from several
runs. Times are compared only if one run measured both engines. Exits with 1 where a net of Moka's is not one region, has an operation off
the device or a wrong answer.
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
from harness import client, machine, models, samples, stats

MOKA, PEER = samples.MOKA, "ncnn"
DEVICE = "vulkan"
PRECISION = "fp32"
GOAL = 0.6  # relative to the peer's commands and bytes
FIRST_GOAL, LATER_GOAL = 0.5, 1  # relative to the peer's times
LIMIT = 1e-4  # allowed error
TIMES = ("load", "first", "later", "error", "run")  # of a sample; `run` is when the run that measured them began
TIMEOUT = 1800  # seconds per prediction; drivers that compute on the processor are slow


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="all", help="names with commas")
    parser.add_argument("--engines", default="all", help=f"of {MOKA}, {PEER}, with commas")
    parser.add_argument("--count", action="store_true", help="count only: dispatches are not run")
    parser.add_argument("--layer", default="build/bench/vulkan", help="the folder of the layer that counts")
    parser.add_argument("--out", default="build/bench/vulkan.json", help="the results")
    run.add_page(parser)
    options = parser.parse_args(given)
    options.nets = run.chosen(parser, "--nets", options.nets, nets.names(), nets.when_named())
    options.engines = run.chosen(parser, "--engines", options.engines, [MOKA, PEER])
    options.layer = pathlib.Path(options.layer).resolve()
    if not (options.layer / "VkLayer_moka_count.json").is_file():
        parser.error(f"--layer: no VkLayer_moka_count.json in {options.layer}; `ninja -C build moka_count_layer` makes it")
    options.cpus = machine.pick_cpus(os.sched_getaffinity(0))
    return options


# Mesa's and NVIDIA's drivers keep compiled shaders in the user's folder, where a first prediction would find them. Measured rates would
# change plans from run to run.
ENVIRONMENT = {"MESA_SHADER_CACHE_DISABLE": "true", "__GL_SHADER_DISK_CACHE": "0", "MOKA_RATES": "off"}


def environment(layer, count):
    return {**ENVIRONMENT, "VK_LAYER_PATH": str(layer), "VK_INSTANCE_LAYERS": "VK_LAYER_MOKA_count", "MOKA_COUNT_ONLY": "1" if count else "0",
            "MOKA_COUNT_LAYER": str(layer / "libmoka_count_layer.so")}


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class Counter:
    def __init__(self, options):
        self.options = options
        self.began = now().isoformat(timespec="seconds")
        self.logs = pathlib.Path(options.out).parent / "logs"
        self.cache = models.Cache(options.models, self.logs)

    def rows(self):
        for name in self.options.nets:
            folder, reason = self.cache.net(name)
            row = {"net": name, "title": nets.module(name).TITLE if reason else models.facts(folder)["title"],
                   "date": now().strftime("%Y-%m-%d")}
            for engine in self.options.engines:
                row[engine] = {"reason": reason} if reason else self.sample(name, folder, engine)
            yield row

    def sample(self, name, folder, engine):
        reason = engines.unavailable(engine, sys.prefix)
        if reason:
            return {"reason": reason}
        model, done = self.cache.model(name, folder, engine, PRECISION)
        if done.get("reason"):
            return {"reason": done["reason"]}
        worker = client.Worker(engine, model, folder, len(self.options.cpus), PRECISION, self.options.cpus,
                               self.logs / f"{name}-{engine}-vulkan.log", more=environment(self.options.layer, self.options.count),
                               device=DEVICE)
        try:
            found = worker.ask("load", timeout=TIMEOUT)
            answer = worker.ask("vulkan", timeout=TIMEOUT)
            sample = answer
            if not self.options.count:
                later = worker.ask("run", timeout=TIMEOUT, seconds=1, least=2, warm=0)["times"]
                sample.update(load=found["load"], first=found["first"], later=min(later), error=worker.ask("check")["error"], run=self.began)
            return sample
        except client.Failed as failure:
            return {"reason": str(failure)}
        finally:
            worker.close()


def is_comparable(row):
    """Whether both compute the whole net on the device. Work on the processor is not counted."""
    return not any(row.get(engine, {}).get("placement", {"off": [""]})["off"] for engine in (MOKA, PEER))


def ratio(row, count):
    """Moka's count divided by the peer's; None if one is missing or covers only a part of the net."""
    if not is_comparable(row):
        return None
    mine, theirs = (row[engine]["counts"][count] for engine in (MOKA, PEER))
    return mine / theirs if theirs else None


def seconds_to_first(sample):
    return sample["load"] + sample["first"]


def time_ratio(row, seconds):
    """Moka's `seconds` of a sample divided by the peer's; None if one run has not measured both."""
    mine, theirs = (row.get(engine, {}) for engine in (MOKA, PEER))
    if "later" not in mine or "later" not in theirs or mine["run"] != theirs["run"]:
        return None
    return seconds(mine) / seconds(theirs)


def is_good(row):
    """Whether Moka's result meets all requirements."""
    sample = row.get(MOKA)
    if sample is None:
        return True
    if "reason" in sample:
        return False
    placement = sample["placement"]
    return len(placement["regions"]) == 1 and not placement["off"] and sample.get("error", 0) <= LIMIT


def replaced(old, new):
    """A new sample with the times of the old one if it has only counts."""
    return {**{name: old[name] for name in TIMES if name in old}, **new} if "counts" in new and "later" not in new else new


def together(old, new):
    """All rows in the order of the nets; what is new takes the place of what is old."""
    of = {row["net"]: row for row in old}
    for row in new:
        before = of.get(row["net"], {})
        samples_of = {engine: replaced(before.get(engine, {}), row[engine]) for engine in (MOKA, PEER) if engine in row}
        of[row["net"]] = {**before, **row, **samples_of}
    return [of[name] for name in nets.every() if name in of]


def placed(sample):
    if "reason" in sample:
        return ["-", f"`{sample['reason'][:120]}`"]
    placement = sample["placement"]
    off = "; ".join(f"{name} ({kind}): {why}" if why else f"{name} ({kind})" for name, kind, why in placement["off"])
    return [len(placement["regions"]), off or "none"]


def placement_table(rows):
    return report.table(["net", "regions", "off the device"], [[row["title"], *placed(row[MOKA])] for row in rows if MOKA in row], left=1)


TIMED = (("load + first", seconds_to_first, FIRST_GOAL), ("later", lambda sample: sample["later"], LATER_GOAL))
SHOWN = (("dispatches", "dispatches", str), ("waits", "barriers", str), ("bytes", "MB moved", lambda n: f"{n / 1e6:.1f}"))


def counts_table(rows):
    head = ["net"]
    for _, title, _ in SHOWN:
        head += [title, "ncnn", "ratio"]
    lines = []
    for row in rows:
        cells = [row["title"]]
        for count, _, text in SHOWN:
            for engine in (MOKA, PEER):
                counts = row.get(engine, {}).get("counts")
                cells.append(text(counts[count]) if counts else "-")
            cells.append(report.ratio_text(ratio(row, count)))
        lines.append(cells)
    return report.table(head, lines)


def goals_line(rows, measures):
    """`measures`: (title, ratio of a row, goal)."""
    parts = []
    for title, ratio_of, goal in measures:
        ratios = [(row["title"], r) for row in rows if (r := ratio_of(row)) is not None]
        over = [(name, r) for name, r in ratios if r > goal]
        if ratios:
            mean = stats.geometric_mean([r for _, r in ratios])
            parts.append(f"{title}: {mean:.2f} of ncnn's, at most {goal} on {len(ratios) - len(over)} of {len(ratios)} nets")
        if over:
            parts.append(f"More than {goal}: " + "; ".join(f"{name} ({r:.2f})" for name, r in over))
    return ". ".join(parts) + ".\n" if parts else ""


def counts_line(rows):
    return goals_line(rows, [(title, lambda row, count=count: ratio(row, count), GOAL) for count, title, _ in SHOWN])


def times_line(rows):
    return goals_line(rows, [(title, lambda row, seconds=seconds: time_ratio(row, seconds), goal) for title, seconds, goal in TIMED])


def times_table(rows):
    lines = []
    for row in rows:
        both = [row.get(engine, {}) for engine in (MOKA, PEER)]
        if not any("later" in sample for sample in both):
            continue
        cells = [row["title"]]
        for _, seconds, _ in TIMED:
            cells += [report.milliseconds(seconds(sample)) if "later" in sample else "-" for sample in both]
            cells.append(report.ratio_text(time_ratio(row, seconds)))
        cells += [report.exact(sample["error"]) if "later" in sample else "-" for sample in both]
        lines.append(cells)
    head = ["net"]
    for title in (*(title for title, _, _ in TIMED), "error"):
        head += [title, "ncnn"] + (["ratio"] if title != "error" else [])
    return report.table(head, lines) if lines else ""


def missing(rows):
    """Nets that the peer does not run, or does not run completely on the device."""
    lines = [[row["title"], engine, f"`{row[engine]['reason']}`"] for row in rows for engine in (MOKA, PEER)
             if "reason" in row.get(engine, {})]
    for row in rows:
        off = row.get(PEER, {}).get("placement", {"off": []})["off"]
        if off:
            lines.append([row["title"], PEER, "on the processor: " + ", ".join(sorted({kind for _, kind, _ in off}))])
    return report.table(["net", "engine", "why"], lines, left=3) if lines else ""


def page(data):
    rows, facts = data["rows"], data["machine"]
    versions = ", ".join(f"{package} {version}" for package, version in data["versions"].items())
    times = f"{times_table(rows)}\n{times_line(rows)}" if times_table(rows) else "Not measured.\n"
    why = missing(rows)
    return f"""# Vulkan

The nets of [the benchmark](../../bench/README.md) on the device `vulkan`, in float32, beside ncnn's Vulkan backend on the same
driver, {data["driver"]}. One layer between both and the driver counts what a prediction submits:

- **dispatches** of shaders;
- **barriers**: the points between two commands at which there is at least one barrier;
- **MB moved**: the bytes of all buffers that dispatches have bound, and twice those that are copied. What a shader reads again, or
  does not read of a buffer, is not known to a layer.

`make bench-vulkan` writes this page anew. `BENCH_VULKAN_FLAGS=--count` counts without computing, in seconds for a net.

## Regions

A net that is one region is one submission: the driver gets its inputs, and the host waits once for its outputs.

{placement_table(rows)}
## Counts

{counts_table(rows)}
{counts_line(rows)}
## Times

Milliseconds. This driver computes on the processor, so these times do not predict those of a GPU. Its own cache of compiled shaders
is off, so that loading and the first prediction include compiling all of them. `later` is the shortest of the predictions of a second,
at least two. A ratio compares times of one run. Nets that were not timed have no row. `error` is against PyTorch's float32, as in the benchmark.

{times}
{why}
On {facts['cpu']}; {versions}.
"""


def driver_of(rows):
    return next((row[engine]["driver"] for row in rows for engine in (MOKA, PEER) if "driver" in row.get(engine, {})), "none")


def main():
    options = arguments()
    counter = Counter(options)
    found, rows = [], together(samples.rows_of(options.out), [])
    try:
        with counter.cache.locked():
            for row in counter.rows():
                found.append(row)
                mine = row.get(MOKA, {})
                print(f"{row['net']:<28} {'good' if is_good(row) else 'NOT GOOD'}  {placed(mine) if mine else ''}", file=sys.stderr,
                      flush=True)
                # After each net, so that a run that is stopped keeps what it has found.
                rows = together(rows, [row])
                data = {"machine": machine.facts(), "driver": driver_of(rows),
                        "versions": {**engines.versions(MOKA), **engines.versions(PEER)}, "rows": rows}
                samples.write(options.out, data)
    except models.InUse as error:
        sys.exit(f"vulkan: {error}")
    shown = [row for row in rows if row["net"] in options.nets]
    print(json.dumps(shown, indent=1) if options.json else
          f"{placement_table(shown)}\n{counts_table(shown)}\n{counts_line(shown)}\n{times_table(shown)}\n{times_line(shown)}\n{missing(shown)}")
    if options.page:
        if all(name in {row["net"] for row in rows} for name in nets.names()):
            pathlib.Path(options.page).write_text(page(data))
        else:
            print("vulkan: no page, since not all nets are in the results", file=sys.stderr)
    sys.exit(0 if all(is_good(row) for row in found) else 1)


if __name__ == "__main__":
    main()
