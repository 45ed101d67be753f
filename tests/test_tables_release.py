"""The release of a whole run and its tables, computed again from answers, scores and lists by a plain DuckDB query."""

import pytest
from whole_tables import RELEASED, db, run, same, table  # noqa: F401


# the first of a pair's answers in the order of the sets, beside the score of the relevance model
ROWS = f"""
with llm as (
  select *, row_number() over (partition by query, doc order by list_position({list(RELEASED)}, set)) as place
  from answered where set in {RELEASED} and valid and not withdrawn),
student as (select query, doc, score, label, version, stage, round from scores join sent using (set, query, doc) where judge = 'student'),
released as (
  select coalesce(l.query, s.query) as query, coalesce(l.doc, s.doc) as doc, l.query is not null as llm,
    if(llm, l.score, s.label) as label, if(llm, l.version, s.version) as version, if(llm, l.stage, s.stage) as stage, if(llm, l.round, s.round) as round,
    not llm or l.status = 'ok' as query_evaluable, l.score as llm_label, s.score as student_score
  from (from llm where place = 1) l full join student s using (query, doc))
"""


def test_the_release_has_one_row_a_pair_by_the_precedence(run, db):
    expected = db.execute(ROWS + """
        select qid, docid, label, query_evaluable, if(llm, 'llm', 'student'), version, stage, round, llm_label, student_score
        from released join queries using (query) join documents using (doc) order by all""").fetchall()
    found = db.execute("select qid, docid, label, query_evaluable, judge, version, stage, round, llm_label, student_score from labels order by all").fetchall()
    assert found == expected and len({row[:2] for row in found}) == len(found)
    assert db.execute("select count(*) from labels where (label is null) = query_evaluable or (judge = 'llm') <> (prompt_sha256 is not null)").fetchone() == (0,)
    models = dict(db.execute("select judge, list(distinct model) from labels group by judge").fetchall())
    assert models["llm"] == ["planted-judge"] and models["student"] == [row[0] for row in db.execute("select distinct checkpoint from scores").fetchall()]


def test_every_pair_of_a_top_20_has_its_row(run, db):
    top = "from listed where route in ('dense', 'fused') and rank <= 20"
    dense, fused, distinct = db.execute(f"select count(distinct (query, doc)) filter (route = 'dense'), count(distinct (query, doc)) filter (route = 'fused'), count(distinct (query, doc)) {top}").fetchone()
    joined = "labels join queries using (qid) join documents using (docid)"
    rows = db.execute("select count(*) from labels").fetchone()[0]
    inside = db.execute(f"select count(*) from {joined} where (query, doc) in (select (query, doc) {top})").fetchone()[0]
    pages = db.execute(f"select count(*) from {joined} where doc = source_doc and (query, doc) not in (select (query, doc) {top})").fetchone()[0]
    assert [int(count) for (count,) in table(run, "coverage", "count")] == [dense, fused, distinct, inside, 0, pages, rows, 0]
    assert inside == distinct and rows == inside + pages


def test_label_mix(run, db):
    shares = "avg((label is not distinct from 0)::int), avg((label is not distinct from 1)::int), avg((label is not distinct from 2)::int)"
    expected = db.execute(f"select version, stage, judge, count(*), {shares}, case judge when 'llm' then avg((label is null)::int) end from labels group by version, stage, judge").fetchall()
    found = table(run, "label_mix", "version", "stage", "judge", "rows", "0", "1", "2", "unevaluable")
    same(found, expected)
    assert found[-1][1] == "trial" and sum(int(row[3]) for row in found) == db.execute("select count(*) from labels").fetchone()[0]


def test_labelling_mix(run, db):
    expected = db.execute("select set, count(*), avg((label = 0)::int), avg((label = 1)::int), avg((label = 2)::int) from scores group by set").fetchall()
    same(table(run, "labelling_mix", "version", "pairs", "0", "1", "2"), expected)


JUDGED = """
select version, stage, 'llm' as judge, count(*), count(*) filter (valid and not withdrawn), count(*) filter (valid and not withdrawn) / count(*),
  count(*) filter (withdrawn), count(*) filter (not valid and not withdrawn) from answered where set in {sets} group by all
union all
select version, stage, 'student', count(*), count(scores.doc), count(scores.doc) / count(*), null, null
  from sent left join scores using (set, query, doc) where judge = 'student' and sent.set in {sets} group by all"""


@pytest.mark.parametrize("name, sets", [("who_judged", RELEASED), ("v2_judged", RELEASED[2:])])
def test_who_judged_which_pairs(run, db, name, sets):
    same(table(run, name, "version", "stage", "judge", "sent", "judged", "share", "withdrawn", "gaps"), db.execute(JUDGED.format(sets=sets)).fetchall())
    assert all(words for (words,) in table(run, name, "candidates"))


def test_new_candidates(run, db):
    """From the lists and lengths alone; only the draw of the trial queries is read from the intents."""
    db.execute("""create or replace table new as
        select f.query, f.doc, f.rank as position, n_tokens > 400 as long, d.rank is null as outside
        from (from listed where route = 'fused') f join documents using (doc) left join (from hits where route = 'dense') d using (query, doc)
        where coalesce(d.rank, 100) > 20 and f.doc is distinct from source_doc""")
    queries, total = db.execute("select count(*) from queries where keep").fetchone()[0], db.execute("select count(*) from new").fetchone()[0]
    trial = "(select distinct query from sent where stage = 'trial')"
    counts = [db.execute(f"select count(*) from new where {what}").fetchone()[0] for what in (
        "true", "long", "outside", "long and position <= 5", "not long", "long and position > 5", f"long and position > 5 and query in {trial}")]
    found = table(run, "new_candidates", "pairs", "queries", "pairs a query", "of", "share")
    assert [tuple(map(float, row)) for row in found] == [(n, queries, n / queries, total, n / total) for n in counts]
    assert counts[-1] > 0 and counts[4] > 0
