"""Pictures for the page: images, charts, and the colours of classes."""

import io
import re
from collections.abc import Sequence

import numpy as np
from PIL import Image
from torch import Tensor

from autonovel.report.curves import Chart

LINE_COLOURS = ("#4c78d0", "#e07b39", "#3a9d6e", "#b760b5", "#c2484c", "#8a7d3c")
STRONG_COLOURS = (
    "#4269d0", "#f0992e", "#e5484d", "#2fa37a", "#a463f2", "#e86fa8", "#1fa7c4", "#8f6b4a", "#7aa52c", "#c04a9d",
)  # fmt: skip
INK = "#010203"  # stands for the colour of the surrounding text until the chart is on the page


def picture_of(image: Tensor) -> Image.Image:
    """Return a c×h×w uint8 image as grey (1 channel), RGB (3), RGBA on white (4), else its first channel."""
    pixels = np.ascontiguousarray(image.permute(1, 2, 0).cpu().numpy())
    if pixels.shape[2] == 3:
        return Image.fromarray(pixels)
    if pixels.shape[2] == 4:
        layer = Image.fromarray(pixels)
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return Image.fromarray(np.ascontiguousarray(pixels[:, :, 0]))


def chart_svg(chart: Chart, salt: str) -> str:
    """Return ``chart`` as SVG to stand inside HTML: its text takes the page's font and colour.

    Args:
        chart: the lines to draw.
        salt: unlike that of every other chart on the page; names of parts are derived from it.
    """
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.size": 9}):
        figure = Figure(figsize=(3.5, 2.0), layout="constrained")
        axes = figure.add_subplot()
        for series, colour in zip(chart.series, line_colours(len(chart.series)), strict=True):
            dots = "o" if len(series.epochs) == 1 else ""
            axes.plot(series.epochs, series.values, color=colour, linewidth=1.8, marker=dots, markersize=5)
        axes.set_ylim(bottom=min(0.0, *(min(series.values) for series in chart.series)))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        if chart.shares:
            axes.set_ylim(0, 1.02)
            axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
        axes.set_xlabel("epoch", color=INK)
        axes.tick_params(colors=INK, length=0)
        axes.grid(axis="y", color=INK, alpha=0.14, linewidth=0.7)
        axes.spines[:].set_visible(False)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return inline(buffer.getvalue())


def bars_svg(labels: Sequence[str], shares: Sequence[float], marked: int) -> str:
    """Return horizontal bars of ``shares`` (0 to 1) as SVG to stand inside HTML; the bar ``marked`` stands out."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "bars", "font.size": 9}):
        figure = Figure(figsize=(7.0, 0.45 + 0.3 * len(labels)), layout="constrained")
        axes = figure.add_subplot()
        colours = [LINE_COLOURS[0] if place == marked else "#9aa7c4" for place in range(len(labels))]
        axes.barh(range(len(labels)), shares, 0.72, color=colours)
        for place, share in enumerate(shares):
            axes.text(share + 0.01, place, f"{100 * share:.1f} %", va="center", color=INK)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_xlim(0, 1.12)
        axes.set_xticks([])
        axes.invert_yaxis()
        axes.tick_params(colors=INK, length=0)
        axes.spines[:].set_visible(False)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return inline(buffer.getvalue())


def inline(document: str) -> str:
    """Return a standalone SVG document as an element of an HTML page, which needs neither prologue nor addresses."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    return svg.replace("xlink:href", "href").replace(INK, "currentColor").strip()


def line_colours(n: int) -> tuple[str, ...]:
    """Return colours of ``n`` lines, readable on light and dark."""
    return tuple(LINE_COLOURS[i % len(LINE_COLOURS)] for i in range(n))


def class_colours(n_known: int, n_new: int) -> tuple[str, ...]:
    """Return muted tones for the known classes, then strong colours for the new ones."""
    muted = [f"hsl({round(360 * i / max(n_known, 1)) + 20} 14% {(58, 66)[i % 2]}%)" for i in range(n_known)]
    return (*muted, *strong_colours(n_new))


def strong_colours(n: int) -> Sequence[str]:
    """Return ``n`` strong colours: a chosen few, then hues a golden angle apart."""
    spread = [f"hsl({round(137.508 * i) % 360} {(65, 50)[i % 2]}% {(52, 42, 62)[i % 3]}%)" for i in range(n)]
    return [*STRONG_COLOURS[:n], *spread[len(STRONG_COLOURS) :]]
