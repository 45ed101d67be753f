"""Tables and figures: exact values in the CSV, nothing that escapes its cell, the same bytes twice."""

import csv
import io
import re

import pandas as pd
import pytest

from lib.report import figures, tables

FRAME = pd.DataFrame({"stage": ["pick", "=1+1|x", r"50% \input{a}_b"], "sent": [1234567, 0, 5], "share": [0.99614, None, float("nan")]})


def test_the_csv_holds_exact_values_and_empty_cells_for_missing_ones():
    rows = list(csv.reader(io.StringIO(tables.to_csv(FRAME))))
    assert rows[1] == ["pick", "1234567", "0.99614"] and rows[2][2] == rows[3][2] == ""


def test_a_text_cell_cannot_be_a_formula_and_an_id_stays_as_it_is():
    assert tables.to_csv(FRAME).splitlines()[2].startswith("'=1+1|x,")
    assert tables.to_csv(FRAME, ids=("stage",)).splitlines()[2].startswith("=1+1|x,")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\n"])
def test_each_start_of_a_formula_is_guarded_and_numbers_are_not(start):
    written = tables.to_csv(pd.DataFrame({"a": [start + "cmd\r"], "b": [-1.5]}))
    assert list(csv.reader(io.StringIO(written, newline="")))[1] == ["'" + start + "cmd ", "-1.5"]


def test_markdown_opens_no_html_no_code_and_no_formula():
    shown = tables.to_markdown(tables.rounded(pd.DataFrame({"a": ["<b>`x`$y$|z"]})))
    assert "&lt;b>&#96;x&#96;&#36;y&#36;\\|z" in shown


def test_markdown_and_latex_keep_a_cell_in_its_cell(tmp_path):
    tables.write(FRAME, tmp_path, "t", caption="a & b < c", percent=("share",))
    markdown, latex = (tmp_path / "t.md").read_text(), (tmp_path / "t.tex").read_text()
    assert r"=1+1\|x" in markdown and "1,234,567" in markdown and "99.61%" in markdown and "—" in markdown
    assert r"50\% \textbackslash{}input\{a\}\_b" in latex and r"a \& b \ensuremath{<} c" in latex
    assert not re.search(r"\bnan\b", markdown + latex + (tmp_path / "t.csv").read_text())


def test_an_unknown_column_of_digits_is_refused():
    with pytest.raises(ValueError, match="no column 'shares'; it has stage, sent, share"):
        tables.rounded(FRAME, percent=("shares",))


def test_a_table_without_rows_is_a_table():
    assert tables.to_markdown(tables.rounded(FRAME.head(0))).startswith("| stage")


def test_the_notebook_escapes_html():
    assert "<script>" not in tables.show(pd.DataFrame({"a": ["<script>"]})).to_html()


def test_figures_have_the_canvas_asked_for_and_the_same_bytes_twice(tmp_path):
    for folder in ("one", "two"):
        figure, (axes,) = figures.canvas(4.0, 2.0)
        axes.plot([1, 2, 3], **figures.style(0), label=r"50% $\frac$ of q_1")
        axes.legend()
        figures.save(figure, tmp_path / folder, "f")
        figures.plt.close(figure)
    for suffix in ("png", "pdf"):
        assert (tmp_path / f"one/f.{suffix}").read_bytes() == (tmp_path / f"two/f.{suffix}").read_bytes()
    pdf = (tmp_path / "one/f.pdf").read_bytes()
    assert b"/MediaBox [ 0 0 288 144 ]" in pdf and b"/Type3" not in pdf
