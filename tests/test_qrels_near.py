"""Neighbours in near-duplicate files: both directions, both spellings, every refusal, and never a column in Python."""

import subprocess
import sys
import tracemalloc
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib import ids
from lib.qrels.near_duplicates import near, near_schema, reverse
from lib.qrels.refusals import Refused
from lib.sample import near_files


def edge(string=pa.string(), number=pa.float32()) -> pa.StructType:
    return pa.struct({"doc_id": string, "jaccard": number})


def write(path: Path, rows: list, own=pa.string(), lists=None, row_group: int = 1000) -> Path:
    """A near-duplicate file of rows (id, [(neighbour, Jaccard), ...] or None)."""
    made = [None if pairs is None else [pair and dict(zip(("doc_id", "jaccard"), pair, strict=True)) for pair in pairs] for _, pairs in rows]
    table = pa.table({"doc_id": pa.array([docid for docid, _ in rows], own), "duplicates": pa.array(made, lists or pa.list_(edge()))})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group)
    return path


def slow(rows: list, docids) -> dict[str, dict[str, float]]:
    """Both directions of all edges, one by one."""
    found = defaultdict(dict)
    for own, pairs in rows:
        for neighbour, jaccard in pairs or []:
            one, other, value = ids.api(own), ids.api(neighbour), float(np.float32(jaccard))
            for a, b in ((one, other), (other, one)):
                if a != b:
                    found[a][b] = max(value, found[a].get(b, 0.0))
    return {ids.api(docid): found[ids.api(docid)] for docid in docids}


A, B, C, D = "shard_00000_00007", "shard_00000_00070", "shard_00001_12345", "page-٣"
ROWS = [(A, [(B, 0.75), (A, 1.0), (C, 0.9)]), (B, []), (C, [(A, 0.8)]), (D, None)]


@given(st.lists(st.one_of(st.text(max_size=6), st.from_regex(r"shard_[0-9]{0,3}_0{0,3}[0-9]{0,3}\n?", fullmatch=True))))
@example(["shard_1_0", "shard_1_000", "shard_1_00100", "shard_1_", "shard__01", "shard_1_01\n", "shard_1_0_01", "shard_1_٠١", "shard_٠_01", "Shard_1_01", ""])
@example([])
def test_ids_are_normalised_in_arrow_as_one_by_one(docids):
    docids = [docid for docid in docids if docid.isprintable() or docid.endswith("\n")]
    assert reverse.api(pa.array(docids, pa.string())).to_pylist() == [ids.api(docid) for docid in docids]


def test_edges_count_in_both_directions_and_the_larger_jaccard_of_two_counts(tmp_path):
    write(tmp_path / "n" / "0.parquet", ROWS[:2]), write(tmp_path / "n" / "1.parquet", ROWS[2:])
    a, b, c = "shard_00000_7", "shard_00000_70", "shard_00001_12345"
    f = lambda value: float(np.float32(value))
    found = near.neighbours(tmp_path / "n", [D, A, b, c], tmp_path / "cache")
    assert found == {D: {}, a: {b: f(0.75), c: f(0.9)}, b: {a: f(0.75)}, c: {a: f(0.9)}} and list(found) == sorted(found)
    assert near.neighbours(tmp_path / "n", [a, A], tmp_path / "cache") == {a: found[a]}
    assert near.neighbours(tmp_path / "n", [], tmp_path / "cache") == {}


DOCIDS = ["shard_00000_0", "shard_00000_1", "shard_00000_10", "shard_00001_1", "shard_1_1", "shard_00002_123456", "x", "x_1", "x_01", "ß_7", "shard_a_1"]
SPELLED = st.builds(lambda docid, padding: ids.analysis(docid) if padding == 0 else ids.api(docid) if padding == 1 else
                    "_".join([*docid.split("_")[:-1], docid.split("_")[-1].zfill(8)]) if ids.analysis(docid) != ids.api(docid) else docid,
                    st.sampled_from(DOCIDS), st.integers(0, 2))
LISTS = st.one_of(st.none(), st.lists(st.tuples(SPELLED, st.floats(0, 1, width=32)), max_size=4))


@given(st.lists(st.tuples(SPELLED, LISTS), max_size=11, unique_by=lambda row: ids.api(row[0])), st.integers(1, 3), st.integers(1, 4), st.data())
@example([(ids.analysis(docid), [(other, 0.7) for other in DOCIDS]) for docid in reversed(DOCIDS)], 2, 2, None)
@example([], 1, 1, None)
@settings(max_examples=60, deadline=None)
def test_neighbours_are_those_of_the_slow_reference(tmp_path_factory, rows, parts, row_group, data):
    folder = tmp_path_factory.mktemp("near")
    for part in range(parts):
        write(folder / "n" / f"{part}.parquet", rows[part::parts], row_group=row_group)
    wanted = [docid for docid, _ in rows] if data is None else data.draw(st.lists(st.sampled_from([docid for docid, _ in rows]))) if rows else []
    expected = slow(rows, wanted)
    assert near.neighbours(folder / "n", wanted[:2], folder / "cache") == slow(rows, wanted[:2])
    assert near.neighbours(folder / "n", wanted, folder / "cache") == expected


STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string())]


@pytest.mark.parametrize("string", STRINGS, ids=str)
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list], ids=["list", "large_list"])
@pytest.mark.parametrize("number", [pa.float32(), pa.float64()], ids=str)
def test_any_string_list_and_float_type_gives_the_same(tmp_path, string, kind, number):
    rows = [(A, [(B, 0.7), (C, 0.9)]), (B, None), (C, [])]
    inner = pa.string() if string == pa.string_view() else string  # pyarrow writes no lists of views
    write(tmp_path / "n" / "a.parquet", rows, own=string, lists=kind(edge(inner, number)), row_group=1000 if string == pa.string_view() else 2)
    assert near.neighbours(tmp_path / "n", [A, B, C], tmp_path / "cache") == slow(rows, [A, B, C])


def test_columns_are_told_by_their_types_not_by_their_names(tmp_path):
    struct = pa.struct({"n": pa.int64(), "j.x": pa.float32(), "who": pa.string()})
    table = pa.table({"size": [1, 2], "list": pa.array([[{"n": 1, "j.x": 0.75, "who": B}], []], pa.list_(struct)), "the.id": [A, B], "tags": [[1], []]})
    (tmp_path / "n").mkdir()
    pq.write_table(table, tmp_path / "n" / "a.parquet")
    assert near.neighbours(tmp_path / "n", [B], tmp_path / "cache") == {"shard_00000_70": {"shard_00000_7": 0.75}}


def refusal(tmp_path, docids=(A,)) -> str:
    with pytest.raises(Refused) as refused:
        near.neighbours(tmp_path / "n", docids, tmp_path / "cache")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_documents_without_a_row_are_counted_and_the_first_ten_named(tmp_path):
    write(tmp_path / "n" / "a.parquet", ROWS)
    said = refusal(tmp_path, [A, *(f"shard_00009_{i}" for i in range(11, 23))])
    assert said.startswith("12 of 13 documents have no row in ") and "shard_00009_20 and 2 more; " in said and "shard_00009_21" not in said
    assert "zero-padded, as shard_00009_00011" in said
    assert not (tmp_path / "cache" / "found.json").exists()


@pytest.mark.parametrize("parts", [1, 2])
def test_an_id_with_two_rows_is_refused_in_one_file_and_in_two_and_in_two_spellings(tmp_path, parts):
    for again in (A, ids.api(A)):
        rows = [(A, []), (B, []), (again, [])]
        for part in range(parts):
            write(tmp_path / "n" / f"{part}.parquet", rows[:2] if parts == 2 and part == 0 else rows[2:] if parts == 2 else rows)
        said = refusal(tmp_path)
        assert said.startswith("shard_00000_7 has two rows, ") and ("0.parquet row 0 and " in said) and f"{parts - 1}.parquet row {0 if parts == 2 else 2}; " in said


@pytest.mark.parametrize("row, fault", [
    ((B, [(C, 0.7), None]), "row 1 holds a neighbour whose struct is null"), ((B, [(None, 0.7)]), "row 1 holds a neighbour whose 'doc_id' is null"),
    ((B, [(C, None)]), "row 1 holds a neighbour whose 'jaccard' is null"), ((B, [(C, float("nan"))]), "row 1 holds the Jaccard nan"),
    ((B, [(C, 0.7), (C, 1.5)]), "row 1 holds the Jaccard 1.5"), ((B, [(C, -0.1)]), "row 1 holds the Jaccard -0.1"),
    ((B, [(C, float("inf"))]), "row 1 holds the Jaccard inf"), ((None, []), "row 1 has no id in 'doc_id'"),
    ((B, [("a b", 0.7)]), "pairs shard_00000_70 with 'a b', which holds the character U+0020"), ((B, [("", 0.7)]), "which is empty"),
])
def test_a_faulty_edge_or_row_is_refused_by_file_and_row_wherever_it_lies(tmp_path, row, fault):
    write(tmp_path / "n" / "a.parquet", [(A, []), row, (C, [])], row_group=2)
    for docids in ([A], [B]) if "pairs" not in fault and "empty" not in fault and row[0] else ([A],) if row[0] is None else ([B],):
        said = refusal(tmp_path, docids)
        assert "a.parquet" in said and fault in said


def test_a_damaged_or_foreign_file_is_refused_by_name(tmp_path):
    assert "holds no .parquet file" in refusal(tmp_path)
    path = write(tmp_path / "n" / "a.parquet", ROWS)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", whole[:-20], whole[: len(whole) // 2], b"x" * 500):
        path.write_bytes(damaged)
        assert "a.parquet is no Parquet file that can be read" in refusal(tmp_path)
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    assert "a.parquet is no Parquet file that can be read" in refusal(tmp_path)
    for columns, said in [
        ({"doc_id": [A]}, "exactly one column of lists of structs, and has none"), ({"n": [1], "duplicates": [[{"a": A, "b": 0.5}]]}, "exactly one column of strings"),
        ({"doc_id": [A], "url": [A], "d": [[{"a": A, "b": 0.5}]]}, "and has 2: doc_id, url"), ({"doc_id": [A], "d": [[{"a": A}]]}, "exactly one float32 in the structs of 'd'"),
        ({"doc_id": [A], "d": [[{"a": A, "b": 0.5, "c": 0.5}]]}, "and has 2: b, c"), ({"doc_id": [A], "d": [[{"a": A, "e": A, "b": 0.5}]]}, "exactly one string in the structs"),
        ({"doc_id": [A], "d": [[{"a": A, "b": 0.5}]], "e": [[{"a": A, "b": 0.5}]]}, "and has 2: d, e"), ({"doc_id": [A], "d": [["x"]]}, "lists of structs, and has none"),
    ]:
        pq.write_table(pa.table(columns), path)
        assert said in refusal(tmp_path) and "a.parquet needs" in refusal(tmp_path)


    pq.write_table(pa.Table.from_arrays([pa.array([A]), pa.array([1]), pa.array([[{"a": A, "b": 0.5}]])], names=["id", "id", "d"]), path)
    assert "a.parquet has 2 columns or fields named 'id'; " in refusal(tmp_path)


def test_long_lists_are_decoded_in_smaller_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(near_schema, "EDGES", 64)
    rows = [(f"shard_00000_{i:05d}", [(f"shard_00001_{j:05d}", 0.75) for j in range(i % 40)]) for i in range(100)]
    near_file = near_schema.opened(write(tmp_path / "n" / "a.parquet", rows, row_group=60))
    found = [(rows.tolist(), batch.num_rows) for rows, batch in near_schema.batches(near_file, ["duplicates"])]
    assert max(n for _, n in found) <= 5 and [len(own) for own, _ in found] == [n for _, n in found] and sum((own for own, _ in found), []) == list(range(100))
    assert near.neighbours(tmp_path / "n", [docid for docid, _ in rows], tmp_path / "cache") == slow(rows, [docid for docid, _ in rows])


def test_the_larger_edge_may_stand_in_either_row_and_ids_that_are_no_shard_ids_stay(tmp_path):
    rows = [("x_01", [("x_1", 0.7)]), ("x_1", [("x_01", 0.9), ("x_01", 0.8)])]
    write(tmp_path / "n" / "a.parquet", rows)
    assert near.neighbours(tmp_path / "n", ["x_01", "x_1"], tmp_path / "cache") == {"x_01": {"x_1": float(np.float32(0.9))}, "x_1": {"x_01": float(np.float32(0.9))}}


def test_found_rows_and_indexes_are_read_again_only_where_a_file_changed(tmp_path, monkeypatch):
    write(tmp_path / "n" / "a.parquet", ROWS[:2]), write(tmp_path / "n" / "b.parquet", ROWS[2:])
    scans, builds = [], []
    rows, build = near.rows, reverse.build
    monkeypatch.setattr(near, "rows", lambda paths, docids: scans.append(sorted(docids)) or rows(paths, docids))
    monkeypatch.setattr(reverse, "build", lambda path: builds.append(path.name) or build(path))
    ask = lambda *docids: near.neighbours(tmp_path / "n", docids, tmp_path / "cache")
    ask(A), ask(A), ask(A, C)
    assert (scans, sorted(builds)) == ([["shard_00000_7"], ["shard_00001_12345"]], ["a.parquet", "b.parquet"])
    write(tmp_path / "n" / "b.parquet", [(C, [(B, 0.95)]), (D, [])])
    assert ask(B) == {"shard_00000_70": {"shard_00000_7": 0.75, "shard_00001_12345": float(np.float32(0.95))}}
    assert ask(A)["shard_00000_7"]["shard_00001_12345"] == float(np.float32(0.9))
    assert sorted(builds) == ["a.parquet", "b.parquet", "b.parquet"] and scans[2:] == [["shard_00000_70"], ["shard_00000_7"]]
    (tmp_path / "n" / "b.parquet").unlink()
    assert len(list((tmp_path / "cache" / "reverse").glob("*.arrow"))) == 2
    assert ask(A) == {"shard_00000_7": {"shard_00000_70": 0.75, "shard_00001_12345": float(np.float32(0.9))}}
    assert len(list((tmp_path / "cache" / "reverse").glob("*.arrow"))) == 1
    for cached in [*(tmp_path / "cache").rglob("*.arrow"), tmp_path / "cache" / "found.json"]:
        cached.write_bytes(b"ARROW1 half a file")
    assert ask(B) == {"shard_00000_70": {"shard_00000_7": 0.75}} and builds[-1] == "a.parquet"


KILLED = """
import os, sys
from lib.qrels.near_duplicates import near, reverse
near.WORKERS, build = 1, reverse.build
reverse.build = lambda path: os._exit(9) if path.name.startswith("2") else build(path)
near.neighbours(sys.argv[1], [sys.argv[2]], sys.argv[3])
"""


def test_a_killed_build_of_the_reverse_edges_goes_on_with_the_next_file(tmp_path):
    rows = [[(f"shard_{i:05d}_00001", [(A, 0.7 + i / 100)])] for i in range(4)]
    for i, own in enumerate(rows):
        write(tmp_path / "n" / f"{i}.parquet", own + ([(A, [])] if i == 0 else []))
    asked = [str(tmp_path / "n"), A, str(tmp_path / "cache")]
    assert subprocess.run([sys.executable, "-c", KILLED, *asked], cwd=Path(near.__file__).parents[3]).returncode == 9
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.arrow")}
    assert sorted(made) == ["0.arrow", "1.arrow"]
    found = near.neighbours(tmp_path / "n", [A], tmp_path / "cache")
    assert found == {"shard_00000_7": {f"shard_{i:05d}_1": float(np.float32(0.7 + i / 100)) for i in range(4)}}
    assert {name: (tmp_path / "cache" / "reverse" / name).stat().st_mtime_ns for name in made} == made


def test_case_36_rows_are_taken_before_they_reach_python(tmp_path):
    """Peak Python memory, never seconds; null and empty lists give no neighbours, a row that is not there is refused by name."""
    n, each, wanted = 150_000, 4, np.random.default_rng(0).choice(150_000, 50, replace=False)
    own = near_files.docids(n, 1, np.arange(n))
    ends, targets = np.arange(n + 1, dtype=np.int32) * each, np.random.default_rng(1).integers(0, n, each * n)
    bare = np.zeros(n + 1, bool)
    bare[wanted[0]] = True  # a null list
    ends[wanted[1] + 1 :] -= each  # an empty one
    structs = pa.StructArray.from_arrays([pa.array(own).take(pa.array(targets[: ends[-1]])), pa.array(np.full(ends[-1], 0.75, np.float32))], fields=list(edge()))
    table = pa.table({"doc_id": own, "duplicates": pa.ListArray.from_arrays(pa.array(ends, mask=bare), structs)})
    del own
    (tmp_path / "n").mkdir()
    pq.write_table(table, tmp_path / "n" / "a.parquet")
    chosen = table.take(pa.array(wanted)).to_pylist()
    docids = [row["doc_id"] for row in chosen]
    tracemalloc.start()
    try:
        found = near.rows([tmp_path / "n" / "a.parquet"], docids)
        near.neighbours(tmp_path / "n", docids, tmp_path / "cache")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        table["duplicates"].slice(0, n // 10).to_pylist()
        tenth = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20 < tenth
    whole = dict(zip(table["doc_id"].to_pylist(), table["duplicates"].to_pylist(), strict=True))
    expected = {ids.api(docid): [(pair["doc_id"], pair["jaccard"]) for pair in whole[docid] or []] for docid in docids}
    assert {row.docid: row.duplicates for row in found} == expected
    assert expected[ids.api(docids[0])] == expected[ids.api(docids[1])] == [] and sum(map(len, expected.values())) == each * 48
    with pytest.raises(Refused, match="1 of 2 documents have no row .*shard_00000_150000"):
        near.rows([tmp_path / "n" / "a.parquet"], [docids[2], "shard_00000_150000"])


def test_row_groups_without_a_wanted_id_are_not_decoded(tmp_path, monkeypatch):
    rows = [(f"shard_00000_{i:05d}", [(A, 0.7)]) for i in range(100, 200)]
    path, decoded, batches = write(tmp_path / "a.parquet", rows, row_group=10), [], near_schema.batches
    monkeypatch.setattr(near_schema, "batches", lambda opened, columns, groups=None: decoded.append((columns[0], groups)) or batches(opened, columns, groups))
    assert [(row.row, row.duplicates) for row in near.rows([path], [rows[72][0], rows[37][0], rows[31][0]])] == [
        (i, [(A, float(np.float32(0.7)))]) for i in (31, 37, 72)]
    assert decoded == [("doc_id", [3, 7]), ("duplicates", [3, 7])]


def test_the_generator_writes_the_same_rows_again_and_both_ends_agree(tmp_path):
    for folder in ("one", "two"):
        edges = near_files.write(tmp_path / folder, 3000, 3, seed=5, paired=0.5, both=0.4)
    one, two = ([path.read_bytes() for path in sorted((tmp_path / folder).iterdir())] for folder in ("one", "two"))
    assert one == two and len(one) == 3
    table = pq.read_table(tmp_path / "one")
    assert table.schema.equals(near_files.SCHEMA)
    rows = [(row["doc_id"], [(pair["doc_id"], pair["jaccard"]) for pair in row["duplicates"]]) for row in table.to_pylist()]
    assert [docid for docid, _ in rows] == near_files.docids(3000, 3, np.arange(3000)) == sorted(docid for docid, _ in rows)
    pairs = {(own, other): jaccard for own, listed in rows for other, jaccard in listed}
    assert len(pairs) == edges == sum(len(listed) for _, listed in rows)
    at_both = [pair for pair in pairs if pair[::-1] in pairs]
    assert all(pairs[pair] == pairs[pair[::-1]] for pair in at_both) and all(np.float32(0.7) <= value <= 1 and own != other for (own, other), value in pairs.items())
    assert abs(len(at_both) / 2 / (len(pairs) - len(at_both) / 2) - 0.4) < 0.05
    assert 0.35 < np.mean([bool(listed) for _, listed in rows]) < 0.55 and max(len(listed) for _, listed in rows) > 20
    docids = [docid for docid, _ in rows[::7]]
    assert near.neighbours(tmp_path / "one", docids, tmp_path / "cache") == slow(rows, docids)
    with pytest.raises(ValueError, match="2 documents cannot lie in 3 shards"):
        near_files.write(tmp_path / "three", 2, 3)


@pytest.mark.peers
@pytest.mark.parametrize("row_group", [100, 1 << 20])
def test_the_rows_are_those_of_a_polars_scan(tmp_path, row_group):
    import polars

    near_files.write(tmp_path, 4000, 3, seed=2, paired=0.6, row_group=row_group)
    docids = near_files.docids(4000, 3, np.random.default_rng(0).choice(4000, 400, replace=False))
    scanned = polars.scan_parquet(tmp_path / "*.parquet").filter(polars.col("doc_id").is_in(docids)).collect().to_dicts()
    expected = {ids.api(row["doc_id"]): [(pair["doc_id"], pair["jaccard"]) for pair in row["duplicates"]] for row in scanned}
    found = near.rows(near_schema.near_files(tmp_path), docids)
    assert {row.docid: row.duplicates for row in found} == expected and len(expected) == 400 and sum(map(len, expected.values())) > 400


def test_finding_neighbours_starts_without_pandas(tmp_path):
    write(tmp_path / "n" / "a.parquet", ROWS)
    source = "import sys; from lib.qrels.near_duplicates import near; print(near.neighbours(*sys.argv[1:2], sys.argv[3:], sys.argv[2]), 'pandas' in sys.modules)"
    asked = [sys.executable, "-c", source, str(tmp_path / "n"), str(tmp_path / "cache"), B, C]
    said = subprocess.run(asked, cwd=Path(near.__file__).parents[3], capture_output=True, text=True, check=True).stdout
    assert said.startswith("{'shard_00000_70': {'shard_00000_7': 0.75}, ") and said.endswith("} False\n")
