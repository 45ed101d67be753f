"""What the planted world knows of a (query, page) pair, also when the page was cut."""

import json
from pathlib import Path


def label(query: dict, document: dict, visible_chars: int) -> dict:
    """The true judgment of a pair of which the first `visible_chars` characters of the page were seen.

    `query` is a line of truth_queries.jsonl, `document` one of truth_documents.jsonl. Among the relations that name
    the query's problem or its family and survived the cut a major error counts first, as it spoils the page for the
    problem, then the highest label, then the one needing most text.
    A page that says nothing of the problem is `condition_mismatch` inside the family and `wrong_problem` outside it,
    and `correct` if it answers another problem.
    """
    if not query["query_evaluable"]:
        return judgment(None, "not_assessed", query["reason_codes"])
    about = (query["problem"], f"family:{query['family']}")
    surviving = [r for r in document["relations"] if r["needs"] <= visible_chars]
    relevant = [r for r in surviving if r["problem"] in about]
    if relevant:
        best = max(relevant, key=lambda r: ("major_math_error" in r["reason_codes"], r["label"], r["needs"]))
        return judgment(best["label"], best["answer_validity"], best["reason_codes"])
    same_family = document["family"] == query["family"]
    validity = "correct" if any(r["label"] == 2 for r in surviving) else "no_answer"
    return judgment(0, validity, ["condition_mismatch" if same_family else "wrong_problem"])


def judgment(score: int | None, answer_validity: str, reason_codes: list[str]) -> dict:
    """The four fields of a judge's reply that carry its verdict."""
    return {"score": score, "query_evaluable": score is not None, "answer_validity": answer_validity,
            "reason_codes": list(reason_codes)}


def load(folder: str | Path) -> tuple[dict[str, dict], dict[str, dict]]:
    """Queries by qid and documents by docid, each its text and its truth in one dict, in the order of the files."""
    folder = Path(folder)
    return (_joined(folder / "queries.jsonl", folder / "truth_queries.jsonl", "qid"),
            _joined(folder / "documents.jsonl", folder / "truth_documents.jsonl", "docid"))


def _joined(texts: Path, truths: Path, key: str) -> dict[str, dict]:
    joined = {}
    with open(texts, encoding="utf-8") as left, open(truths, encoding="utf-8") as right:
        for number, (text_line, truth_line) in enumerate(zip(left, right, strict=True), 1):
            text, truth = json.loads(text_line), json.loads(truth_line)
            if text[key] != truth[key]:
                raise ValueError(f"{truths} line {number} is about {truth[key]!r}, but {texts} has {text[key]!r} "
                                 "there; write the world again")
            joined[text[key]] = {**text, **truth}
    return joined
