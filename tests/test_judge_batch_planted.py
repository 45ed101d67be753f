"""The local judge asked by batches: the labels of single calls, from the same planted truth and through the same failures."""

import pytest
from judge_batches import ask, states
from judge_script import intent, table
from planted_judge import DOCUMENTS, QUERIES, plant

from lib.judge import answers, prompt, rounds, store
from lib.sample import judge_server

DOCS, ASKED = list(DOCUMENTS), list(QUERIES)


def planted_run(run):
    """Every planted query with every planted document."""
    documents = [{"docid": name, "text": DOCUMENTS[name][0], "n_chars": len(DOCUMENTS[name][0]), "n_tokens": 1, "removed": False} for name in DOCS]
    table(run, "documents", "documents", [documents])
    queries = [{"qid": name, "text": QUERIES[name][0], "source_docid": None, "source_doc": None, "keep": True} for name in ASKED]
    table(run, "queries", "queries", [queries])
    table(run, "intents", "intents/v1", [[intent(query, doc) for query in range(len(ASKED)) for doc in range(len(DOCS))]])
    return run


def labels(run, by):
    answers.write(run, "v1", by)
    (_, found), = answers.read(run, "v1")
    columns = ["query", "doc", "score", "query_evaluable"]
    return found.select(columns).to_pylist(), found["answer"].to_pylist()


@pytest.mark.parametrize("failing, lost", [(0.0, 0.0), (0.6, 0.1)])
def test_a_run_by_batches_ends_with_the_labels_of_the_run_by_calls(tmp_path, monkeypatch, failing, lost):
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", "sample-key")
    folder, by = plant(tmp_path / "planted", DOCUMENTS, QUERIES), prompt.judge("m", temperature=0.0)
    found = {}
    for driver in ("sdk", "batch"):
        run = planted_run(tmp_path / driver)
        with judge_server.running(folder, failures=failing, lost=lost, calls=tmp_path / f"{driver}.txt") as url:
            summary = rounds.ask(run, "v1", by, url, driver=driver, backoff=0.02, longest_wait=0.2)
            assert judge_server.stats(url)["unknown_texts"] == 0
            assert judge_server.stats(url)["calls"] == summary.calls == len(store.read(store.path(run, "v1", "part-00000")))
        found[driver] = labels(run, by)
    assert found["batch"][0] == found["sdk"][0] and len(found["sdk"][0]) == len(DOCS) * len(ASKED)
    # a body that was cut on its way is a lost connection to a single call, and a line without a response in a batch
    assert [{"connection": "server error"}.get(answer, answer) for answer in found["sdk"][1]] == found["batch"][1]
    assert (lost == 0.0) == (set(found["sdk"][1]) <= set(answers.VALID))
    assert {it.stage for it in states(tmp_path / "batch")} == {"done"}
