"""The lines of each released file: what a reader of the field finds in TREC qrels, a BEIR folder and JSONL."""

import json

from lib.exports.rows import Judged

TREC, JSONL = "qrels.trec", "qrels.jsonl"
BEIR_QRELS, BEIR_QUERIES, BEIR_CORPUS = "beir/qrels/test.tsv", "beir/queries.jsonl", "beir/corpus.jsonl"
BEIR_HEADER = "query-id\tcorpus-id\tscore\n"

SCHEMA = {
    TREC: "TREC qrels, a line a pair: question id, `0`, document id, grade, between single blanks",
    BEIR_QRELS: "the same pairs for BEIR: a header, then question id, document id and grade between tabs, nothing quoted",
    JSONL: 'the same pairs, an object a line and a line a question: `{"qid": text, "documents": [{"docid": text, "grade": integer}]}`',
    BEIR_QUERIES: 'the questions that have a pair: `{"_id": question id, "text": text}`',
    BEIR_CORPUS: 'documents: `{"_id": document id, "title": "", "text": text}`',
}

# characters that JSON leaves as they are and str.splitlines ends a line at
_ENDS = str.maketrans({character: f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"})


def trec(judged: Judged) -> str:
    return "".join(f"{judged.qid} 0 {docid} {grade}\n" for docid, grade in judged.documents)


def beir(judged: Judged) -> str:
    return "".join(f"{judged.qid}\t{docid}\t{grade}\n" for docid, grade in judged.documents)


def jsonl(judged: Judged) -> str:
    return line({"qid": judged.qid, "documents": [{"docid": docid, "grade": grade} for docid, grade in judged.documents]})


def query(qid: str, text: str) -> str:
    return line({"_id": qid, "text": text})


def document(docid: str, text: str) -> str:
    return line({"_id": docid, "title": "", "text": text})


def line(value: dict) -> str:
    """One object as one line, in UTF-8 as it is; no reader sees a second line in it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(_ENDS) + "\n"
