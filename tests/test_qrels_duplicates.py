"""Expansion of one question: rounds, copies, near copies, what is left to judge, and answers that contradict each other."""

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st
from test_qrels_exact import merged_slowly

from lib.qrels.duplicates import DECISION, LOOP, Conflict, Decision, Included, Near, Pending, expand

DOCS = "abcdefgh"
HOPS = (1, 2, 3)


def expand_slowly(seeds, live, classes, neighbours, decisions, rejected):
    """The rules one document at a time: what is the same text, what has an edge, what it supports, which round it comes in."""
    docs = {*seeds, *decisions, *rejected, *neighbours, *(docid for group in classes for docid in group), *(docid for found in neighbours.values() for docid in found)}
    same = {docid: {docid} for docid in docs}
    for _ in docs:
        for group in classes:
            for one in group:
                for other in group:
                    same[one] = same[one] | same[other]
    edge = {(a, b): max(neighbours.get(a, {}).get(b, -1), neighbours.get(b, {}).get(a, -1)) for a in docs for b in docs}

    def said(docid, accepts):
        for copy in same[docid]:
            if copy in decisions:
                hops, then = decisions[copy]
                yield from (hop for hop in then if hop in live and (hop in hops) == accepts)

    def supports(docid):
        return {hop for copy in same[docid] for hop in seeds.get(copy, ())} | set(said(docid, True))

    judged = {docid for docid in docs if same[docid] & set(seeds)}
    round_of, near_copy = dict.fromkeys(judged, 0), {}
    for round_ in range(1, len(docs) + 1):
        before = [docid for docid in docs if round_of.get(docid) == round_ - 1]
        for docid in sorted(docs):
            reaching = [(-edge[parent, copy], parent, copy) for parent in before for copy in same[docid] if edge[parent, copy] >= 0]
            if docid not in round_of and set(said(docid, True)) and reaching:
                round_of[docid], near_copy[docid] = round_, min(reaching)
    included = {}
    for docid in round_of:
        if docid in seeds:
            included[docid] = Included(supports(docid), "judged", 0, None, None)
        elif docid in judged:
            included[docid] = Included(supports(docid), "exact", 0, min(same[docid] & set(seeds)), None)
        else:
            minus_jaccard, parent, copy = near_copy[docid]
            part = ("near", round_of[docid], parent, -minus_jaccard) if copy == docid else ("exact", round_of[docid], copy, None)
            included[docid] = Included(supports(docid), *part)
    pending, near = {}, {}
    for docid in docs - judged:
        edges = [(-edge[docid, other], round_of[other], other) for other in round_of if other not in same[docid] and edge[docid, other] >= 0]
        looped = {hop for copy in same[docid] for hop in rejected.get(copy, ())}
        answered = {*said(docid, True), *said(docid, False), *looped}
        if edges and set(live) - answered:
            pending[docid] = Pending(set(live) - answered, min(edges)[2], -min(edges)[0])
        elif edges and set(live) - looped:
            near.setdefault(frozenset(same[docid]), []).append((min(edges)[0], docid, 1 + min(round_ for _, round_, _ in edges)))
    kept = {}
    for members, found in near.items():
        docid = next((one for one in members if one in included and included[one].origin == "near"), min(found)[1])
        kept[docid] = Near(supports(docid), min(round_ for *_, round_ in found), -min(found)[0])
    return included, pending, kept, max(round_of.values(), default=0), set(round_of) - set(neighbours)


def conflicts_slowly(found, live, classes, seeds, decisions, rejected):
    """Every hop on which one text has two answers, for each text that was reached."""
    same = {docid: {docid} for docid in {*DOCS, *seeds}}
    for _ in DOCS:
        for group in classes:
            for one in group:
                for other in group:
                    same[one] = same[one] | same[other]
    reached = {frozenset(same[docid]) for docid in {*found.included, *found.pending, *found.near}}
    conflicts = []
    for members in reached:
        for hop in HOPS:
            yes = sorted([(d, LOOP) for d in members if hop in seeds.get(d, ())] + [
                (d, DECISION) for d in members if d in decisions and hop in live and hop in decisions[d].live and hop in decisions[d].hops])
            no = sorted([(d, LOOP) for d in members if hop in rejected.get(d, ())] + [
                (d, DECISION) for d in members if d in decisions and hop in live and hop in decisions[d].live and hop not in decisions[d].hops])
            if yes and no:
                conflicts.append((hop, set(yes), set(no)))
    return conflicts


JACCARDS = st.sampled_from([0.7, 0.75, 0.9, 1.0])
SOME = st.sets(st.sampled_from(HOPS))


@st.composite
def worlds(draw):
    docs = st.sampled_from(DOCS)
    seeds = draw(st.dictionaries(docs, SOME.filter(bool), max_size=3))
    live = draw(SOME)
    classes = draw(st.lists(st.sets(docs, min_size=1, max_size=3), max_size=3))
    neighbours = draw(st.dictionaries(docs, st.dictionaries(docs, JACCARDS, max_size=4), max_size=8))
    lives = draw(st.dictionaries(docs, SOME, max_size=6))
    decisions = {docid: Decision(frozenset(draw(st.sets(st.sampled_from(sorted(then))))) if then else frozenset(), frozenset(then)) for docid, then in lives.items()}
    return seeds, live, classes, neighbours, decisions, draw(st.dictionaries(docs, SOME, max_size=2))


def accept(*hops, live=(1, 2)):
    return Decision(frozenset(hops), frozenset(live))


@given(worlds())
@example(({"a": {1}}, {1, 2}, [{"a", "b"}, {"b", "c"}], {"c": {"d": 0.9}}, {"d": accept(2)}, {}))
@example(({"a": {1}}, {1, 2}, [{"c", "d"}], {"a": {"d": 0.7, "c": 0.7}, "b": {"a": 0.9}}, {"c": accept()}, {"b": {1}}))
@example(({"a": {1}}, {1, 2, 3}, [], {"a": {"b": 0.7}, "b": {"a": 0.9, "c": 0.75}}, {"b": accept(1), "c": accept(2)}, {}))
@example(({"a": {3}}, {1}, [{"a", "b"}], {"b": {"b": 1.0}, "a": {}}, {"b": accept(2)}, {"b": {3}}))
@example(({"a": {1}}, set(), [], {"a": {"b": 1.0}}, {}, {}))
@example(({"a": {1}}, {1, 2}, [{"b", "c"}], {"a": {"b": 0.7}, "b": {"c": 1.0}}, {"b": accept(1, live=(1,))}, {}))  # a copy is no parent
@example(({"a": {1}}, {1, 2}, [{"b", "c"}], {"a": {"b": 0.7, "d": 0.8}, "d": {"c": 0.9}}, {"b": accept(1), "d": accept(2)}, {}))  # c is nearer, later
def test_the_expansion_is_that_of_the_rules_one_document_at_a_time(world):
    found = expand(*world)
    included, pending, near, rounds, missing = expand_slowly(*world)
    assert (found.included, found.pending, found.near) == (included, pending, near)
    assert (found.rounds, set(found.missing)) == (rounds, missing)
    seeds, live, classes, _, decisions, rejected = world
    slow = conflicts_slowly(found, live, classes, seeds, decisions, rejected)
    fast = [(one.hop, set(one.accepted), set(one.denied)) for one in found.conflicts]
    assert len(fast) == len(slow) and all(one in fast for one in slow)


@given(worlds(), st.randoms(use_true_random=False))
@example(({"a": {1}}, {1, 2}, [{"b", "c"}], {"a": {"b": 0.7, "c": 0.9}, "b": {"d": 0.75}, "c": {}, "d": {}}, {"b": accept(1), "d": accept(2)}, {}), Random(0))
def test_neither_the_order_of_the_answers_nor_which_copy_was_read_changes_the_closed_set(world, drawn):
    seeds, live, classes, neighbours, answers, _ = world
    neighbours = dict.fromkeys(DOCS, {}) | neighbours
    text = {docid: min(members) for members in [*({docid} for docid in DOCS), *merged_slowly(classes)] for docid in members}

    def close(choose):
        decisions = {}
        while left := sorted(expand(seeds, live, classes, neighbours, decisions, {}).pending):
            for docid in choose(left):
                decisions[docid] = Decision(answers[text[docid]].hops & live if text[docid] in answers else frozenset(), frozenset(live))
        return expand(seeds, live, classes, neighbours, decisions, {})

    found = close(lambda left: left)
    assert found == close(lambda left: left[-1:]) == close(lambda left: drawn.sample(left, drawn.randint(1, len(left))))
    assert found.conflicts == found.missing == []


def expanded(seeds=None, live=(1, 2), classes=(), neighbours=None, decisions=None, rejected=None):
    return expand(seeds or {"a": {1}}, live, classes, neighbours or {}, decisions or {}, rejected or {})


def test_exact_copies_inherit_the_union_of_the_hops_of_their_class_unread():
    found = expanded({"b": {1}, "c": {2}}, classes=[{"a", "b"}, {"b", "c"}])
    assert found.included == {
        "a": Included({1, 2}, "exact", 0, "b", None), "b": Included({1, 2}, "judged", 0, None, None), "c": Included({1, 2}, "judged", 0, None, None),
    }
    assert found.missing == ["a", "b", "c"] and found.classes == [{"a", "b", "c"}] and found.pending == {}


def test_a_near_copy_is_judged_against_all_live_hops_and_only_an_accepted_one_leads_on():
    edges = {"a": {"b": 0.75, "c": 0.9}, "b": {"d": 0.8}, "c": {"e": 0.8}}
    assert expanded(neighbours=edges).pending == {"b": Pending({1, 2}, "a", 0.75), "c": Pending({1, 2}, "a", 0.9)}
    found = expanded(neighbours=edges, decisions={"b": accept(2), "c": accept()})
    assert found.included["b"] == Included({2}, "near", 1, "a", 0.75)
    assert found.pending == {"d": Pending({1, 2}, "b", 0.8)}  # e stands beside c, which was rejected
    assert found.near == {"b": Near({2}, 1, 0.75), "c": Near(frozenset(), 1, 0.9)} and found.rounds == 1


def test_an_edge_counts_from_either_end():
    assert expanded(neighbours={"b": {"a": 0.7}, "a": {}}).pending == {"b": Pending({1, 2}, "a", 0.7)}
    for one, other in ((0.7, 0.9), (0.9, 0.7)):
        assert expanded(neighbours={"a": {"b": one}, "b": {"a": other}}).pending["b"].jaccard == 0.9


def test_the_parent_has_the_largest_jaccard_then_the_smallest_round_then_the_smallest_id():
    edges = {"a": {"n": 0.7, "p": 0.9}, "b": {"p": 0.9, "n": 0.7}, "n": {"p": 0.9, "q": 0.75}, "c": {"n": 0.7, "q": 0.75}}
    found = expanded({"c": {1}, "b": {1}, "a": {1}}, neighbours=edges, decisions={"n": accept(1)})
    assert found.included["n"].parent == "a"
    assert found.pending == {"p": Pending({1, 2}, "a", 0.9), "q": Pending({1, 2}, "c", 0.75)}
    found = expanded({"z": {1}}, neighbours={"z": {"b": 0.9, "q": 0.75}, "b": {"q": 0.75}}, decisions={"b": accept(1)})
    assert found.pending == {"q": Pending({1, 2}, "z", 0.75)}  # of round 0, b is of round 1


def test_a_hop_that_goes_live_later_reopens_a_document_that_stays_included_for_what_it_was_accepted_for():
    edges = {"a": {"b": 0.9, "c": 0.8}}
    decisions = {"b": accept(1, live=(1,)), "c": accept(live=(1,))}
    assert expanded(live=[1], neighbours=edges, decisions=decisions).pending == {}
    later = expanded(live=[1, 2], neighbours=edges, decisions=decisions)
    assert later.pending == {"b": Pending({2}, "a", 0.9), "c": Pending({2}, "a", 0.8)}
    assert later.included["b"].hops == {1} and "c" not in later.included and later.near == {}


def test_a_hop_that_is_no_longer_live_does_not_count():
    found = expanded(live=[1], neighbours={"a": {"b": 0.9, "c": 0.9}}, decisions={"b": accept(2), "c": accept(1, 2)})
    assert list(found.included) == ["a", "c"] and found.included["c"].hops == {1} and found.near["b"].hops == set()


def test_what_the_judging_loop_rejected_is_asked_for_its_other_hops_only():
    edges = {"a": {"b": 0.9, "c": 0.9}}
    found = expanded(neighbours=edges, rejected={"b": {1}, "c": {1, 2}})
    assert found.pending == {"b": Pending({2}, "a", 0.9)} and found.near == {}  # c was never to be read as a near copy


def test_an_exact_copy_of_a_rejected_near_copy_inherits_the_rejection():
    edges = {"a": {"b": 0.9, "c": 0.95, "d": 0.7}}
    found = expanded(classes=[{"b", "c"}], neighbours=edges, decisions={"b": accept()})
    assert list(found.pending) == ["d"] and found.near == {"c": Near(frozenset(), 1, 0.95)} and list(found.included) == ["a"]


def test_of_pending_exact_copies_one_answer_does():
    edges = {"a": {"b": 0.9, "c": 0.95, "d": 0.7}}
    assert expanded(classes=[{"b", "c"}], neighbours=edges).copies == [{"b", "c"}]
    found = expanded(classes=[{"b", "c", "x"}], neighbours=edges, decisions={"b": accept(2)})
    assert found.included["c"] == Included({2}, "near", 1, "a", 0.95)  # the nearest copy, though b was the one that was read
    assert found.included["b"] == found.included["x"] == Included({2}, "exact", 1, "c", None)
    assert found.missing == ["b", "c", "x"]


def test_every_text_with_two_answers_is_a_conflict():
    edges = {"a": {"b": 0.9, "c": 0.9, "e": 0.9}}
    found = expanded(
        {"a": {1}, "s": {2}}, classes=[{"b", "c"}, {"d", "e"}, {"s", "t"}], neighbours=edges,
        decisions={"b": accept(1), "c": accept(2), "e": accept(1, live=[1])}, rejected={"d": {1}, "t": {2}},
    )
    assert found.conflicts == [
        Conflict(1, (("b", DECISION),), (("c", DECISION),)), Conflict(1, (("e", DECISION),), (("d", LOOP),)),
        Conflict(2, (("c", DECISION),), (("b", DECISION),)), Conflict(2, (("s", LOOP),), (("t", LOOP),)),
    ]


def test_two_decisions_that_had_no_hop_live_together_are_none():
    found = expanded(neighbours={"a": {"b": 0.9}}, classes=[{"b", "c"}], decisions={"b": accept(1, live=[1]), "c": accept(live=[2])})
    assert found.conflicts == [] and found.included["c"].hops == {1}


def test_a_decision_against_a_judged_copy_is_a_conflict_and_one_that_adds_a_hop_is_not():
    denied = expanded({"a": {1}}, classes=[{"a", "b"}], decisions={"b": accept(2)})
    assert denied.conflicts == [Conflict(1, (("a", LOOP),), (("b", DECISION),))]
    assert expanded({"a": {1}}, classes=[{"a", "b"}], decisions={"b": accept(1, 2)}).included["a"].hops == {1, 2}


def test_a_decision_that_nothing_leads_to_counts_for_nothing():
    found = expanded(neighbours={"a": {}, "b": {"c": 0.9}}, decisions={"b": accept(1), "c": accept(2)})
    assert list(found.included) == ["a"] and found.near == {} and found.pending == {} and found.rounds == 0
