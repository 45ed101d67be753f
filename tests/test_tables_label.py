"""The tables of the labelling run of a whole plan, each computed again by a plain DuckDB query."""

import json

import duckdb
import pytest
from whole_tables import run, table  # noqa: F401


def test_labelling_counts_every_pair_routed_to_the_model(run):
    (expected,) = duckdb.sql(f"""select 'v1', count(*), avg((score < 0.5)::int), avg((score >= 0.5 and score < 1.5)::int), avg((score >= 1.5)::int)
        from read_parquet('{run}/scores/v1/*.parquet')""").fetchall()
    ((version, *numbers),) = table(run, "labelling", "version", "pairs", "0", "1", "2")
    assert version == expected[0] and [float(cell) for cell in numbers] == pytest.approx(expected[1:], rel=1e-12)
    routed = duckdb.sql(f"select distinct query, doc from read_parquet('{run}/intents/v1/*.parquet') where judge = 'student'")  # noqa: F841
    scored = duckdb.sql(f"select query, doc from read_parquet('{run}/scores/v1/*.parquet')")  # noqa: F841
    assert len(routed.fetchall()) == int(numbers[0]) > 0
    assert duckdb.sql("(from routed except all from scored) union all (from scored except all from routed)").fetchall() == []


def test_score_histogram(run):
    expected = duckdb.sql(f"""select least(greatest(floor(score::double * 20), -10), 49)::int as bin, count(*)
        from read_parquet('{run}/scores/v1/*.parquet') group by bin""").fetchall()
    found = {round(float(low) * 20): int(pairs) for low, pairs in table(run, "score_histogram", "low", "pairs")}
    assert sorted(found) == list(range(-10, 50))
    assert {place: pairs for place, pairs in found.items() if pairs} == dict(expected)


def test_every_score_names_the_open_gate_and_the_used_checkpoint(run):
    ((pairs, pearson, difference, control),) = table(run, "gate", "pairs", "Pearson", "max difference", "Pearson of the control")
    assert int(pairs) == 48 and float(pearson) >= 0.999 and float(difference) <= 0.05 and float(control) < 0.999
    (record,) = (json.loads(path.read_text()) for path in (run / "scores/v1/gates").glob("*.json"))
    used = [f"{arm}/{step}" for arm, step, mark in table(run, "checkpoints", "arm", "step", "used") if mark]
    assert duckdb.sql(f"select distinct gate, checkpoint from read_parquet('{run}/scores/v1/*.parquet')").fetchall() == [(record["sha256"], *used)]
