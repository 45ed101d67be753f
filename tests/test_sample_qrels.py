"""The planted set for the qrels line: same bytes, every planted kind, real similarities, a workbook that spreadsheets open."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from itertools import combinations
from random import Random

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest

from lib import ids, text
from lib.sample import documents, qrels_set
from lib.sample.review import chains, duplicate_files, encyclopedia, planted_pool, review_workbook
from lib.sample.review.relations import CHAINS, RELATIONS


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qrels_set")
    qrels_set.write(folder)
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def texts_of(folder):
    return {row["docid"]: row["text"] for row in lines(folder / "documents.jsonl")}


def edges_of(folder):
    found = {}
    for path in sorted((folder / qrels_set.NEAR).glob("part-*.parquet")):
        for row in pq.read_table(path).to_pylist():
            assert row["doc_id"] not in found
            found[row["doc_id"]] = {copy["doc_id"]: copy["jaccard"] for copy in row["duplicates"] or []}
    return found


def rows_of(sheet):
    header, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def run(*words, **variables):
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, env=os.environ | variables, timeout=60)


def all_bytes(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# the bytes

def test_two_processes_with_other_hash_seeds_write_the_same_bytes(planted, tmp_path):
    done = run("lib.sample.qrels_set", str(tmp_path), PYTHONHASHSEED="1" if os.environ.get("PYTHONHASHSEED") == "2" else "2")
    assert done.returncode == 0, done.stderr
    assert all_bytes(tmp_path) == all_bytes(planted)
    assert len(all_bytes(planted)) == 9


def test_one_process_writes_the_same_bytes_twice(tmp_path):
    for name in ("once", "again"):
        qrels_set.write(tmp_path / name, questions=3)
    assert all_bytes(tmp_path / "once") == all_bytes(tmp_path / "again")


def test_another_seed_plants_another_set(planted, tmp_path):
    qrels_set.write(tmp_path, questions=2, seed=1)
    assert not set(texts_of(tmp_path).values()) & set(texts_of(planted).values())


def test_a_set_without_questions_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        qrels_set.write("nowhere", questions=0)
    assert run("lib.sample.qrels_set", "nowhere", "--questions", "0").returncode == 2


# the questions

def test_each_chain_asks_on_from_the_answer_of_the_hop_before():
    for hops, of in CHAINS.items():
        for chain in of:
            assert len(chain) == hops
            for first, second in zip(chain, chain[1:], strict=False):
                assert RELATIONS[first].range == RELATIONS[second].domain
    asked = chains.questions(Random(0), 24)
    assert Counter(len(question.facts) for question in asked) == {2: 8, 3: 8, 4: 8}
    for question in asked:
        for first, second in zip(question.facts, question.facts[1:], strict=False):
            assert first.values["o"] == second.values["s"]
        assert question.facts[0].values["s"] in question.text
        assert not any(fact.values["o"] in question.text for fact in question.facts)
    assert len({question.text for question in asked}) == 24


def test_no_near_miss_holds_a_sentence_that_states_a_hop():
    said = [fact for question in chains.questions(Random(0), 48) for fact in question.facts]
    states = [sentence for fact in said for sentence in fact.states]
    misses = [sentence for fact in said for sentence in fact.misses.values()]
    assert {fact.relation.ask for fact in said} == {relation.ask for relation in RELATIONS.values()}
    assert len(set(states) | set(misses)) == len(states) + len(misses)
    for fact in said:
        assert not any(state in miss or miss in state for state in fact.states for miss in fact.misses.values())
        assert not [sentence for sentence in (*fact.states, *fact.misses.values(), fact.must_state) if "{" in sentence or sentence[0].islower()]


# the pages

def truth_of(folder):
    """Every document of every question, with the question's id and with its parent as a row of its own."""
    rows = {}
    for question in lines(folder / "truth.jsonl"):
        rows |= {row["docid"]: row | {"qid": question["qid"]} for row in question["documents"]}
    return rows


def test_a_set_has_its_size_and_every_planted_kind(planted):
    texts, made = texts_of(planted), truth_of(planted)
    assert len(lines(planted / "verified.jsonl")) == 24 and len(texts) == 600
    counts = Counter(row["kind"] for row in made.values())
    least = {"states": 80, "states_two": 20, "states_late": 20, "states_past_20000": 6, "misses": 80, "misses_long": 3, "exact": 40, "kept": 20,
             "reworded": 4, "dropped": 12, "changed": 10, "fuller": 4, "swapped": 4, "partial": 4, "reflowed": 4, "chain": 20,
             "beyond_rejection": 4, "copy_of_miss": 20}
    assert counts.keys() == least.keys()
    assert {kind: counts[kind] for kind, n in least.items() if counts[kind] < n} == {}
    pool = Counter(row["qid"] for row in made.values() if row["pool"])
    assert min(pool.values()) >= 6 and max(pool.values()) <= 14
    assert {kind for kind in counts if kind not in least} == set()


def test_what_a_page_states_is_what_it_was_made_to_state(planted):
    texts, made = {docid: " ".join(each.split()) for docid, each in texts_of(planted).items()}, truth_of(planted)
    for question in lines(planted / "truth.jsonl"):
        for hop in question["hops"]:
            holding = sorted(docid for docid, each in texts.items() if any(sentence in each for sentence in hop["states"]))
            meant = sorted(docid for docid, row in made.items() if row["qid"] == question["qid"] and hop["hop"] in row["hops"])
            assert holding == hop["documents"] == meant


def test_some_pages_state_their_hop_only_late(planted):
    texts, made = texts_of(planted), truth_of(planted)
    states = {question["qid"]: [s for hop in question["hops"] for s in hop["states"]] for question in lines(planted / "truth.jsonl")}
    for kind, least in (("states_late", 3_500), ("states_past_20000", 20_000)):
        for docid in (docid for docid, row in made.items() if row["kind"] == kind):
            folded = " ".join(texts[docid].split())
            assert min(folded.find(s) for s in states[made[docid]["qid"]] if s in folded) > least
    assert sum(len(each) > 20_000 for each in texts.values()) >= 9
    assert sum(len(each) > 20_000 for docid, each in texts.items() if made.get(docid, {}).get("parent")) >= 2


def test_some_sentences_run_over_the_end_of_a_line(planted):
    texts, broken = texts_of(planted), 0
    for question in lines(planted / "truth.jsonl"):
        for hop in question["hops"]:
            broken += sum(not any(sentence in texts[docid] for sentence in hop["states"]) for docid in hop["documents"])
    assert broken >= 10


def test_the_copies_are_what_their_kinds_say(planted):
    texts, made, edges = texts_of(planted), truth_of(planted), edges_of(planted)
    near = {ids.api(row): {ids.api(copy) for copy in copies} for row, copies in edges.items()}
    def alike(a, b):
        return b in near[a] or a in near[b]
    chained = defaultdict(list)
    for docid, row in made.items():
        parent, kind = row["parent"], row["kind"]
        if parent is None:
            continue
        assert alike(docid, parent), (docid, kind)
        before = made[parent]["hops"]
        match kind:
            case "exact":
                assert texts[docid] == texts[parent]
            case "dropped" | "changed":
                assert row["hops"] == [] != before
            case "kept" | "reworded" | "chain":
                assert row["hops"] == before != []
            case "reflowed":
                assert texts[docid] != texts[parent] and texts[docid].split() == texts[parent].split()
            case "fuller":
                assert set(row["hops"]) > set(before) != set()
            case "swapped":
                assert row["hops"] and not set(row["hops"]) & set(before)
            case "partial":
                assert row["hops"] and set(row["hops"]) < set(before)
            case "beyond_rejection":
                assert row["hops"] and before == []
                assert all(not made[copy]["hops"] for copy in near[docid]), "an included page would lead to it"
            case "copy_of_miss":
                assert row["hops"] == []
        if kind == "chain":
            chained[row["qid"]].append(docid)
    assert len(chained) == 8
    for links in chained.values():  # only neighbours in the chain are alike, so that it takes three rounds
        links = sorted(links, key=lambda docid: depth(made, docid))
        whole = [made[links[0]]["parent"], *links]
        assert [alike(a, b) for a, b in combinations(whole, 2)] == [True, False, False, True, False, True]


def depth(made, docid):
    return 0 if made[docid]["parent"] is None else 1 + depth(made, made[docid]["parent"])


def test_an_edit_stays_between_its_bounds_or_says_that_it_cannot():
    rng = Random(0)
    page = encyclopedia.page(rng, "Ilva", ["Here it is."], {("q", 1)}, length=30)
    for most in (0.95, 0.9, 0.8, 0.72):
        copy = encyclopedia.edited(rng, page, page, {"Here it is."}, most)
        assert 0.7 <= encyclopedia.jaccard(page, copy) <= most and "Here it is." in copy.sentences and copy.facts == page.facts
    with pytest.raises(ValueError, match="take a longer page"):
        encyclopedia.edited(rng, page, page, set(page.sentences), 0.9)


# the duplicate files

def plain_jaccard(a, b):
    """Word 5-grams, the obvious way."""
    def grams(each):
        words = text.tokens(each)
        return {" ".join(words[i : i + 5]) for i in range(len(words) - 4)}
    left, right = grams(a), grams(b)
    return np.float32(len(left & right) / len(left | right))


def test_every_similarity_equals_a_plain_recomputation(planted):
    texts = texts_of(planted)
    grams = {docid: text.grams(text.tokens(each)) for docid, each in texts.items()}
    stated = {(ids.api(row), ids.api(copy)): likeness for row, copies in edges_of(planted).items() for copy, likeness in copies.items()}
    expected = {}
    for a, b in combinations(texts, 2):
        size = sorted((len(grams[a]), len(grams[b])))
        if size[0] >= 0.69 * size[1] and len(grams[a] & grams[b]) >= 0.69 * size[1]:
            likeness = plain_jaccard(texts[a], texts[b])
            if likeness >= np.float32(0.7):
                expected[a, b] = likeness
    assert {tuple(sorted(pair)) for pair in stated} == {tuple(sorted(pair)) for pair in expected}
    for (a, b), likeness in expected.items():
        assert {stated[pair] for pair in ((a, b), (b, a)) if pair in stated} == {float(likeness)}
    assert len(expected) > 300 and sum(likeness == 1 for likeness in expected.values()) > 50


def test_some_edges_stand_on_one_side_only_and_the_copy_is_the_one_that_tells(planted):
    edges, made = edges_of(planted), truth_of(planted)
    silent = {(a, b) for a, copies in edges.items() for b in copies if a not in edges[b]}
    assert len(silent) >= 10
    one_sided = [(docid, row["parent"]) for docid, row in made.items() if row["one_sided"]]
    assert len(one_sided) >= 8
    assert {(ids.analysis(docid), ids.analysis(parent)) for docid, parent in one_sided} <= silent


def test_every_document_has_one_row_under_its_padded_id(planted):
    texts, edges = texts_of(planted), edges_of(planted)
    assert set(edges) == {ids.analysis(docid) for docid in texts}
    assert sum(ids.analysis(docid) != docid for docid in texts) > 100, "a join without normalising must miss something"
    assert any(ids.analysis(docid) == docid for docid in texts)
    schema = pq.read_schema(planted / qrels_set.NEAR / "part-00012.parquet")
    assert [str(field.type) for field in schema] == ["string", "list<element: struct<doc_id: string, jaccard: float>>"]
    last = pq.read_table(planted / qrels_set.NEAR / "part-00103.parquet")["duplicates"]
    assert 0 < last.null_count < len(last), "a null list and an empty one both mean no copy"


def test_exact_groups_overlap_and_merge_to_the_classes_of_equal_texts(planted):
    groups = [set(row["doc_ids"]) for row in lines(planted / "duplicate_groups.jsonl")]
    assert any(a & b for a, b in combinations(groups, 2))
    classes = []
    for group in groups:
        touching = [one for one in classes if one & group]
        classes = [one for one in classes if not one & group] + [group.union(*touching)]
    expected = defaultdict(set)
    for docid, each in texts_of(planted).items():
        expected[each].add(ids.analysis(docid))
    assert sorted(map(sorted, classes)) == sorted(sorted(one) for one in expected.values() if len(one) > 1)


def test_a_pair_just_below_seven_tenths_in_float32_is_no_near_pair():
    words = [f"w{i}" for i in range(200)]
    a = " ".join(words[:21])  # 17 grams
    assert duplicate_files.near_pairs([a, a]) == {(0, 1): np.float32(1)}
    seven = duplicate_files.near_pairs([" ".join(words[:14]), " ".join(words[:11])])  # 7 of 10 grams
    assert seven == {(0, 1): np.float32(0.7)}
    assert duplicate_files.near_pairs([" ".join(words[:13]), " ".join(words[:10])]) == {}  # 6 of 9
    assert duplicate_files.near_pairs(["too short", "too short", ""]) == {}


# the workbook

@pytest.fixture(scope="session")
def book(planted):
    return openpyxl.load_workbook(planted / "review.xlsm")


def test_the_workbook_has_the_content_type_of_its_suffix_and_no_times(planted):
    with zipfile.ZipFile(planted / "review.xlsm") as archive:
        types = archive.read("[Content_Types].xml").decode()
        assert types.count(review_workbook.MACRO) == 1 and review_workbook.PLAIN not in types
        assert review_workbook.MACRO == "application/vnd.ms-excel.sheet.macroEnabled.main+xml"
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"dcterms:created" not in archive.read("docProps/core.xml") and b"dcterms:modified" not in archive.read("docProps/core.xml")
        assert archive.testzip() is None


def test_a_file_that_is_macro_enabled_already_is_refused(planted):
    with pytest.raises(ValueError, match="openpyxl"):
        review_workbook.macro_enabled((planted / "review.xlsm").read_bytes())
    plain = io.BytesIO()
    openpyxl.Workbook().save(plain)
    assert zipfile.ZipFile(io.BytesIO(review_workbook.macro_enabled(plain.getvalue()))).namelist()


def test_the_sheets_have_text_ids_and_what_people_leave_behind(planted, book):
    assert book.sheetnames == ["About", "Hops", "Votes"]
    hops, votes = book["Hops"], book["Votes"]
    assert tuple(cell.value for cell in hops[1]) == review_workbook.HOPS and tuple(cell.value for cell in votes[1]) == review_workbook.VOTES
    for sheet, columns in ((hops, "A"), (votes, "AC")):
        for cell in (cell for column in columns for cell in sheet[column][1:] if cell.value is not None):
            assert cell.data_type == "s" and cell.number_format == "@"
    assert [(one.min_col, one.max_col) for one in hops.merged_cells.ranges] == [(1, 1)] * 24
    assert not votes.merged_cells.ranges
    hidden = [row for row, dimension in votes.row_dimensions.items() if dimension.hidden]
    assert len(hidden) == 1 and votes.cell(hidden[0], 5).value
    assert len([cell for row in votes.iter_rows() for cell in row if cell.comment]) == 1
    struck = [cell for row in hops.iter_rows() for cell in row if cell.font.strike]
    assert len(struck) == 1 and struck[0].column_letter == "E" and struck[0].value and hops.cell(struck[0].row, 4).value == "Yes"


def hop_rows(book):
    rows, qid = rows_of(book["Hops"]), None
    for row in rows:
        row["Question ID"] = qid = row["Question ID"] or qid  # the merged cells hold one id
    return {(row["Question ID"], row["Hop"]): row for row in rows}


def test_the_hops_are_those_of_the_questions_and_judged_in_every_way(planted, book):
    hops = hop_rows(book)
    verified = {(row["qid"], hop["hop"]): hop["text"] for row in lines(planted / "verified.jsonl") for hop in row["hops"]}
    assert {key: row["Sub-question"] for key, row in hops.items()} == verified and len(hops) == 72
    ways = Counter((row["Judgment"], row["Note"]) for row in hops.values())
    assert ways["No", "Not needed"] == 4 and ways["No", None] == 4 and ways["Yes", None] > 50 and ways.total() == 72


def test_the_votes_are_true_and_most_are_blank(planted, book):
    hops, votes, made = hop_rows(book), rows_of(book["Votes"]), truth_of(planted)
    said, entries = Counter(row["Vote"] for row in votes), defaultdict(list)
    for row in votes:
        docid = ids.api(row["Document ID"])
        entries[row["Question ID"], row["Hop"], docid].append((row["Document ID"], row["Vote"]))
        if row["Vote"]:
            assert (row["Hop"] in made[docid]["hops"]) is (row["Vote"] != "Does not support")
    assert set(entries) == {(row["qid"], hop, docid) for docid, row in made.items() for hop in row["pool"]}
    assert set(said) == {None, *review_workbook.VOTE} and min(said.values()) >= 4 and said[None] > 0.6 * said.total()
    twice = [given for given in entries.values() if len(given) > 1]
    assert len(twice) == 3 and all({first, second} <= {"Supports", "Partial support"} for (_, first), (_, second) in twice)
    assert any(a != b for (a, _), (b, _) in twice), "one document in two spellings"
    padded = sum(ids.analysis(row["Document ID"]) == row["Document ID"] for row in votes)
    assert 0.3 < padded / len(votes) < 0.9
    skipped = {key for key, row in hops.items() if row["Note"] == "Not needed"}
    assert {row["Vote"] for row in votes if (row["Question ID"], row["Hop"]) in skipped} == {None, "Supports", "Partial support"}


def test_one_hop_that_is_judged_and_one_that_is_not_have_no_support(planted, book):
    hops, made = hop_rows(book), truth_of(planted)
    supported = {(row["qid"], hop) for row in made.values() for hop in set(row["pool"]) & set(row["hops"])}
    assert sorted(hops[key]["Judgment"] for key in hops.keys() - supported) == ["No", "No", "Yes", "Yes"]


def test_faults_are_planted_when_asked_for(planted, tmp_path):
    qrels_set.write(tmp_path, questions=4, faults=True)
    book = openpyxl.load_workbook(tmp_path / "review.xlsm")
    votes = rows_of(book["Votes"])
    given = defaultdict(set)
    for row in votes:
        given[row["Question ID"], row["Hop"], ids.api(row["Document ID"])].add(row["Vote"])
    assert [said for said in given.values() if {"Supports", "Does not support"} <= said]
    assert {row["Question ID"] for row in votes} - {row["qid"] for row in lines(tmp_path / "verified.jsonl")} == {"q00x"}
    assert [row["Judgment"] for row in rows_of(book["Hops"]) if row["Note"] == "Not needed?"] == ["No"]
    plain = all_bytes(tmp_path)
    qrels_set.write(tmp_path, questions=4)
    assert {name for name, data in all_bytes(tmp_path).items() if plain[name] != data} == {"review.xlsm"}


@pytest.mark.parametrize("questions", [1, 2, 5])
def test_a_small_set_is_a_whole_set(tmp_path, questions):
    counts = qrels_set.write(tmp_path, questions=questions, seed=3)
    assert counts["questions"] == questions and counts["documents"] == 25 * questions == len(edges_of(tmp_path))


def test_a_dozen_questions_plant_every_kind():
    asked = chains.questions(Random(5), 12)
    kinds = {one.kind for turn, question in enumerate(asked) for one in planted_pool.plant(Random(turn), question, turn)}
    assert len(kinds) == 18


# the document command

def test_the_command_prints_the_bytes_of_a_text_and_nothing_else(planted):
    texts = texts_of(planted)
    for docid in sorted(texts)[:2]:
        done = run("lib.sample.documents", "doc", docid, QRELS_SAMPLE=str(planted))
        assert (done.returncode, done.stdout, done.stderr) == (0, texts[docid].encode(), b"")
        assert run("lib.sample.documents", "doc", docid, "--from", str(planted)).stdout == texts[docid].encode()
        assert run("lib.sample.documents", "doc", "--from", str(planted), docid, QRELS_SAMPLE="nowhere").stdout == texts[docid].encode()
    assert all(documents.text(planted, docid) == each for docid, each in texts.items())


def test_the_command_says_in_a_sentence_what_is_missing(planted, tmp_path):
    padded = next(ids.analysis(docid) for docid in texts_of(planted) if ids.analysis(docid) != docid)
    for words, code, says in (
        (("doc", padded), 1, f"there is no document '{padded}' among the 600"),
        (("doc", "x", "--from", str(tmp_path)), 1, "write one with python -m lib.sample.qrels_set"),
        (("doc",), 2, "usage:"), (("search", "x"), 2, "usage:"), (("doc", "x", "y"), 2, "usage:"),
    ):
        done = run("lib.sample.documents", *words, QRELS_SAMPLE=str(planted))
        assert (done.returncode, done.stdout) == (code, b"") and says in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert run("lib.sample.documents", "doc", "x", QRELS_SAMPLE="").returncode == 2


def test_the_command_imports_nothing_heavy():
    heavy = {"numpy", "pyarrow", "openpyxl", "argparse", "random"}
    asked = f"import sys, lib.sample.documents; print(*{heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_texts_of_any_characters_come_back(tmp_path):
    odd = {"a": "Łódź 🦉\r\n\u2028x\n", "shard_00001_2": "", "Ω": "plain"}
    documents.write(tmp_path, odd)
    assert {docid: documents.text(tmp_path, docid) for docid in odd} == odd
