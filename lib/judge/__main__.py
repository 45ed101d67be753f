"""Show what is known of one pair, judge one, estimate what sets would take, or compact: `python -m lib.judge STEP ... [--run sample]`."""

import argparse
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, paths, processes
from lib.judge import answers, estimate, located, one, prompt, rounds, store

RELEASED = ("v1", "v2 gap", "v2")  # the versions whose pairs have a row in the release


def _part_rows(table: str, folder: Path, part: str):
    """One part of a table, or None where the run has not come to it."""
    source = folder / f"{part}.parquet"
    return contracts.read_part(table, source) if source.exists() else None


def _finished(folder: Path) -> bool:
    try:
        return bool(contracts.parts(folder))
    except contracts.ContractError:
        return False


def _place(docs, doc: int) -> int | None:
    """The rank from 1, None where the list lacks the document."""
    return docs.index(doc) + 1 if doc in docs else None


def _retrieved(run: Path, part: str, query: int, at: int, doc: int) -> Iterator[str]:
    for folder in sorted((run / "hits").glob("*/")):
        hits = _part_rows("hits", folder, part)
        if hits is not None:
            place = _place(hits["doc"][at].as_py(), doc)
            yield f"{folder.name}: " + (f"rank {place}, score {hits['score'][at].as_py()[place - 1]:.6g}" if place else f"not in the top {contracts.DEPTH}")
    fused = _part_rows("fused", run / "fused", part)
    if fused is not None:
        place = _place(fused["doc"][at].as_py(), doc)
        yield f"fused: place {place}" if place else f"fused: not in the top {contracts.CUT}"
    reranked = _part_rows("rerank", run / "rerank", part)
    if reranked is not None:
        mine = _of_pair(reranked, query, doc)
        yield f"reranker: {mine[0]['score']:.6g} by {mine[0]['model']}" if mine else "reranker: not scored"


def _of_pair(rows: pa.Table | None, query: int, doc: int) -> list[dict]:
    return [] if rows is None else rows.filter(pc.and_(pc.equal(rows["query"], query), pc.equal(rows["doc"], doc))).to_pylist()


def _routed(run: Path, part: str, query: int, doc: int) -> list[dict]:
    return [row for name in store.SETS for row in _of_pair(_part_rows("intents", run / "intents" / name, part), query, doc)]


def _plain(text: str) -> str:
    """On one line, with what a terminal obeys (controls, marks of direction) as its escape."""
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character
        for character in " ".join(text.split())
    )


def _asked(run: Path, part: str, task: str) -> Iterator[str]:
    for name in store.SETS:
        for source in store.sources(run, name, part):
            for told in store.tables(source, ("task_id", "attempt", "pass", "status", "score", "model", "prompt_sha256", "rationale", "detail")):
                for row in told.filter(pc.equal(told["task_id"], task)).to_pylist():
                    score = f", score {row['score']}" if row["status"] in answers.VALID else ""
                    yield (
                        f"call {row['attempt']} of pass {row['pass']} for {name}: {row['status']}{score}"
                        f" ({row['model']}, prompt {row['prompt_sha256'][:8]})"
                    )
                    if said := row["rationale"] or row["detail"]:
                        yield f"    {_plain(said)}"


def _answered(run: Path, part: str, query: int, doc: int) -> Iterator[str]:
    """What the finished tables say: the answer to each set, and the score of the relevance model."""
    for name in store.SETS:
        if _finished(answers.folder(run, name)):
            for row in _of_pair(_part_rows("answers", answers.folder(run, name), part), query, doc):
                score = f", score {row['score']}" if row["answer"] in answers.VALID else ""
                yield f"answer to {name} {row['stage']} round {row['round']}: {row['answer']}{score}"
    for folder in sorted((run / "scores").glob("*/")):
        for source in sorted(folder.glob(f"{part}-*.parquet")) if _finished(folder) else []:
            for row in _of_pair(contracts.read_part("scores", source), query, doc):
                yield f"relevance model, {folder.name}: {row['score']:.4f} by {row['checkpoint']}"


def _label(run: Path, part: str, qid: str, docid: str, sent: list[dict], asked: bool) -> str:
    rows = _part_rows("labels", run / "labels", part) if _finished(run / "labels") else None
    if rows is None:
        return "label: none, the run has written no labels yet"
    mine = rows.filter(pc.and_(pc.equal(rows["qid"], qid), pc.equal(rows["docid"], docid))).to_pylist()
    if mine:
        row = mine[0]
        label = "null (the query cannot be evaluated)" if row["label"] is None else row["label"]
        score = "" if row["student_score"] is None else f", score of the relevance model {row['student_score']:.4f}"
        return f"label: {label} by {row['judge']} ({row['model']}), {row['version']} {row['stage']} round {row['round']}{score}"
    if not sent:
        return "label: none, no route sent the pair to a judge"
    if all(row["version"] not in RELEASED for row in sent):
        return f"label: none, what is sent as {' and '.join(sorted({row['version'] for row in sent}))} is no part of the release"
    return "label: none, no call gave a valid reply" if asked else "label: none, the LLM was not asked"


def show(run: Path, qid: str, docid: str) -> Iterator[str]:
    """Lines on ranks, routing, calls, answers, scores and the row of the release of one pair; Unknown where the run has no such id."""
    _, docid, query, doc, part, first = located.pair(run, qid, docid)
    yield f"query {qid}, document {docid}"
    yield from _retrieved(run, part, query, query - first, doc)
    sent = _routed(run, part, query, doc)
    for row in sent:
        state = ", withdrawn" if row["withdrawn"] else ""
        yield f"sent to {row['judge']} as {row['version']} {row['stage']} round {row['round']}: {row['reason']}{state}"
    if not sent:
        yield "not sent to any judge"
    asked = list(_asked(run, part, prompt.task_id(qid, docid)))
    yield from asked or ["no call was made"]
    yield from _answered(run, part, query, doc)
    yield _label(run, part, qid, docid, sent, bool(asked))


def _judge(given: argparse.Namespace, run: Path) -> Iterator[str]:
    by = prompt.judge(given.model, given.prompt, **prompt.sampling(given.sampling))
    return one.judge(run, given.qid, given.docid, by, given.judge, given.max_chars, passes=given.passes)


def _compact(given: argparse.Namespace, run: Path) -> Iterator[str]:
    from lib.judge import compact

    if not (run / "attempts").is_dir():
        raise contracts.ContractError(f"{paths.shown(run)} has no attempts; name another run")
    for name in store.SETS:
        before = len(list((run / "attempts" / name).glob("part-*.jsonl")))
        said = compact.compact(run, name)
        yield from said
        if before:
            yield f"{name}: {before - len(said)} of {before} files with new lines taken in"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m lib.judge", description="Look at single pairs of a run, or judge one; move its attempts into Parquet.")
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("show", help="ranks, routing, every call, answers, scores and the label of one pair")
    step.set_defaults(lines=lambda given, run: show(run, given.qid, given.docid))
    asked = steps.add_parser("one", help="judge one pair into the run's store; nothing is paid where it is answered")
    asked.set_defaults(lines=_judge)
    for pair in (step, asked):
        pair.add_argument("qid")
        pair.add_argument("docid", help="in either spelling")
    asked.add_argument("--judge", default="env", help="env: QRELBOOK_JUDGE_URL; sample: the local judge; or a url")
    asked.add_argument("--model", required=True, help="the judge's model, the run's own where its replies are to be found")
    asked.add_argument("--sampling", default="{}", help='of the call, as JSON: {"temperature": 0}')
    asked.add_argument("--prompt", type=Path, default=prompt.PROMPT, help="the prompt file")
    asked.add_argument("--max-chars", type=int, help="the cut of a document that no route sends for the query; 30,000 where not said")
    asked.add_argument("--passes", type=int, default=2, help="one more than before asks again a pair whose calls are used up")
    told = steps.add_parser("estimate", help="pairs, calls, tokens and cost of asking sets, before anything is sent")
    told.set_defaults(lines=lambda given, run: estimate.lines(run, given))
    estimate.arguments(told)
    packed = steps.add_parser("compact", help="move the attempts of closed files into Parquet; while nobody asks")
    packed.set_defaults(lines=_compact)
    for step in (step, asked, packed):
        step.add_argument("--run", default="sample", help="the plan's name, or a run folder")
    given = parser.parse_args(arguments)
    run = Path(given.run) if "/" in given.run else paths.run_folder(given.run)
    try:
        for line in given.lines(given, run):
            print(line)
    except (
        located.Unknown, contracts.ContractError, store.StoreError, processes.Locked, rounds.JudgeStopped, one.Unjudged, estimate.Unasked, OSError,
    ) as error:  # fmt: skip
        sys.exit(f"lib.judge: {error}")
    except (ValueError, LookupError, TypeError, pa.ArrowException) as error:
        if given.step == "one" and type(error) is ValueError:
            sys.exit(f"lib.judge: {error}")
        sys.exit(f"lib.judge: a file of {paths.shown(run)} is damaged ({type(error).__name__}: {error}); run the notebook that writes it again")


if __name__ == "__main__":
    main()
