"""A table written as CSV, LaTeX and Markdown, and shown in a notebook.

The CSV holds the values as they are; LaTeX, Markdown and the notebook show them rounded.
A missing value is an empty CSV cell and a dash elsewhere, never NaN or 0.
"""

import csv
import io
from pathlib import Path

import pandas as pd
from tabulate import tabulate

from lib import files

DASH = "—"
_LINE = {"\n": " ", "\r": " ", DASH: "--"}
_MARKDOWN = {"|": r"\|", "\n": " ", "\r": " ", "<": "&lt;", "`": "&#96;", "$": "&#36;"}
FORMULA = ("=", "+", "-", "@", "\t", "\n")  # a spreadsheet would run such a cell


def write(frame: pd.DataFrame, folder: str | Path, name: str, *, caption: str, digits: dict[str, int] | None = None,
          percent: tuple[str, ...] = (), ids: tuple[str, ...] = ()) -> None:
    """Write NAME.csv, NAME.tex and NAME.md into `folder`.

    digits: decimals of a column where it is shown; percent: columns of shares shown as percentages;
    ids: columns of ids, which are never guarded against formulas (other text cells are, in the CSV).
    """
    folder = Path(folder)
    shown = rounded(frame, digits, percent)
    files.write_text(folder / f"{name}.csv", to_csv(frame, ids))
    files.write_text(folder / f"{name}.md", to_markdown(shown) + f"\n\n{_escape(caption, _MARKDOWN)}\n")
    files.write_text(folder / f"{name}.tex", to_latex(shown, caption, name))


def rounded(frame: pd.DataFrame, digits: dict[str, int] | None = None, percent: tuple[str, ...] = ()) -> pd.DataFrame:
    """The frame as text: counts with thousands separators, shares as percentages, missing values as a dash."""
    digits = digits or {}
    unknown = sorted((set(digits) | set(percent)) - set(frame.columns))
    if unknown:
        raise ValueError(f"the table has no column {unknown[0]!r}; it has {', '.join(map(str, frame.columns))}")
    return pd.DataFrame({name: [_cell(value, digits.get(name, 2), name in percent) for value in frame[name]] for name in frame.columns}, dtype=object)


def _cell(value, digits: int, percent: bool) -> str:
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return DASH
    if isinstance(value, str):
        return value
    if percent:
        return f"{100 * value:.{digits}f}%"
    return f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"


def to_csv(frame: pd.DataFrame, ids: tuple[str, ...] = ()) -> str:
    """CSV with LF line ends; floats by their shortest exact spelling."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False, name=None):
        writer.writerow([_plain(value, name in ids) for name, value in zip(frame.columns, row, strict=True)])
    return text.getvalue()


def _plain(value, is_id: bool) -> str:
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return ""
    if isinstance(value, str):
        value = value.replace("\r", " ")  # csv of Python 3.11 leaves it bare, where readers end the line
        return value if is_id or not value.startswith(FORMULA) else "'" + value
    return repr(float(value)) if isinstance(value, float) else str(value)


def to_markdown(shown: pd.DataFrame) -> str:
    """A Markdown table of text cells; a cell cannot open a column, HTML, code or a formula."""
    return _tabulate(shown.map(lambda cell: _escape(cell, _MARKDOWN)), "pipe")


def to_latex(shown: pd.DataFrame, caption: str, label: str) -> str:
    """A booktabs table of text cells with every special character escaped."""
    caption = tabulate([[_escape(caption, _LINE)]], tablefmt="latex").splitlines()[2].removesuffix(r"\\").strip()
    body = _tabulate(shown.map(lambda cell: _escape(cell, _LINE)), "latex_booktabs")
    return f"\\begin{{table}}\n\\centering\n{body}\n\\caption{{{caption}}}\n\\label{{tab:{label}}}\n\\end{{table}}\n"


def _tabulate(shown: pd.DataFrame, form: str) -> str:
    align = ["left" if any(cell[:1].isalpha() for cell in shown[name]) else "right" for name in shown.columns]
    return tabulate(shown.to_numpy().tolist(), headers=list(shown.columns), tablefmt=form, disable_numparse=True,
                    colalign=align if len(shown) else None)


def _escape(text: str, characters: dict[str, str]) -> str:
    return "".join(characters.get(character, character) for character in text)


def show(frame: pd.DataFrame, digits: dict[str, int] | None = None, percent: tuple[str, ...] = ()):
    """The table as a notebook displays it, every cell escaped."""
    return rounded(frame, digits, percent).style.hide(axis="index").format(escape="html")
