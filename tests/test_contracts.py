"""Tables have the declared schema or are refused, whatever their parts hold."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lib import contracts, paths
from lib.contracts import TABLES, ContractError

CASE_33 = json.loads((paths.ROOT / "tests/cases/33-shards-with-a-null-column-or-no-rows.json").read_text())


def sample(kind: pa.DataType):
    """Some value of a type."""
    if pa.types.is_fixed_size_list(kind):
        return [sample(kind.value_type)] * kind.list_size
    if pa.types.is_list(kind):
        return [sample(kind.value_type)] * 2
    for test, value in ((pa.types.is_boolean, True), (pa.types.is_integer, 7), (pa.types.is_floating, 0.5)):
        if test(kind):
            return value
    return "\u00df\n007"


def rows(name: str, nulls: bool) -> list[dict]:
    """Two rows; with `nulls` every column that may be null is."""
    return [{field.name: None if nulls and field.nullable else sample(field.type) for field in TABLES[name]}] * 2


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["full", "null", "empty"])
def test_every_table_comes_back_as_it_was_with_null_only_columns_and_without_rows(tmp_path, name, kind):
    made = contracts.table(name, rows(name, kind == "null") if kind != "empty" else [])
    line = contracts.write(name, made, tmp_path / "part-00000.parquet")
    back = contracts.read_part(name, tmp_path / "part-00000.parquet")
    assert back.equals(made) and back.schema.equals(TABLES[name])
    assert line["part"] == "part-00000.parquet" and line["rows"] == (0 if kind == "empty" else 2) and len(line["sha256"]) == 64


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=lambda order: "".join(map(str, order)))
def test_case_33_shards_read_the_same_in_every_order(tmp_path, order):
    common = {"qid": "q", "query_evaluable": True, "judge": "j", "version": "v1", "stage": "s", "round": 0, "model": "m"}
    empty = {"llm_label": None, "prompt_sha256": None}
    lines = []
    for place in order:
        shard = CASE_33["input"]["shards"][place]
        made = [common | empty | {"docid": row["id"], "label": row["label"], "student_score": row["score"]} for row in shard["rows"]]
        lines.append(contracts.write("labels", contracts.table("labels", made), tmp_path / f"{shard['name']}.parquet"))
    contracts.finish(tmp_path, lines)
    back = contracts.read("labels", tmp_path)
    found = [{"id": row["docid"], "label": row["label"], "score": row["student_score"]} for row in back.to_pylist()]
    assert sorted(found, key=lambda row: row["id"]) == CASE_33["right_answer"]["rows"]
    assert back.schema.equals(TABLES["labels"])
    for path in tmp_path.glob("*.parquet"):
        assert pq.read_schema(path).equals(TABLES["labels"])


def test_a_folder_without_a_manifest_is_not_read(tmp_path):
    contracts.write("rerank", contracts.table("rerank", rows("rerank", False)), tmp_path / "part-00000.parquet")
    with pytest.raises(ContractError, match=r"is not finished \(it has no manifest.json\); run the notebook"):
        contracts.read("rerank", tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"parts": [{"part": "part-00000.parquet"}]}'])
def test_a_torn_or_foreign_manifest_is_refused_by_name(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ContractError, match="manifest.json is no list of parts; remove it"):
        contracts.parts(tmp_path)


def test_damage_inside_a_part_is_told_with_its_name(tmp_path):
    table = contracts.table("rerank", [{"query": 1, "doc": 2, "score": 0.5, "model": "m" * 4000}])
    path = tmp_path / "part-00000.parquet"
    contracts.write("rerank", table, path)
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36  # the first page's header
    path.write_bytes(data)
    with pytest.raises(ContractError, match="part-00000.parquet is damaged"):
        contracts.read_part("rerank", path)


def test_only_the_parts_of_the_manifest_are_read_in_its_order(tmp_path):
    lines = [contracts.write("rerank", contracts.table("rerank", [{"query": n, "doc": n, "score": 0.5, "model": "m"}]), tmp_path / f"part-{n:05d}.parquet") for n in range(4)]
    contracts.finish(tmp_path, [lines[2], lines[0]])
    assert contracts.read("rerank", tmp_path, ["query"]).to_pydict() == {"query": [2, 0]}


def test_a_part_with_other_rows_than_its_line_is_refused(tmp_path):
    line = contracts.write("rerank", contracts.table("rerank", rows("rerank", False)), tmp_path / "part-00000.parquet")
    contracts.finish(tmp_path, [line | {"rows": 3}])
    with pytest.raises(ContractError, match="part-00000.parquet has 2 rows, its manifest says 3; remove it"):
        contracts.read("rerank", tmp_path)


def test_a_torn_part_and_a_missing_one_are_refused_by_name(tmp_path):
    path = tmp_path / "part-00000.parquet"
    contracts.write("rerank", contracts.table("rerank", rows("rerank", False)), path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ContractError, match="part-00000.parquet cannot be read as a rerank table"):
        contracts.read_part("rerank", path)
    with pytest.raises(ContractError, match="part-00001.parquet cannot be read as a rerank table"):
        contracts.read_part("rerank", tmp_path / "part-00001.parquet")


def test_a_folder_that_is_finished_without_parts_has_the_schema_and_no_rows(tmp_path):
    contracts.finish(tmp_path, [])
    assert contracts.read("hits", tmp_path).schema.equals(TABLES["hits"])
    assert contracts.read("hits", tmp_path, ["score"]).schema.names == ["score"]


@pytest.mark.parametrize("data, message", [
    ({"query": [1], "doc": [1], "score": [1.0]}, "a rerank table has the columns .*'model'.*, not .*'query', 'score'"),
    ({"query": [1], "doc": [1], "score": [1.0], "model": ["m"], "modle": ["m"]}, "not .*'modle'"),
    ({"query": [None], "doc": [1], "score": [1.0], "model": ["m"]}, "rerank.query has 1 nulls and is declared without"),
    ({"query": ["007"], "doc": [1], "score": [1.0], "model": ["m"]}, "rerank.query is declared as int32 and cannot hold"),
    ({"query": [1], "doc": [2**31], "score": [1.0], "model": ["m"]}, "rerank.doc is declared as int32 and cannot hold"),
    ({"query": [1], "doc": np.array([1.5]), "score": [1.0], "model": ["m"]}, "rerank.doc is declared as int32 and cannot hold"),
    ({"query": [1], "doc": [1], "score": [1.0], "model": [7]}, "rerank.model is declared as string and cannot hold"),
])
def test_columns_that_are_not_as_declared_are_refused_by_name(data, message):
    with pytest.raises(ContractError, match=message):
        contracts.table("rerank", data)


@pytest.mark.parametrize("name, kind, message", [
    ("score", pa.float64(), "rerank.score is double, declared as float; make it with lib.contracts.table"), ("other", pa.int32(), "rerank.score is missing"),
])
def test_a_table_made_elsewhere_is_refused_in_writing_and_in_reading(tmp_path, name, kind, message):
    schema = pa.schema([pa.field(name, kind, False) if field.name == "score" else field for field in TABLES["rerank"]])
    made = schema.empty_table()
    with pytest.raises(ContractError, match=message):
        contracts.write("rerank", made, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())
    pq.write_table(made, tmp_path / "b.parquet")
    with pytest.raises(ContractError, match=f"b.parquet: {message}"):
        contracts.read_part("rerank", tmp_path / "b.parquet")


def test_columns_stand_in_the_declared_order(tmp_path):
    made = contracts.table("rerank", rows("rerank", False))
    with pytest.raises(ContractError, match="in this order"):
        contracts.check("rerank", made.select(["doc", "query", "score", "model"]))


def test_places_are_a_matrix_and_back():
    doc = np.arange(200, dtype=np.int32).reshape(2, 100)
    hits = contracts.table("hits", {"doc": contracts.as_places(doc), "score": contracts.as_places(doc.astype(np.float32))})
    assert (contracts.places(hits["doc"]) == doc).all() and contracts.places(hits["score"]).dtype == np.float32
    split = pa.concat_tables([hits.slice(1), hits.slice(0, 1)])  # chunks that start inside an array
    assert (contracts.places(split["doc"]) == doc[::-1]).all()
    assert contracts.places(TABLES["hits"].empty_table()["doc"]).shape == (0, 100)
    with pytest.raises(ContractError, match="hits.doc"):
        contracts.table("hits", {"doc": contracts.as_places(doc[:, :99]), "score": contracts.as_places(doc.astype(np.float32))})


def test_the_same_table_gives_the_same_bytes(tmp_path):
    made = contracts.table("labels", rows("labels", True))
    assert contracts.write("labels", made, tmp_path / "a.parquet")["sha256"] == contracts.write("labels", made, tmp_path / "b.parquet")["sha256"]


def test_a_folder_is_finished_as_long_as_what_it_was_made_from_is(tmp_path):
    made = [contracts.table("rerank", [{"query": n, "doc": n, "score": 0.5, "model": "m"}]) for n in range(3)]
    source, folder = tmp_path / "a" / "source", tmp_path / "made"
    contracts.finish(source, [contracts.write("rerank", made[0], source / "part-00000.parquet")])
    contracts.finish(folder, [contracts.write("rerank", made[1], folder / "part-00000.parquet")], made_from=[source])
    assert contracts.read("rerank", folder)["query"].to_pylist() == [1]
    contracts.finish(source, [contracts.write("rerank", made[2], source / "part-00000.parquet")])
    with pytest.raises(ContractError, match="made was made from another .*a/source; run the notebook that writes it again"):
        contracts.read("rerank", folder)
    (source / "manifest.json").unlink()
    with pytest.raises(ContractError, match="a/source is not finished"):
        contracts.parts(folder)
    contracts.finish(source, [contracts.write("rerank", made[0], source / "part-00000.parquet")])
    assert contracts.read("rerank", folder)["query"].to_pylist() == [1]


def test_what_a_source_was_made_from_counts_and_is_looked_at_once_and_what_is_gone_is_not(tmp_path, monkeypatch):
    def make(name: str, value: int, made_from: list[str]) -> None:
        rows = contracts.table("rerank", [{"query": value, "doc": 0, "score": 0.5, "model": "m"}])
        line = contracts.write("rerank", rows, tmp_path / name / "part-00000.parquet")
        contracts.finish(tmp_path / name, [line], [tmp_path / source for source in made_from])

    make("0", 0, [])
    below = ["0"]
    for layer in range(1, 12):  # each of two folders is made from both of the layer below: 2^10 ways lead from the last to the first
        here = [f"{layer}a", f"{layer}b"]
        for name in here:
            make(name, layer, below)
        below = here
    read, plain = [], contracts._parsed
    monkeypatch.setattr(contracts, "_parsed", lambda path, changed: read.append(path) or plain(path, changed))
    contracts.parts(tmp_path / "11b")
    assert len(read) == len(set(read)) == 22  # all but 11a
    make("0", 7, [])
    with pytest.raises(ContractError, match="1a was made from another .*/0; run the notebook"):
        contracts.parts(tmp_path / "11b")
    assert [line["rows"] for line in contracts.lines(tmp_path / "11b")] == [1]
    (tmp_path / "0/manifest.json").unlink()
    (tmp_path / "0/part-00000.parquet").unlink()
    (tmp_path / "0").rmdir()
    contracts.parts(tmp_path / "11b")
