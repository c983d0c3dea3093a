#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs coremltools' own tests against an engine. README.md explains.

run.py --suite nn_layers                     one suite, engine moka.coremltools
run.py --jobs 2 --out OUT                    all suites, of the large ones a fixed sample; stopped? the same command goes on
run.py --full --shard 2/8 --out OUT          all tests, every eighth
run.py --ci                                  the tests of the CI: a fixed choice of those in passing/, all of which must pass
run.py --suite mil_ops --match 'TestConv\\b'  tests whose id contains a regular expression
run.py --device vulkan --ci                  the same on another device, where there is one
run.py --report --out OUT                    tables of earlier results
run.py --report --accept --out OUT           and adds what passes to passing/
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

import report
import results
from results import BAD, HERE, one_line

HARNESS = HERE / "harness"
AND = "; then "  # between builds of the engine
PROBE = """program(1.0)
{
  func main<ios18>(tensor<fp32, [64]> x) {
    tensor<fp32, [64]> y = exp(x = x)[name = string("y")];
  } -> (y);
}
"""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def arguments(suites):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", default=[], help=f"all (the default) or some of {', '.join(suites)}")
    parser.add_argument("--engine", default="moka.coremltools", help="module to import, or 'null'")
    parser.add_argument("--device", default="", help="the device that models run on, what it refuses on the CPU: vulkan, for example")
    parser.add_argument("-n", "--jobs", type=int, default=1, help="tests side by side")
    parser.add_argument("--out", default="build/conformance", help="folder of the results; goes on with what is there")
    parser.add_argument("--full", action="store_true", help="all tests of the large suites instead of samples")
    parser.add_argument("--ci", action="store_true", help="the choice of passing/ that suites.toml gives the CI, afresh")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these suites first")
    parser.add_argument("--retry", action="store_true", help="run again what did not pass, keep the rest")
    parser.add_argument("--required-only", action="store_true", help="only tests that engine_required/ knows to need an engine")
    parser.add_argument("--match", help="only test ids containing this regular expression")
    parser.add_argument("--op", help="only tests whose model had this operation in earlier results, e.g. mil:conv")
    parser.add_argument("--ops-from", help="the .jsonl of earlier results, for --op (default: this suite's in --out)")
    parser.add_argument("--shard", default="", help="I/N: every N-th test, beginning with the I-th")
    parser.add_argument("--timeout", type=float, default=300, help="seconds per test")
    parser.add_argument("--budget", type=float, default=0, help="seconds per suite; run again to go on")
    parser.add_argument("--macos", help="version to pretend (default: the suite's, else 26.0)")
    parser.add_argument("--machine", default="best", choices=("best", "arm64", "x86_64", "native"))
    parser.add_argument("--report", action="store_true", help="run nothing, print tables")
    parser.add_argument("--ops", action="store_true", help="print pass rates per operation and layer")
    parser.add_argument("--accept", action="store_true", help="add the tests that pass to passing/")
    parser.add_argument("--shrink", action="store_true", help="with --accept: remove those that ran and do not pass, and those gone")
    parser.add_argument("--compare", help="older results (.jsonl): list what passed there and does not here")
    parser.add_argument("--write-required", action="store_true", help="with --engine null: write the lists of engine_required/")
    parser.add_argument("--passing", type=pathlib.Path, default=results.PASSING, help="folder of the lists of passing tests")
    parser.add_argument("pytest_args", nargs="*", help="after --: passed to pytest")
    args = parser.parse_args()
    if args.write_required and args.engine != "null":
        parser.error("--write-required is for --engine null")
    if args.shrink and not args.accept:
        parser.error("--shrink belongs to --accept")
    if args.ci and (args.full or args.report or args.accept):
        parser.error("--ci goes with neither --full nor --report nor --accept")
    return parser, args


def main():
    suites = tomllib.loads((HERE / "suites.toml").read_text())
    parser, args = arguments(suites)
    out = pathlib.Path(args.out).resolve()
    names = chosen(args, suites, out)
    unknown = [n for n in names if n not in suites]
    if unknown or not names:
        parser.error(f"unknown suite: {' '.join(unknown)}" if unknown else "no suite")
    if args.device and not args.report:
        check_device(args.device)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the running suite is stopped too
    out.mkdir(parents=True, exist_ok=True)

    status = 0
    if not args.report:
        for name in names:
            same_engine(name, args, out)
            status |= run_suite(name, suites[name], args, out)
    records = {name: results.load(out / f"{name}.jsonl") for name in names}
    print(report.suites_text(records, args.engine, {n: len(results.read_collected(out, n)) for n in names}))
    if args.ops or len(names) == 1:
        print(report.operations_text(records, args.engine))
    if args.write_required:
        write_required(records)
    elif args.engine != "null":
        status |= check_passing(records, args)
        if args.ci:
            status |= check_ci(records, suites)
        if args.accept:
            status &= ~1
            for name in names:
                accept(name, records[name], results.read_collected(out, name), args)
    if args.compare:
        status |= compare(args.compare, records)
    return status


def check_device(name):
    """Ends the run if the device does not exist, because everything would run on the CPU."""
    from moka import _moka

    configuration = _moka.ModelConfiguration()
    configuration.device = name
    try:
        plan = _moka.Model.from_mil(PROBE, {}, configuration).compute_plan()
    except _moka.NotFoundError as e:
        sys.exit(str(e))
    if all(operation.device != name for operation in plan.operations):
        sys.exit("\n".join([f"device {name!r} runs nothing here"] + [remark.text for remark in plan.remarks]))


def chosen(args, suites, out):
    names = [n for part in args.suite for n in part.split(",")]
    if not names and args.report:
        return [n for n in suites if (out / f"{n}.jsonl").exists()]
    if args.ci and not names:
        return [n for n in suites if suites[n].get("ci")]
    if not names or "all" in names:
        return [n for n in suites if args.full or suites[n].get("engine", True)]
    return names


def same_engine(name, args, out):
    """Results of an older build do not count. Reports and records the ones that --retry keeps."""
    path = out / "engine.json"
    builds = json.loads(path.read_text()) if path.exists() else {}
    now = f"{args.engine} {results.engine_identity(args.engine)}" + (f" on {args.device}" if args.device else "")
    before = builds.get(name, now) if (out / f"{name}.jsonl").exists() else now
    if before != now and not (args.fresh or args.retry or args.ci):
        sys.exit(f"{out} has results of {name} with another build of the engine; --fresh forgets them, --retry keeps what passed")
    if args.retry and before != now:
        print(f"{name}: what passed with another build of the engine is kept")
        now = before if now in before.split(AND) else before + AND + now
    path.write_text(json.dumps(dict(builds, **{name: now}), indent=1) + "\n")


def run_suite(name, suite, args, out):
    found = out / f"{name}.jsonl"
    if args.fresh or args.ci:
        found.unlink(missing_ok=True)
    if args.retry and found.exists():
        keep = [r for r in results.load(found).values()
                if r["outcome"] == "passed" or args.match and not re.search(args.match, r["id"])]
        found.write_text("".join(json.dumps(r) + "\n" for r in keep))
    spec = importlib.util.find_spec("coremltools")
    if spec is None or not spec.origin:
        sys.exit("coremltools is not installed in this Python (tests/coremltools/setup makes an environment)")
    root = pathlib.Path(spec.origin).parent.parent
    command = [sys.executable, "-m", "pytest", "-c", str(HARNESS / "pytest.ini"), f"--rootdir={root}",
               "-p", "plugin", "-p", "no:cacheprovider", "-s", "-q", "--continue-on-collection-errors",
               "--tb=native",  # other styles parse the whole file of each test that skips or fails
               f"--engine={args.engine}", f"--macos={args.macos or suite.get('macos', '26.0')}", f"--machine={args.machine}",
               f"--conf-out={found}", f"--conf-collected={out / (name + '.collected.txt')}",
               f"--conf-jobs={args.jobs}", f"--conf-timeout={args.timeout}", f"--conf-budget={args.budget}"]
    if args.shard:
        command.append(f"--conf-shard={args.shard}")
    if suite.get("sample") and not args.full and not args.ci:
        command.append(f"--conf-sample={suite['sample']}")
    if suite.get("only"):
        command.append(f"--conf-only={suite['only']}")
    if suite.get("chunk"):
        command.append(f"--conf-chunk={suite['chunk']}")
    if args.match:
        command.append(f"--conf-match={args.match}")
    if args.ci:
        command.append(f"--conf-pick={suite.get('ci', 0)}")
    wanted = wanted_ids(name, suite, args, found)
    if wanted is not None:
        listing = out / f"{name}.wanted.txt"
        listing.write_text("".join(i + "\n" for i in sorted(wanted)))
        command.append(f"--conf-ids={listing}")
    command += [f"--ignore=coremltools/{path}" for path in suite.get("ignore", ())]
    command += args.pytest_args + [f"coremltools/{path}" for path in suite["paths"]]

    log = out / f"{name}.log"
    start = time.time()
    print(f"{name}: ", end="", flush=True)
    with open(log, "w") as f:
        code = subprocess.run(command, cwd=root, env=environment(suite.get("env", {}), args.device), stdout=f, stderr=subprocess.STDOUT).returncode
    print(f"{time.time() - start:.0f} s, log in {log}", flush=True)
    if code not in (0, 1, 5):
        print(f"{name}: pytest ended with status {code}:\n" + "".join(open(log).readlines()[-15:]))
        return 2
    return 0


def wanted_ids(name, suite, args, found):
    """One-line ids to choose from, or None for all."""
    wanted = None
    if args.required_only:
        wanted = {i for i, needs in results.yardstick(name).items() if needs}
    if args.ci:
        wanted = results.read_ids(args.passing / f"{name}.txt.gz")
        if without := suite.get("ci_without"):
            wanted = {i for i in wanted if not re.search(without, i)}
    if args.op:
        earlier = results.load(args.ops_from or found)
        ids = {one_line(i) for i, r in earlier.items() if args.op in r.get("ops", ())}
        wanted = ids if wanted is None else wanted & ids
    return wanted


def environment(extra, device):
    env = dict(os.environ, **extra, **({"MOKA_DEVICE": device} if device else {}), PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore", PYTHONSAFEPATH="1")
    env["PYTHONPATH"] = os.pathsep.join([str(HARNESS)] + [p for p in [os.environ.get("PYTHONPATH")] if p])
    for key in ONE_THREAD:
        env.setdefault(key, "1")
    env.setdefault("HF_HUB_OFFLINE", "1")
    return env


def check_passing(records, args):
    """1 if a test in passing/ ran and did not pass."""
    total = 0
    for name, found in records.items():
        lost = results.lost(results.read_ids(args.passing / f"{name}.txt.gz"), found)
        total += len(lost)
        for i, r in lost.items():
            print(f"{name}: no longer passes: {i}\n    {r['outcome']}: {report.reason(r)}")
    if total:
        print(f"{total} tests that passed before do not pass")
    return 1 if total else 0


def check_ci(records, suites):
    """1 unless every suite ran as many tests as suites.toml states."""
    status = 0
    for name, found in records.items():
        ran, expected = len(results.tests_of(found)), suites[name].get("ci", 0)
        if ran != expected:
            print(f"{name}: {ran} tests ran, suites.toml says {expected}: fewer of passing/ can be collected here")
            status = 1
    return status


def accept(name, records, collected, args):
    path = args.passing / f"{name}.txt.gz"
    old = results.read_ids(path)
    new = results.accept(old, results.passed(name, records), records, collected, args.shrink)
    if new != old:
        results.write_ids(path, new)
    print(f"{name}: {len(new)} tests in {path.name}, {len(new - old)} more, {len(old - new)} less")


def write_required(suites):
    unfit, vacuous = [], []
    for name, records in suites.items():
        tests = results.tests_of(records)
        need = results.required(name, records, "null")
        results.write_ids(results.ENGINE_REQUIRED / f"{name}.txt.gz", map(one_line, need))
        results.write_ids(results.ENGINE_REQUIRED / f"{name}.other.txt.gz", map(one_line, set(tests) - need))
        print(f"{name}: {len(need)} of {len(tests)} tests need an engine")
        for i, r in records.items():
            text = re.sub(r"/\S*/(site-packages|lib)/", "", " ".join(f"{r.get('error', '')} {r.get('message', '')}".split()))
            if r["outcome"] == "collect_failed":
                unfit.append((name, one_line(i), "cannot be imported: " + text[-160:]))
            elif r["outcome"] in BAD and i not in need:
                unfit.append((name, one_line(i), "fails before the engine: " + text[:160]))
            elif r["outcome"] == "passed" and i in need:
                vacuous.append((name, one_line(i)))
    write_tsv(HERE / "not_applicable.tsv", ("suite", "test", "reason"), unfit, suites)
    write_tsv(results.ENGINE_REQUIRED / "vacuous.tsv", ("suite", "test"), vacuous, suites)


def write_tsv(path, head, rows, suites):
    """Replaces the rows of these suites, keeps the others."""
    if path.exists():
        old = [tuple(line.split("\t")) for line in path.read_text().splitlines()[1:]]
        rows = [r for r in old if r[0] not in suites] + list(rows)
    path.write_text("".join("\t".join(r) + "\n" for r in [head] + sorted(rows)))


def compare(old_path, records):
    old, new = results.load(old_path), dict(collections.ChainMap(*records.values()))
    lost = sorted(i for i, r in old.items() if r["outcome"] == "passed" and i in new and new[i]["outcome"] in BAD)
    won = sorted(i for i, r in new.items() if r["outcome"] == "passed" and i in old and old[i]["outcome"] in BAD)
    missing = [i for i in old if i not in new]
    print(f"\ncompared with {old_path}: {len(lost)} fail now, {len(won)} pass now, {len(missing)} did not run")
    for i in lost:
        print(f"  {i}\n    {new[i]['outcome']}: {report.reason(new[i])}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
