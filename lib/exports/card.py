"""The parts of a data card that every release shares: Markdown tables, the files, how to read them."""

from collections.abc import Iterable, Sequence

from lib.exports import formats
from lib.exports.export import Set

_READING = """UTF-8, LF line ends, no byte order mark; a pair stands once; lines are sorted by question and document, as code points.
Ids are text: read them as such (`007` is not `7`, `NA` is not missing). `manifest.json` lists rows, bytes and sha256 of every file.

```python
qrels = list(ir_measures.read_trec_qrels("qrels.trec"))
with open("qrels.trec", encoding="utf-8") as lines:
    qrels = pytrec_eval.parse_qrel(lines)
```"""


def table(head: Sequence[str], rows: Iterable[Sequence]) -> str:
    """A Markdown table; whole numbers with thousands separators on the right, a missing value as a dash."""
    rows = [list(row) for row in rows]
    right = [bool(rows) and all(value is None or type(value) is int for value in column) for column in zip(*rows, strict=True)] or [False] * len(head)
    lines = [_line(head), _line("---:" if number else "---" for number in right), *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Iterable) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(value) -> str:
    if value is None:
        return "—"
    return f"{value:,}" if type(value) is int else str(value).replace("|", "\\|").replace("\n", " ")


def write(title: str, opening: str, data: Set, grades: dict[int, str], sections: Sequence[tuple[str, str]], limitations: Sequence[str]) -> str:
    """The card: what it is, its files and their schema, what a grade means, `sections` (heading, Markdown), the limitations.

    grades: what each grade means; every count is taken from `data`.
    """
    written = {file.file: file for file in data.files}
    files = table(["file", "rows", "holds"], [(f"`{name}`", written[name].rows, holds) for name, holds in formats.SCHEMA.items() if name in written])
    meaning = table(["grade", "pairs", "means"], [(str(grade), data.grades[grade], text) for grade, text in grades.items()])
    parts = [
        ("Files", f"{files}\n\n{_READING}"),
        ("Grades", f"{data.questions:,} questions, {data.pairs:,} pairs.\n\n{meaning}"),
        *sections,
        ("Limitations", "\n".join(f"- {limitation}" for limitation in limitations)),
    ]
    return "\n\n".join([f"# {title}", opening, *(f"## {heading}\n\n{text}" for heading, text in parts)]) + "\n"
