"""Judge a single pair into the store of its run; what is answered already is not paid again.

Its calls stand in `attempts/one`. A reply answers the same pair of any set but those of other judges, where
that sends the same messages: so the pair is asked as its newest route sends it, or, where none does, with
its first MAX_CHARS characters.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lib import contracts, processes
from lib.judge import answers, located, pairs, rounds, store
from lib.judge.located import Located
from lib.judge.prompt import Judge
from lib.judge.turns import KEY_VARIABLE

SET = "one"
MAX_CHARS = 30_000
URL = "QRELBOOK_JUDGE_URL"


class Unjudged(RuntimeError):
    """Every call of the pair was made, and none has a valid reply."""


def judge(run: str | Path, qid: str, docid: str, by: Judge, server: str, max_chars: int | None = None, **options) -> Iterator[str]:
    """The judgment of one pair in lines; asks `server` (a url, `env` or `sample`) only where no call has answered.

    `max_chars` is the cut of a pair that no route sends. `options` are those of `rounds.ask`. Raises `located.Unknown`,
    `rounds.JudgeStopped` where the server's answer stops the client, and `Unjudged` where its calls are used up.
    """
    if max_chars is not None and max_chars < 1:
        raise ValueError(f"max_chars is {max_chars}; a document is sent with at least one character")
    run, pair = Path(run), located.pair(run, qid, docid)
    with processes.lock(run):
        sent = _sent(run, pair)
        cut = next((row["max_chars"] for _, row in reversed(sent) if row["judge"] == "llm"), max_chars or MAX_CHARS)
        intent = _intent(run, pair, cut)
        calls = _calls(run, pair, by, intent)
        if not answers.reply(calls):
            with endpoint(server, run) as url:
                for name, _ in sent:  # the reply may change what they say
                    (answers.folder(run, name) / "manifest.json").unlink(missing_ok=True)
                said = rounds.ask(run, SET, by, url, **options)
            yield f"asked {said.calls} {'time' if said.calls == 1 else 'times'}"
            calls = _calls(run, pair, by, intent)
        else:
            yield "answered before, nobody was asked"
    yield _told(pair, calls)


def _sent(run: Path, pair: Located) -> list[tuple[str, dict]]:
    """The rows of the pair in the sets that a reply may answer, oldest first."""
    found = []
    for name, version in store.SETS.items():
        source = run / "intents" / name / f"{pair.part}.parquet"
        if name != SET and version not in store.APART and source.exists():
            rows = contracts.read_part("intents", source)
            mine = pc.and_(pc.equal(rows["query"], pair.query), pc.equal(rows["doc"], pair.doc))
            found += [(name, row) for row in rows.filter(mine).to_pylist()]
    return found


def _intent(run: Path, pair: Located, max_chars: int | None) -> pa.Table:
    """Makes `intents/one` of this pair alone; those asked before stay in the attempts."""
    row = {
        "query": pair.query, "doc": pair.doc, "judge": "llm", "version": store.SETS[SET], "stage": SET, "round": 1, "reason": "asked for by hand",
        "max_chars": max_chars, "rank": 0, "withdrawn": False,
    }  # fmt: skip
    folder, rows = run / "intents" / SET, contracts.table("intents", [row])
    (folder / "manifest.json").unlink(missing_ok=True)
    for old in folder.glob("part-*"):
        old.unlink()
    contracts.finish(folder, [contracts.write("intents", rows, folder / f"{pair.part}.parquet")])
    return rows


def _calls(run: Path, pair: Located, by: Judge, intent: pa.Table) -> list[answers.Call]:
    """Every call that may answer the pair, of all versions that are not apart."""
    newest = [version for version in store.SETS.values() if version not in store.APART][-1]
    (rendered,) = pairs.Pairs(run, by).render(pair.part, intent)
    return answers.history(run, pair.part, newest).of(rendered.key)


def _told(pair: Located, calls: list[answers.Call]) -> str:
    found = answers.reply(calls)
    if not found:
        made = [call for call in calls if call.version == store.SETS[SET]]
        raise Unjudged(
            f"query {pair.qid}, document {pair.docid}: no valid reply in {len(made)} calls, and the last ended as {made[-1].status}; `python -m lib.judge show` "
            f"says why; mend that and ask with --passes {made[-1].in_pass + 1}, or ask another model, sampling or prompt"
        )
    score = "the query cannot be evaluated" if found.row["score"] is None else f"score {found.row['score']}"
    return f"query {pair.qid}, document {pair.docid}: {score} ({found.row['model']}, prompt {found.row['prompt_sha256'][:8]}, asked for {found.version})"


@contextmanager
def endpoint(server: str, run: Path) -> Iterator[str]:
    """The base url of a judge: `sample` starts the local one on the run's planted folder, `env` is QRELBOOK_JUDGE_URL."""
    if server == "env":
        if not os.environ.get(URL):
            raise ValueError(f"judge is env and {URL} is not set; set it to the url of a judge")
        yield os.environ[URL]
    elif server != "sample":
        yield server
    else:
        had_key = KEY_VARIABLE in os.environ
        os.environ.setdefault(KEY_VARIABLE, "sample")
        with tempfile.TemporaryDirectory(prefix="qrelbook-one-") as folder:
            counts = str(Path(folder) / "calls.txt")
            started = processes.child(
                "lib.sample.judge_server", str(run / "planted"), "--calls", counts, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            try:
                url = started.stdout.readline().strip()
                if not url:
                    raise ValueError(f"the local judge did not start: {(started.stderr.read().strip().splitlines() or ['it said nothing'])[-1]}")
                yield url
            finally:
                started.terminate()
                started.communicate()
                if not had_key:
                    os.environ.pop(KEY_VARIABLE, None)
