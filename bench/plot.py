# SPDX-License-Identifier: Apache-2.0
"""The plot of docs/performance.md: a bar for Moka, a dot per peer, a tick for the goal, all relative to the best peer."""

import report
from harness import samples

LONGEST = 2.5  # a longer time is drawn at the edge
ROW, MARGIN = 0.25, 0.75  # heights in inches of a net, and of a panel's title and axis
AHEAD, BEHIND, WRONG, INK, GRID = "#1a7f5a", "#c2572b", "#8a8f98", "#24292f", "#d5d9de"
DOTS = ("#3b6fb6", "#8e5bb5", "#c9971c", "#4aa3a8", "#b5567a", "#6b7a3a", "#7a5c43")
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "moka", "font.family": "sans-serif", "font.size": 9, "text.color": INK,
         "axes.edgecolor": GRID, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK}


def panels(data):
    """(threads, precision, rows) for each panel."""
    for threads in data["settings"]["threads"]:
        for precision in data["settings"]["precision"]:
            rows = [row for row in report.rows(data, threads, precision) if row.best]
            if rows:
                yield threads, precision, rows


def colours(data):
    return dict(zip(report.peers(data), DOTS * 3))


def draw_moka(axes, row, y):
    """The bar of one net at height `y`, its ratio and its goal."""
    said, colour = "-", BEHIND
    if row.moka and row.moka["status"] == "measured":
        ratio = samples.p50(row.moka) / samples.p50(row.best)
        colour = WRONG if not row.counts() else AHEAD if ratio < 1 else BEHIND
        axes.barh(y, min(ratio, LONGEST), height=0.6, color=colour, zorder=2)
        said = f"{ratio:.2f}" + ("" if row.counts() else " wrong")
    axes.text(LONGEST * 1.02, y, said, color=colour, va="center", weight="bold")
    if row.goal is not None and not row.facts.get("relative_to"):
        axes.plot([min(row.goal, LONGEST)] * 2, [y - 0.42, y + 0.42], color=INK, linewidth=1.6, zorder=4)


def draw_peer(axes, rows, engine, colour):
    """The dots of one engine in a panel; a dot without filling has wrong outputs."""
    for right in (True, False):
        places = [(min(samples.p50(row.peers[engine]) / samples.p50(row.best), LONGEST), y) for y, row in enumerate(rows)
                  if row.peers[engine] and row.peers[engine]["status"] == "measured"
                  and samples.is_right(row.peers[engine], row.precision) == right]
        if places:
            axes.plot(*zip(*places), linestyle="", marker="o", markersize=5.5, markeredgewidth=0.8, zorder=3, clip_on=False, label=engine,
                      markerfacecolor=colour if right else "white", markeredgecolor="white" if right else colour)


def legend(figure, data, of_engine):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def dot(label, face, edge):
        return Line2D([], [], linestyle="", marker="o", markerfacecolor=face, markeredgecolor=edge, label=label)

    entries = [Patch(color=AHEAD, label="Moka")]
    entries += [dot(report.title(data, engine), of_engine[engine], "white") for engine in of_engine if not data["engines"][engine]["reason"]]
    entries += [dot("wrong outputs", "white", WRONG), Line2D([], [], linestyle="", marker="|", markersize=10, color=INK, label="goal")]
    figure.legend(handles=entries, loc="outside upper center", ncols=len(entries), frameon=False, columnspacing=1.2, handletextpad=0.3,
                  title="Time relative to the best peer with right outputs (1); shorter is faster")


def figure(data):
    """A matplotlib Figure with a panel for each number of threads and precision."""
    from matplotlib.figure import Figure

    every = list(panels(data))
    heights = [len(rows) for _, _, rows in every]
    made = Figure(figsize=(9.5, ROW * sum(heights) + MARGIN * (len(every) + 1)), layout="constrained")
    of_engine = colours(data)
    grid = made.subplots(len(every), 1, squeeze=False, height_ratios=heights) if every else []
    for (threads, precision, rows), (axes,) in zip(every, grid):
        name = report.heading(threads, precision)
        axes.set_title(name[0].upper() + name[1:], loc="left", weight="bold")
        for y, row in enumerate(rows):
            draw_moka(axes, row, y)
        for engine, colour in of_engine.items():
            draw_peer(axes, rows, engine, colour)
        axes.set(xlim=(0, LONGEST), ylim=(len(rows) - 0.5, -0.5))
        axes.set_yticks(range(len(rows)), [row.title for row in rows])
        axes.set_xticks([step / 2 for step in range(int(LONGEST * 2) + 1)])
        axes.grid(axis="x", color=GRID)
        axes.axvline(1, color=INK, linewidth=1)
        axes.tick_params(length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    legend(made, data, of_engine)
    return made


def write(data, path):
    """Saves the figure so that the same results give the same bytes."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure(data).savefig(path, format="svg", metadata={"Date": None})
