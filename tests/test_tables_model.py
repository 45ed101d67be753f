"""The tables of the relevance model, the second judge and the overlap of a whole run, each computed again by a plain DuckDB query."""

import math

import duckdb
import pytest
from whole_tables import run, same_in_order, table  # noqa: F401

SQL = """
create view documents as select row_number() over () - 1 as doc, text from read_parquet('{run}/documents/*.parquet');
create view queries as select row_number() over () - 1 as query, text from read_parquet('{run}/queries/*.parquet');
create view heldout as select *, case when prediction < 0.5 then 0 when prediction < 1.5 then 1 else 2 end as cut from (
  select query, label::int as label, prediction::double as prediction, split_part(filename, '/', -3) as arm,
    regexp_extract(filename, 'step-(\\d+)/', 1)::int as step
  from read_parquet('{run}/student/*/step-*/heldout.parquet', filename = true));
create view answers as
  select 1 as turn, * from read_parquet('{run}/answers/source_page/*.parquet') union all select 2, * from read_parquet('{run}/answers/v1/*.parquet') union all
  select 3, * from read_parquet('{run}/answers/v2_gap/*.parquet') union all select 4, * from read_parquet('{run}/answers/v2/*.parquet');
create view scores as
  select * from read_parquet('{run}/scores/v1/*.parquet') union all select * from read_parquet('{run}/scores/v2/*.parquet');
create view trained as select query, doc from read_parquet('{run}/examples/*.parquet') where not held_out;
create view sample as
  select first.score as first, second.score as second, second.answer in ('ok', 'unevaluable') as said,
    third.score as third, coalesce(third.answer in ('ok', 'unevaluable'), false) as third_said, third.query is not null as disputed
  from read_parquet('{run}/answers/second/*.parquet') second join read_parquet('{run}/answers/v1/*.parquet') first using (query, doc)
    left join read_parquet('{run}/answers/arbiter/*.parquet') third using (query, doc);
-- 0 and 1 are the only two labels whose sum is 1
create view combined as select *, said and (not disputed or third_said) as known,
    case when not said then null when first is not distinct from second then first when first + second = 1 then 0 when third_said then third end as label
  from sample;
create table overlap as
  with texts as (select query, regexp_replace(trim(lower(text)), '\\s+', ' ', 'g') as text from queries),
  known as (select distinct q.text as query_text, d.text as doc_text from trained join texts q using (query) join documents d using (doc)),
  llm as (select query, doc, arg_min(stage, turn) as stage, min_by({{'score': score}}, turn).score as label from answers where answer in ('ok', 'unevaluable') group by all)
  select stage, label, case when score < 0.5 then 0 when score < 1.5 then 1 else 2 end as cut,
    exists (from trained t where t.query = llm.query and t.doc = llm.doc) as trained,
    exists (from known k where k.query_text = q.text and k.doc_text = d.text) as equal_texts, exists (from known k where k.query_text = q.text) as seen
  from llm join scores using (query, doc) join texts q using (query) join documents d using (doc);
"""
STAGES = {"pick": "picks", "long": "long", "source_page": "source pages", "trial": "trial"}


@pytest.fixture(scope="module")
def db(run):
    database = duckdb.connect()
    database.execute(SQL.format(run=run))
    return database


# by checkpoint: R2 within queries, which has no value where no query has two different labels
FIT = """
with centred as (select *, label - avg(label) over w as y, prediction - avg(prediction) over w as s, label - avg(label) over (partition by arm, step) as z
                 from heldout window w as (partition by arm, step, query)),
fit as (select arm, step, count(*) as pairs, count(distinct query) as queries, 1 - sum((y - s) ** 2) / nullif(sum(y ** 2), 0) as within,
          1 - sum((label - prediction) ** 2) / nullif(sum(z ** 2), 0) as pooled, 1 - sum((label - prediction) ** 2) / nullif(sum(y ** 2), 0) as uncentred,
          1 - sum(y ** 2) / nullif(sum(z ** 2), 0) as between_queries, avg((label - prediction) ** 2) as mse,
          avg((label = cut)::int) as exact, avg((cut = 2)::int) filter (label = 2) as kept, avg((abs(label - cut) = 2)::int) as flips,
          avg((label = 0)::int) as zeros, avg((label = 1)::int) as ones, avg((label = 2)::int) as twos
        from centred group by arm, step)
"""


def test_checkpoints(run, db):
    expected = db.execute(FIT + "select arm, step, within, exact, kept, flips, pairs, queries from fit order by arm, step").fetchall()
    same_in_order(sorted(table(run, "checkpoints", "arm", "step", "within-query R2", "exact", "LLM 2 kept", "flips", "pairs", "queries"), key=lambda row: (row[0], int(row[1]))), expected)
    used = [row for row in table(run, "checkpoints", "arm", "step", "used") if row[2]]
    assert len(used) == 1 and used[0][2] == "used"
    for low, value, high in table(run, "checkpoints", "low", "within-query R2", "high"):
        assert low == "" or float(low) <= float(value) <= float(high)


def compared(run):
    """The checkpoints that the tables of arms compare, as SQL."""
    return ", ".join(f"('{arm}', {step})" for arm, step in dict.fromkeys(table(run, "spread", "arm", "step")))


def test_spread(run, db):
    expected = db.execute(f"""
        with labels as (select * from (values {compared(run)}) t(arm, step), unnest([0, 1, 2]) u(label)), n as (select arm, step, label, count(*) as n from heldout group by all)
        select arm, step, label, coalesce(n, 0), (select count(*) from heldout h where h.arm = l.arm and h.step = l.step and h.label = l.label and cut = 0) / n,
          (select count(*) from heldout h where h.arm = l.arm and h.step = l.step and h.label = l.label and cut = 1) / n,
          (select count(*) from heldout h where h.arm = l.arm and h.step = l.step and h.label = l.label and cut = 2) / n
        from labels l left join n using (arm, step, label) order by arm, label""").fetchall()
    same_in_order(sorted(table(run, "spread", "arm", "step", "LLM label", "pairs", "0", "1", "2")), expected)


def test_heldout(run, db):
    expected = db.execute(FIT + f"""select arm, step, pairs, queries, zeros, ones, twos, between_queries, within, pooled, uncentred, mse
        from fit where (arm, step) in (values {compared(run)}) order by arm""").fetchall()
    columns = ["pairs", "queries", "0", "1", "2", "between-query share", "within-query R2", "pooled R2", "uncentred R2", "MSE"]
    same_in_order(sorted(table(run, "heldout", "arm", "step", *columns)), expected)


def test_arms(run, db):
    r2 = dict(db.execute(FIT + f"select arm, within from fit where (arm, step) in (values {compared(run)})").fetchall())
    for arm, value, low, high in table(run, "arms", "arm", "within-query R2", "low", "high"):
        first, _, other = arm.partition(" less ")
        expected = r2[first] - r2[other] if other else r2[first]
        assert math.isclose(float(value), expected, rel_tol=1e-9, abs_tol=1e-12) and float(low) <= float(value) <= float(high)


def test_reliability_and_scores_by_label(run, db):
    (used,) = [row[:2] for row in table(run, "checkpoints", "arm", "step", "used") if row[2]]
    where = f"arm = '{used[0]}' and step = {used[1]}"
    total = db.execute(f"select count(*) from heldout where {where}").fetchone()[0]
    bins = table(run, "reliability", "low", "high", "pairs", "mean score", "mean label")
    assert sum(int(row[2]) for row in bins) == total
    expected = [db.execute(f"select {row[0]}, {row[1]}, count(*), avg(prediction), avg(label) from heldout where {where} and prediction between {row[0]} and {row[1]}").fetchone() for row in bins]
    same_in_order(bins, expected)
    for label in ("0", "1", "2"):
        pairs = sum(int(n) for of, n in table(run, "scores_by_label", "label", "pairs") if of == label)
        assert pairs == db.execute(f"select count(*) from heldout where {where} and label = {label}").fetchone()[0]


def test_second_judge(run, db):
    one = """select '{name}', count({label}), avg(({label} = 0)::int), avg(({label} = 1)::int), avg(({label} = 2)::int), avg(({label} >= 1)::int),
             count(*) filter ({valid} and {label} is null), count(*) filter (not {valid}) from combined"""
    names = [("LLM judge alone", "first", "true"), ("second judge", "second", "said"), ("combined", "label", "known")]
    expected = [db.execute(one.format(name=name, label=label, valid=valid)).fetchone() for name, label, valid in names]
    same_in_order(table(run, "second_judge", "judge", "pairs", "0", "1", "2", "at least partially relevant", "unevaluable", "no reply"), expected)
    assert all(sum(map(int, cells)) == expected[0][1] for cells in table(run, "second_judge", "pairs", "unevaluable", "no reply"))


def test_combination(run, db):
    n = db.execute("""select count(*), count(*) filter (said), count(second), count(*) filter (first = second), count(*) filter (first + second = 1), count(*) filter (first + second = 3),
        count(*) filter (abs(first - second) = 2), count(*) filter (disputed), count(*) filter (disputed and third_said), count(label) from combined""").fetchone()
    of = {0: n[0], 1: n[1], 2: n[2], 3: n[2], 4: n[2], 5: n[2], 6: n[1], 7: n[7], 8: n[0]}
    same_in_order(table(run, "combination", "pairs", "of", "share"), [(n[i + 1], of[i], n[i + 1] / of[i] if of[i] else None) for i in range(9)])


# kappa and alpha of the pairs (a, b) of a comparison, from the plain sums over pairs of pairs
MEASURES = """
with pairs as ({pairs}), said as (select a as v from pairs union all select b from pairs),
often as (select v, count(*) as n, sum(count(*)) over (order by v) - count(*) / 2 as place from said group by v),
weights as (select x.v as i, y.v as j, abs(x.v - y.v) as w, (x.place - y.place) ** 2 as ordinal, x.n as n, y.n as m from often x, often y),
chance as (select sum((p.a <> q.b)::int) / count(*) as d, avg(abs(p.a - q.b)) as d1, avg((p.a - q.b) ** 2) as d2 from pairs p, pairs q),
seen as (select count(*) as n, avg((a = b)::int) as exact, avg((abs(a - b) = 2)::int) as opposite, avg((a <> b)::int) as d, avg(abs(a - b)) as d1, avg((a - b) ** 2) as d2 from pairs),
alpha as (select 1 - (select avg((a <> b)::int) from pairs) / nullif(sum(n * m) filter (i <> j) / ((select count(*) from said) * ((select count(*) from said) - 1)), 0) as nominal,
            1 - (select avg(ordinal) from pairs join weights on i = a and j = b) / nullif(sum(n * m * ordinal) filter (i <> j) / ((select count(*) from said) * ((select count(*) from said) - 1)), 0) as ordinal
          from weights)
select seen.n, exact, opposite, 1 - seen.d / nullif(chance.d, 0), 1 - seen.d1 / nullif(chance.d1, 0), 1 - seen.d2 / nullif(chance.d2, 0), nominal, ordinal from seen, chance, alpha
"""


def comparisons(run):
    """The comparisons of the run, in the order of the table, each with its pairs as SQL."""
    checked = "select label as a, cut as b from overlap where label is not null and not trained and not equal_texts"
    for between, part, queries in table(run, "agreement", "between", "part", "queries"):
        if between == "LLM and second judge":
            yield (between, part, queries), "select first as a, second as b from sample where second is not null"
        else:
            stages = [f"'{stage}'" for stage, name in STAGES.items() if part in (name, "all")]
            yield (between, part, queries), f"{checked} and stage in ({', '.join(stages)})" + (" and not seen" if queries == "no training query" else "")


def test_agreement(run, db):
    names = ["n", "exact", "0 against 2", "kappa", "kappa linear", "kappa quadratic", "alpha nominal", "alpha ordinal"]
    expected = [db.execute(MEASURES.format(pairs=pairs)).fetchone() for _, pairs in comparisons(run)]
    assert len(expected) == 1 + 2 * 5
    same_in_order(table(run, "agreement", *names), expected)
    for *values, why in table(run, "agreement", *names, "undefined"):
        assert ("" in values) == bool(why)


def test_agreement_table(run, db):
    expected = []
    for key, pairs in comparisons(run):
        for label in (0, 1, 2):
            *counts, n = db.execute(f"select count(*) filter (b = 0), count(*) filter (b = 1), count(*) filter (b = 2), count(*) from ({pairs}) where a = {label}").fetchone()
            expected.append((*key, label, n, *counts, *[count / n if n else None for count in counts]))
    same_in_order(table(run, "agreement_table", "between", "part", "queries", "label", "n", "0", "1", "2", "share 0", "share 1", "share 2"), expected)


def test_overlap(run, db):
    expected = []
    for part in (*STAGES.values(), "all"):
        stages = ", ".join(f"'{stage}'" for stage, name in STAGES.items() if part in (name, "all"))
        expected.append((part, *db.execute(f"""
            select count(*), count(*) filter (label is null), count(*) filter (label is not null and trained), count(*) filter (label is not null and not trained and equal_texts),
              count(*) filter (fresh), avg((label = cut)::int) filter (fresh), avg((abs(label - cut) = 2)::int) filter (fresh),
              count(*) filter (fresh and not seen), avg((label = cut)::int) filter (fresh and not seen), avg((abs(label - cut) = 2)::int) filter (fresh and not seen)
            from (select *, label is not null and not trained and not equal_texts as fresh from overlap) where stage in ({stages})""").fetchone()))
    columns = ["pairs", "null", "training pairs", "equal texts", "checked", "exact", "0 against 2"]
    columns += [f"{name}, no training query" for name in columns[4:]]
    same_in_order(table(run, "overlap", "part", *columns), expected)
    assert db.execute(f"select count(*) from overlap where stage not in {tuple(STAGES)}").fetchone() == (0,)
    assert all(count > 0 for _, count, *_ in expected), "the run has all four parts"


def test_the_paper_has_a_value_or_a_reason_for_every_published_figure(run):
    rows = table(run, "comparison", "table", "figure", "published", "this run", "n of this run")
    assert len(rows) > 150 and not [row for row in rows if row[4].startswith("no tables/")]
    ours = {row[:2]: row[3] for row in rows}
    students = ("short", "new_short", "new_long_6_20")
    mix = {(f"label mix, {version}", f"share of {label}, {stage}"): share
           for version, stage, judge, *shares in table(run, "label_mix", "version", "stage", "judge", "0", "1", "2") if (judge == "student") == (stage in students)
           for label, share in zip("012", shares, strict=True)}
    both = set(mix) & set(ours)
    assert len(both) >= 12 and all(ours[key] == mix[key] for key in both)
    assert ours["smaller arm", "within-query R2"] == table(run, "arms", "within-query R2")[1][0]
    assert ours["second judge", "equal labels"] == dict(table(run, "combination", "fact", "share"))["equal labels"]
