"""`python -m lib.corpus import ...`: put texts, judgments and runs made elsewhere into a run."""

import argparse
import sys

from lib import paths
from lib.corpus import beir, imported, irds, jsonl, trec, writer
from lib.processes import Locked

TABLES = "documents/ and queries/ of runs/NAME/, and a copy of the tokenizer"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m lib.corpus", description="Put texts, judgments and runs made elsewhere into a run.",
        epilog="Paths are absolute or relative to the checkout. A file that ends in .gz is unpacked. Bad lines are refused with their number.",
    )
    formats = parser.add_subparsers(dest="verb", required=True).add_parser("import", help="import one format").add_subparsers(
        dest="format", required=True, metavar="FORMAT"
    )

    def add(name: str, reads: str, writes: str) -> argparse.ArgumentParser:
        text = f"Reads {reads}. Writes {writes}."
        found = formats.add_parser(name, help=text, description=text)
        found.add_argument("--run", required=True, metavar="NAME", help="the plan whose run folder is filled, runs/NAME")
        return found

    def add_queries(to: argparse.ArgumentParser) -> None:
        to.add_argument("--keep-queries", default="all", metavar="FILE", help="a file with one qid a line: these go on to retrieval (all)")
        to.add_argument("--query-rows", type=_positive, default=writer.QUERY_ROWS, metavar="N", help="queries a part (%(default)s)")

    def add_documents(to: argparse.ArgumentParser) -> None:
        to.add_argument("--tokenizer", required=True, metavar="FILE", help="tokenizer.json, or a folder that holds one: counts the tokens")
        to.add_argument("--document-rows", type=_positive, default=writer.DOCUMENT_ROWS, metavar="N", help="documents a part (%(default)s)")
        add_queries(to)

    def add_grades(to: argparse.ArgumentParser) -> None:
        to.add_argument("--grades", choices=imported.GRADES, help="what to do with grades outside 0, 1, 2 (refused)")

    lines = add("jsonl", "documents and queries, one JSON object a line", TABLES)
    lines.add_argument("documents", help="fields docid, text and, if you like, removed")
    lines.add_argument("queries", help="fields qid, text and, if you like, source_docid")
    for option, default in (("docid", "docid"), ("document-text", "text"), ("qid", "qid"), ("query-text", "text"), ("source", "source_docid")):
        lines.add_argument(f"--{option}-field", default=default, metavar="FIELD", help="(%(default)s)")
    add_documents(lines)
    folder = add("beir", "a BEIR folder: corpus.jsonl, queries.jsonl, qrels/*.tsv", f"{TABLES}, and qrels/SPLIT/")
    folder.add_argument("folder")
    add_documents(folder)
    add_grades(folder)
    dataset = add("irds", "a dataset of ir_datasets that is on disk", f"{TABLES}, and qrels/irds/ where it has judgments")
    dataset.add_argument("id", help="such as beir/scifact/test")
    add_documents(dataset)
    add_grades(dataset)
    topics = add("topics", "TREC topics, <top> blocks or lines qid<TAB>text", "queries/ of a run that has documents")
    topics.add_argument("file")
    topics.add_argument("--part", choices=("title", "desc", "narr"), default="title", help="the part of a <top> block (%(default)s)")
    add_queries(topics)
    qrels = add("qrels", "TREC qrels, lines `qid 0 docid grade`", "qrels/NAME/")
    qrels.add_argument("file")
    qrels.add_argument("--name", default="trec", help="the folder under qrels/ (%(default)s)")
    add_grades(qrels)
    run = add("run", "a TREC run, lines `qid Q0 docid rank score tag`, ranks from 1", "hits/ROUTE/, a route like the others")
    run.add_argument("file")
    run.add_argument("--route", required=True, help="the folder under hits/")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of rows; give 1 or more")
    return int(text)


def _import(given: argparse.Namespace) -> dict[str, dict[str, int]]:
    """Run one importer; the counts by the folder that was written."""
    run = paths.run_folder(given.run)
    if given.format == "run":
        return {f"hits/{given.route}": imported.write_route(run, trec.run(given.file), given.route)}
    if given.format == "qrels":
        return {f"qrels/{given.name}": imported.write_qrels(run, trec.qrels(given.file), given.name, given.grades)}
    if given.format == "topics":
        rows = trec.topics(given.file, given.part)
        return {"queries": writer.write(run, None, rows, query_rows=given.query_rows, keep_queries=given.keep_queries)}
    judged = {}
    if given.format == "jsonl":
        documents = jsonl.documents(given.documents, given.docid_field, given.document_text_field)
        queries = jsonl.queries(given.queries, given.qid_field, given.query_text_field, given.source_field)
    elif given.format == "beir":
        documents, queries = beir.documents(given.folder), beir.queries(given.folder)
        judged = {path.stem: beir.qrels(path) for path in beir.splits(given.folder)}
    else:
        documents, queries = irds.documents(given.id), irds.queries(given.id)
        judged = {"irds": irds.qrels(given.id)} if irds.has_qrels(given.id) else {}
    counts = {"documents and queries": writer.write(
        run, documents, queries, given.tokenizer, given.document_rows, given.query_rows, given.keep_queries
    )}
    for name, rows in judged.items():
        counts[f"qrels/{name}"] = imported.write_qrels(run, rows, name, given.grades)
    return counts


def main(arguments: list[str] | None = None) -> None:
    """Exit 1 with one sentence where a row is refused, 2 where the command line is wrong."""
    given = _parser().parse_args(arguments)
    try:
        for folder, counts in _import(given).items():
            told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
            print(f"{paths.shown(paths.run_folder(given.run))}: {folder}: {told}")
    except (ValueError, OSError, Locked) as error:
        sys.exit(f"lib.corpus: {error}")


if __name__ == "__main__":
    main()
