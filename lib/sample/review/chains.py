"""Invented multi-hop questions: a chain of facts in which each answer is what the next hop asks about."""

from random import Random
from typing import NamedTuple

from lib.sample.review.relations import CHAINS, RELATIONS, Relation

_HEADS = "Al Bran Cor Dra El Fen Gar Hol Il Jor Kel Lun Mar Nor Or Pel Quen Ros Sel Tor Ul Var Wen Yar Zel".split()
_MIDDLES = "a an ar e en er i il in o ol or u un ava eli omi uri".split()
_TAILS = "bek dal dun fel gan ham kirk lin mar moor nath ric sund tal ven vik wick zan".split()
_FORMS = {
    "person": "{0} {1}", "town": "{0}", "river": "the {0}", "lake": "Lake {0}", "institute": "the {0} Institute",
    "journal": "the {0} Quarterly", "observatory": "the {0} Observatory", "opera": "the opera {0}", "bridge": "the {0} Bridge",
    "university": "{0} University",
}


def word(rng: Random) -> str:
    """An invented proper name; more than 8,000 of them."""
    return rng.choice(_HEADS) + rng.choice(_MIDDLES) + rng.choice(_TAILS)


class Names:
    """Names of things, no word of them given twice."""

    def __init__(self, rng: Random):
        self._rng, self._given = rng, set()

    def new(self, kind: str) -> str:
        """The name of a thing of a kind, as it stands inside a sentence."""
        words = []
        while len(words) < 2:
            drawn = word(self._rng)
            if drawn not in self._given:
                self._given.add(drawn)
                words.append(drawn)
        return _FORMS[kind].format(*words)


class Fact(NamedTuple):
    """What one hop asks and its answer, with all the sentences that state it or just miss it."""

    relation: Relation
    values: dict[str, str]

    def _say(self, template: str) -> str:
        said = template.format(**self.values)
        return said[0].upper() + said[1:]

    @property
    def ask(self) -> str:
        return self._say(self.relation.ask)

    @property
    def states(self) -> list[str]:
        return [self._say(template) for template in self.relation.states]

    @property
    def misses(self) -> dict[str, str]:
        return {kind: self._say(template) for kind, template in self.relation.misses.items()}

    @property
    def must_state(self) -> str:
        return self._say(self.relation.must_state)

    @property
    def near_miss(self) -> str:
        return self._say(self.relation.near_miss)


class Question(NamedTuple):
    """A question and the facts of its hops, in order; hop h is `facts[h - 1]`."""

    qid: str
    text: str
    facts: list[Fact]


def questions(rng: Random, n: int) -> list[Question]:
    """n questions of 3, 2, 4, 3, ... hops about things that no two of them share."""
    names = Names(rng)
    width = max(2, len(str(n)))
    turns = {hops: 0 for hops in CHAINS}
    made = []
    for i in range(n):
        hops = (3, 2, 4)[i % 3]
        chain = CHAINS[hops][turns[hops] % len(CHAINS[hops])]
        turns[hops] += 1
        made.append(_question(rng, names, f"q{i + 1:0{width}d}", chain))
    return made


def _question(rng: Random, names: Names, qid: str, chain: tuple[str, ...]) -> Question:
    facts: list[Fact] = []
    subject = phrase = names.new(RELATIONS[chain[0]].domain)
    text = ""
    for name in chain:
        relation = RELATIONS[name]
        year = rng.randint(1790, 1925)
        values = {"s": subject, "o": names.new(relation.range), "x": names.new(relation.range), "y": names.new(relation.domain),
                  "year": str(year), "later": str(year + rng.randint(3, 9))}
        facts.append(Fact(relation, values))
        text = relation.ask.format(**values | {"s": phrase})
        phrase = relation.noun.format(**values | {"s": phrase})
        subject = values["o"]
    return Question(qid, text, facts)
