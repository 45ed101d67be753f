"""Expansion of one question over exact and near duplicates: what is included, what is left to judge, what contradicts itself."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lib.qrels.exact import merged

Hops = Collection[int]
LOOP, DECISION = "the judging loop", "a decision"


class Decision(NamedTuple):
    """The answer to a near copy: the hops it supports, of the hops that were live when it was read."""

    hops: Hops
    live: Hops


class Included(NamedTuple):
    """A relevant document. `origin` is judged, exact or near; a judged one has no parent, only a near one has a Jaccard."""

    hops: frozenset[int]
    origin: str
    round: int
    parent: str | None
    jaccard: float | None


class Pending(NamedTuple):
    """A near copy that is left to judge: the live hops without an answer, and the included document it is nearest to."""

    hops: frozenset[int]
    parent: str
    jaccard: float


class Near(NamedTuple):
    """A near copy that was decided, one for each text; not one that the judging loop had rejected for every live hop.

    `jaccard` is the largest of its text with an included document of another text, `round` the one in which it came up.
    """

    hops: frozenset[int]
    round: int
    jaccard: float


class Conflict(NamedTuple):
    """Two answers for one text on one hop: who accepts it and who denies it, as (document, a decision or the judging loop)."""

    hop: int
    accepted: tuple[tuple[str, str], ...]
    denied: tuple[tuple[str, str], ...]


class Expansion(NamedTuple):
    """One question after one look at what is known. It is closed where nothing is pending, missing or in conflict.

    `missing` are included documents whose neighbours are not known; while there are any, the rest is only what is known so far.
    `copies` are pending documents that are one text, `classes` the exact classes with an included member, `rounds` the largest round
    of an included document.
    """

    included: dict[str, Included]
    pending: dict[str, Pending]
    near: dict[str, Near]
    conflicts: list[Conflict]
    missing: list[str]
    copies: list[frozenset[str]]
    classes: list[frozenset[str]]
    rounds: int


class _Answers:
    """The answers to one class: for each hop who accepts it and who denies it. Of decisions, only what they say of live hops.

    `asked` are the live hops that the judging loop left to the expansion, `open` those of them without an answer.
    """

    def __init__(self, members: frozenset[str], live: frozenset[int], seeds, decisions, rejected):
        self.accepted, self.denied = defaultdict(list), defaultdict(list)
        self.judged = not members.isdisjoint(seeds)
        for docid in sorted(members):
            for hop in seeds.get(docid, ()):
                self.accepted[hop].append((docid, LOOP))
            for hop in rejected.get(docid, ()):
                self.denied[hop].append((docid, LOOP))
        self.asked = frozenset() if self.judged else live - self.denied.keys()
        for docid in sorted(members):
            if docid in decisions:
                hops, then = decisions[docid]
                for hop in live.intersection(then):
                    (self.accepted if hop in hops else self.denied)[hop].append((docid, DECISION))
        self.hops = frozenset(self.accepted)
        self.open = self.asked - self.accepted.keys() - self.denied.keys()

    def conflicts(self) -> list[Conflict]:
        both = sorted(self.accepted.keys() & self.denied.keys())
        return [Conflict(hop, tuple(self.accepted[hop]), tuple(self.denied[hop])) for hop in both]


def expand(
    seeds: Mapping[str, Hops],
    live: Hops,
    classes: Iterable[Collection[str]],
    neighbours: Mapping[str, Mapping[str, float]],
    decisions: Mapping[str, Decision],
    rejected: Mapping[str, Hops],
) -> Expansion:
    """Close one question over its duplicates, as far as `neighbours` (of included documents, with Jaccard) and `decisions` go.

    Documents of one class (overlapping ones are merged) are one text. A class with a judged document, a seed, is included in round 0
    with all hops of its members, unread. A class next to an included one is included, a round later, where its decisions accept a live
    hop; it is pending where a live hop has no answer: by a decision of a member while that hop was live, or by `rejected`, the
    judging loop. It can be both, when a hop went live later. Decisions on hops that are not live, and on documents that nothing
    leads to, do not count. An edge counts in both directions; only included documents have neighbours that count.

    Of an included class without a seed the member with the edge of largest Jaccard to the round before (then of the smallest parent,
    then the smallest id) is the near copy, and the others are its exact copies. So nothing depends on the order of the answers, nor
    on which copy was read. Ties of a pending document's parent go to the smaller round, then the smaller id.
    (Spec, "Duplicate expansion"; the rule of the near copy of a class is ours.)
    """
    live = frozenset(live)
    together = {docid: members for members in merged(classes) for docid in members}
    edges = _both_directions(neighbours)
    answers = {}

    def class_of(docid: str) -> frozenset[str]:
        return together.get(docid) or frozenset((docid,))

    def answered(members: frozenset[str]) -> _Answers:
        if members not in answers:
            answers[members] = _Answers(members, live, seeds, decisions, rejected)
        return answers[members]

    included: dict[str, Included] = {}
    frontier, rounds = set(map(class_of, seeds)), 0
    for members in frontier:
        first, hops = min(members & seeds.keys()), answered(members).hops
        included |= {docid: Included(hops, "exact", 0, first, None) for docid in members}
        included |= {docid: Included(hops, "judged", 0, None, None) for docid in members & seeds.keys()}
    while frontier:
        nearest: dict[frozenset[str], tuple] = {}
        for parent in (docid for members in frontier for docid in members):
            for docid, jaccard in edges[parent].items():
                members = class_of(docid)
                if docid not in included and answered(members).hops:
                    edge = (-jaccard, parent, docid)
                    nearest[members] = min(nearest.get(members, edge), edge)
        frontier, rounds = set(nearest), rounds + bool(nearest)
        for members, (minus_jaccard, parent, near) in nearest.items():
            hops = answered(members).hops
            included |= {docid: Included(hops, "exact", rounds, near, None) for docid in members}
            included[near] = Included(hops, "near", rounds, parent, -minus_jaccard)

    pending, copies, left = {}, defaultdict(list), defaultdict(set)
    for docid in list(edges):
        members = class_of(docid)
        outside = (parent for parent in edges[docid] if parent in included and parent not in members)
        found = [(-edges[docid][parent], included[parent].round, parent) for parent in outside]
        if found and not answered(members).judged:
            minus_jaccard, _, parent = min(found)
            copies[members].append((minus_jaccard, docid, 1 + min(round_ for _, round_, _ in found)))
            if answered(members).open:
                left[members].add(docid)
                pending[docid] = Pending(answered(members).open, parent, -minus_jaccard)
    near = {}
    for members, found in copies.items():
        if answered(members).asked and not answered(members).open:
            minus_jaccard, docid, _ = min(found)
            docid = next((one for one in members if one in included and included[one].origin == "near"), docid)
            near[docid] = Near(answered(members).hops, min(round_ for *_, round_ in found), -minus_jaccard)
    return Expansion(
        included=dict(sorted(included.items())), pending=dict(sorted(pending.items())), near=dict(sorted(near.items())),
        conflicts=sorted(conflict for members in set(map(class_of, included)) for conflict in answered(members).conflicts()),
        missing=sorted(included.keys() - neighbours.keys()),
        copies=sorted((frozenset(members) for members in left.values() if len(members) > 1), key=min),
        classes=sorted({together[docid] for docid in included if docid in together}, key=min), rounds=rounds,
    )


def _both_directions(neighbours: Mapping[str, Mapping[str, float]]) -> defaultdict[str, dict[str, float]]:
    """Every edge from both of its ends; where the two directions differ, the larger Jaccard."""
    edges = defaultdict(dict)
    for docid, found in neighbours.items():
        for other, jaccard in found.items():
            edges[docid][other] = edges[other][docid] = max(jaccard, edges[docid].get(other, jaccard))
    return edges
