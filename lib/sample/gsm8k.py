"""GSM8K as a planted collection: real questions and solutions whose labels follow from the files.

A question is a query and its worked solution the source page (2); what the four models wrote for it is 2 where it
is flagged correct and 0 with a major error where it is not; what was written for another question is 0, a wrong
problem. There are no 1s, no changed conditions and no queries that cannot be evaluated.

The calculator marks of the data (`<<16-3-4=9>>`) are taken out of every text: a reader would not see them, and the
5-gram route would; five solutions end inside a mark, and that one stays. The last line (`#### 18`, `A: 18`) stays.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lib import files, paths

FILES = QUESTIONS, SOLUTIONS = ("gsm8k_test.jsonl", "gsm8k_example_model_solutions.jsonl")
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")

_MARK = re.compile(r"<<[^<>\n]*>>")


def plant(source_folder: str | Path, out_folder: str | Path, limit: int | None = None) -> dict[str, int]:
    """Write the four planted files from the two files of the data, for the first `limit` questions.

    Gives the counts: queries, documents, correct and wrong model solutions, questions matched with model solutions,
    documents removed. Document order is question by question, source page first, then the models as in `MODELS`.
    The later of two documents with equal text is `removed`, and both carry what either is worth; a worked solution
    that equals an earlier text is refused, as are equal questions and a text that is flagged right and wrong.
    """
    source, out = Path(source_folder), Path(out_folder)
    questions = _questions(source / QUESTIONS)
    written = _written(source / SOLUTIONS, questions)
    chosen = list(questions.items())[:limit]

    documents, truths, queries = [], [], []
    relations: dict[str, list[dict]] = {}  # by text: equal texts carry one truth
    for question, (qid, solution) in chosen:
        pages = [("solution", solution, True), *((model, *page) for model, page in written.get(question, {}).items())]
        queries.append({"qid": qid, "text": question, "source_docid": f"{qid}-solution"})
        for name, text, correct in pages:
            docid = f"{qid}-{name}"
            known = relations.setdefault(text, [])
            if known and name == "solution":
                raise ValueError(
                    f"{paths.shown(source / QUESTIONS)}: the worked solution of {qid} equals an earlier text; take one of the two questions out"
                )
            documents.append({"docid": docid, "text": text, "removed": bool(known)})
            kind = "source" if name == "solution" else "correct" if correct else "wrong"
            truths.append({"docid": docid, "kind": kind, "family": qid, "relations": known})
            relation = _relation(qid, text, correct)
            if relation not in known:
                if any(other["problem"] == qid for other in known):
                    raise ValueError(
                        f"{paths.shown(source / SOLUTIONS)}: {docid} has the text of another solution of {qid}, one flagged correct and one not; "
                        "mend the flag or take one out"
                    )
                known.append(relation)

    evaluable = [{"qid": q["qid"], "problem": q["qid"], "family": q["qid"], "query_evaluable": True, "reason_codes": []} for q in queries]
    for name, rows in (("truth_documents", truths), ("truth_queries", evaluable), ("documents", documents), ("queries", queries)):
        files.write_text(out / f"{name}.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    kinds = [truth["kind"] for truth in truths]
    return {
        "queries": len(queries),
        "documents": len(documents),
        "correct": kinds.count("correct"),
        "wrong": kinds.count("wrong"),
        "matched": sum(question in written for question, _ in chosen),
        "removed": sum(document["removed"] for document in documents),
    }


def _relation(qid: str, text: str, correct: bool) -> dict:
    validity, codes, label = ("correct", ["full_solution"], 2) if correct else ("incorrect", ["major_math_error"], 0)
    return {"problem": qid, "label": label, "answer_validity": validity, "reason_codes": codes, "needs": len(text)}


def _questions(path: Path) -> dict[str, tuple[str, str]]:
    """Question text -> its qid and worked solution, in file order."""
    found: dict[str, tuple[str, str]] = {}
    for number, line in _lines(path):
        question, answer = _text(path, number, line, "question"), _text(path, number, line, "answer")
        if question in found:
            raise ValueError(f"{paths.shown(path)}:{number}: the question of {found[question][0]} stands here again; take one out")
        found[question] = (f"gsm8k-test-{number:04d}", answer)
    return found


def _written(path: Path, questions: dict) -> dict[str, dict[str, tuple[str, bool]]]:
    """Question text -> model -> its solution and whether it is flagged correct."""
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for number, line in _lines(path):
        question = _text(path, number, line, "question")
        if question not in questions:
            raise ValueError(f"{paths.shown(path)}:{number}: this question is not in {QUESTIONS}; take both files from one commit")
        if question in found:
            raise ValueError(f"{paths.shown(path)}:{number}: this question stands here a second time; take one out")
        found[question] = {}
        for model in MODELS:
            page = line.get(model)
            if not isinstance(page, dict) or not isinstance(page.get("is_correct"), bool):
                raise ValueError(f"{paths.shown(path)}:{number}: {model} needs a solution and is_correct true or false, not {page!r}")
            found[question][model] = (_text(path, number, page, "solution"), page["is_correct"])
    return found


def _lines(path: Path) -> Iterator[tuple[int, dict]]:
    for number, line in enumerate(files.read_bytes(path).decode("utf-8").removesuffix("\n").split("\n"), start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{paths.shown(path)}:{number}: no JSON ({error}); mend or remove the line") from None
        if not isinstance(row, dict):
            raise ValueError(f"{paths.shown(path)}:{number}: a {type(row).__name__}, not an object; mend or remove the line")
        yield number, row


def _text(path: Path, number: int, row: dict, field: str) -> str:
    """A text field without its calculator marks; it may not be missing or blank."""
    value = row.get(field)
    text = _MARK.sub("", value) if isinstance(value, str) else ""
    if not text.strip():
        raise ValueError(f"{paths.shown(path)}:{number}: {field} is {value!r}, not a text; mend or remove the line")
    return text
