"""The student's own planted set: labels that follow from two texts, eight pages a query, nothing told by ids."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from lib import contracts, corpus
from lib.sample import checker, collection, student_set
from lib.stats.within_query import within_query_r2

SEEDS = (0, 1)
QUERIES = 150


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Seed -> folder."""
    folders = {seed: tmp_path_factory.mktemp("planted") for seed in SEEDS}
    for seed, folder in folders.items():
        student_set.plant(folder, seed, QUERIES)
    return folders


def rows(folder, name, key):
    return {row[key]: row for row in map(json.loads, (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())}


def judged(folder):
    """(qid, docid, label) by query."""
    lines = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    return sorted((qid, docid, int(label)) for qid, _, docid, label in lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_label_is_what_the_checker_reads_from_the_two_texts(planted, seed):
    queries, documents = rows(planted[seed], "queries", "qid"), rows(planted[seed], "documents", "docid")
    found = Counter(label for qid, docid, label in judged(planted[seed])
                    if checker.verify(queries[qid]["text"], documents[docid]["text"]) == label)
    assert found.total() == QUERIES * 8 == len(documents)
    assert min(found.values()) > found.total() / 6


def test_a_query_has_eight_pages_four_about_its_problem_and_of_all_labels(planted):
    folder = planted[0]
    asked, made = rows(folder, "truth_queries", "qid"), rows(folder, "truth_documents", "docid")
    labels = judged(folder)
    assert Counter(Counter(qid for qid, *_ in labels).values()) == {8: QUERIES}
    assert len({docid for _, docid, _ in labels}) == len(labels) == len(made)
    for qid in asked:
        own = [(docid, label) for one, docid, label in labels if one == qid]
        about = [made[docid]["relations"][0]["problem"] == asked[qid]["problem"] for docid, _ in own]
        assert sum(about) == 4 and {label for _, label in own} == {0, 1, 2}
        assert not any(label for (_, label), same in zip(own, about, strict=True) if not same)


def test_no_two_queries_ask_the_same_and_each_family_is_asked(planted):
    queries = rows(planted[0], "queries", "qid")
    assert len({row["text"] for row in queries.values()}) == QUERIES
    families = Counter(row["family"] for row in rows(planted[0], "truth_queries", "qid").values())
    assert set(families) == {family.name for family in student_set.GROUP} and min(families.values()) > QUERIES / 8


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kind_of_a_page_says_little_within_a_query_and_its_id_nothing(planted, seed):
    made, labels = rows(planted[seed], "truth_documents", "docid"), judged(planted[seed])
    query, label = np.array([qid for qid, *_ in labels]), np.array([label for *_, label in labels])
    worth = np.array([max(relation["label"] for relation in made[docid]["relations"]) for _, docid, _ in labels])  # to its own problem
    best = np.array([label[worth == kind].mean() for kind in range(3)])[worth]  # nobody who sees the page alone does better
    assert 0.08 < within_query_r2(query, label, best) < 0.2
    row = np.argsort(np.argsort([docid for _, docid, _ in labels]))
    assert abs(np.corrcoef(row, label)[0, 1]) < 0.06 and abs(np.corrcoef(row % 8, label)[0, 1]) < 0.06
    assert abs(np.corrcoef(row, np.unique(query, return_inverse=True)[1])[0, 1]) < 0.06


def test_two_in_five_of_the_other_problems_differ_in_one_number(planted):
    asked, made = rows(planted[0], "truth_queries", "qid"), rows(planted[0], "truth_documents", "docid")
    differ = Counter()
    for qid, docid, _ in judged(planted[0]):
        own, other = (set(key.rpartition("|")[2].split(",")) for key in (asked[qid]["problem"], made[docid]["relations"][0]["problem"]))
        differ[len(own - other)] += 1
    assert differ[0] == differ.total() / 2 and 0.35 < differ[1] / (differ.total() - differ[0]) < 0.5


def test_the_same_seed_gives_the_same_bytes_and_another_another_set(planted, tmp_path):
    student_set.plant(tmp_path, 0, QUERIES)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (planted[0] / path.name).read_bytes()
    assert (planted[0] / "queries.jsonl").read_bytes() != (planted[1] / "queries.jsonl").read_bytes()


def test_more_queries_than_there_are_problems_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(student_set, "GROUP", student_set.GROUP[:1])  # 10 x 10 x 4 x 4 committees
    with pytest.raises(ValueError, match=r"cannot have 1,700 queries, of which no two ask the same; take fewer than 1,[56]"):
        student_set.plant(tmp_path, 0, 1700)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    collection.lay("student", folder, queries=40, documents=320)
    return folder


def test_a_run_gets_the_texts_and_their_labels(run):
    labels = contracts.read("labels", run / "qrels" / "planted").to_pylist()
    assert sorted((row["qid"], row["docid"], row["label"]) for row in labels) == judged(run / "planted")
    assert corpus.all_documents(run, ["docid"]).num_rows == 320


def test_a_set_that_is_laid_stays_and_one_without_its_labels_is_laid_again(run):
    manifest = run / "qrels" / "planted" / "manifest.json"
    before = manifest.stat().st_mtime_ns
    collection.lay("student", run, queries=40, documents=320)
    assert manifest.stat().st_mtime_ns == before
    manifest.unlink()
    collection.lay("student", run, queries=40, documents=320)
    assert len(contracts.read("labels", run / "qrels" / "planted")) == 320


def test_other_numbers_of_documents_are_refused(tmp_path):
    with pytest.raises(ValueError, match="the collection student has 8 documents a query; set documents to 320, not 12000"):
        collection.lay("student", tmp_path / "run", queries=40)
    assert not (tmp_path / "run").exists()


def test_each_number_is_a_token_of_its_own_and_pairs_are_short(run):
    tokenizer = Tokenizer.from_file(str(run / "tokenizer.json"))
    for name, key in (("queries", "qid"), ("documents", "docid")):
        text = next(iter(rows(run / "planted", name, key).values()))["text"]
        tokens = [tokenizer.decode([i]) for i in tokenizer.encode(text).ids]
        assert not [token for token in tokens if any(map(str.isdigit, token)) and not token.isdigit()]
        assert len(tokens) < len(text.split())


@example("")
@example(" 12 34\n5½²٣")
@given(st.text())
def test_any_text_comes_back(run_tokenizer, text):
    assert run_tokenizer.decode(run_tokenizer.encode(text).ids, skip_special_tokens=False) == text


@pytest.fixture(scope="module")
def run_tokenizer(run):
    return Tokenizer.from_file(str(run / "tokenizer.json"))
