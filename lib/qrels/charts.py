"""The figures of the qrels, each drawn from the table that lies beside it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lib import files, paths
from lib.qrels import expanded
from lib.report import figures, tables
from lib.report.figures import WIDTH


def _whole(axes, *names: str) -> None:
    for name in names:
        getattr(axes, name).set_major_locator(MaxNLocator(integer=True))


def _numbers(table: pd.DataFrame) -> list[str]:
    """The names of buckets of whole numbers: `7`, `20-29`."""
    return [f"{low}" if high == low + 1 else f"{low}-{high - 1}" for low, high in zip(table["low"], table["high"], strict=True)]


def _beside(axes, names: list, table: pd.DataFrame, columns: tuple[str, ...]) -> None:
    """Bars side by side, a group a row; every other name is left out where they would run into each other."""
    place, width = np.arange(len(table)), 0.8 / len(columns)
    for i, column in enumerate(columns):
        axes.bar(place + (i - (len(columns) - 1) / 2) * width, table[column], width, label=column, **figures.bars(i))
    every = max(1, len(names) // 8)
    axes.set_xticks(place[::every], names[::every])
    axes.legend()
    _whole(axes, "yaxis")


def documents_per_question(axes, table: pd.DataFrame) -> None:
    _beside(axes, _numbers(table), table, ("before", "after"))
    axes.set(xlabel="relevant documents of a question", ylabel=f"questions (n = {table['after'].sum():,})")


def hops_per_question(axes, table: pd.DataFrame) -> None:
    _beside(axes, table["number"].tolist(), table, ("hops", "live", "supported"))
    axes.set(xlabel="hops of a question", ylabel=f"questions (n = {table['hops'].sum():,})")


def _bars_of_shares(axes, table: pd.DataFrame, kind: str, what: str) -> None:
    names = [f"{name}, {count:,}" for name, count in zip(table[kind], table[what], strict=True)]
    axes.barh(names, table["share"].fillna(0).to_numpy(float), **figures.bars(0))
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel=f"share of the {what} (n = {table[what].sum():,})")


def origins(axes, table: pd.DataFrame) -> None:
    _bars_of_shares(axes, table, "origin", "documents")


def votes(axes, table: pd.DataFrame) -> None:
    _bars_of_shares(axes, table, "vote", "votes and blanks")


def expansion_gain(axes, table: pd.DataFrame) -> None:
    added, share = table["added"].to_numpy(), table["share at most"].to_numpy()
    axes.step(np.r_[0, added, added[-1] + 1], np.r_[0, share, 1], where="post", color=figures.COLOURS[0])
    axes.set(xlabel="documents that the expansion added", ylim=(0, 1.02),
             ylabel=f"share of questions\nwith at most so many (n = {table['questions'].sum():,})")
    axes.set_xlim(0, added[-1] + 1)
    _whole(axes, "xaxis")


def near_acceptance(axes, table: pd.DataFrame) -> None:
    judged = table["judged"].to_numpy() > 0
    share, low, high = (table.loc[judged, name].to_numpy(float) for name in ("share", "low", "high"))
    place = np.arange(len(table))
    # a bound may lie a rounding error on the wrong side of a share of 0 or 1
    axes.errorbar(place[judged], share, np.maximum(0, [share - low, high - share]), fmt="o", capsize=3, color=figures.COLOURS[0])
    edges = [name.split(",")[0].strip("[") for name in table["jaccard"]] + ["1"]
    axes.set_xticks(np.arange(len(edges)) - 0.5, edges)  # a bucket lies between two ticks
    for at, n in zip(place, table["judged"], strict=True):
        axes.text(at, 1.06, f"{n:,}", ha="center", fontsize=7)
    axes.set(xlabel=f"largest Jaccard with an included document\n(above: copies judged, n = {table['judged'].sum():,})",
             ylabel="near copies accepted\n(95% Wilson interval)", ylim=(-0.03, 1.16))


def rounds_to_closure(axes, table: pd.DataFrame) -> None:
    axes.bar(table["rounds"], table["questions"], **figures.bars(0))
    axes.set(xlabel="rounds of near copies to closure", ylabel=f"questions (n = {table['questions'].sum():,})")
    _whole(axes, "xaxis", "yaxis")


def exact_classes(axes, table: pd.DataFrame) -> None:
    axes.bar(table["size"].astype(str), table["classes"], **figures.bars(0))
    axes.set(xlabel="documents of an exact class", ylabel=f"classes (n = {table['classes'].sum():,})")
    _whole(axes, "yaxis")


CHARTS: dict[str, Callable[..., None]] = {
    chart.__name__: chart
    for chart in (documents_per_question, hops_per_question, origins, votes, expansion_gain, near_acceptance, rounds_to_closure, exact_classes)
}
# what each table says, and its columns that are shares
CAPTIONS = {
    "documents_per_question": "Questions by their number of relevant documents, before and after the expansion over duplicates.",
    "hops_per_question": "Questions by their number of hops, of live hops, and of hops with a relevant document.",
    "origins": "Relevant documents by origin: judged in the pool, exact copy of one, near copy judged on its own.",
    "votes": "The reviewer's votes on the entries of the pools.",
    "expansion_gain": "Questions by the number of documents that the expansion added.",
    "near_acceptance": "Near copies accepted, by their largest Jaccard with an included document, with 95% Wilson intervals.",
    "rounds_to_closure": "Questions by the number of rounds of near copies until closure.",
    "exact_classes": "Classes of exact copies that hold a relevant document, by size.",
}
SHARES = {"origins": ("share",), "votes": ("share",), "expansion_gain": ("share at most",), "near_acceptance": ("share", "low", "high")}


def draw(name: str, table: pd.DataFrame, width: float = WIDTH) -> Figure:
    """The figure of a table, `width` inches wide and as high as its kind needs."""
    figure, (axes,) = figures.canvas(width, 1.5 if name in ("origins", "votes") else 2.4)
    CHARTS[name](axes, table)
    return figure


def write(page: str, makers: Mapping[str, Callable], source: Path, outdir: Path, width: float = WIDTH, png: bool = False) -> list[str]:
    """Write NAME.csv and NAME.pdf of each table that `makers` make of expanded qrels, with `png` NAME.png, and PAGE.json: what they were made from.

    The lines name what was written.
    """
    rows = expanded.read(source)
    files.write_json(outdir / f"{page}.json", expanded.sources(source, rows))
    found = {name: made(rows) for name, made in makers.items()}
    for name, table in found.items():
        files.write_text(outdir / f"{name}.csv", tables.to_csv(table))
        figure = draw(name, table, width)
        figures.save(figure, outdir, name, png)
        plt.close(figure)
    kinds = "csv, pdf and png" if png else "csv and pdf"
    return [f"{paths.shown(outdir)}: {name}, {len(table)} rows as {kinds}" for name, table in found.items()]
