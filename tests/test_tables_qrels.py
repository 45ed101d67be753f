"""The qrels of a whole run against the truth of the planted set, and their tables computed again from the JSON lines by DuckDB."""

import json
from pathlib import Path

import pytest
from whole_tables import db, run, same, same_in_order, table  # noqa: F401

SQL = """
create view questions as select * from read_json('{work}/qrels_expanded.jsonl', columns = {{
  qid: 'VARCHAR', hops: 'STRUCT(hop INT, live BOOLEAN)[]', documents: 'STRUCT(docid VARCHAR, hops INT[], origin VARCHAR, round INT)[]',
  votes: 'MAP(VARCHAR, INT)', pairs: 'INT', near: 'STRUCT(docid VARCHAR, jaccard FLOAT, hops INT[])[]', classes: 'STRUCT(docid VARCHAR, size INT)[]'}});
create view relevant as select qid, unnest(documents, recursive := true) from questions;
"""


@pytest.fixture(scope="module")
def work(run, db) -> Path:  # noqa: F811
    """The work folder that the notebook filled, as views of that database."""
    (found,) = (run / "qrels").iterdir()
    db.execute(SQL.format(work=found))
    return found


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_relevant_document_states_a_hop_or_has_a_vote_and_none_that_could_be_found_is_missing(run, work):  # noqa: F811
    truth, pools = lines(run / "review" / "truth.jsonl"), lines(work / "candidates.jsonl")
    for known, pool, found in zip(truth, pools, lines(work / "qrels_expanded.jsonl"), strict=True):
        live = {hop["hop"] for hop in found["hops"] if hop["live"]}
        states = {(hop["hop"], docid) for hop in known["hops"] for docid in hop["documents"]}
        voted = {(entry["hop"], entry["docid"]) for entry in pool["pool"] if entry["state"] == "guaranteed"}
        told = {(hop, document["docid"]) for document in found["documents"] for hop in document["hops"]}
        assert told <= states | voted and voted <= told
        judged = {(entry["hop"], entry["docid"]) for entry in pool["pool"] if entry["hop"] in live} | {(hop, copy["docid"]) for copy in found["near"] for hop in live}
        bound = {(entry["hop"], entry["docid"]) for entry in pool["pool"] if entry["state"] == "bound"}
        assert {pair for pair in states & judged if pair[0] in live} - bound <= told
        assert any(document["origin"] == "near" for document in found["documents"]) and any(not copy["hops"] for row in [found] for copy in row["near"])


def test_questions(run, work, db):  # noqa: F811
    expected = db.execute("""select qid, count(*) filter (origin = 'judged'), 0, count(*), 'release' from relevant group by qid""").fetchall()
    same(table(run, "questions", "question", "relevant", "copies left", "expanded", "next"), expected)


def test_documents_per_question(run, work, db):  # noqa: F811
    expected = db.execute("""select after, count(*) from (select count(*) as after from relevant group by qid) group by after""").fetchall()
    same([row for row in table(run, "documents_per_question", "low", "after") if row[1] != "0"], expected)
    before = db.execute("select n, count(*) from (select count(*) as n from relevant where origin = 'judged' group by qid) group by n").fetchall()
    same([row for row in table(run, "documents_per_question", "low", "before") if row[1] != "0"], before)


def test_hops_per_question(run, work, db):  # noqa: F811
    for column, number in (("hops", "len(hops)"), ("live", "len(list_filter(hops, lambda h: h.live))"),
                           ("supported", "len(list_distinct(flatten(list_transform(documents, lambda d: d.hops))))")):
        expected = db.execute(f"select {number} as n, count(*) from questions group by n").fetchall()
        same([row for row in table(run, "hops_per_question", "number", column) if row[1] != "0"], expected)


def test_origins_and_votes(run, work, db):  # noqa: F811
    origins = db.execute("select origin, count(*), count(*) / sum(count(*)) over () from relevant group by origin").fetchall()
    same(table(run, "origins", "origin", "documents", "share"), origins)
    votes = db.execute("""select vote, sum(n), sum(n) / sum(sum(n)) over () from (select unnest(map_keys(votes)) as vote, unnest(map_values(votes)) as n from questions)
        group by vote""").fetchall()
    same(table(run, "votes", "vote", "votes and blanks", "share"), votes)


def test_the_expansion(run, work, db):  # noqa: F811
    gain = db.execute("""select added, count(*), sum(count(*)) over (order by added) / sum(count(*)) over ()
        from (select count(*) filter (origin <> 'judged') as added from relevant group by qid) group by added order by added""").fetchall()
    same_in_order(table(run, "expansion_gain", "added", "questions", "share at most"), gain)
    rounds = db.execute("select last, count(*) from (select max(round) as last from relevant group by qid) group by last").fetchall()
    same([row for row in table(run, "rounds_to_closure", "rounds", "questions") if row[1] != "0"], rounds)
    classes = db.execute("select size, count(*) from (select unnest(classes, recursive := true) from questions) group by size").fetchall()
    same(table(run, "exact_classes", "size", "classes"), classes)


def test_near_copies_by_jaccard(run, work, db):  # noqa: F811
    expected = db.execute("""select i, count(*), count(*) filter (len(copy.hops) > 0) from range(20) buckets(i), (select unnest(near) as copy from questions)
        where copy.jaccard >= (i / 20)::float and (i = 19 or copy.jaccard < ((i + 1) / 20)::float) group by i order by i""").fetchall()
    rows = [row for row in table(run, "near_acceptance", "jaccard", "judged", "accepted") if row[1] != "0"]
    assert [(round(20 * float(name[1:].split(",")[0])), int(judged), int(accepted)) for name, judged, accepted in rows] == [tuple(map(int, row)) for row in expected]
    for low, share, high in table(run, "near_acceptance", "low", "share", "high"):
        assert share == low == high == "" or 0 <= float(low) <= float(share) <= float(high) <= 1
