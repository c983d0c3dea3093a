#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times nets on Moka and on other engines. README.md explains.

run.py                                                    everything, hours
run.py --nets mobilenet_v2,resnet50 --engines moka,onnxruntime --threads 1 --precision fp32 --seconds 2
run.py --check                                            converts, predicts once and compares; no timing
run.py --list                                             what there is

Results of nets, engines, precisions and numbers of threads that are not asked for stay in the file, if that run also timed and had the same
--isa.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import random
import shlex
import signal
import statistics
import sys
import tempfile

import engines
import nets
import report
from harness import client, isa, machine, models, samples, stats

HERE = pathlib.Path(__file__).resolve().parent
LEAST_ROUNDS = 5
WARM_SECONDS = 0.02  # untimed predictions after a worker slept: for this long, and at least one
MOST_WARM = 20
BUSY = 0.3  # load average per core above which a run warns


def add_models(parser):
    parser.add_argument("--models", default="build/bench/models", help="the cache of converted models")


def add_page(parser):
    """The options of benchmarks that write a page of their own."""
    add_models(parser)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--page", help="where the page is written")


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="all", help="names with commas")
    parser.add_argument("--engines", default="all", help="names with commas")
    parser.add_argument("--threads", default="1,2", help="numbers with commas; each is a run of its own")
    parser.add_argument("--precision", default="fp32,fp16", help=f"of {', '.join(samples.TOLERANCE)}, with commas")
    parser.add_argument("--seconds", type=float, default=5, help="of steady predictions for each engine, threads and precision")
    parser.add_argument("--rounds", type=int, default=10, help="turns that the seconds are taken in; fewer for slow nets")
    parser.add_argument("--loads", type=int, default=3, help="processes that load and predict first, for the time of that")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which engines take turns")
    parser.add_argument("--isa", choices=list(isa.SWITCHES), help="limit engines to these instructions, by their own switches")
    parser.add_argument("--page", help="also write the tables here, as Markdown")
    parser.add_argument("--check", action="store_true", help="one prediction each, compared; nothing is timed")
    parser.add_argument("--list", action="store_true", help="print nets and engines and stop")
    parser.add_argument("--out", default="build/bench/results.json", help="the results")
    add_models(parser)
    options = parser.parse_args(given)
    options.command = shlex.join(["bench/run.py", *(sys.argv[1:] if given is None else given)])
    options.nets = chosen(parser, "--nets", options.nets, nets.names(), nets.when_named(), {"zoo": nets.zoo.names()})
    options.engines = chosen(parser, "--engines", options.engines, engines.names())
    options.precision = chosen(parser, "--precision", options.precision, list(samples.TOLERANCE))
    try:
        options.threads = sorted({int(n) for n in options.threads.split(",")})
    except ValueError:
        parser.error(f"--threads: expected numbers with commas, got {options.threads!r}")
    options.cpus = machine.pick_cpus(os.sched_getaffinity(0))
    if not 1 <= options.threads[0] <= options.threads[-1] <= len(options.cpus):
        parser.error(f"--threads: expected 1 to {len(options.cpus)}, the cores there are, got {options.threads}")
    return options


def chosen(parser, option, text, usual, further=(), groups={}):
    """The names in `text`; "all" means the usual ones, and the name of a group its members."""
    if text == "all":
        return list(usual)
    if text in groups:
        return list(groups[text])
    known = [*usual, *further, *(name for group in groups.values() for name in group)]
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        parser.error(f"{option}: expected some of {', '.join(known)}, got {', '.join(unknown) or 'none'}")
    return [name for name in known if name in names]


class Progress:
    """Prints progress. On a terminal, the turns of a round overwrite each other."""

    def __init__(self, nets_count, out=sys.stderr):
        self.out, self.count, self.at, self.open = out, nets_count, 0, False

    def net(self, name):
        self.at += 1
        self.say(f"[{self.at}/{self.count}] {name}")

    def say(self, text):
        self.clear()
        print(text, file=self.out, flush=True)

    def passing(self, text):
        if self.out.isatty():
            print(f"\r\033[K  {text}", end="", file=self.out, flush=True)
            self.open = True

    def clear(self):
        if self.open:
            print("\r\033[K", end="", file=self.out)
            self.open = False


class Run:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out)
        logs = self.out.parent / "logs"
        self.cache, self.logs = models.Cache(options.models, logs), logs
        self.order = random.Random(options.seed)
        self.progress = Progress(len(options.nets))
        self.data = {
            "format": samples.FORMAT,
            "command": options.command,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": machine.facts(),
            "settings": {name: getattr(options, name) for name in ("threads", "precision", "seconds", "rounds", "loads", "seed", "check", "isa")},
            "engines": {},
            "nets": {},
            "samples": [],
        }

    def all(self):
        present = []
        for name in self.options.engines:
            reason = engines.unavailable(name, sys.prefix)
            if not reason and isa.variables(self.options.isa, name) is None:
                reason = f"has no switch that limits it to {self.options.isa}"
            self.data["engines"][name] = {"title": engines.module(name).TITLE, "versions": engines.versions(name), "reason": reason}
            if reason:
                self.progress.say(f"{name}: {reason}")
            else:
                present.append(name)
                build = getattr(engines.module(name), "build", None)
                if build:
                    self.data["engines"][name]["build"] = build()
        if self.out.is_file():
            self.data = samples.begin(json.loads(self.out.read_text()), self.data)
        load = self.data["machine"]["load_average"]
        if load > BUSY * len(self.options.cpus) and not self.options.check:
            self.progress.say(f"this machine is busy (load average {load:.1f}): the times will be noisy")
        for name in self.options.nets:
            self.progress.net(name)
            self.net(name, present)
            samples.write(self.out, self.data)
        self.progress.clear()

    def net(self, name, present):
        folder, reason = self.cache.net(name)
        if reason:
            self.data["samples"] = [s for s in self.data["samples"] if s["net"] != name]
            self.data["nets"][name] = {"title": name, "family": "", "goals": {}, "relative_to": None, "input": {}, "reason": reason}
            self.progress.say(f"  not built: {reason}")
            return
        floor = {k: v for k, v in self.data["nets"].get(name, {}).items() if k == "floor"}
        self.data["nets"][name] = {**floor, **models.facts(folder)}
        if "fp16" in self.options.precision:
            self.data["nets"][name]["floor"] = self.cache.floor(name, folder)
        ready = []
        for engine in present:
            for precision in self.options.precision:
                wanted = precision not in samples.ONLY_WITH_GOAL or precision in self.data["nets"][name]["goals"]
                if not wanted or precision not in engines.module(engine).PRECISIONS:
                    continue
                self.progress.passing(f"{engine} {precision}: converting")
                model, done = self.cache.model(name, folder, engine, precision)
                ready.append((engine, precision, model, done))
                if done.get("reason"):
                    self.progress.say(f"  {engine} {precision}: {done['reason']}")
        for threads in self.options.threads:
            self.group(name, folder, threads, ready)

    def group(self, name, folder, threads, ready):
        """All engines and precisions of one net with one number of threads, side by side."""
        turns = []
        for engine, precision, model, done in ready:
            sample = {"net": name, "engine": engine, "threads": threads, "precision": precision, "status": "failed",
                      "size": done["size"]}
            floor = self.data["nets"][name].get("floor") if precision == "fp16" else None
            if floor and samples.NEAR_FLOOR * floor > samples.TOLERANCE[precision]:
                sample["allowed"] = samples.NEAR_FLOOR * floor
            samples.add(self.data, sample)
            if done.get("reason"):
                sample["reason"] = done["reason"]
                continue
            turns.append(Turn(sample, lambda more=None, e=engine, m=model, p=precision: client.Worker(
                e, m, folder, threads, p, self.options.cpus[:threads], self.logs / f"{name}-{e}-{p}-{threads}.log",
                more={**isa.variables(self.options.isa, e), **(more or {})})))
            models.read_through(model)
        try:
            for turn in turns:
                self.progress.passing(f"{turn.label()}: loading")
                if not turn.is_limited(self.options.isa):
                    continue
                if not self.options.check and hasattr(engines.module(turn.sample["engine"]), "CACHE"):
                    turn.load_cached(self.options.loads, engines.module(turn.sample["engine"]).CACHE)
                turn.load(1 if self.options.check else self.options.loads)
            if not self.options.check:
                self.rounds(turns)
            for turn in turns:
                turn.finish(timed=not self.options.check)
        finally:
            for turn in turns:
                turn.close()
        for turn in turns:
            self.progress.say(f"  {turn.label():<28} {report.sample_line(turn.sample)}")

    def rounds(self, turns):
        seconds, rounds = self.options.seconds, self.options.rounds
        slowest = max((turn.pilot() for turn in turns if turn.worker), default=0)
        if slowest:
            rounds = max(min(LEAST_ROUNDS, rounds), min(rounds, int(seconds / (2 * slowest))))
        for n in range(rounds):
            for turn in self.order.sample(turns, len(turns)):
                self.progress.passing(f"{turn.label()}: round {n + 1} of {rounds}")
                turn.take(seconds / rounds)


class Turn:
    """One sample and the worker that measures it. A worker that fails is removed."""

    def __init__(self, sample, start):
        self.sample, self.start, self.worker = sample, start, None
        self.times, self.cpu, self.estimate = [], [], 0

    def label(self):
        s = self.sample
        return f"{s['engine']} {s['precision']}, {s['threads']} thread{'s' if s['threads'] > 1 else ''}"

    def ask(self, do, **more):
        if not self.worker:
            return None
        try:
            return self.worker.ask(do, **more)
        except client.Failed as failure:
            self.sample["reason"] = str(failure)
            self.close()
            return None

    def load(self, tries):
        """The last of the processes stays."""
        for _ in range(tries):
            self.close()
            self.worker = self.start()
            answer = self.ask("load")
            if answer is None:
                return
            for name, value in answer.items():
                self.sample.setdefault(name, []).append(value)

    def load_cached(self, tries, variable):
        """Times loads with data that an engine saves between processes, in the folder that a variable names. A first process fills it."""
        with tempfile.TemporaryDirectory() as folder:
            for n in range(tries + 1):
                self.close()
                self.worker = self.start({variable: folder})
                answer = self.ask("load")
                if answer is None:
                    return
                if n > 0:
                    self.sample.setdefault("cached", []).append(answer["load"] + answer["first"])

    def is_limited(self, isa_name):
        """Whether the engine's switch limits it on this net. The sample says why not."""
        engine = self.sample["engine"]
        if not isa.checked(isa_name, engine):
            return True
        self.worker = self.start()
        answer = self.ask("profile")
        reason = isa.unlimited(isa_name, engine, answer["kernels"]) if answer else self.sample["reason"]
        self.close()
        if reason:
            self.sample["reason"] = reason
        return not reason

    def pilot(self):
        answer = self.ask("run", seconds=0, least=2, warm=1)
        self.estimate = min(answer["times"]) if answer else 0
        return self.estimate

    def take(self, seconds):
        warm = max(1, min(MOST_WARM, math.ceil(WARM_SECONDS / self.estimate))) if self.estimate else 1
        answer = self.ask("run", seconds=seconds, least=1, warm=warm)
        if answer:
            self.times.append(answer["times"])
            self.cpu.append(answer["cpu"] / sum(answer["times"]))

    def finish(self, timed):
        peak = self.ask("peak")
        answer = self.ask("check")
        if not answer:
            return
        self.sample.update(error=answer["error"], outputs=answer["outputs"])
        self.sample["status"] = "measured" if timed else "checked"
        if timed:
            self.sample.update(steady=stats.summary(self.times), cpu=statistics.median(self.cpu), **peak)

    def close(self):
        if self.worker:
            self.worker.close()
            self.worker = None


def main():
    options = arguments()
    if options.list:
        for name in nets.every():
            print(f"{name:<28} {nets.module(name).TITLE}{' (when named)' if name in nets.when_named() else ''}")
        for name in engines.names():
            print(f"{name:<28} {engines.unavailable(name, sys.prefix) or engines.versions(name)}")
        return
    run = Run(options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with run.cache.locked():
            run.all()
    except models.InUse as error:
        sys.exit(f"run: {error}")
    except KeyboardInterrupt:
        run.progress.say("stopped")
        samples.write(run.out, run.data)
        sys.exit(130)
    print(report.checks(run.data) if options.check else report.tables(run.data))
    if options.page:
        pathlib.Path(options.page).write_text(report.page(run.data))
    print(f"results: {run.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
