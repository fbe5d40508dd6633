"""The curve of a count as a picture: on the page, and as a file of its own."""

import io
from pathlib import Path
from typing import Any

from autonovel.report.pictures import INK, inline, line_colours
from autonovel.storage.documents import read_json, replace_file

LABELS = {"silhouette": "silhouette", "icl": "completed\nlikelihood", "accuracy": "accuracy on\nvalidation classes"}


def count_of(folder: Path) -> dict[str, Any] | None:
    """Return ``count.json`` of a run, or None if its new classes were not counted."""
    path = folder / "count.json"
    return read_json(path) if path.exists() else None


def count_svg(content: dict[str, Any]) -> str:
    """Return the curve as SVG to stand inside HTML: its text takes the page's font and colour."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    _figure(content, INK, buffer, format="svg", transparent=True, metadata=nothing)
    return inline(buffer.getvalue())


def write_picture(path: Path, content: dict[str, Any]) -> None:
    """Write the curve as a PNG file."""
    buffer = io.BytesIO()
    _figure(content, "black", buffer, format="png", dpi=160, metadata={"Software": None})
    replace_file(path, buffer.getvalue())


def _figure(content: dict[str, Any], ink: str, to: Any, **how: Any) -> None:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    names = [name for name in LABELS if name in content["tops"]]
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "count", "font.size": 9}):
        figure = Figure(figsize=(6.4, 1.6 + 1.2 * len(names)), layout="constrained")
        rows = figure.subplots(len(names), sharex=True, squeeze=False)[:, 0]
        for axes, name, colour in zip(rows, names, line_colours(len(names)), strict=True):
            c = [point["classes"] for point in content["curve"]]
            values = [point[name] for point in content["curve"]]
            decides = [(point["classes"], point[name]) for point in content["curve"] if point["decides"]]
            axes.axvspan(content["low"] - 0.5, content["high"] + 0.5, color=colour, alpha=0.12, linewidth=0)
            axes.axvline(content["estimate"], color=ink, linewidth=0.8, linestyle=":")
            axes.plot(c, values, color=colour, linewidth=1.2, alpha=0.6)
            axes.plot(*zip(*decides, strict=True), "o", color=colour, markersize=3.5)
            axes.set_ylabel(LABELS[name], color=ink)
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.tick_params(colors=ink, length=0)
            axes.grid(axis="y", color=ink, alpha=0.14, linewidth=0.7)
            axes.spines[:].set_visible(False)
        if max(c) > 20:
            rows[-1].set_xscale("symlog", linthresh=10)
            ticks = [t for t in (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if min(c) <= t <= max(c)]
            rows[-1].set_xticks(ticks, [str(t) for t in ticks])
            rows[-1].minorticks_off()
        rows[-1].set_xlabel("new classes", color=ink)
        figure.savefig(to, **how)
