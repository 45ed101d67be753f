"""Documents and queries: written all or nothing, read a part at a time."""

import os
import random
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import contents, python, tokenizer_file
from tokenizers import Tokenizer

from lib import contracts, corpus, processes
from lib.corpus import imported, index, token_table
from lib.corpus.lines import Place, Refused
from lib.corpus.trec import Ranked

DOCUMENTS = [{"docid": f"d{n}", "text": f"the number {n}\n" * (n % 3)} for n in range(10)]
QUERIES = [{"qid": "007", "text": "the sum", "source_docid": "d3"}, {"qid": "NA", "text": "", "source_docid": None}, {"qid": "q3", "text": "\u00df\U0001d465"}]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_file(tmp_path_factory.mktemp("tokenizer"))


def write(run, tokenizer, documents=DOCUMENTS, queries=QUERIES, **options):
    return corpus.write(run, iter(documents), iter(queries), tokenizer, document_rows=4, query_rows=2, **options)


def test_parts_name_their_first_row_and_together_are_the_corpus(tmp_path, tokenizer):
    counts = write(tmp_path, tokenizer)
    assert corpus.parts(tmp_path, "documents") == [("part-00000", 0, 4), ("part-00001", 4, 4), ("part-00002", 8, 2)]
    assert corpus.parts(tmp_path, "queries") == [("part-00000", 0, 2), ("part-00001", 2, 1)]
    table = corpus.all_documents(tmp_path)
    assert table["docid"].to_pylist() == [row["docid"] for row in DOCUMENTS]
    assert table["text"].to_pylist() == [row["text"] for row in DOCUMENTS]
    assert corpus.documents(tmp_path, "part-00002", ["docid"])["docid"].to_pylist() == ["d8", "d9"]
    assert corpus.queries(tmp_path, "part-00001", ["qid", "keep"]).to_pylist() == [{"qid": "q3", "keep": True}]
    assert (counts["documents"], counts["queries"], counts["with a source page"], counts["kept"]) == (10, 3, 1, 3)


def test_characters_are_code_points_and_tokens_are_those_of_the_tokenizer(tmp_path, tokenizer):
    texts = ["", "a", "\U0001d465\u00b2", "the sum of the squares"]
    write(tmp_path, tokenizer, [{"docid": str(n), "text": text} for n, text in enumerate(texts)], QUERIES[1:])
    table = corpus.all_documents(tmp_path)
    assert table["n_chars"].to_pylist() == [0, 1, 2, 22]
    own = Tokenizer.from_file(str(tokenizer))
    assert table["n_tokens"].to_pylist() == [len(own.encode(text, add_special_tokens=False).ids) for text in texts]
    assert table["n_tokens"].to_pylist()[:3] == [0, 1, 4 + 2]  # bytes of the two characters


def test_truncation_and_padding_in_the_tokenizer_file_do_not_count(tmp_path, tokenizer):
    cutting = Tokenizer.from_file(str(tokenizer))
    cutting.enable_truncation(3)
    cutting.enable_padding(length=9)
    cutting.save(str(tmp_path / "cutting.json"))
    write(tmp_path / "a", tokenizer)
    write(tmp_path / "b", tmp_path / "cutting.json")
    assert corpus.all_documents(tmp_path / "a", ["n_tokens"]) == corpus.all_documents(tmp_path / "b", ["n_tokens"])


def test_a_folder_with_a_tokenizer_will_do_and_the_run_keeps_a_copy(tmp_path, tokenizer):
    write(tmp_path, tokenizer.parent)
    assert (tmp_path / "tokenizer.json").read_bytes() == tokenizer.read_bytes()
    assert corpus.tokenizer(tmp_path).to_str() == token_table.load(tokenizer).to_str()


@pytest.mark.parametrize("content, message", [(None, "does not exist"), ("{", "is no tokenizer file")])
def test_a_missing_or_broken_tokenizer_is_refused_by_name(tmp_path, content, message):
    if content:
        (tmp_path / "t.json").write_text(content)
    with pytest.raises(ValueError, match=f"t.json {message}"):
        write(tmp_path / "run", tmp_path / "t.json")


def test_a_source_page_becomes_its_row_and_none_stays_null(tmp_path, tokenizer):
    write(tmp_path, tokenizer)
    assert corpus.all_queries(tmp_path, ["source_docid", "source_doc"]).to_pylist() == [
        {"source_docid": "d3", "source_doc": 3}, {"source_docid": None, "source_doc": None}, {"source_docid": None, "source_doc": None},
    ]


def test_the_same_rows_give_the_same_bytes(tmp_path, tokenizer):
    write(tmp_path / "a", tokenizer)
    write(tmp_path / "b", tokenizer)
    once = contents(tmp_path / "a")
    write(tmp_path / "a", tokenizer)
    assert contents(tmp_path / "a") == once == contents(tmp_path / "b")
    assert len(once) == 3 + 2 + 2 + 1  # parts, manifests, tokenizer


BAD = [
    ({"docid": "d 1", "text": ""}, None, r"docids:11 has the docid 'd 1', which holds the character U\+0020"),
    ({"docid": "", "text": ""}, None, "docids:11 has the docid '', which is empty"),
    ({"docid": 7, "text": ""}, None, "docids:11 has the docid 7, which is a int, not text"),
    ({"docid": "x", "text": "a\ud800"}, None, r"docids:11: the text of 'x' holds the lone surrogate U\+D800 at 1"),
    ({"docid": "x", "text": None}, None, "text of 'x' is a NoneType"),
    ({"docid": "x", "text": "", "remvoed": True}, None, "docids:11 has the fields docid, text, remvoed; a row takes docid, text, removed"),
    ({"docid": "x"}, None, "docids:11 has the fields docid; a row takes"),
    ({"docid": "d2", "text": ""}, None, "docids:11 repeats the docid 'd2' of docids:3"),
    ({"docid": "d9", "text": ""}, None, "docids:11 repeats the docid 'd9' of docids:10"),
    (None, {"qid": "NA", "text": ""}, "qids:4 repeats the qid 'NA' of qids:2"),
    (None, {"qid": "q4", "text": "", "source_docid": "d10"}, "qids:4: the query 'q4' has the source_docid 'd10', which is no document"),
    (None, {"qid": "q4", "text": "", "source_docid": "d\ud800"}, r"qids:4 has the source_docid .*, which holds the character U\+D800"),
    (None, {"qid": "q4", "text": "", "source_docid": 3}, "source_docid of 'q4' is a int"),
]


@pytest.mark.parametrize("document, query, message", BAD)
def test_a_bad_row_is_refused_and_a_finished_import_stays_what_it_was(tmp_path, tokenizer, document, query, message):
    write(tmp_path, tokenizer)
    before = contents(tmp_path)
    with pytest.raises(Refused, match=message):
        write(tmp_path, tokenizer, DOCUMENTS + [document] * bool(document), QUERIES + [query] * bool(query))
    assert contents(tmp_path) == before
    with pytest.raises(Refused, match=message):
        write(tmp_path / "new", tokenizer, DOCUMENTS + [document] * bool(document), QUERIES + [query] * bool(query))
    assert contents(tmp_path / "new") == {}


def test_a_place_that_comes_with_a_row_is_the_one_in_the_message(tmp_path, tokenizer):
    rows = [(Place("a.jsonl", 4), DOCUMENTS[0]), (Place("b.jsonl", 1), DOCUMENTS[1]), (Place("b.jsonl", 9), DOCUMENTS[0])]
    with pytest.raises(Refused, match="b.jsonl:9 repeats the docid 'd0' of a.jsonl:4"):
        write(tmp_path, tokenizer, rows)


@pytest.mark.parametrize("documents, queries", [([], QUERIES), (DOCUMENTS, [])])
def test_an_empty_corpus_is_refused(tmp_path, tokenizer, documents, queries):
    with pytest.raises(Refused, match="there are no (documents|queries)"):
        write(tmp_path, tokenizer, documents, queries)


def test_kept_queries_are_named_in_a_file_and_counted(tmp_path, tokenizer):
    (tmp_path / "keep").write_text("q3\n007\n")
    counts = write(tmp_path / "run", tokenizer, keep_queries=tmp_path / "keep")
    assert corpus.all_queries(tmp_path / "run", ["keep"])["keep"].to_pylist() == [True, False, True]
    assert counts["kept"] == 2


@pytest.mark.parametrize("keep, message", [
    ("q3\nq4\n", "keep:2 keeps a query that is not among the 3"), ("q3\nq3\n", "keep:2 repeats the qid 'q3' of"), ("q 3\n", "keep:1 has the qid 'q 3'"),
])
def test_a_kept_query_that_is_unknown_or_named_twice_is_refused(tmp_path, tokenizer, keep, message):
    (tmp_path / "keep").write_text(keep)
    with pytest.raises(Refused, match=message):
        write(tmp_path / "run", tokenizer, keep_queries=tmp_path / "keep")


def test_queries_alone_keep_the_documents_and_unfinish_what_was_imported_for_the_old_ones(tmp_path, tokenizer):
    write(tmp_path, tokenizer)
    imported.write_route(tmp_path, [Ranked(Place("r", 1), "q3", "d1", 1, 0.5)], "own")
    documents = contents(tmp_path / "documents")
    assert corpus.write(tmp_path, None, QUERIES, query_rows=2)["imports to repeat"] == 0  # the same queries
    contracts.parts(tmp_path / "hits/own")
    assert corpus.write(tmp_path, None, QUERIES[:1])["imports to repeat"] == 1
    assert contents(tmp_path / "documents") == documents
    with pytest.raises(contracts.ContractError, match="hits/own is not finished"):
        contracts.parts(tmp_path / "hits/own")


def test_a_held_run_folder_is_refused(tmp_path, tokenizer):
    holder = python("import sys, time; from pathlib import Path; from lib import processes\n"
                    "with processes.lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)", tmp_path, str(tmp_path))
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(processes.Locked, match=f"in use by process {holder.pid}"):
            write(tmp_path, tokenizer)
    finally:
        holder.kill()
        holder.communicate()
    write(tmp_path, tokenizer)


def test_an_import_killed_halfway_leaves_the_finished_one_and_the_next_one_cleans_up(tmp_path, tokenizer):
    write(tmp_path, tokenizer)
    before = contents(tmp_path / "documents")
    code = """
import sys, time
from lib import corpus
def documents():
    for n in range(100):
        if n == 50: print("halfway", flush=True); time.sleep(60)
        yield {"docid": f"e{n}", "text": "x"}
corpus.write(sys.argv[1], documents(), [{"qid": "q", "text": ""}], sys.argv[2], document_rows=4)
"""
    child = python(code, tmp_path, str(tmp_path), str(tokenizer))
    assert child.stdout.readline() == "halfway\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert (tmp_path / ".documents.tmp").exists()
    assert contents(tmp_path / "documents") == before and corpus.all_queries(tmp_path).num_rows == 3
    write(tmp_path, tokenizer)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith((".tmp", ".old"))]


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_an_import_that_breaks_off_between_its_two_tables_never_leaves_queries_of_other_documents(tmp_path, tokenizer, monkeypatch, at):
    write(tmp_path, tokenizer)
    renames, original = [], os.rename

    def rename(old, new):
        renames.append(new)
        if len(renames) == at:
            raise KeyboardInterrupt
        original(old, new)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, tokenizer, DOCUMENTS[::-1], QUERIES)
    with pytest.raises(contracts.ContractError, match="queries is not finished"):
        corpus.parts(tmp_path, "queries")
    monkeypatch.undo()
    write(tmp_path, tmp_path / "tokenizer.json")
    assert corpus.all_queries(tmp_path, ["source_doc"])["source_doc"].to_pylist() == [3, None, None]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, tokenizer):
    code = """
import resource, sys
from lib import corpus
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
import random
noise = random.Random(0)
rows = ({"docid": str(n), "text": "".join(chr(noise.randrange(0x4e00, 0x9000)) for _ in range(400))} for n in range(200))
try: corpus.write(sys.argv[1], rows, [{"qid": "q", "text": ""}], sys.argv[2])
except OSError as error: sys.exit(str(error))
"""
    child = python(code, tmp_path, str(tmp_path / "runs/full"), str(tokenizer))
    _, told = child.communicate(timeout=60)
    assert child.returncode == 1 and len(told.splitlines()) == 1
    assert "part-00000.parquet was not written (File too large); make room" in told
    assert contents(tmp_path / "runs/full") == {}


def test_texts_come_in_the_order_asked_for_and_few_parts_stay_in_memory(tmp_path, tokenizer, monkeypatch):
    write(tmp_path, tokenizer)
    read = []
    original = corpus.tables.documents
    monkeypatch.setattr(corpus.tables, "documents", lambda run, shard, columns: read.append(shard) or original(run, shard, columns))
    texts = corpus.Texts(tmp_path, keep=2)
    rows = [9, 0, 5, 0, 4, 9]
    assert texts.texts(rows) == [DOCUMENTS[row]["text"] for row in rows]
    assert sorted(read) == ["part-00000", "part-00001", "part-00002"]
    texts.texts(np.array([8, 4], dtype=np.int32))  # both held
    assert len(read) == 3
    texts.texts([0])
    assert read[3:] == ["part-00000"]
    assert texts.texts([]) == []


@pytest.mark.parametrize("row", [-1, 10])
def test_a_row_outside_the_corpus_is_an_index_error(tmp_path, tokenizer, row):
    write(tmp_path, tokenizer)
    with pytest.raises(IndexError, match=f"row {row} is no document of .*; it has 10 documents"):
        corpus.Texts(tmp_path).texts([0, row])


def test_an_unfinished_table_and_an_unknown_part_are_refused(tmp_path, tokenizer):
    with pytest.raises(contracts.ContractError, match="documents is not finished"):
        corpus.Texts(tmp_path)
    write(tmp_path, tokenizer)
    with pytest.raises(contracts.ContractError, match="has no part-00007; it has 3 parts"):
        corpus.documents(tmp_path, "part-00007")


@given(text=st.text(max_size=40), n=st.integers(0, 50))
def test_a_cut_text_is_a_prefix_that_no_token_past_n_reaches(tokenizer, text, n):
    encoder = token_table.load(tokenizer)
    cut = corpus.cut_tokens(encoder, text, n)
    encoding = encoder.encode(text, add_special_tokens=False)
    assert text.startswith(cut)
    if len(encoding.ids) <= n:
        assert cut == text
    else:
        assert all(len(cut) <= start or end <= len(cut) for start, end in encoding.offsets[n:])


def test_a_cut_inside_a_character_leaves_the_character_out(tokenizer):
    encoder = token_table.load(tokenizer)
    assert [corpus.cut_tokens(encoder, "a\U0001d465b", n) for n in range(7)] == ["", "a", "a", "a", "a", "a\U0001d465", "a\U0001d465b"]


@given(st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=6), max_size=12))
def test_the_index_is_a_dict_that_refuses_repeats(batches):
    known, found = {}, index.Index()
    for batch in batches:
        seen = dict(known)
        repeat = None
        for offset, value in enumerate(batch):
            if value in seen and repeat is None:
                repeat = (seen[value], len(known) + offset)
            seen.setdefault(value, len(known) + offset)
        got = found.add(batch)
        assert (got is None) == (repeat is None)
        if got is None:
            known = seen
        else:
            assert got[1] == repeat[1]
    assert found.rows(list(known)).tolist() == list(known.values())
    assert found.rows(["never there"]).tolist() == [-1]


def test_the_index_holds_many_ids_in_few_runs():
    found, order = index.Index(), random.Random(0)
    for first in range(0, 20_000, 500):
        found.add([f"d{n}" for n in range(first, first + 500)])
    rows = [order.randrange(20_000) for _ in range(100)]
    assert found.rows([f"d{row}" for row in rows]).tolist() == rows
    assert len(found) == 20_000 and len(found._runs) <= 8
