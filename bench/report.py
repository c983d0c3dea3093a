#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates docs/performance.md, its plot, and the tables in docs/performance/ from results.

report.py [RESULTS.json] [--out docs/performance.md]     the plot, as .svg, and the folder of tables go beside the page
report.py [RESULTS.json] --print                         the tables, to the standard output
"""

import argparse
import pathlib
import sys
import tomllib

import plot
from harness import samples, stats
from harness.samples import MOKA
from nets import FAMILIES, zoo

DEFAULT = "build/bench/results.json"
# Written by other commands.
OTHER_PAGES = {"processor.md": "On another processor", "zoo.md": "Nets of libraries", "avx2.md": "Limited to AVX2", "compile.md": "Compiling and loading", "loads.md": "The first answer, cold and warm", "tables.md": "Tables of rows",
               "vulkan.md": "What nets submit to a GPU", "gpu.md": "Times on a GPU"}
REASONS = pathlib.Path(__file__).resolve().parent / "reasons.toml"
BYTES = {"fp32": 4, "fp16": 2, "nn": 4, "int8": 1, "int4": 0.5 + 2 / 32}  # bytes per weight


def milliseconds(seconds):
    """A number with three digits."""
    ms = seconds * 1000
    return f"{ms:.0f}" if ms >= 99.95 else f"{ms:.1f}" if ms >= 9.995 else f"{ms:.2f}" if ms >= 0.9995 else f"{ms:.3f}"


def megabytes(count):
    return f"{count / 1e6:.0f}"


def exact(error):
    return f"{error:.0e}" if error > 0 else "0"


def table(head, rows, left=1):
    """A markdown table, padded; the first `left` columns to the left, the others to the right."""
    cells = [[str(c).replace("|", "\\|") for c in row] for row in [head, *rows]]
    width = [max(3, *(len(row[i]) for row in cells)) for i in range(len(head))]
    padded = [[c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))] for row in cells]
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    lines.insert(1, "|" + "|".join("-" * (w + 2) if i < left else "-" * (w + 1) + ":" for i, w in enumerate(width)) + "|")
    return "\n".join(lines) + "\n"


def ordered_nets(data):
    def place(name):
        family = data["nets"][name]["family"]
        return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)

    return sorted(data["nets"], key=lambda name: (place(name), name))


def peers(data):
    return [name for name in data["engines"] if name != MOKA]


def title(data, name):
    return data["engines"].get(name, {}).get("title", name)


def sample_line(sample):
    """A sample in a line of a run's progress."""
    if sample["status"] == "failed":
        return sample.get("reason", "failed")
    error = f"error {exact(sample['error'])}" + ("" if samples.is_right(sample) else ", WRONG")
    if sample["status"] == "checked":
        return error
    s = sample["steady"]
    return (f"{milliseconds(s['p50']):>8} ms, p90 {milliseconds(s['p90'])}, first answer "
            f"{milliseconds(samples.first_answer(sample))}, {megabytes(sample['peak'])} MB, {error}")


def cell(sample, value, precision):
    """One engine's number. Wrong outputs are shown with their error, and another precision is named."""
    if sample is None:
        return ""
    if sample["status"] != "measured":
        return "-"
    text = value(sample)
    if sample["precision"] != precision and precision != "nn":
        text += f" {sample['precision']}"
    if not samples.is_right(sample, precision):
        text += f" (off by {exact(sample['error'])})"
    return text


class Row:
    """A net with a number of threads and a precision: the samples of Moka and of its peers, and the verdict."""

    def __init__(self, data, net, threads, precision):
        every = self.every = data["samples"]
        self.of = net, threads, precision
        self.facts = data["nets"][net]
        self.title, self.precision = self.facts["title"], precision
        self.moka = samples.find(every, net, MOKA, threads, precision)
        self.peers = {}
        for engine in peers(data):
            found = [samples.find(every, net, engine, threads, p) for p in samples.STANDS_FOR[precision]]
            found = [s for s in found if s]
            measured = [s for s in found if s["status"] == "measured" and samples.is_right(s, precision)]
            self.peers[engine] = min(measured, key=samples.p50) if measured else found[0] if found else None
        self.best = samples.best_peer(every, net, threads, precision)
        self.goal = self.facts["goals"].get(precision)
        base = self.facts.get("relative_to")
        self.base_title = data["nets"].get(base, {}).get("title", base)
        self.base = samples.find(every, base, MOKA, threads, precision) if base else None

    def counts(self):
        return self.moka is not None and self.moka["status"] == "measured" and samples.is_right(self.moka)

    def ratio(self):
        """Moka's time divided by the best peer's; None if one of them is missing or Moka is wrong."""
        return samples.p50(self.moka) / samples.p50(self.best) if self.counts() and self.best else None

    def goal_ratio(self):
        """Moka's time divided by the goal's reference: the best peer, or another net on Moka."""
        if not self.facts.get("relative_to"):
            return self.ratio()
        measured = self.base is not None and self.base["status"] == "measured"
        return samples.p50(self.moka) / samples.p50(self.base) if self.counts() and measured else None

    def least(self, measure):
        """The best peer with correct outputs, and Moka's measure divided by its measure; (None, None) if one is missing."""
        peer = samples.best_peer(self.every, *self.of, measure)
        return (peer, measure(self.moka) / measure(peer)) if self.counts() and peer else (None, None)

    def goal_text(self):
        if self.goal is None:
            return ""
        return f"{self.goal:.2f}" + (f" of {self.base_title}" if self.facts.get("relative_to") else "")

    def verdict(self):
        if self.moka is None:
            return ""
        if self.moka["status"] != "measured":
            return "does not run"
        if not samples.is_right(self.moka):
            return "wrong"
        ratio = self.ratio()
        if ratio is None:
            return "no peer"
        if ratio >= 1:
            return "behind"
        reached = self.goal_ratio()
        return "ahead, goal met" if self.goal is not None and reached is not None and reached <= self.goal else "ahead"


def rows(data, threads, precision):
    found = [Row(data, net, threads, precision) for net in ordered_nets(data)]
    return [row for row in found if row.moka or any(s and s["precision"] == precision for s in row.peers.values())]


def ratio_text(ratio):
    return f"{ratio:.2f}" if ratio is not None else "-"


def steady_table(data, threads, precision):
    lines = []
    for row in rows(data, threads, precision):
        cells = [row.title, cell(row.moka, lambda s: milliseconds(samples.p50(s)), precision)]
        cells += [cell(row.peers[e], lambda s: milliseconds(samples.p50(s)), precision) for e in peers(data)]
        cells += [title(data, row.best["engine"]) if row.best else "-", ratio_text(row.ratio()), row.goal_text(), row.verdict()]
        lines.append(cells)
    head = ["net", "Moka", *(title(data, e) for e in peers(data)), "best peer", "Moka / best", "goal", ""]
    return table(head, lines)


def goals_line(data, threads, precision):
    every = rows(data, threads, precision)
    ratios = [r for r in (row.ratio() for row in every) if r is not None]
    if not ratios:
        return "Nothing to compare.\n"
    compared = [row for row in every if row.ratio() is not None and not row.facts.get("relative_to")]
    goals = [row.goal for row in compared] if all(row.goal is not None for row in compared) else []
    behind = [row.title for row in every if row.verdict() in ("behind", "wrong", "does not run")]
    text = f"Geometric mean of Moka over the best peer with right outputs: **{stats.geometric_mean(ratios):.3f}** over {len(ratios)} nets"
    text += f" (the goals' is {stats.geometric_mean(goals):.3f})." if goals else "."
    text += f" Behind, wrong or missing: {'; '.join(behind)}." if behind else " Ahead on each."
    return text + "\n"


def speedup(data, sample):
    """Over one thread; a dash where that was not measured."""
    one = samples.find(data["samples"], sample["net"], sample["engine"], 1, sample["precision"])
    return f"{samples.p50(one) / samples.p50(sample):.2f}" if one and one["status"] == "measured" else "-"


def why_behind(data, row, entries):
    """The text of the first matching entry, with its numbers filled in."""
    sample = row.moka
    for entry in entries:
        if any(entry.get(key, sample[key]) != sample[key] for key in ("net", "threads", "precision")):
            continue
        count = entry.get("reads", 1) * entry.get("parameters", row.facts.get("parameters", 0)) * BYTES[row.precision]
        return entry["text"].format(megabytes=megabytes(count), rate=f"{count / samples.p50(sample) / 1e9:.0f}",
                                    speedup=speedup(data, sample), peer_speedup=speedup(data, row.best))
    return "not known"


def behind_lines(data, threads, precision, entries):
    return [[row.title, title(data, row.best["engine"]), ratio_text(row.ratio()), why_behind(data, row, entries)]
            for row in rows(data, threads, precision) if row.verdict() == "behind"]


def behind_table(data, threads, precision, entries=None):
    """The rows where a peer is faster, with the reason; empty if there are none."""
    if entries is None:
        entries = tomllib.loads(REASONS.read_text())["reason"]
    lines = behind_lines(data, threads, precision, entries)
    return table(["behind", "best peer", "Moka / best", "why"], lines, left=4) if lines else ""


def first_prediction(sample):
    return sorted(sample["first"])[len(sample["first"]) // 2]


def peak(sample):
    return sample["peak"]


HALF = 0.5  # relative to the best peer's first answer


def start_table(data, threads, precision):
    """Load and first prediction, and peak memory, each against the peer that needs least."""
    lines, reached, out_of_reach, large, count = [], 0, [], [], 0
    for row in rows(data, threads, precision):
        quick, ratio = row.least(samples.first_answer)
        small, size_ratio = row.least(peak)
        if quick is None:
            continue
        count += 1
        alone = first_prediction(row.moka) / samples.first_answer(quick)
        reached += ratio <= HALF
        out_of_reach += [row.title] if alone > HALF else []
        large += [row.title] if size_ratio >= 1 else []
        lines.append([row.title, milliseconds(samples.first_answer(row.moka)), milliseconds(samples.first_answer(quick)),
                      title(data, quick["engine"]), ratio_text(ratio), ratio_text(alone), megabytes(peak(row.moka)), megabytes(peak(small)),
                      title(data, small["engine"]), ratio_text(size_ratio)])
    if not lines:
        return ""
    text = table(["net", "Moka", "best", "peer", "Moka / best", "prediction / best", "Moka MB", "least MB", "peer", "Moka / least"], lines)
    text += f"\nAt most half of the best peer's on {reached} of {count} nets."
    if out_of_reach:
        text += f" The first prediction alone takes more than that on {'; '.join(out_of_reach)}."
    text += f" A peer needs less memory on {'; '.join(large)}." if large else " No peer needs less memory."
    return text + "\n"


def details_table(data, threads, precision):
    lines = []
    for row in rows(data, threads, precision):
        for engine, sample in {MOKA: row.moka, **row.peers}.items():
            if not sample or sample["status"] != "measured":
                continue
            s = sample["steady"]
            name = title(data, engine) + (f" {sample['precision']}" if sample["precision"] != precision else "")
            lines.append([row.title, name, *(milliseconds(s[q]) for q in ("p50", "p90", "p99")), s["n"],
                          milliseconds(sorted(sample["load"])[len(sample["load"]) // 2]),
                          milliseconds(first_prediction(sample)), milliseconds(samples.first_answer(sample)),
                          "" if samples.cached_answer(sample) is None else milliseconds(samples.cached_answer(sample)),
                          megabytes(sample["peak"]), megabytes(sample["size"]), exact(sample["error"])])
    return table(["net", "engine", "p50", "p90", "p99", "n", "load", "first", "load + first", "cached", "peak MB", "file MB", "error"], lines, left=2)


def reasons(data):
    """The gaps of the tables, with reasons."""
    lines = [[facts["title"], "", "", facts["reason"]] for facts in data["nets"].values() if facts.get("reason")]
    lines += [["all", title(data, name), "", facts["reason"]] for name, facts in data["engines"].items() if facts["reason"]]
    grouped = {}
    for s in data["samples"]:
        if s["status"] == "failed":
            grouped.setdefault((s["net"], s["engine"], s.get("reason", "")), []).append(s["precision"])
        elif not samples.is_right(s):
            why = f"outputs are off by {exact(s['error'])} of their scale, allowed are {samples.allowed(s):.2g}"
            grouped.setdefault((s["net"], s["engine"], why), []).append(s["precision"])
    for (net, engine, why), precisions in grouped.items():
        lines.append([data["nets"][net]["title"], title(data, engine), ", ".join(dict.fromkeys(precisions)), "`" + why.replace("`", "'") + "`"])
    return table(["net", "engine", "precision", "why"], lines, left=4) if lines else ""


def checks(data):
    """Largest errors, for a run that did not time."""
    lines = []
    for net in ordered_nets(data):
        found = [s for s in data["samples"] if s["net"] == net]
        for precision in dict.fromkeys(s["precision"] for s in found):
            of_engine = {}
            for s in found:
                if s["precision"] == precision:
                    of_engine.setdefault(s["engine"], []).append(s)

            def worst(engine, of_engine=of_engine):
                tried = of_engine.get(engine)
                if not tried:
                    return ""
                if any(s["status"] == "failed" for s in tried):
                    return "-"
                largest = max(tried, key=lambda s: s["error"])
                return exact(largest["error"]) + ("" if samples.is_right(largest) else " wrong")

            lines.append([data["nets"][net]["title"], precision, *(worst(e) for e in data["engines"])])
    text = table(["error", "precision", *(title(data, e) for e in data["engines"])], lines, left=2)
    why = reasons(data)
    return text + ("\n" + why if why else "")


def tables(data):
    """The tables that a run prints at its end."""
    text = ""
    for threads in data["settings"]["threads"]:
        for precision in data["settings"]["precision"]:
            if rows(data, threads, precision):
                text += f"\n{heading(threads, precision)}\n\n{results_text(data, threads, precision)}"
    why = reasons(data)
    return text + (f"\n{why}" if why else "")


def page(data):
    """A page of one run beside the pages from `pages`: nets of libraries, limited instructions, or another processor."""
    isa = data["settings"].get("isa")
    if isa:
        head = f"Limited to {isa.upper()}"
        made = tables(data)
        text = ("Each engine is limited by its own switch (`bench/harness/isa.py`). An engine without such a switch is left out, with the "
                "reason, and so is a net on which an engine spends more than a twentieth of its time in kernels that its switch does not limit.")
    elif set(data["nets"]) & set(zoo.names()):
        head = OTHER_PAGES["zoo.md"]
        made = tables(data)
        text = ("Nets of timm, torchvision and transformers with random weights, which are not part of the benchmark (`bench/nets/zoo.py`). "
                "The conditions are those of the other tables.")
    else:
        head = OTHER_PAGES["processor.md"]
        text = ("The nets of [the main page](../performance.md), which says how to read the tables, on a machine that is described at the "
                "end.")
        pairs, why = measured_pairs(data), reasons(data)
        made = "".join(f"\n{precision_text(data, pairs, p)}" for p in dict.fromkeys(precision for _, precision in pairs))
        made += f"\n## What is missing, and why\n\n{why}" if why else ""
    return f"# {head}\n\n{text}\n{made}\n## The machine and the run\n\n{machine_text(data)}"


def results_text(data, threads, precision):
    behind = behind_table(data, threads, precision)
    rounded = [f"{row.title} {exact(row.facts['floor'])}" for row in rows(data, threads, precision) if row.moka and "allowed" in row.moka]
    if rounded:
        behind = (f"Rounding the weights moves PyTorch's own answers this far, so an engine may be as far off: "
                  f"{'; '.join(rounded)}.\n{behind}")
    return f"{steady_table(data, threads, precision)}\n{goals_line(data, threads, precision)}" + (f"\n{behind}" if behind else "")


MODELS = {"fp32": "float32", "fp16": "float16 weights", "nn": "neural networks", "int8": "8-bit weights", "int4": "4-bit weights"}


def threads_text(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def heading(threads, precision):
    return f"{MODELS[precision]}, {threads_text(threads)}"


def machine_text(data):
    m = data["machine"]
    family = f" (family {m['cpu_family']}, model {m['cpu_model']})" if m.get("cpu_family") else ""
    lines = [["processor", m["cpu"] + family + (", virtual" if m["virtual"] else "")], ["instructions", ", ".join(m["isa"])],
             ["cores", m["cores"]], ["memory", f"{m['memory'] / 2**30:.0f} GiB"], ["kernel", f"{m['kernel']} {m['architecture']}"],
             ["Python", m["python"]], ["load before", f"{m['load_average']:.2f}"], ["date", data["date"]],
             ["command", f"`{data['command']}`"],
             *(["earlier results", f"{date}: `{command}`"] for date, command in data.get("earlier", {}).items())]
    for facts in data["engines"].values():
        found = ", ".join(f"{package} {version}" for package, version in facts["versions"].items() if version)
        lines.append([facts["title"], (found or facts["reason"]) + (f", build {facts['build']}" if facts.get("build") else "")])
    return table(["", ""], lines, left=2)


def page_name(precision):
    return MODELS[precision].replace(" ", "-") + ".md"


def capital(text):
    return text[0].upper() + text[1:]


def findings(data, pairs, folder):
    """One line for each precision and number of threads, then the rows where a peer is faster."""
    lines = []
    for threads, precision in pairs:
        every = rows(data, threads, precision)
        ratios = [r for r in (row.ratio() for row in every) if r is not None]
        quick = [r for _, r in (row.least(samples.first_answer) for row in every) if r is not None]
        small = [r for _, r in (row.least(peak) for row in every) if r is not None]
        lines.append([f"[{MODELS[precision]}]({folder}/{page_name(precision)})", threads, len(ratios),
                      f"{stats.geometric_mean(ratios):.3f}" if ratios else "-", sum(r < 1 for r in ratios),
                      sum(r <= HALF for r in quick), sum(r < 1 for r in small)])
    text = table(["models", "threads", "nets", "Moka / best peer", "faster on", "first answer in half the time on", "less memory on"], lines)
    entries = tomllib.loads(REASONS.read_text())["reason"]
    behind = [[heading(threads, precision), *line] for threads, precision in pairs for line in behind_lines(data, threads, precision, entries)]
    if behind:
        text += "\nA peer is faster here:\n\n" + table(["models", "net", "best peer", "Moka / best", "why"], behind, left=5)
    return text


def main_page(data, pairs, folder, picture, others=()):
    text = f"""# Performance

Moka beside other engines, on the same nets and the same machine. Times are medians in milliseconds with batch 1. Lower is better,
and a ratio below 1 means that Moka is faster. A peer whose outputs are further from PyTorch's float32 than allowed is shown with its
error, and it is never the best one. [The benchmark](../bench/README.md) says how this is measured. `make bench bench-docs` writes
these pages anew for another machine.

![Moka and its peers, relative to the best peer]({picture})

## Findings

The ratio is the geometric mean over the nets. Each of the last three columns counts the nets on which Moka is ahead of every peer
with right outputs. The first answer is loading and the first prediction.

{findings(data, pairs, folder)}
"""
    first = pairs[0][1] if pairs else "fp32"
    for threads, precision in pairs:
        if precision == first:
            text += f"## {capital(heading(threads, precision))}\n\n{steady_table(data, threads, precision)}\n{goals_line(data, threads, precision)}\n"
    links = dict.fromkeys(precision for _, precision in pairs)
    text += "## All tables\n\n" + "".join(f"- [{capital(MODELS[p])}]({folder}/{page_name(p)})\n" for p in links)
    if reasons(data):
        text += f"- [What is missing, and why]({folder}/missing.md)\n"
    text += "".join(f"- [{OTHER_PAGES[page]}]({folder}/{page})\n" for page in others)
    return text + f"\n## The machine and the run\n\n{machine_text(data)}"


def precision_page(data, pairs, precision):
    return (f"# {capital(MODELS[precision])}\n\nWritten by `make bench-docs`; [the main page](../performance.md) says how to read it.\n\n"
            f"{precision_text(data, pairs, precision)}")


def precision_text(data, pairs, precision):
    of_precision = [threads for threads, p in pairs if p == precision]
    text = ""
    for threads in of_precision:
        text += f"## Steady predictions, {threads_text(threads)}\n\n{results_text(data, threads, precision)}\n"
    text += ("## Load, first prediction and memory\n\n"
             "Load + first prediction in milliseconds and the peak of the whole process, each beside the peer with right outputs that needs\n"
             "least. `prediction / best` counts the first prediction alone.\n\n")
    for threads in of_precision:
        text += f"### First answer, {threads_text(threads)}\n\n{start_table(data, threads, precision)}\n"
    text += "## Quantiles, loading, memory\n\nTimes in milliseconds; `peak` is the whole process with Python and the inputs.\n\n"
    for threads in of_precision:
        text += f"### Every engine, {threads_text(threads)}\n\n{details_table(data, threads, precision)}\n"
    return text


def measured_pairs(data):
    """(threads, precision) of all results, one precision after the other."""
    return [(t, p) for p in data["settings"]["precision"] for t in data["settings"]["threads"] if rows(data, t, p)]


def pages(data, name="performance", others=()):
    """Path beside the main page -> its text. `name` is the main page's, without the ending; `others` are linked."""
    pairs = measured_pairs(data)
    made = {f"{name}.md": main_page(data, pairs, name, f"{name}.svg", others)}
    for precision in dict.fromkeys(p for _, p in pairs):
        made[f"{name}/{page_name(precision)}"] = precision_page(data, pairs, precision)
    if reasons(data):
        made[f"{name}/missing.md"] = f"# What is missing, and why\n\nWritten by `make bench-docs`.\n\n{reasons(data)}"
    return {path: text.rstrip("\n") + "\n" for path, text in made.items()}


def write(data, out):
    """Writes the pages and the plot, and removes pages of earlier runs that no longer exist."""
    folder = out.with_suffix("")
    made = pages(data, out.stem, [page for page in OTHER_PAGES if (folder / page).exists()])
    folder.mkdir(parents=True, exist_ok=True)
    for name in [*map(page_name, MODELS), "missing.md"]:
        (folder / name).unlink(missing_ok=True)
    for path, text in made.items():
        (out.parent / path).write_text(text)
    plot.write(data, out.with_suffix(".svg"))
    return [str(out.parent / path) for path in made]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", default=DEFAULT)
    parser.add_argument("--out", default="docs/performance.md")
    parser.add_argument("--print", action="store_true", dest="only_print")
    options = parser.parse_args()
    try:
        data = samples.read(options.results)
    except (OSError, ValueError) as error:
        sys.exit(f"report: {error}")
    if options.only_print:
        print(tables(data))
        return
    try:
        written = write(data, pathlib.Path(options.out))
    except ImportError as error:
        sys.exit(f"report: the plot needs matplotlib, which bench/setup installs: {error}")
    print("report: " + ", ".join(written))


if __name__ == "__main__":
    main()
