"""Figures on a fixed canvas at the width they have on the page, drawn the same to the byte each time."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg", force=False)
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from lib import files  # noqa: E402

WIDTH = 5.5  # inches: the text width of a one-column page

# Okabe and Ito, readable without colour vision; every series has a marker and a dash besides
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++", "oo")

_STYLE = {
    "figure.dpi": 100, "savefig.dpi": 200, "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7, "legend.frameon": False,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "qrelbook", "figure.constrained_layout.use": True,
    "text.usetex": False, "text.parse_math": False,  # document text is never read as mathematics
}


def canvas(width: float = WIDTH, height: float = 2.6, columns: int = 1) -> tuple[Figure, list]:
    """A figure of `width` x `height` inches with `columns` axes side by side, and the list of them."""
    plt.rcParams.update(_STYLE)
    figure, axes = plt.subplots(1, columns, figsize=(width, height), squeeze=False)
    return figure, list(axes[0])


def style(i: int) -> dict:
    """Colour, marker and dash of the i-th series."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "linestyle": DASHES[i % len(DASHES)]}


def bars(i: int) -> dict:
    """Colour and hatch of the i-th kind of bar."""
    return {"color": COLOURS[i % len(COLOURS)], "hatch": HATCHES[i % len(HATCHES)], "edgecolor": "white", "linewidth": 0.5}


def shares(axes, names: list[str], frame) -> None:
    """Stacked bars of shares: a bar a row of the frame, the first on top, a part a column; a missing share has no width."""
    left = 0.0
    for i, label in enumerate(frame):
        share = frame[label].fillna(0).to_numpy(float)
        axes.barh(names, share, left=left, label=label, **bars(i))
        left = left + share
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.legend(ncols=len(frame.columns), loc="lower center", bbox_to_anchor=(0.5, 1))


def save(figure: Figure, folder: str | Path, name: str, png: bool = True) -> None:
    """Write NAME.pdf and NAME.png, canvas uncut and without dates, so that a second run gives the same bytes."""
    for suffix, metadata in (("pdf", {"CreationDate": None, "ModDate": None}), ("png", {"Software": None}))[: 1 + png]:
        with files.whole(Path(folder) / f"{name}.{suffix}") as temporary:
            figure.savefig(temporary, format=suffix, metadata=metadata)
