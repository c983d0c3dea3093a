#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From results to tables and to docs/conformance.md. Only tests that need an engine count.

report.py tables OUT [OUT ...]     markdown tables of the results in these folders, to the standard output
report.py summary OUT [OUT ...]    writes results.json: numbers per suite and operation, and groups of failing tests
report.py docs                     writes docs/conformance.md from results.json
"""

import argparse
import collections
import importlib.metadata
import json
import pathlib
import re
import sys
import tomllib

import results
from results import BAD, HERE

SUMMARY = HERE / "results.json"
WHY = HERE / "why.toml"
DOCS = HERE.parent.parent / "docs" / "conformance.md"
KINDS = (("mil:", "ML program operations"), ("nn:", "Neural network layers"), ("model:", "Other models"))
FLOAT16 = {"neither": "off by float16's own rounding, whatever is rounded",
           "rounded": "off by float16's own rounding, unless every value is rounded to its type"}
EXAMPLES = 2
NAMES_SHOWN = 4  # of the classes and operations of a group


def first_line(text):
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def reason(record):
    """The reason of a failure in one line: its exception and the first line of the message."""
    text = first_line(record.get("message", ""))
    kind = record.get("error", "")
    if record["outcome"] == "crashed":
        return f"the process ended: {text}"
    if record["outcome"] == "timeout":
        return f"timeout: {text}"
    return ": ".join(part for part in (kind, text) if part) or record["outcome"]


def group_of(text):
    """Maps failures that differ only in names and numbers to the same text."""
    text = re.sub(r"(?<![\w.])(/[\w.+-]+){2,}", "PATH", text)
    text = re.sub(r"0x[0-9a-fA-F]+", "#", text)
    text = re.sub(r"(?<![A-Za-z0-9.])\d+(\.\d+)*(e[+-]?\d+)?(?![A-Za-z0-9])", "#", text)
    text = re.sub(r"#( x #)+", "# x ..", text)
    return re.sub(r"#(, ?#)+", "#, ..", text)[:200]


def suite_row(suite, records, engine="moka", collected=0):
    tests = results.tests_of(records)
    asked = results.required(suite, records, engine)
    counted = collections.Counter(tests[i]["outcome"] for i in asked)
    others = collections.Counter(r["outcome"] for i, r in tests.items() if i not in asked)
    return {
        "collected": max(collected, len(tests)),
        "run": len(tests),
        "required": len(asked),
        "passed": counted["passed"],
        "failed": counted["failed"] + counted["error"],
        "float16": sum(tests[i].get("float16") in FLOAT16 for i in asked if tests[i]["outcome"] in BAD),
        "crashed": counted["crashed"],
        "timeout": counted["timeout"],
        "skipped": sum(counted[o] for o in ("skipped", "xfailed", "xpassed")),
        "other skipped": others["skipped"] + others["xfailed"] + others["xpassed"],
        "no engine": others["passed"],
        "cannot run": sum(others[o] for o in BAD),
        "not collected": sum(r["outcome"] == "collect_failed" for r in records.values()),
    }


def operation_rows(suites, engine="moka"):
    """Operation -> [tests that pass, tests whose model contains it]."""
    rows = collections.defaultdict(lambda: [0, 0])
    for name, records in suites.items():
        for i in results.required(name, records, engine):
            for op in records[i].get("ops", ()):
                rows[op][0] += records[i]["outcome"] == "passed"
                rows[op][1] += 1
    return {op: rows[op] for op in sorted(rows)}


def test_class(nodeid):
    """The class of a test, or its function where it has none."""
    return nodeid.split("::", 1)[-1].split("::")[0].split("[")[0]


def failing_groups(suites, engine="moka"):
    """The failing tests by reason, the largest groups first. Wrong results are grouped by the class of the test."""
    groups = {}
    for name, records in suites.items():
        for i in sorted(results.required(name, records, engine)):
            record = records[i]
            if record["outcome"] == "passed":
                continue
            half = FLOAT16.get(record.get("float16"))
            text = half or reason(record)
            key = group_of(text), test_class(i) if not half and record.get("error") == "AssertionError" else ""
            group = groups.setdefault(key, {"message": text, "tests": 0, "suites": collections.Counter(),
                                            "classes": collections.Counter(), "ops": collections.Counter(), "examples": []})
            group["tests"] += 1
            group["suites"][name] += 1
            group["classes"][test_class(i)] += 1
            group["ops"].update(record.get("ops", ()))
            if len(group["examples"]) < EXAMPLES:
                group["examples"].append(results.one_line(i))
    rows = []
    for (text, _), group in sorted(groups.items(), key=lambda g: (-g[1]["tests"], g[0])):
        common = [op for op, n in by_number(group["ops"]) if 2 * n >= group["tests"]]
        rows.append({"reason": group["message"][:200] if group["tests"] == 1 else text, "tests": group["tests"],
                     "suites": dict(sorted(group["suites"].items())), "classes": [c for c, _ in by_number(group["classes"])][:NAMES_SHOWN],
                     "operations": common[:NAMES_SHOWN], "examples": group["examples"]})
    return rows


def by_number(counter):
    return sorted(counter.items(), key=lambda c: (-c[1], c[0]))


def summary(suites, collected):
    def version(package):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return ""

    return {
        "coremltools": version("coremltools"),
        "moka": version("moka-coreml"),
        "suites": {name: suite_row(name, records, collected=collected.get(name, 0)) for name, records in suites.items()},
        "operations": operation_rows(suites),
        "failing": failing_groups(suites),
    }


def table(head, rows, left=1):
    """A markdown table, padded except for long cells. The first `left` columns are left-aligned, the others right-aligned."""
    cells = [[str(c).replace("|", "\\|") for c in row] for row in [head, *rows]]
    width = [max(3, *(len(row[i]) for row in cells if len(row[i]) <= 40)) for i in range(len(head))]
    padded = [[c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))] for row in cells]
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    lines.insert(1, "|" + "|".join("-" * (w + 2) if i < left else "-" * (w + 1) + ":" for i, w in enumerate(width)) + "|")
    return "\n".join(lines) + "\n"


def percent(passed, every):
    """A percentage that never rounds up to 100."""
    return f"{int(1000 * passed / every) / 10:.1f} %" if every else "-"


def suites_table(rows):
    head = ("suite", "collected", "run", "need an engine", "passed", "failed", "float16", "crashed", "timeout", "skipped", "rate")
    shown = dict(rows)
    if len(rows) > 1:
        shown["total"] = {k: sum(r[k] for r in rows.values()) for k in next(iter(rows.values()))}
    return table(head, [[name, r["collected"], r["run"], r["required"], *(r[k] for k in head[4:-1]), percent(r["passed"], r["required"])]
                        for name, r in shown.items()])


def operations_tables(rows, level):
    text = ""
    for prefix, title in KINDS:
        of_kind = {op[len(prefix):]: n for op, n in rows.items() if op.startswith(prefix)}
        if not of_kind:
            continue
        whole = [f"`{op}` {n[1]}" for op, n in of_kind.items() if n[0] == n[1]]
        partly = sorted((n[0] / n[1], op, *n) for op, n in of_kind.items() if n[0] != n[1])
        text += f"{'#' * level} {title}\n\n"
        if whole:
            text += wrapped(f"All tests pass ({len(whole)} of {len(of_kind)}): " + ", ".join(whole) + ".") + "\n"
        if partly:
            text += table(("name", "passed", "tests", "rate"), [[f"`{op}`", good, n, percent(good, n)] for _, op, good, n in partly]) + "\n"
    return text


def wrapped(text, width=120):
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join(lines + [line]) + "\n"


def explanations():
    return [(re.compile(e["match"]), e["why"]) for e in tomllib.loads(WHY.read_text()).get("reason", [])]


def failing_table(groups, known):
    rows = []
    for g in groups:
        where = ", ".join(g["suites"]) + ": " + ", ".join(g["classes"])
        why = next((text for pattern, text in known if pattern.search(f"{g['reason']} {where}")), "")
        rows.append([g["tests"], "`" + g["reason"].replace("`", "'") + "`", where, ", ".join(op.split(":", 1)[1] for op in g["operations"]), why])
    return table(("tests", "what the test says", "where", "in common", "why"), rows, left=5)


def suites_text(suites, engine, collected):
    """The summary that a run prints at its end."""
    rows = {name: suite_row(name, records, engine, collected.get(name, 0)) for name, records in suites.items()}
    text = "\n" + suites_table(rows)
    for name, records in suites.items():
        if rows[name]["cannot run"]:
            text += f"{name}: {rows[name]['cannot run']} tests fail before they ask the engine anything\n"
        for r in records.values():
            if r["outcome"] == "collect_failed":
                text += f"{name}: cannot be collected: {r['id']}: {(r['message'].strip().splitlines() or [''])[-1][:150]}\n"
    groups = failing_groups(suites, engine) if engine != "null" else []
    if groups:
        text += "\nfailing, by reason:\n"
        text += "".join(f"{g['tests']:7} {g['reason']}  [{', '.join(g['classes'] + g['operations'])}]\n" for g in groups)
    return text


def operations_text(suites, engine):
    return "\n" + operations_tables(operation_rows(suites, engine), 2)


def docs(data):
    total = {k: sum(r[k] for r in data["suites"].values()) for k in ("run", "required", "passed", "float16", "no engine", "other skipped", "cannot run")}
    rate = percent(total["passed"], total["required"])
    others = total["required"] - total["passed"]
    proved = f"each of the other {others} is" if total["float16"] == others else f"{total['float16']} of the other {others} are"
    text = "# Conformance\n\n"
    text += wrapped(
        f"The tests inside coremltools {data['coremltools']} convert models, call `predict` and compare with torch, numpy, scikit-learn and "
        "xgboost. They run unmodified against Moka's Python module `moka.coremltools`, which takes the place of Apple's engine "
        "([tests/coremltools](../tests/coremltools/README.md) says how). This page is written by `tests/coremltools/report.py docs` "
        "from results.json there: in the table, `collected` are all tests of a suite, `run` those that these results are from.") + "\n"
    text += wrapped(
        f"**{total['passed']} of {total['required']} tests that need an engine pass, {rate}**"
        + (f"; {proved} shown to fail only because of float16 rounding" if total["float16"] else "")
        + (f", with moka {data['moka']}" if data["moka"] else "") + f". Of the {total['run']} tests that ran, {total['no engine']} pass "
        f"without asking the engine anything, {total['other skipped']} are skipped or expected to fail on a Mac as well or lack a library, "
        f"and {total['cannot run']} fail before the engine is asked; none of these count.") + "\n"
    text += "## Suites\n\n" + suites_table(data["suites"]) + "\n"
    text += wrapped(
        "By default coremltools compares ML programs in half precision, with tolerances of 0.5 absolute and 5 % relative; `mil_ops_fp32` and "
        "`torch_ops_fp32` are the same tests in single precision, with 1e-4 and 1e-5. `float16` are failed tests that compare more finely than float16 can be: "
        "they calculate in float16, or with numbers that the model has rounded to float16, or its outputs are declared float16. For each of them "
        "that is proved: the reference device, one plain loop per operation with sums in double, gives the same answer within the test's own "
        "tolerance, so it is what the numbers in the model make, and fails the test too. `skipped` are tests that count and did not run.") + "\n"
    text += "## What fails, and why\n\n"
    if data["failing"]:
        text += wrapped(
            "One row for each reason: the first line of the message, numbers replaced by `#`; wrong results have a row for each class of "
            f"tests. `where` are suites and the {NAMES_SHOWN} classes with most of these tests, `in common` operations, layers and kinds of "
            "models that at least half of them contain.") + "\n"
        text += failing_table(data["failing"], explanations()) + "\n"
    else:
        text += "Nothing.\n\n"
    text += "## Operations and layers\n\n" + wrapped("The numbers are tests whose models contain the operation.") + "\n"
    text += operations_tables(data["operations"], 3)
    return text.rstrip("\n") + "\n"


def read_folders(folders):
    names = tomllib.loads((HERE / "suites.toml").read_text())
    suites = {n: results.load_suite(n, folders) for n in names}
    suites = {n: r for n, r in suites.items() if r}
    return suites, {n: len(set().union(*(results.read_collected(f, n) for f in folders))) for n in suites}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("tables", "summary", "docs"))
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    if args.what == "docs":
        if not SUMMARY.exists():
            parser.error(f"no {SUMMARY.name}; `report.py summary` writes it from a folder of results")
        DOCS.write_text(docs(json.loads(SUMMARY.read_text())))
        print(f"wrote {DOCS}")
        return 0
    suites, collected = read_folders(args.folders)
    if not suites:
        parser.error("no results in " + (" ".join(map(str, args.folders)) or "no folder"))
    data = summary(suites, collected)
    if args.what == "summary":
        SUMMARY.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {SUMMARY}")
    else:
        print(suites_table(data["suites"]), failing_table(data["failing"], explanations()), operations_tables(data["operations"], 2), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
