"""The plot of docs/performance.md: a bar for Moka, a dot for each peer, a tick for the goal, all relative to the best peer."""

from xml.sax.saxutils import escape

import report
from harness import samples

MOST = 2.5  # what is slower than so many times the best peer stands at the edge
LABELS, WIDTH, LINE, TOP = 280, 520, 24, 58
AHEAD, BEHIND, WRONG, INK, GRID = "#1a7f5a", "#c2572b", "#8a8f98", "#24292f", "#d5d9de"
DOTS = ("#3b6fb6", "#8e5bb5", "#c9971c", "#4aa3a8", "#b5567a", "#6b7a3a", "#7a5c43")


def text(x, y, content, size=12, anchor="start", fill=INK, weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" font-weight="{weight}">{escape(content)}</text>'


def across(ratio):
    return LABELS + WIDTH * min(ratio, MOST) / MOST


def panel(data, threads, precision, top):
    """The shapes of one panel and its height."""
    rows = [row for row in report.rows(data, threads, precision) if row.best]
    name = report.heading(threads, precision)
    shapes = [text(LABELS, top + 16, name[0].upper() + name[1:], 14, weight="bold")]
    bottom = top + 30 + LINE * len(rows)
    for step in range(int(MOST * 2) + 1):
        x = across(step / 2)
        shapes.append(f'<line x1="{x:.1f}" y1="{top + 26}" x2="{x:.1f}" y2="{bottom}" stroke="{INK if step == 2 else GRID}" stroke-width="1"/>')
        shapes.append(text(x, bottom + 14, f"{step / 2:g}", 10, "middle"))
    colours = dict(zip(report.peers(data), DOTS * 3))
    for n, row in enumerate(rows):
        middle = top + 30 + LINE * n + LINE / 2
        shapes.append(text(LABELS - 10, middle + 4, row.title, anchor="end"))
        best = samples.p50(row.best)
        if row.moka and row.moka["status"] == "measured":
            ratio = samples.p50(row.moka) / best
            colour = WRONG if not row.counts() else AHEAD if ratio < 1 else BEHIND
            shapes.append(f'<rect x="{LABELS}" y="{middle - 7:.1f}" width="{across(ratio) - LABELS:.1f}" height="14" rx="2" fill="{colour}"/>')
            shapes.append(text(LABELS + WIDTH + 12, middle + 4, f"{ratio:.2f}" + ("" if row.counts() else " wrong"), fill=colour, weight="bold"))
        else:
            shapes.append(text(LABELS + WIDTH + 12, middle + 4, "-", fill=BEHIND))
        for engine, sample in row.peers.items():
            if sample and sample["status"] == "measured":
                right = samples.is_right(sample, precision)
                fill = colours[engine] if right else "white"
                x = across(samples.p50(sample) / best)
                shapes.append(f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="4" fill="{fill}" stroke="{colours[engine] if not right else "white"}"/>')
        if row.goal is not None and not row.facts.get("relative_to"):
            x = across(row.goal)
            shapes.append(f'<line x1="{x:.1f}" y1="{middle - 10:.1f}" x2="{x:.1f}" y2="{middle + 10:.1f}" stroke="{INK}" stroke-width="2"/>')
    return shapes, bottom + 30 - top


def legend(data):
    shapes = [text(LABELS, 20, "Time relative to the best peer with right outputs (1); shorter is faster", 12)]
    x = LABELS
    entries = [("Moka", f'<rect x="{{x}}" y="33" width="14" height="10" rx="2" fill="{AHEAD}"/>')]
    entries += [(report.title(data, e), f'<circle cx="{{x}}" cy="38" r="4" fill="{c}"/>') for e, c in zip(report.peers(data), DOTS * 3)
                if not data["engines"][e]["reason"]]
    entries += [("wrong outputs", f'<circle cx="{{x}}" cy="38" r="4" fill="white" stroke="{WRONG}"/>'),
                ("goal", f'<line x1="{{x}}" y1="30" x2="{{x}}" y2="46" stroke="{INK}" stroke-width="2"/>')]
    x = 20
    for name, shape in entries:
        shapes += [shape.format(x=x), text(x + (18 if name == "Moka" else 9), 42, name, 11)]
        x += 32 + 6.5 * len(name)
    return shapes


def svg(data):
    shapes, top = legend(data), TOP
    for threads in data["settings"]["threads"]:
        for precision in data["settings"]["precision"]:
            if any(row.best for row in report.rows(data, threads, precision)):
                more, height = panel(data, threads, precision, top)
                shapes += more
                top += height
    width = LABELS + WIDTH + 90
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:.0f}" width="{width}" height="{top:.0f}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(shapes) + "\n</svg>\n")
