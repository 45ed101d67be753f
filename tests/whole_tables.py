"""The tables of a whole run as DuckDB sees them: views of the Parquet files, and cells of a CSV beside expected values.

Rows number as the tables do: the n-th row of the documents is document n.
"""

import csv
import math
from pathlib import Path

import duckdb
import pytest

RELEASED = ("source_page", "v1", "v2_gap", "v2")  # the sets that give labels
SQL = """
create view documents as select row_number() over () - 1 as doc, * from read_parquet('{run}/documents/*.parquet');
create view queries as select row_number() over () - 1 as query, * from read_parquet('{run}/queries/*.parquet');
create view labels as select * from read_parquet('{run}/labels/*.parquet');
create view sent as select regexp_extract(filename, 'intents/([a-z0-9_]+)/', 1) as set, * exclude (filename)
  from read_parquet('{run}/intents/*/*.parquet', filename = true);
create view intents as select * exclude (set) from sent where set in ('source_page', 'v1');
create view probe as select * exclude (set) from sent where set = 'probe';
create view scores as select regexp_extract(filename, 'scores/([a-z0-9_]+)/', 1) as set, query, doc, score, checkpoint,
    case when score < 0.5 then 0 when score < 1.5 then 1 else 2 end as label
  from read_parquet('{run}/scores/*/*.parquet', filename = true);
create view hits as
  select name as route, query, unnest(doc) as doc, unnest(range(1, 101)) as rank from (
    select 'dense' as name, row_number() over () - 1 as query, doc from read_parquet('{run}/hits/dense/*.parquet') union all
    select 'bm25', row_number() over () - 1, doc from read_parquet('{run}/hits/bm25/*.parquet') union all
    select 'ngram', row_number() over () - 1, doc from read_parquet('{run}/hits/ngram/*.parquet') union all
    select 'fused', row_number() over () - 1, doc from read_parquet('{run}/fused/*.parquet'));
create view listed as select hits.*, source_doc from hits join queries using (query) where doc >= 0 and keep;
create view attempts as select *, list_position(['probe', 'v1', 'v2 gap', 'v2'], version) as age
  from read_json('{run}/attempts/*/*.jsonl', columns = {{
    key: 'VARCHAR', task_id: 'VARCHAR', status: 'VARCHAR', score: 'INT', version: 'VARCHAR', stage: 'VARCHAR', pass: 'INT', attempt: 'INT'}});
create view asked as select regexp_extract(filename, 'answers/([a-z0-9_]+)/', 1) as set, query, doc, key, task_id
  from read_parquet('{run}/answers/*/*.parquet', filename = true);
-- what the calls say to each pair sent to the LLM: the valid reply of the newest version that may answer it, else the last call's class
create table answered as
  with calls as (select s.set, s.query, s.doc, a.* from sent s join asked using (set, query, doc) join attempts a using (key)
                 where a.version = s.version or a.age <= list_position(['probe', 'v1', 'v2 gap', 'v2'], s.version)),
  said as (select set, query, doc, bool_or(status in ('ok', 'unevaluable')) as valid,
      arg_max(status, (age, -pass, -attempt)) filter (status in ('ok', 'unevaluable')) as reply,
      arg_max(score, (age, -pass, -attempt)) filter (status = 'ok') as score, arg_max(status, (age, pass, attempt)) as last
    from calls group by all)
  select s.set, s.query, s.doc, s.version, s.stage, s.round, s.rank, s.withdrawn, coalesce(valid, false) as valid,
    coalesce(reply, last, 'budget stop') as status, score
  from sent s left join said using (set, query, doc) where s.judge = 'llm';
"""


@pytest.fixture(scope="module")
def run(tiny_home) -> Path:
    """The one unbroken run of the plan `tiny`."""
    return tiny_home / "runs" / "tiny"


@pytest.fixture(scope="module")
def db(run) -> duckdb.DuckDBPyConnection:
    """A connection that has the views of that run."""
    database = duckdb.connect()
    database.execute(SQL.format(run=run))
    return database


def table(run: Path, name: str, *columns: str) -> list[tuple]:
    """The named cells of each row of a table's CSV, as text; there is at least one row."""
    with open(run / "tables" / f"{name}.csv", encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert rows
    return [tuple(row[column] for column in columns) for row in rows]


def same(found: list[tuple], expected: list[tuple]) -> None:
    """Cells of a CSV against values, in any order: text as text, numbers to 12 digits, an empty cell as None."""
    same_in_order(sorted(found), sorted(expected, key=lambda row: tuple("" if v is None else str(v) for v in row)), 1e-12)


def same_in_order(found: list[tuple], expected: list[tuple], relative: float = 1e-10) -> None:
    """The same in the order of the rows, numbers to 10 digits or as told."""
    assert len(found) == len(expected) > 0
    for cells, values in zip(found, expected, strict=True):
        for cell, value in zip(cells, values, strict=True):
            if value is None or isinstance(value, str):
                assert cell == (value or ""), (cells, values)
            else:
                assert cell != "" and math.isclose(float(cell), float(value), rel_tol=relative, abs_tol=1e-12), (cells, values)
