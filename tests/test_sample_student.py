"""The student's own planted set: eight labelled pages a query, the same bytes for a seed, labels by the truth's own rule."""

import json
from collections import Counter

import pytest

from lib.sample import student_set, truth


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student")
    return folder, student_set.plant(folder, seed=5, queries=60)


def test_every_query_has_eight_pages_of_all_three_labels(planted):
    folder, counts = planted
    judged = [line.split() for line in (folder / "qrels.txt").read_text().splitlines()]
    assert len(judged) == 480 == len(rows(folder, "documents.jsonl")) and len({doc for _, _, doc, _ in judged}) == 480
    by_query = {}
    for qid, _, _, label in judged:
        by_query.setdefault(qid, Counter())[label] += 1
    assert len(by_query) == 60 and all(sum(mix.values()) == 8 and set(mix) == {"0", "1", "2"} for mix in by_query.values())
    assert {f"label {label}": n for label, n in Counter(label for *_, label in judged).items()}.items() <= counts.items()


def test_no_two_queries_ask_the_same_and_ids_tell_nothing_of_labels(planted):
    folder, _ = planted
    assert len({row["text"] for row in rows(folder, "queries.jsonl")}) == 60
    owner = [qid for qid, *_ in sorted((line.split() for line in (folder / "qrels.txt").read_text().splitlines()), key=lambda row: row[2])]
    assert sum(a == b for a, b in zip(owner, owner[1:], strict=False)) < 40, "pages of a query do not stand together"


def test_labels_follow_the_truth_and_a_seed_gives_the_same_bytes(planted, tmp_path):
    folder, _ = planted
    asked = {row["qid"]: row for row in rows(folder, "truth_queries.jsonl")}
    pages = {row["docid"]: row for row in rows(folder, "truth_documents.jsonl")}
    for line in (folder / "qrels.txt").read_text().splitlines():
        qid, _, doc, label = line.split()
        assert truth.label(asked[qid], pages[doc], 10_000)["score"] == int(label)
    student_set.plant(tmp_path / "again", seed=5, queries=60)
    student_set.plant(tmp_path / "other", seed=6, queries=60)
    names = ("documents.jsonl", "queries.jsonl", "qrels.txt")
    assert all((tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes() for name in names)
    assert all((tmp_path / "other" / name).read_bytes() != (folder / name).read_bytes() for name in names)
