"""Importers: exact data comes in, a bad line is refused by file and number."""

import gzip
import json

import ir_datasets
import pytest
from small_corpus import contents, python, tokenizer_file

from lib import contracts, corpus, paths
from lib.corpus import beir, irds, jsonl, trec
from lib.corpus.__main__ import main
from lib.corpus.lines import Refused, lines, objects

CASE_32 = json.loads((paths.ROOT / "tests/cases/32-ids-stay-text.json").read_text())
IDS = CASE_32["input"]["ids"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Runs go under a folder of the test's own; `t/tokenizer.json` is there."""
    monkeypatch.setattr(paths, "HOME", tmp_path)
    tokenizer_file(tmp_path / "t")
    return tmp_path


def put(path, *rows):
    """Write lines of text, or JSON lines of dicts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def run(*arguments):
    main(["import", *map(str, arguments)])


def import_ids(home, ids=("d1", "d2", "d3"), qids=("q1", "q2", "q3")):
    """A run `r` of one-word documents, its queries in parts of two."""
    documents = put(home / "d.jsonl", *[{"docid": docid, "text": "x"} for docid in ids])
    queries = put(home / "q.jsonl", *[{"qid": qid, "text": "x"} for qid in qids])
    run("jsonl", documents, queries, "--run", "r", "--tokenizer", home / "t", "--query-rows", "2")
    return home / "runs/r"


@pytest.mark.parametrize("raw, message", [
    (b'{"docid": "a", "text": ""}\n{"docid": \n', "d.jsonl:2 is no JSON object"),
    (b'{"docid": "a", "text": ""} {}\n', "d.jsonl:1 is no JSON object"),
    (b'\n\n[1]\n', "d.jsonl:3 is a JSON list, not an object"),
    (b'{"docid": "a"}\n', "d.jsonl:1 has no field 'text'; it has 'docid'"),
    (b'{"docid": 7, "text": ""}\n', "d.jsonl:1 has 7 as 'docid', which is not text"),
    (b'{"docid": "a", "text": null}\n', "d.jsonl:1 has null as 'text', which is not text"),
    (b'{"docid": "a", "text": "", "removed": 1}\n', "d.jsonl:1 has 1 as 'removed', which is not true or false"),
    (b'{"docid": "a", "text": "", "text": "b"}\n', "d.jsonl:1 is no JSON object .the key 'text' stands twice"),
    (b'{"docid": "a", "text": "", "more": NaN}\n', "d.jsonl:1 is no JSON object .NaN is not JSON"),
    (b'[' * 100_000 + b'\n', "d.jsonl:1 is no JSON object"),
    (b'\xef\xbb\xbf{"docid": "a", "text": ""}\n', "d.jsonl:1 starts with a byte order mark"),
    (b'{"docid": "a", "text": ""}\n{"docid": "\xff"}\n', "d.jsonl:2 holds the byte 0xff at 11, which is not UTF-8"),
    (b'{"docid": "a", "text": ""}\n\n{"docid": "a", "text": ""}\n', "d.jsonl:3 repeats the docid 'a' of d.jsonl:1"),
    (b'{"docid": "a\\u2003b", "text": ""}\n', "d.jsonl:1 has the docid .*which holds the character U.2003"),
    (b'{"docid": "a", "text": "\\ud835"}\n', "d.jsonl:1: the text of 'a' holds the lone surrogate U.D835 at 0"),
    (b'', "there are no documents"),
])
def test_a_bad_document_line_is_refused_by_file_and_number(home, raw, message):
    (home / "d.jsonl").write_bytes(raw)
    put(home / "q.jsonl", {"qid": "q", "text": ""})
    with pytest.raises(SystemExit, match=f"lib.corpus: .*{message}"):
        run("jsonl", home / "d.jsonl", home / "q.jsonl", "--run", "r", "--tokenizer", home / "t")
    assert contents(home / "runs/r") == {}


@pytest.mark.parametrize("row, message", [
    ({"qid": "q2", "text": "", "source_docid": 7}, "q.jsonl:2 has 7 as 'source_docid', which is not text or null"),
    ({"qid": "q2", "text": "", "source_docid": "gone"}, "q.jsonl:2: the query 'q2' has the source_docid 'gone', which is no document"),
    ({"qid": True, "text": ""}, "q.jsonl:2 has true as 'qid', which is not text"),
])
def test_a_bad_query_line_is_refused_by_file_and_number(home, row, message):
    put(home / "d.jsonl", {"docid": "a", "text": ""})
    put(home / "q.jsonl", {"qid": "q", "text": ""}, row)
    with pytest.raises(SystemExit, match=message):
        run("jsonl", home / "d.jsonl", home / "q.jsonl", "--run", "r", "--tokenizer", home / "t")


def test_fields_are_named_by_options_and_a_packed_file_is_unpacked(home, capsys):
    with gzip.open(home / "d.jsonl.gz", "wt") as handle:
        handle.write('{"id": "007", "body": "one", "removed": true, "more": [1]}\n{"id": "7", "body": "two\\r\\n\\u2028"}')
    put(home / "q.jsonl", {"n": "1e5", "question": "which", "page": "7"})
    run("jsonl", home / "d.jsonl.gz", home / "q.jsonl", "--run", "r", "--tokenizer", home / "t", "--docid-field", "id",
        "--document-text-field", "body", "--qid-field", "n", "--query-text-field", "question", "--source-field", "page")
    table = corpus.all_documents(home / "runs/r")
    assert table.select(["docid", "text", "removed"]).to_pylist() == [
        {"docid": "007", "text": "one", "removed": True}, {"docid": "7", "text": "two\r\n\u2028", "removed": False},
    ]
    assert corpus.all_queries(home / "runs/r").to_pylist() == [
        {"qid": "1e5", "text": "which", "source_docid": "7", "source_doc": 1, "keep": True}
    ]
    assert "runs/r: documents and queries: 2 documents, 1 removed," in capsys.readouterr().out


def test_a_packed_file_that_is_cut_off_is_refused(home):
    (home / "d.jsonl.gz").write_bytes(gzip.compress(b'{"docid": "a", "text": ""}\n' * 99)[:-9])
    with pytest.raises(Refused, match=r"d.jsonl.gz:\d+ cannot be unpacked"):
        list(objects(home / "d.jsonl.gz"))
    (home / "d.jsonl.gz").write_bytes(b"plain\n")
    with pytest.raises(Refused, match="d.jsonl.gz:1 cannot be unpacked"):
        list(objects(home / "d.jsonl.gz"))


def test_lines_end_at_line_feeds_only_and_blank_lines_keep_the_count(tmp_path):
    (tmp_path / "f").write_bytes("a\u2028b\r\n \n#c\x0bd\x85\ne\r".encode())
    assert [(place.line, line) for place, line in lines(tmp_path / "f")] == [(1, "a\u2028b"), (3, "#c\x0bd\x85"), (4, "e")]


def test_a_missing_file_is_refused_by_name(home):
    with pytest.raises(SystemExit, match="gone.jsonl does not exist"):
        run("jsonl", home / "gone.jsonl", home / "q.jsonl", "--run", "r", "--tokenizer", home / "t")


def beir_folder(home, header=beir.HEADER, grade="2"):
    folder = home / "scitiny"
    put(folder / "corpus.jsonl", {"_id": "4983", "title": "Head", "text": "body", "metadata": {}}, {"_id": "NA", "title": "", "text": "bare"})
    put(folder / "queries.jsonl", {"_id": "0", "text": "which"}, {"_id": "00", "text": "what", "metadata": {"x": 1}})
    put(folder / "qrels/test.tsv", header, f"00\tNA\t{grade}", "0\t4983\t1", "0\tNA\t0")
    return folder


def test_a_beir_folder_gives_documents_queries_and_the_qrels_of_each_split(home, capsys):
    run("beir", beir_folder(home), "--run", "r", "--tokenizer", home / "t")
    assert corpus.all_documents(home / "runs/r", ["docid", "text"]).to_pylist() == [
        {"docid": "4983", "text": "Head\nbody"}, {"docid": "NA", "text": "bare"}
    ]
    labels = contracts.read("labels", home / "runs/r/qrels/test")
    assert labels.select(["qid", "docid", "label"]).to_pylist() == [
        {"qid": "0", "docid": "4983", "label": 1}, {"qid": "0", "docid": "NA", "label": 0}, {"qid": "00", "docid": "NA", "label": 2}
    ]
    assert set(labels["stage"].to_pylist()) == {"qrels"} and set(labels["judge"].to_pylist()) == {"imported"}
    assert "qrels/test: 3 labels, 0 clipped, 0 dropped, 1 grade 0, 1 grade 1, 1 grade 2" in capsys.readouterr().out


@pytest.mark.parametrize("header, grade, message", [
    ("qid\tdocid\tgrade", "1", "test.tsv:1 is 'qid.*; a BEIR qrels file starts with query-id"),
    (beir.HEADER, "1\t1", "test.tsv:2 has 4 columns"),
    (beir.HEADER, "1.0", "test.tsv:2 has the grade '1.0', which is no integer"),
    (beir.HEADER, "3", "test.tsv:2 has the grade 3; labels are 0, 1 and 2, name --grades clip or --grades drop"),
])
def test_bad_beir_qrels_are_refused_and_leave_no_qrels(home, header, grade, message):
    with pytest.raises(SystemExit, match=message):
        run("beir", beir_folder(home, header, grade), "--run", "r", "--tokenizer", home / "t")
    assert not list((home / "runs/r/qrels").rglob("*.parquet"))


@pytest.mark.parametrize("rule, kept, told", [("clip", [("q1", 2), ("q1", 0), ("q3", 1)], "3 labels, 2 clipped, 0 dropped"), ("drop", [("q3", 1)], "1 labels, 0 clipped, 2 dropped")])
def test_grades_outside_the_three_are_clipped_or_dropped_by_name_and_counted(home, capsys, rule, kept, told):
    folder = import_ids(home)
    put(home / "f.qrels", "q3 0 d1 1", "q1 0 d2 4", "q1\t0\td1\t-2")
    run("qrels", home / "f.qrels", "--run", "r", "--grades", rule)
    labels = contracts.read("labels", folder / "qrels/trec")
    assert list(zip(labels["qid"].to_pylist(), labels["label"].to_pylist(), strict=True)) == kept
    assert told in capsys.readouterr().out


def test_qrels_share_the_parts_of_the_queries_also_where_a_part_has_none(home):
    folder = import_ids(home)
    put(home / "f.qrels", "q3 0 d1 1")
    run("qrels", home / "f.qrels", "--run", "r", "--name", "mine")
    assert [(line["part"], line["rows"]) for line in contracts.parts(folder / "qrels/mine")] == [("part-00000.parquet", 0), ("part-00001.parquet", 1)]


@pytest.mark.parametrize("line, message", [
    ("q1 0 d1", "f.qrels:2 has 3 columns"), ("q1 0 d1 x", "f.qrels:2 has the grade 'x'"), ("q9 0 d1 1", "f.qrels:2 has the qid 'q9', which this run does not have"),
    ("q1 0 d9 1", "f.qrels:2 has the docid 'd9', which this run"), ("q1 0 d1 1", "f.qrels:2 judges the pair of line 1 again"), ("#q1 0 d1 1", "the qid '#q1'"),
])
def test_a_bad_qrels_line_is_refused(home, line, message):
    import_ids(home)
    put(home / "f.qrels", "q1 0 d1 1", line)
    with pytest.raises(SystemExit, match=message):
        run("qrels", home / "f.qrels", "--run", "r")


def test_a_run_file_becomes_a_route_in_the_order_of_its_ranks(home, capsys):
    folder = import_ids(home)
    put(home / "f.run", "q3 Q0 d1 2 0.5 tag", "q1 Q0 d2 1 3.5 tag", "q3 Q0 d3 1 0.25 tag", "q3 Q0 d1 3 0.125 tag")
    run("run", home / "f.run", "--route", "own", "--run", "r")
    hits = contracts.read("hits", folder / "hits/own")
    doc, score = contracts.places(hits["doc"]), contracts.places(hits["score"])
    assert doc[:, :4].tolist() == [[1, -1, -1, -1], [-1, -1, -1, -1], [2, 0, 0, -1]]
    assert score[:, :4].tolist() == [[3.5, 0, 0, 0], [0, 0, 0, 0], [0.25, 0.5, 0.125, 0]]
    assert doc.shape == (3, 100) and (doc[:, 4:] == -1).all() and (score[:, 4:] == 0).all()
    assert [line["rows"] for line in contracts.parts(folder / "hits/own")] == [2, 1]
    told = capsys.readouterr().out
    assert "hits/own: 4 lines, 2 queries with hits, 0 cut after rank 100, 1 repeated documents, 1 queries whose scores rise" in told


def test_ranks_after_100_are_cut_and_counted(home, capsys):
    folder = import_ids(home, ids=[f"d{n}" for n in range(1, 104)])
    put(home / "f.run", *[f"q2 Q0 d{n} {n} {-n} t" for n in range(103, 0, -1)])
    run("run", home / "f.run", "--route", "own", "--run", "r")
    assert contracts.places(contracts.read("hits", folder / "hits/own")["doc"])[1].tolist() == list(range(100))
    assert "103 lines, 1 queries with hits, 3 cut after rank 100" in capsys.readouterr().out


@pytest.mark.parametrize("line, message", [
    ("q1 Q0 d2 2 1 t x", "f.run:2 has 7 columns"), ("q1 Q0 d2 0 1 t", "f.run:2 has the rank '0'; ranks are integers from 1"),
    ("q1 Q0 d2 1.0 1 t", "f.run:2 has the rank '1.0'"), ("q1 Q0 d2 1 1 t", "f.run:2 has rank 1 where its query has rank 2 next"),
    ("q1 Q0 d2 3 1 t", "f.run:2 has rank 3 where its query has rank 2 next"), ("q1 Q0 d2 2 nan t", "f.run:2 has the score 'nan', which is no finite float32"),
    ("q1 Q0 d2 2 1e39 t", "f.run:2 has the score '1e39'"), ("q1 Q0 d2 2 1_0 t", "f.run:2 has the score '1_0'"),
    ("q9 Q0 d2 1 1 t", "f.run:2 has the qid 'q9', which this run does not have"), ("q1 Q0 D2 2 1 t", "f.run:2 has the docid 'D2', which this run does not have"),
])
def test_a_bad_run_line_is_refused_and_a_finished_route_stays(home, line, message):
    folder = import_ids(home)
    put(home / "f.run", "q1 Q0 d1 1 2.5 t")
    run("run", home / "f.run", "--route", "own", "--run", "r")
    before = contents(folder)
    put(home / "f.run", "q1 Q0 d1 1 2.5 t", line)
    with pytest.raises(SystemExit, match=message):
        run("run", home / "f.run", "--route", "own", "--run", "r")
    assert contents(folder) == before


def test_a_route_cannot_leave_its_folder(home):
    import_ids(home)
    put(home / "f.run", "q1 Q0 d1 1 2.5 t")
    with pytest.raises(SystemExit, match="'../x' cannot name a folder"):
        run("run", home / "f.run", "--route", "../x", "--run", "r")


TOPICS = """
<top>
<num> Number: 051
<title> Topic:  Airbus  subsidies &amp; more
<desc> Description:
Will it mention
A<B or not?
</top>

<top>
<num>052</num>
<title>South # African</title>
</top>
"""


def test_classic_topics_give_number_and_title_as_text(tmp_path):
    put(tmp_path / "t", TOPICS)
    assert [(place.line, row) for place, row in trec.topics(tmp_path / "t")] == [
        (2, {"qid": "051", "text": "Airbus subsidies &amp; more"}), (10, {"qid": "052", "text": "South # African"})
    ]


def test_another_part_of_a_topic_can_be_the_query_and_a_topic_without_it_is_refused(tmp_path):
    put(tmp_path / "t", TOPICS)
    found = trec.topics(tmp_path / "t", "desc")
    assert next(found)[1] == {"qid": "051", "text": "Will it mention A<B or not?"}
    with pytest.raises(Refused, match="t:10 opens a topic without <desc>; it has num, title"):
        next(found)


@pytest.mark.parametrize("text, message", [
    ("<top>\n<num> 1\n<top>\n", "t:3 opens a topic inside the one of line 1"), ("<top>\n<num> 1\n<title> x\n", "t:1 opens a topic that does not end"),
    ("<top>\n<num> 1\n<title> x\n</top>\nmore\n", "t:5 stands between two topics: 'more'"), ("<top>\n<title> x\n</top>\n", "t:1 opens a topic without <num>"),
    ("1\tx\n2 y\n", "t:2 has no tab"), ("<top>\n<num> 1\n<title> x\n<title> y\n</top>\n", "t:1 has <title> twice"),
])
def test_bad_topics_are_refused(tmp_path, text, message):
    (tmp_path / "t").write_text(text)
    with pytest.raises(Refused, match=message):
        list(trec.topics(tmp_path / "t"))


def test_topics_take_the_place_of_the_queries_of_a_run(home, capsys):
    folder = import_ids(home)
    put(home / "topics.tsv", "007\tfirst\tone", "NA\t", "#3\tthird")
    run("topics", home / "topics.tsv", "--run", "r")
    assert corpus.all_queries(folder, ["qid", "text"]).to_pylist() == [
        {"qid": "007", "text": "first\tone"}, {"qid": "NA", "text": ""}, {"qid": "#3", "text": "third"}
    ]
    assert "3 queries" in capsys.readouterr().out


def test_topics_of_a_run_without_documents_are_refused(home):
    put(home / "topics.tsv", "007\tfirst")
    with pytest.raises(SystemExit, match="runs/r/documents is not finished"):
        run("topics", home / "topics.tsv", "--run", "r")


@pytest.fixture
def dataset(home):
    """A dataset of local files, registered for one test."""
    put(home / "docs.tsv", "007\tfirst document", "d#2\tsecond")
    put(home / "queries.tsv", "1e5\tfirst query")
    put(home / "dataset.qrels", "1e5 0 d#2 1")
    name = "qrelbook-test"
    ir_datasets.registry.register(name, ir_datasets.create_dataset(home / "docs.tsv", home / "queries.tsv", home / "dataset.qrels"))
    yield name
    del ir_datasets.registry._registered[name]


def test_a_dataset_of_ir_datasets_on_disk_comes_with_its_qrels(home, dataset):
    run("irds", dataset, "--run", "r", "--tokenizer", home / "t")
    assert corpus.all_documents(home / "runs/r", ["docid", "text"]).to_pylist() == [
        {"docid": "007", "text": "first document"}, {"docid": "d#2", "text": "second"}
    ]
    assert corpus.all_queries(home / "runs/r", ["qid"])["qid"].to_pylist() == ["1e5"]
    assert contracts.read("labels", home / "runs/r/qrels/irds", ["qid", "docid", "label"]).to_pylist() == [{"qid": "1e5", "docid": "d#2", "label": 1}]


def test_a_dataset_that_is_not_on_disk_is_refused_and_nothing_is_downloaded(home):
    code = """
import socket, sys
def refuse(*_): print("went to the network"); raise OSError
socket.socket.connect = socket.getaddrinfo = refuse
from lib.corpus.__main__ import main
main(["import", "irds", "vaswani", "--run", "r", "--tokenizer", sys.argv[1]])
"""
    child = python(f"import os; os.environ['IR_DATASETS_HOME'] = {str(home / 'ir')!r}\n" + code, home, str(home / "t"))
    out, told = child.communicate(timeout=60)
    assert child.returncode == 1 and out == ""
    assert told.splitlines()[-1].startswith(f"lib.corpus: vaswani is not on disk under {home}/ir (IR_DATASETS_HOME); fetch it with")
    assert contents(home / "runs/r") == {}


def test_a_dataset_that_is_none_is_refused(home):
    with pytest.raises(SystemExit, match="no-such-thing is no dataset of ir_datasets"):
        run("irds", "no-such-thing", "--run", "r", "--tokenizer", home / "t")
    ir_datasets.registry.register("qrelbook-none", ir_datasets.create_dataset(home / "docs.tsv"))
    with pytest.raises(Refused, match="qrelbook-none has no queries"):
        next(irds.queries("qrelbook-none"))


@pytest.mark.parametrize("arguments, message", [
    (["jsonl", "d", "q", "--run", "r"], "--tokenizer"), (["trec", "f"], "invalid choice"),
    (["topics", "f", "--run", "r", "--query-rows", "0"], "0 is no number of rows"), (["qrels", "f", "--run", "r", "--grades", "x"], "invalid choice"),
])
def test_a_wrong_command_line_exits_with_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["jsonl", "beir", "irds", "topics", "qrels", "run"])
def test_help_says_what_is_read_and_written(capsys, kind):
    with pytest.raises(SystemExit):
        run(kind, "--help")
    told = capsys.readouterr().out
    assert {"Reads", "Writes"} <= set(told.split())


def test_the_command_prints_one_sentence_and_exits_with_1(home):
    child = python("import runpy, sys; sys.argv[1:] = ['import', 'qrels', 'gone', '--run', 'r']; runpy.run_module('lib.corpus', run_name='__main__')", home)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 1
    assert told.splitlines() == ["lib.corpus: runs/r/queries is not finished (it has no manifest.json); run the notebook that writes it"]


def test_case_32_ids_come_back_through_every_importer(home):
    import_ids(home, IDS, IDS)
    folder = home / "runs/r"
    assert corpus.all_documents(folder, ["docid"])["docid"].to_pylist() == CASE_32["right_answer"]["ids_back"]
    assert corpus.all_queries(folder, ["qid"])["qid"].to_pylist() == IDS
    put(home / "f.qrels", *[f"{value} 0 {value} 1" for value in IDS])
    run("qrels", home / "f.qrels", "--run", "r")
    labels = contracts.read("labels", folder / "qrels/trec")
    assert labels["qid"].to_pylist() == labels["docid"].to_pylist() == IDS
    put(home / "f.run", *[f"{value} Q0 {value} 1 1 t" for value in IDS])
    run("run", home / "f.run", "--route", "own", "--run", "r")
    assert contracts.places(contracts.read("hits", folder / "hits/own")["doc"])[:, 0].tolist() == list(range(19))
    put(home / "topics.tsv", *[f"{value}\tx" for value in IDS])
    assert [row["qid"] for _, row in trec.topics(home / "topics.tsv")] == IDS


@pytest.mark.parametrize("bad", CASE_32["input"]["refused"])
def test_case_32_ids_with_blanks_are_refused_with_file_and_line(home, bad):
    put(home / "d.jsonl", {"docid": "ok", "text": ""}, {"docid": bad, "text": ""})
    put(home / "q.jsonl", {"qid": "q", "text": ""})
    with pytest.raises(SystemExit, match="d.jsonl:2 has the docid "):
        run("jsonl", home / "d.jsonl", home / "q.jsonl", "--run", "r", "--tokenizer", home / "t")


def test_jsonl_rows_carry_their_place(home):
    put(home / "q.jsonl", {"qid": "q", "text": "", "source_docid": None})
    assert [(str(place), row) for place, row in jsonl.queries(home / "q.jsonl")] == [("q.jsonl:1", {"qid": "q", "text": "", "source_docid": None})]
