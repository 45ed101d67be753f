"""The expansion over files: scan, render, apply and export, in any order, killed or not."""

import json
import os
import signal
import subprocess
import sys
import time
from random import Random

import pytest
import small_expansion
import small_qrels
from small_corpus import contents, python
from small_expansion import decide, decision, fetch, make, pending, qrels_row, random_world

from lib import files, paths
from lib.qrels import expansion
from lib.qrels import work as places
from lib.qrels.refusals import Refused, Unsettled

A, B, C, D, E = (f"shard_00001_{number}" for number in (11, 22, 33, 44, 55))


def small(folder, live=(1, 2), **more):
    """A is judged; B and C are near it, D near B, E near C."""
    edges = {(A, B): 0.8, (C, A): 0.9, (B, D): 0.75, (C, E): 0.75}
    return make(folder, [qrels_row("q1", {A: [1]}, live=live, **more.pop("row", {}))], edges | more.pop("edges", {}), **more)


def scan(copies):
    return expansion.scan(copies.work, *copies.sources)


def export(copies):
    return expansion.export(copies.work, copies.qrels, copies.work.expanded, copies.near, copies.exact)


def render(copies, qid="q1", max_chars=20_000):
    return list(expansion.render(copies.work, qid, copies.qrels, max_chars))


def apply(copies, decisions, qid="q1"):
    path = copies.work.folder / "mine.json"
    path.write_text(decisions if isinstance(decisions, str) else json.dumps(decisions))
    return expansion.apply(copies.work, qid, path)


def shown(copies, qid="q1"):
    """Scan, fetch and render a question; what is pending of it."""
    scan(copies)
    fetch(copies)
    render(copies, qid)
    return pending(copies, qid)


def test_a_question_goes_to_closure_round_by_round(tmp_path):
    copies = small(tmp_path)
    told = scan(copies)
    assert told[0] == f"q1: 2 near copies to judge: {B} (hops 1, 2; Jaccard 0.8 with {A}); {C} (hops 1, 2; Jaccard 0.9 with {A})"
    assert json.loads(copies.work.fetch_ids.read_text()) == [B, C]
    fetch(copies)
    lines = render(copies)
    assert lines.index("must state | what hop 1 of q1 must state") < lines.index("near miss  | what hop 2 of q1 is not") < lines.index(f"| {small_qrels.sentence(B)}")
    assert f"{C}: hops 1, 2; Jaccard 0.9 with {A}" in "\n".join(lines)
    assert apply(copies, {B: decision(copies, B, [2]), C: decision(copies, C, [])})[0].endswith("q1.json: 2 decided, 1 accepted, 1 rejected")
    assert "not reached: 1 near copy to judge, of q1 (1);" in refused(export, copies)
    assert list(shown(copies)) == [D]
    apply(copies, {D: decision(copies, D, [1, 2], contrast="")})
    assert scan(copies) == scan(copies) == ["nothing to scan; closure reached"]
    assert json.loads(copies.work.fetch_ids.read_text()) == []
    export(copies)
    (row,) = small_qrels.lines(copies.work.expanded)
    assert row["documents"] == [
        {"docid": A, "hops": [1], "origin": "judged", "round": 0, "parent": None, "jaccard": None},
        {"docid": B, "hops": [2], "origin": "near", "round": 1, "parent": A, "jaccard": 0.8},
        {"docid": D, "hops": [1, 2], "origin": "near", "round": 2, "parent": B, "jaccard": 0.75},
    ]
    assert row["near"] == [
        {"docid": B, "jaccard": 0.8, "hops": [2], "round": 1}, {"docid": C, "jaccard": 0.9, "hops": [], "round": 1},
        {"docid": D, "jaccard": 0.75, "hops": [1, 2], "round": 2},
    ]
    assert (row["classes"], row["rounds"], row["question"]) == ([], 2, "What is asked in q1?")


def refused(step, *arguments):
    with pytest.raises(Refused) as caught:
        step(*arguments)
    return str(caught.value)


def test_exact_copies_come_unread_and_lead_on(tmp_path):
    copies = small(tmp_path, exact=[[A, E], [E, D]])
    scan(copies)
    found = pending(copies, "q1")
    assert sorted(found) == [B, C]
    assert (found[B]["parent"], found[B]["jaccard"], found[C]["parent"]) == (A, 0.8, A)
    fetch(copies)
    render(copies)
    apply(copies, {docid: decision(copies, docid, []) for docid in (B, C)})
    export(copies)
    (row,) = small_qrels.lines(copies.work.expanded)
    assert [(one["docid"], one["hops"], one["origin"], one["parent"]) for one in row["documents"]] == [
        (A, [1], "judged", None), (D, [1], "exact", A), (E, [1], "exact", A)]
    assert row["classes"] == [{"docid": A, "size": 3}] and row["rounds"] == 0


def test_an_exact_copy_of_a_pending_document_is_neither_fetched_nor_shown_nor_asked_twice(tmp_path):
    copies = small(tmp_path, exact=[[B, C]], texts={B: "One text.\n", C: "One text.\n"})
    assert scan(copies)[0].startswith("q1: 2 near copies to judge, 1 of them exact copies of others: ")
    assert pending(copies, "q1")[C]["copy_of"] == B and json.loads(copies.work.fetch_ids.read_text()) == [B]
    fetch(copies)
    assert f"hops 1, 2; Jaccard 0.8 with {A}, also for its exact copies {C}" in "\n".join(render(copies))
    apply(copies, {B: decision(copies, B, [])})
    assert scan(copies) == [expansion.CLOSED]
    export(copies)
    assert small_qrels.lines(copies.work.expanded)[0]["near"] == [{"docid": C, "jaccard": 0.9, "hops": [], "round": 1}]


def test_a_copy_that_only_its_text_gives_away_is_one_text_once_it_is_cached(tmp_path):
    copies = small(tmp_path, texts={C: f"A page.\n\n{small_qrels.sentence(A)}\n"})
    scan(copies)
    fetch(copies)
    with pytest.raises(Unsettled, match=f"{C} has the text of {A}, which is relevant and needs no reading; run python -m lib.qrels expand scan"):
        render(copies)
    assert f"{C} has the text of {A}, which is relevant" in refused(apply, copies, {C: decision(copies, C, [])})
    scan(copies)
    assert sorted(pending(copies, "q1")) == [B, E]  # C came unread, E is near it


def test_a_text_that_the_judging_loop_rejected_is_not_asked_for_under_another_name(tmp_path):
    copies = small(tmp_path, row={"rejected": {E: [1, 2]}}, texts=dict.fromkeys((C, E), "One text.\n"))
    assert sorted(shown(copies)) == [B, C]  # nothing but its text says that C is E
    scan(copies)
    assert sorted(pending(copies, "q1")) == [B]


def test_a_decision_counts_although_its_text_is_no_longer_cached(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    apply(copies, {docid: decision(copies, docid, []) for docid in (B, C)})
    copies.work.text(B).unlink()
    assert scan(copies) == [expansion.CLOSED]


def test_a_copy_of_a_decided_text_is_not_asked_for_although_that_text_is_no_longer_cached(tmp_path):
    copies = small(tmp_path, texts=dict.fromkeys((B, C), "One text.\n"))
    shown(copies)
    shown(copies)  # now that both are cached, one stands for the other
    apply(copies, {B: decision(copies, B, [])})
    copies.work.text(B).unlink()
    assert scan(copies) == [expansion.CLOSED]


def test_an_included_copy_that_is_open_again_can_be_decided_although_its_text_is_relevant(tmp_path):
    copies = make(tmp_path, [qrels_row("q1", {A: [1]}, live=(1,), dead=(2,))], {(A, C): 0.8}, exact=[[B, C]], texts=dict.fromkeys((B, C), "One text.\n"))
    apply(copies, {docid: decision(copies, docid, [1]) for docid in shown(copies)})
    assert scan(copies) == [expansion.CLOSED]
    small_qrels.cache(copies.work, B, copies.texts[B])
    places.write_lines(copies.qrels, [qrels_row("q1", {A: [1]}, live=(1, 2))])
    small_qrels.standards(copies.work, "q1", [1, 2])
    assert {docid: row["hops"] for docid, row in shown(copies).items()} == {C: [2]}
    apply(copies, {C: decision(copies, C, [1, 2])})
    assert scan(copies) == [expansion.CLOSED]


def test_the_flag_of_one_render_shows_every_copy_whole(tmp_path):
    copies = small(tmp_path, texts={B: "b" * 300, C: "c" * 200})
    scan(copies)
    fetch(copies)
    assert refused(render, copies, "q1", 100).count("--max-chars 300") == 2


@pytest.mark.parametrize("change, fault", [
    ({"hops": [3]}, "supports a hop that was not live"), ({"standards": {"1": "a"}}, "has not one standard for each hop that was live"),
    ({"live": ["1", "2"]}, "has no list of hops as live"), ({"text_sha256": None}, "has no hash of its text"), ({"by": "me"}, "has not exactly the fields"),
])
def test_a_damaged_file_of_decisions_is_refused_with_the_way_out(tmp_path, change, fault):
    copies = small(tmp_path)
    shown(copies)
    apply(copies, {B: decision(copies, B, [])})
    path = copies.work.decisions("q1")
    recorded = json.loads(path.read_text())
    path.write_text(json.dumps({B: recorded[B] | change}))
    said = refused(scan, copies)
    assert f"{B!r} {fault}" in said and "restore it, or take out the decision and judge that document again" in said


def test_a_decision_for_each_document_and_one_left_out_stays_pending(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    assert apply(copies, {C: decision(copies, C, [])})[-1] == "q1: 1 near copy of the last scan stays pending; render and apply again, or run python -m lib.qrels expand scan"
    assert list(shown(copies)) == [B]


def test_the_same_file_applied_again_changes_nothing_and_says_so(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    decisions = {C: decision(copies, C, []), B: decision(copies, B, [1])}
    apply(copies, decisions)
    before = contents(copies.work.folder)
    for _ in range(2):  # before the next scan, and after it
        assert apply(copies, decisions)[0] == "q1: recorded before and left as it is: 2 of the file's decisions"
        assert contents(copies.work.folder) == before
        scan(copies)
        before = contents(copies.work.folder)
    other = decisions | {B: decision(copies, B, [2])}
    assert f"{B} is not pending" in refused(apply, copies, other)


def test_another_answer_before_the_next_scan_is_refused(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    apply(copies, {C: decision(copies, C, [])})
    assert f"{C} is decided already, otherwise" in refused(apply, copies, {C: decision(copies, C, [1])})


def test_a_faulty_file_is_refused_whole_with_all_its_faults(tmp_path):
    copies = small(tmp_path, row={"dead": (3,)})
    shown(copies)
    padded = B.replace("_22", "_00022")
    good = json.dumps(decision(copies, B, []))
    message = refused(apply, copies, f'{{"{B}": {good}, "{padded}": {good}, "{B}": {good}, "stranger": {good}, "{D}": {good}}}')
    for fault in (f"{B} stands there twice, also as {padded}", f"{B} stands there twice;", "stranger is not pending", f"{D} is not pending"):
        assert fault in message
    assert "is refused whole, nothing of it is recorded" in message and not copies.work.decisions("q1").exists()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"hops": [3]}, "is decided for hop 3, which is not live"),
        ({"hops": [4]}, "is decided for hop 4, which the question does not have"),
        ({"hops": [0]}, "is decided for hop 0, which the question does not have"),
        ({"hops": [1, 1]}, "names hop 1 twice"),
        ({"hops": [True]}, r"has \[true\] as hops, not a list of hops"),
        ({"hops": ["1"]}, r'has \["1"\] as hops'),
        ({"hops": [1.0]}, r"has \[1.0\] as hops"),
        ({"hops": None}, "has null as hops"),
        ({"hops": 1}, "has 1 as hops"),
        ({"sentence": " \n"}, "has a sentence that is blank"),
        ({"sentence": 3}, "has a sentence that is 3, not text"),
        ({"sentence": "It stands nowhere."}, "has a sentence that its text does not hold, 'It stands nowhere.'; copy it"),
        ({"contrast": ""}, "is denied for hop 2 by a contrast that is blank"),
        ({"contrast": None}, "is denied for hop 2 by a contrast that is null, not text"),
        ({"note": "x"}, "has the unknown field 'note'"),
        ({"hops": [1, 2], "contrast": 7}, "has a contrast that is 7, not text; leave it out"),
    ],
)
def test_a_faulty_decision_is_refused_by_what_is_wrong(tmp_path, change, fault):
    copies = small(tmp_path, row={"dead": (3,)})
    shown(copies)
    with pytest.raises(Refused, match=f"mine.json is refused whole.*{B} {fault}"):
        apply(copies, {C: decision(copies, C, []), B: decision(copies, B, [1]) | change})
    assert not copies.work.decisions("q1").exists()


def test_a_field_that_is_missing_or_stands_twice_and_no_json_are_refused(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    assert "has null as hops" in refused(apply, copies, {B: {"sentence": "x"}})
    assert "has a sentence that is missing" in refused(apply, copies, {B: {"hops": []}})
    assert "by a contrast that is missing" in refused(apply, copies, {B: {"hops": [], "sentence": small_qrels.sentence(B)}})
    assert f"{B} has a field twice" in refused(apply, copies, f'{{"{B}": {{"hops": [1], "hops": []}}}}')
    assert f"{B} has no decision" in refused(apply, copies, {B: []})
    for text, why in (("[]", "is no object"), ("{", "is no strict JSON"), ('{"a": NaN}', "NaN is no JSON number"), ("[" * 100_000, "no strict JSON")):
        assert why in refused(apply, copies, text)
    assert "none.json is not there; give a JSON object of decisions" in refused(expansion.apply, copies.work, "q1", tmp_path / "none.json")
    assert apply(copies, "{}") == ["q1: 2 near copies of the last scan stay pending; render and apply again, or run python -m lib.qrels expand scan"]


def test_without_standards_nothing_is_rendered(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    copies.work.standards("q1").unlink()
    assert "standards/q1.json is not there; before reading, write there what a document must state" in refused(render, copies)
    small_qrels.standards(copies.work, "q1", [1])
    assert "hop 2 is live and has none" in refused(render, copies)


def test_what_no_whole_render_has_shown_cannot_be_decided(tmp_path):
    copies = small(tmp_path, texts={B: "word " * 5_000 + "\nThe end.\n"})
    scan(copies)
    assert f"{C} has no text (it was not fetched yet)" in refused(apply, copies, {C: decision(copies, C, [])})
    fetch(copies)
    told = f"{C} was not shown whole with today's text beside today's standards of hop 1, hop 2; run python -m lib.qrels expand render"
    assert told in refused(apply, copies, {C: decision(copies, C, [])})
    lines = []
    with pytest.raises(Unsettled, match=f"{B}: TRUNCATED after 20,000 of 25,010 characters: .* render again with --max-chars 25010"):
        for line in expansion.render(copies.work, "q1", copies.qrels):
            lines.append(line)
    assert "TRUNCATED" in "\n".join(lines)
    assert f"{B} was not shown whole" in refused(apply, copies, {B: decision(copies, B, []), C: decision(copies, C, [])})
    stopped = expansion.render(copies.work, "q1", copies.qrels, 0)
    while not next(stopped).startswith("=== end of the near copies"):
        pass
    stopped.close()  # the reader stopped before the page had left
    assert f"{B} was not shown whole" in refused(apply, copies, {B: decision(copies, B, [])})
    render(copies, max_chars=25_010)
    apply(copies, {B: decision(copies, B, []), C: decision(copies, C, [])})


def test_a_text_or_a_standard_that_changed_after_the_render_cannot_be_decided(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    small_qrels.cache(copies.work, C, copies.texts[C] + "And more.\n")
    bars = json.loads(copies.work.standards("q1").read_text())
    files.write_json(copies.work.standards("q1"), bars | {"2": {"must_state": "another", "near_miss": "bar"}})
    message = refused(apply, copies, {B: decision(copies, B, []), C: decision(copies, C, [])})
    assert f"{B} was not shown whole with today's text beside today's standards of hop 2;" in message
    assert f"{C} was not shown whole with today's text beside today's standards of hop 1, hop 2;" in message


def test_a_decision_is_open_again_where_its_text_or_a_standard_changed(tmp_path):
    copies = small(tmp_path)
    shown(copies)
    apply(copies, {B: decision(copies, B, [1, 2]), C: decision(copies, C, [])})
    small_qrels.cache(copies.work, C, copies.texts[C] + "And more.\n")
    bars = json.loads(copies.work.standards("q1").read_text())
    files.write_json(copies.work.standards("q1"), bars | {"2": {"must_state": "another", "near_miss": "bar"}})
    told = scan(copies)
    assert f"q1: the decision on {B} is open again, the standard of hop 2 changed" in told
    assert f"q1: the decision on {C} is open again, its text changed" in told
    found = pending(copies, "q1")
    assert {docid: row["hops"] for docid, row in found.items()} == {B: [2], C: [1, 2], D: [1, 2]}
    assert "3 near copies to judge" in refused(export, copies)


def test_a_hop_that_goes_live_later_opens_decisions_again(tmp_path):
    copies = small(tmp_path, live=(1,), row={"dead": (2,)})
    shown(copies)
    apply(copies, {B: decision(copies, B, [1]), C: decision(copies, C, [])})
    shown(copies)
    apply(copies, {D: decision(copies, D, [])})
    assert scan(copies) == [expansion.CLOSED]
    export(copies)
    row = small_qrels.lines(copies.qrels)[0]
    row["hops"][1]["live"] = True
    places.write_lines(copies.qrels, [row])
    small_qrels.standards(copies.work, "q1", [1, 2])
    assert "is of other qrels than" in refused(render, copies)
    assert "is of other qrels than" in refused(apply, copies, {})
    assert "3 near copies to judge, of q1 (3)" in refused(export, copies)
    assert f"q1: the decision on {B} is open again, hop 2 went live later" in scan(copies)
    assert {docid: row["hops"] for docid, row in pending(copies, "q1").items()} == {B: [2], C: [2], D: [2]}  # B stays included for hop 1
    render(copies)
    apply(copies, {B: decision(copies, B, [1, 2]), C: decision(copies, C, []), D: decision(copies, D, [2])})
    assert scan(copies) == [expansion.CLOSED]
    export(copies)
    assert [(one["docid"], one["hops"]) for one in small_qrels.lines(copies.work.expanded)[0]["documents"]] == [(A, [1]), (B, [1, 2]), (D, [2])]


def test_two_answers_for_one_text_are_all_listed_and_nothing_is_exported(tmp_path):
    copies = small(tmp_path, texts={B: "One text.\n", C: "One text.\n"}, row={"rejected": {D: [1]}}, exact=[[D, E]], edges={(A, E): 0.7})
    shown(copies)
    apply(copies, {B: decision(copies, B, [2]), C: decision(copies, C, []), E: decision(copies, E, [1])})
    with pytest.raises(Unsettled) as left:
        scan(copies)
    assert [line.split("; take a")[0] for line in left.value.lines] == [
        f"q1: one text has two answers on hop 1, accepted for {E} by a decision, denied for {D} by the judging loop",
        f"q1: one text has two answers on hop 2, accepted for {B} by a decision, denied for {C} by a decision",
    ]
    assert "closure is not reached: q1: one text has two answers on hop 1" in refused(export, copies)
    assert not copies.work.expanded.exists()


def test_ids_in_a_spelling_that_the_near_duplicate_files_do_not_have_are_an_error_and_not_a_missing_copy(tmp_path):
    copies = small(tmp_path)
    near = tmp_path / "unpadded"
    small_expansion.near_files(near, {}, [docid.replace("_", "-") for docid in copies.texts])
    message = refused(expansion.scan, copies.work, copies.qrels, near, copies.exact)
    assert A in message and "zero-padded" in message and not copies.work.pending("q1").exists()
    # an exact copy without a row is a miss too
    copies.exact.write_text(json.dumps({"doc_ids": [A, "shard_00009_00009"]}) + "\n")
    assert "shard_00009_9" in refused(scan, copies)


def test_a_padded_spelling_anywhere_names_the_same_document(tmp_path):
    copies = small(tmp_path)
    row = small_qrels.lines(copies.qrels)[0]
    row["documents"][0]["docid"] = "shard_00001_00011"
    places.write_lines(copies.qrels, [row])
    shown(copies)
    apply(copies, {"shard_00001_00022": decision(copies, B, []), C: decision(copies, C, [])})
    assert scan(copies) == [expansion.CLOSED]
    assert sorted(json.loads(copies.work.decisions("q1").read_text())) == [B, C]


def test_a_question_that_is_none_of_the_qrels_or_was_not_scanned_is_refused(tmp_path):
    copies = small(tmp_path)
    assert "'q9' is no question of the qrels, or they were not scanned; run python -m lib.qrels expand scan" in refused(apply, copies, {}, "q9")
    scan(copies)
    assert "'q9'" in refused(render, copies, "q9")
    places.write_lines(copies.qrels, [qrels_row("q2", {A: [1]})])
    assert "'q1' is no question of" in refused(apply, copies, {})
    small_qrels.standards(copies.work, "q2", [1, 2])
    scan(copies)
    assert not copies.work.pending("q1").exists() and copies.work.pending("q2").exists()
    row = qrels_row("q2", {A: [1]})
    for rows, why in (([], "holds no question"), ([row, row], "names 'q2'"), ([{"qid": "q2"}], r"q2 is no line of qrels \(KeyError\('hops'\)\)")):
        places.write_lines(copies.qrels, rows)
        with pytest.raises(Refused, match=why):
            scan(copies)


def walk(copies, drawn, folder, before=None):
    """Scan, fetch, render and apply some pending documents of some questions until a scan says closure; then export.

    `before` is called with the name and the arguments of every scan, apply and export that comes next.
    """
    before = before or (lambda *step: None)
    for _ in range(200):
        before("scan", *copies.sources)
        if scan(copies) == [expansion.CLOSED]:
            before("export", *copies.sources)
            export(copies)
            return copies.work.expanded.read_bytes()
        fetch(copies)
        left = [row["qid"] for row in small_qrels.lines(copies.qrels) if pending(copies, row["qid"])]
        for qid in drawn.sample(left, drawn.randint(1, len(left))):
            ready = readied(copies, qid)
            for _ in range(drawn.randint(1, 2)):
                some = drawn.sample(ready, drawn.randint(0, len(ready)))  # may repeat what was decided a moment ago, in the same words
                mine = decide(copies, qid, some, folder / "mine.json")
                before("apply", qid, mine)
                expansion.apply(copies.work, qid, mine)
    raise AssertionError("no closure")


def readied(copies, qid):
    """Render a question; the pending documents that can be decided."""
    try:
        render(copies, qid)
    except Unsettled:
        pass  # the next scan takes in a copy that its text gave away
    marks = json.loads(copies.work.rendered(qid).read_text()) if copies.work.rendered(qid).exists() else {}
    return [docid for docid in pending(copies, qid) if docid in marks and copies.texts[docid] not in relevant(copies, qid)]


def relevant(copies, qid):
    cached = {docid for docid in copies.texts if copies.work.text(docid).exists()}
    return {copies.texts[docid] for docid in json.loads(copies.work.pending(qid).read_text())["included"] if docid in cached}


def in_random_orders(folder, seed, orders, **size):
    """The bytes of the export after each of some random orders, as a set, and its rows."""
    found = set()
    for order in range(orders):
        (folder / str(order)).mkdir()
        copies = random_world(folder / str(order), seed, **size)
        found.add(walk(copies, Random(order), folder / str(order)))
    return found, [json.loads(line) for line in min(found).splitlines()]


def test_twenty_random_orders_of_scan_and_apply_give_the_same_bytes(tmp_path):
    found, rows = in_random_orders(tmp_path, 5, 20, questions=2, documents=14)
    assert len(found) == 1
    assert {one["origin"] for row in rows for one in row["documents"]} == {"judged", "exact", "near"}
    assert max(row["rounds"] for row in rows) > 1  # there was something to order


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_twenty_random_orders_of_a_larger_world_give_the_same_bytes(tmp_path, seed):
    found, rows = in_random_orders(tmp_path, seed, 20)
    assert len(found) == 1 and {one["origin"] for row in rows for one in row["documents"]} == {"judged", "exact", "near"}


def cli(copies, *arguments):
    """Run the command line; exit code, and both streams."""
    given = {"QRELS_WORK_DIR": copies.work.folder, "QRELS_NEAR_DUP_DIR": copies.near, "QRELS_EXACT_DUPS": copies.exact}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QREL")} | {name: str(path) for name, path in given.items()}
    command = [sys.executable, "-m", "lib.qrels", *map(str, arguments)]
    done = subprocess.run(command, env=environment, cwd=paths.ROOT, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_the_command_line_goes_from_a_scan_to_the_export(tmp_path):
    copies = make(tmp_path, [qrels_row("q1", {A: [1]})], {(A, B): 0.8})
    (tmp_path / "texts.json").write_text(json.dumps(copies.texts))
    (tmp_path / "doc.py").write_text(f"import json, sys\nprint(json.load(open({str(tmp_path / 'texts.json')!r}))[sys.argv[1]], end='')\n")
    code, out, err = cli(copies, "expand", "scan")
    assert (code, err) == (0, "") and f"q1: 1 near copy to judge: {B} (hops 1, 2; Jaccard 0.8 with {A})" in out and "1 of their texts is not cached: run fetch --ids-file" in out
    assert cli(copies, "fetch", "--ids-file", copies.work.fetch_ids, "--doc-cmd", f"{sys.executable} {tmp_path / 'doc.py'}")[0] == 0
    code, out, err = cli(copies, "expand", "render", "--qid", "q1", "--max-chars", "9")
    assert code == 1 and "TRUNCATED after 9 of" in out and "TRUNCATED after 9 of" in err
    mine = decide(copies, "q1", [B], tmp_path / "mine.json")
    assert "was not shown whole" in cli(copies, "expand", "apply", "--qid", "q1", "--decisions", mine)[2]
    assert cli(copies, "expand", "render", "--qid", "q1")[0] == 0
    assert cli(copies, "expand", "export")[2].startswith("lib.qrels: closure is not reached: 1 near copy to judge, of q1 (1);")
    assert cli(copies, "expand", "apply", "--qid", "q1", "--decisions", mine)[0] == 0
    assert cli(copies, "expand", "scan") == (0, "nothing to scan; closure reached\n", "")
    assert cli(copies, "expand", "export")[0] == 0 and len(small_qrels.lines(copies.work.expanded)) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from lib.qrels import expansion
from lib.qrels.work import Work
step, work, count, late, *arguments = sys.argv[1:]
left, replace = [int(count)], os.replace
def killing(source, target):
    if left[0] == 0 and not int(late):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
    left[0] -= 1
    if left[0] == -1:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = killing
print("begun", flush=True)
work = Work(Path(work))
if step == "scan":
    expansion.scan(work, *map(Path, arguments))
elif step == "apply":
    expansion.apply(work, arguments[0], Path(arguments[1]))
else:
    expansion.export(work, Path(arguments[0]), work.expanded, *map(Path, arguments[1:]))
"""


def killed(copies, drawn, step, *arguments, moment=None):
    """Run a step in a process of its own that is killed some seconds after it began, or before or after a file gets its name; -9, or 0 if it was done."""
    count = 10**9 if moment else {"scan": drawn.randrange(5)}.get(step, 0)
    child = python(KILLED, copies.work.folder.parent, step, str(copies.work.folder), str(count), str(drawn.randrange(2)), *map(str, arguments))
    if moment:
        child.stdout.readline()
        time.sleep(moment)
        child.kill()
    _, said = child.communicate(timeout=60)
    assert child.returncode in (-signal.SIGKILL, 0), said
    return child.returncode


def test_a_run_killed_in_every_scan_apply_and_export_ends_with_the_same_bytes(tmp_path):
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = random_world(tmp_path / "whole", 5, questions=2, documents=9)
    expected = walk(whole, Random(0), tmp_path / "whole")
    copies, drawn, codes = random_world(tmp_path / "killed", 5, questions=2, documents=9), Random(1), []
    found = walk(copies, Random(2), tmp_path / "killed", lambda *step: codes.append(killed(copies, drawn, *step)))
    assert found == expected and codes.count(-signal.SIGKILL) >= 4
    assert contents(copies.work.expand / "pending") == contents(whole.work.expand / "pending")
    assert contents(copies.work.expand / "pending").keys() == {"q0.json", "q1.json"}  # nothing half-written is left there


@pytest.mark.slow
def test_runs_killed_at_random_moments_end_with_the_same_bytes(tmp_path):
    found, codes = set(), []
    for order in range(4):
        (tmp_path / str(order)).mkdir()
        copies, drawn = random_world(tmp_path / str(order), 2, questions=2), Random(order)
        before = (lambda *step: codes.append(killed(copies, drawn, *step, moment=drawn.uniform(0.001, 0.1)))) if order else None  # noqa: B023
        found.add(walk(copies, drawn, tmp_path / str(order), before))
    assert len(found) == 1 and codes.count(-signal.SIGKILL) > 3
