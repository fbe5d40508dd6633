"""How figures look: colours that colour-blind people tell apart, and marks and labels for print in grey."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, FAINT = "#222222", "#6b6b6b", "#c9c9c9"
# Okabe and Ito's palette without its yellow, which is lost on white, and with a softer black
FEW = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#333333")
FEW_CLASSES = tuple(FEW[i] for i in (0, 1, 6, 4, 2, 5, 3))  # neighbours in this order differ in grey too
# Paul Tol's "muted" palette, with black in place of its light grey
MORE = ("#332288", "#DDCC77", "#117733", "#CC6677", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499", "#000000")
FEW_LABELS = 12  # names that fit into the middle of their points without hiding them
MARKS = ("o", "^", "s", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.6)))
SETTINGS: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
}


def colours(n: int) -> list[str]:
    """Return ``n`` colours; beyond 20, they repeat, and labels must tell the classes apart."""
    import matplotlib
    from matplotlib.colors import to_hex

    if n <= len(FEW):
        return list(FEW_CLASSES[:n])
    if n <= len(MORE):
        return list(MORE[:n])
    many = [to_hex(matplotlib.colormaps["tab20"](i)) for i in range(20)]
    many[14:16] = "#222222", "#E8D100"  # its two greys would pass for classes that have no colour
    return [many[i % 20] for i in range(n)]


def mark(number: int) -> str:
    """Return the mark of a class."""
    return MARKS[number % len(MARKS)]


def panels(n: int, width: float, height: float) -> "tuple[Figure, list[Axes]]":
    """Return a figure of ``n`` panels side by side, each ``width``×``height`` inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(n * width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)  # type: ignore[union-attr, call-arg]
    return figure, list(np.atleast_1d(figure.subplots(1, n)))


def bare(axes: "Axes", flat: NDArray[np.float64]) -> None:
    """Frame a map by a square and take its ticks: its axes mean nothing."""
    low, high = flat.min(axis=0), flat.max(axis=0)
    reach = 0.54 * max(float((high - low).max()), 1e-9)
    (x, y) = (low + high) / 2
    axes.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), xticks=[], yticks=[])
    axes.set_box_aspect(1)
    axes.spines[:].set_color(FAINT)


def plain(axes: "Axes") -> None:
    """Leave of a chart's frame only what is read."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
    axes.set_axisbelow(True)


def label_groups(
    axes: "Axes", flat: NDArray[np.float64], of: NDArray[np.int64], names: Sequence[str], strong: Sequence[int] = ()
) -> None:
    """Write the name of each class in the middle of its points, or small beside them if there are many classes.

    Args:
        axes: the map.
        flat: n×2 coordinates.
        of: class of each point.
        names: of all classes.
        strong: classes in bold, in front; written beside their points, the second one stands below.
    """
    from matplotlib.patheffects import withStroke

    beside = len(np.unique(of)) > FEW_LABELS
    for number in np.unique(of).tolist():
        bold = number in strong
        own = flat[of == number]
        x, y = np.median(own, axis=0)
        below = bold and number == strong[-1]
        if beside:
            y = np.quantile(own[:, 1], 0.05 if below else 0.95)
        axes.annotate(
            names[number], (x, y), xytext=(0, (-3 if below else 3) if beside else 0), textcoords="offset points",
            ha="center", va=("top" if below else "bottom") if beside else "center", zorder=10 + bold,
            fontsize=(6 if beside else 8) + 2 * bold, fontweight="bold" if bold else "normal",
            path_effects=[withStroke(linewidth=2.0 if beside else 2.8, foreground="white")],
        )  # fmt: skip


def scatter(
    axes: "Axes", flat: NDArray[np.float64], of: NDArray[np.int64], colours: dict[int, str], size: float
) -> None:
    """Draw points, each class in its colour and with its mark, in the order given as far as marks allow."""
    for part in np.array_split(np.arange(len(of)), max(len(of) // 100, 1)):  # classes take turns on top
        for position, (number, colour) in enumerate(colours.items()):
            own = part[of[part] == number]
            axes.scatter(
                flat[own, 0], flat[own, 1], s=size, color=colour, marker=mark(position), linewidths=0, alpha=0.8
            )


def class_legend(figure: "Figure", entries: Sequence[tuple[str, str, str]]) -> None:
    """Name the classes (name, colour, mark) under all panels, in as many columns as have room."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker=marker, color=colour, markersize=5, markeredgewidth=0, label=name)
        for name, colour, marker in entries
    ]
    columns = legend_columns(figure, [name for name, _, _ in entries], 0.45)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handletextpad=0.1, columnspacing=1.4)


def legend_columns(figure: "Figure", names: Sequence[str], beside: float) -> int:
    """Return how many columns of ``names`` at 9 points have room, each with ``beside`` inches for mark and gap."""
    column = beside + 0.075 * max(len(name) for name in names)
    return max(1, min(len(names), int(0.95 * figure.get_figwidth() / column)))
