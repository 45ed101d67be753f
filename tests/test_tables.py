"""Each table of a whole run up to the judge, computed again from the Parquet files by a plain DuckDB query.

The plan `tiny` is run once.
"""

import csv
import json
import re

import pytest
from whole_tables import db, run, same, table  # noqa: F401

from lib import paths


def test_corpus(run, db):
    counts = db.execute("""select count(*), sum(removed::int), sum((not removed)::int), sum((n_tokens > 400)::int), sum(n_tokens),
        median(n_tokens)::int from documents""").fetchone() + db.execute("select count(*), count(source_doc), sum(keep::int) from queries").fetchone()
    assert [int(count) for (count,) in table(run, "corpus", "count")] == [int(count) for count in counts]
    assert counts[1] > 0 and counts[3] > 0  # the world holds each of them


def test_routes(run, db):
    expected = db.execute("""
        select route, (select count(*) from queries where keep), count(distinct query), count(*) / (select count(*) from queries where keep),
          count(*) filter (rank = 1 and doc = source_doc) / (select count(source_doc) from queries where keep),
          count(*) filter (rank <= 20 and doc = source_doc) / (select count(source_doc) from queries where keep),
          count(*) filter (rank <= 20 and exists (from hits d where d.route = 'dense' and d.query = listed.query and d.doc = listed.doc)) / count(*) filter (rank <= 20)
        from listed group by route""").fetchall()
    same(table(run, "routes", "list", "queries", "with hits", "hits a query", "source page in top 1", "source page in top 20", "top 20 in the dense top 100"), expected)


# the orders of the probe by integers of 10^30, in which equal fractions differ by less than 10^1
ORDERS = """
with pool as (select distinct query from probe),
ranks as (select query, doc, any_value(source_doc) as source_doc, min(rank) as best, sum((case route when 'dense' then 2 else 1 end)
            * (1000000000000000000000000000000::hugeint // (60 + rank))) // 1000 as rrf, min(rank) filter (route = 'dense') as dense
          from listed join pool using (query) where route <> 'fused' group by query, doc),
placed as (
  select 'dense' as name, query, doc, source_doc, dense as place from ranks where dense is not null union all
  select 'best rank', query, doc, source_doc, row_number() over (partition by query order by best, doc) from ranks union all
  select 'weighted RRF', query, doc, source_doc, row_number() over (partition by query order by rrf desc, best, doc) from ranks)
"""


def test_probe(run, db):
    expected = db.execute(ORDERS + """
        select name, (select count(*) from pool),
          count(*) filter (place <= 5 and positive) / (select count(*) from pool), count(*) filter (place <= 10 and positive) / (select count(*) from pool),
          count(*) filter (place <= 20 and positive) / (select count(*) from pool),
          concat_ws(' / ', count(*) filter (place <= 5 and own), count(*) filter (place <= 10 and own), count(*) filter (place <= 20 and own))
        from (select placed.*, coalesce(doc = source_doc, false) as own, coalesce(score = 2, false) and not own as positive
              from placed left join (from answered where set = 'probe') using (query, doc)) group by name""").fetchall()
    same(table(run, "probe", "order", "queries", "top 5", "top 10", "top 20", "source pages in top 5 / 10 / 20"), expected)
    for cells in table(run, "probe", "top 5 low", "top 5", "top 5 high", "top 20 low", "top 20", "top 20 high"):
        low, mean, high, low20, mean20, high20 = map(float, cells)
        assert low <= mean <= high and low20 <= mean20 <= high20


def test_fused_inside_dense(run, db):
    expected = db.execute(ORDERS + """select count(*) filter (inside) / count(*), count(*) filter (inside), count(*) from (
        select exists (from placed d where d.name = 'dense' and d.query = p.query and d.doc = p.doc and d.place <= 5) as inside
        from placed p where name = 'weighted RRF' and place <= 5)""").fetchall()
    same(table(run, "fused_inside_dense", "share", "inside", "places"), expected)


def test_pool(run, db):
    expected = db.execute("""
        select case when withdrawn then 'withdrawn' when status = 'ok' then 'score ' || score else status end as answer, count(*)
        from answered where set = 'probe' group by answer""").fetchall()
    same(table(run, "pool", "answer", "pairs"), expected)
    assert sum(count for _, count in expected) == db.execute("select count(distinct (query, doc)) from hits join (select distinct query from probe) using (query) where doc >= 0 and route <> 'fused'").fetchone()[0]


def test_rerank(run, db):
    expected = db.execute(f"""
        with scored as (select * from read_parquet('{run}/rerank_pool/*.parquet')),
        fused as (select query, doc, sum((case route when 'dense' then 2 else 1 end) * (1000000000000000000000000000000::hugeint // (60 + rank))) // 1000 as rrf
                  from listed where route <> 'fused' group by query, doc),
        two as (select 'reranker' as name, query, doc, score::double as value from scored union all
                 select 'weighted RRF', query, doc, rrf::double from scored join fused using (query, doc)),
        judged as (select name, query, value, answered.status, answered.score from two join answered using (query, doc) where set = 'probe' and not withdrawn),
        duels as (select p.name, p.query as a, n.query as b, case when p.value > n.value then 1 when p.value = n.value then 0.5 else 0 end as won
                  from judged p join judged n using (name) where p.score = 2 and n.score = 0),
        inside as (select name, a, avg(won) as auc from duels where a = b group by name, a)
        select name, (select count(distinct query) from scored), (select count(*) from judged j where j.name = duels.name and score = 2),
          (select count(*) from judged j where j.name = duels.name and score = 0), (select count(*) from judged j where j.name = duels.name and score = 1),
          (select count(*) from judged j where j.name = duels.name and status = 'unevaluable'),
          (select count(*) from judged j where j.name = duels.name and status not in ('ok', 'unevaluable')),
          avg(won), (select avg(auc) from inside i where i.name = duels.name), (select count(*) from inside i where i.name = duels.name)
        from duels group by name""").fetchall()
    same(table(run, "rerank", "order", "queries", "score 2", "score 0", "score 1", "unevaluable", "gaps", "pooled AUC", "AUC in a query", "queries with both"), expected)


def test_routed(run, db):
    expected = db.execute("select stage, judge, count(*), sum(withdrawn::int), count(distinct query) from intents where stage <> 'source_page' group by all").fetchall()
    same(table(run, "routed", "stage", "judge", "pairs", "withdrawn", "queries"), expected)


LEDGER = """select set, version, stage, {round} count(*), count(*) filter (not withdrawn and valid), count(*) filter (not withdrawn and status = 'unevaluable'),
  count(*) filter (withdrawn), count(*) filter (not withdrawn and not valid) from answered group by set, version, stage {by}"""


@pytest.mark.parametrize("name, sets", [("ledger_v1", {"source_page", "v1"}), ("ledger", {"probe", "source_page", "v1", "v2_gap", "v2", "second", "arbiter"})])
def test_ledger(run, db, name, sets):
    expected = [row for row in db.execute(LEDGER.format(round="round,", by=", round")).fetchall() if row[0] in sets]
    assert sets - {row[0] for row in expected} <= {"v2_gap", "arbiter"}  # which may be empty in so small a run
    same(table(run, name, "set", "version", "stage", "round", "sent", "valid", "unevaluable", "withdrawn", "gaps"), expected)
    assert all(sent == valid + withdrawn + gaps for *_, sent, valid, _, withdrawn, gaps in expected)
    classes = db.execute("select set, stage, round, status, count(*) from answered where not withdrawn and not valid group by all").fetchall()
    with open(run / "tables" / f"{name}.csv", encoding="utf-8", newline="") as handle:
        found = {(row["set"], row["stage"], int(row["round"]), name): int(row[name]) for row in csv.DictReader(handle) for name in list(row)[9:] if row[name] != "0"}
    assert found == {(set_, stage, turn, status): count for set_, stage, turn, status, count in classes if set_ in sets}


def test_judged(run, db):
    expected = [(version, stage, "llm", sent, valid, valid / sent, withdrawn, gaps)
                for name, version, stage, sent, valid, _, withdrawn, gaps in db.execute(LEDGER.format(round="", by="")).fetchall() if name in ("source_page", "v1")]
    expected += [(*row, None, None, None, None) for row in db.execute("select version, stage, judge, count(*) from intents where judge = 'student' group by all").fetchall()]
    same(table(run, "judged", "version", "stage", "judge", "sent", "judged", "share", "withdrawn", "gaps"), expected)


def test_score_2_by_rank(run, db):
    expected = db.execute("""
        select rank, count(*), count(*) filter (score = 2), count(*) filter (score = 2) / count(*)
        from (select query, doc, status, score from answered where set = 'v1' and stage = 'dense_1_5' and valid and not withdrawn)
          join (from listed where route = 'dense') using (query, doc) group by rank""").fetchall()
    same(table(run, "score_2_by_rank", "dense rank", "rows", "score 2", "rate"), expected)


def test_headline_and_comparison_repeat_the_tables_they_are_made_of(run):
    key = ("version", "stage", "judge")
    assert table(run, "headline", *key, "sent", "judged") == table(run, "who_judged", *key, "sent", "judged")
    assert {row[:3]: row[3] for row in table(run, "headline", *key, "2") if row[3]} == {row[:3]: row[3] for row in table(run, "label_mix", *key, "2")}
    rates = dict(table(run, "comparison", "figure", "this run"))
    for rank, rate in table(run, "score_2_by_rank", "dense rank", "rate"):
        assert rates[f"score-2 rate at dense rank {rank}"] == rate


def said(kind: str) -> set[str]:
    """The tables or figures that the notebooks say they write, in their first cell."""
    texts = ("".join(json.loads(path.read_text())["cells"][0]["source"]) for path in (paths.ROOT / "notebooks").glob("*.ipynb"))
    return {name for text in texts for name in re.findall(rf"{kind}/(\w+)", text.partition("Writes")[2])}


def test_every_notebook_leaves_what_it_says_tables_in_three_forms_figures_in_two_and_the_paper_has_them_all(run):
    files = {f"{name}.{end}" for name in said("tables") for end in ("csv", "md", "tex")}
    assert {path.name for path in (run / "tables").iterdir()} == files
    files |= {f"{name}.{end}" for name in said("figures") for end in ("png", "pdf")}
    assert {path.name for path in (run.parents[1] / "figures" / "tiny").iterdir()} == files and len(files) > 100
