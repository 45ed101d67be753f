"""What is planted around one question: the pages of its pool, and their exact and near copies outside of it.

Which page states what follows from how it was made. The turn of the question (its place in the set) decides what is
planted, so that a dozen questions hold everything at least once.
"""

from dataclasses import dataclass, replace
from random import Random

from lib.sample.review import encyclopedia
from lib.sample.review.chains import Fact, Question
from lib.sample.review.encyclopedia import Page

SUPPORTS = {2: 3, 3: 2, 4: 2}  # stating pages a hop, by hops of the question
MISSES = {2: 2, 3: 1, 4: 1}
LONG = 270  # sentences, more than 20,000 characters


@dataclass(eq=False)
class Planted:
    """One document: its page, why it was made, what it copies, and the hops whose pool lists it."""

    page: Page
    kind: str
    parent: "Planted | None" = None
    pool: tuple[int, ...] = ()
    one_sided: bool = False  # the parent's row of near duplicates lacks it, its own row has the parent
    docid: str = ""  # API spelling, given when the set is complete

    def hops(self, qid: str) -> list[int]:
        """The hops of a question that the page states."""
        return sorted(hop for of, hop in self.page.facts if of == qid)


@dataclass(frozen=True)
class Fate:
    """What the reviewer's sheet says of a hop, and whether any page of the pool states it."""

    judgment: str
    note: str | None = None
    supported: bool = True

    @property
    def live(self) -> bool:
        return self.note != "Not needed"


def fates(question: Question, turn: int) -> dict[int, Fate]:
    """The fate of each hop, by the question's turn."""
    made = {hop: Fate("Yes") for hop in range(1, len(question.facts) + 1)}
    match turn % 12:
        case 1:
            made[2] = Fate("No")
        case 2:
            made[2] = Fate("Yes", supported=False)
        case 4:
            made[1] = Fate("No", "Not needed")
        case 7:
            made[1] = Fate("No", supported=False)
        case 9:
            made[3] = Fate("No", "Not needed")
    return made


class _Kit:
    """The pages of one question as they are made; every draw comes from one generator."""

    def __init__(self, rng: Random, question: Question, turn: int):
        self.rng, self.question, self.turn = rng, question, turn
        self.fates = fates(question, turn)
        self.made: list[Planted] = []
        self.kept = {s for fact in question.facts for s in (*fact.states, *fact.misses.values())}

    def add(self, page: Page, kind: str, parent: Planted | None = None, pool: tuple[int, ...] = (), one_sided: bool = False) -> Planted:
        self.made.append(Planted(page, kind, parent, pool, one_sided))
        return self.made[-1]

    def fact(self, hop: int) -> Fact:
        return self.question.facts[hop - 1]

    def state(self, hop: int, but: str = "") -> str:
        return self.rng.choice([s for s in self.fact(hop).states if s != but])

    def stated(self, page: Page) -> list[tuple[int, str]]:
        """The (hop, sentence) pairs by which a page states its hops."""
        return [(hop, s) for s in page.sentences for hop in range(1, len(self.question.facts) + 1) if s in self.fact(hop).states]

    def new(self, title: str, sentences: list[str], hops: tuple[int, ...], size: str = "plain") -> Page:
        length, start = {"plain": (self.rng.randint(22, 36), 0), "late": (66, 50), "long": (LONG, 225)}[size]
        title = title[0].upper() + title[1:]
        facts = {(self.question.qid, hop) for hop in hops}
        return encyclopedia.page(self.rng, title, sentences, facts, length, start, wrapped=size == "plain" and self.rng.random() < 0.2)

    def edited(self, page: Page, parent: Planted, most: float) -> Page:
        return encyclopedia.edited(self.rng, page, parent.page, self.kept, most)

    # the pool

    def supporting(self, hop: int, size: str = "plain") -> Planted:
        values = self.fact(hop).values
        page = self.new(values[self.rng.choice("so")], [self.state(hop)], (hop,), size)
        return self.add(page, {"plain": "states", "late": "states_late", "long": "states_past_20000"}[size], pool=(hop,))

    def bridging(self, hop: int) -> Planted:
        """A page that states two hops; one question in four lists it under the first of them only."""
        page = self.new(self.fact(hop).values["o"], [self.state(hop), self.state(hop + 1)], (hop, hop + 1))
        return self.add(page, "states_two", pool=(hop,) if self.turn % 4 == 3 else (hop, hop + 1))

    def missing(self, hop: int, which: int, size: str = "plain") -> Planted:
        fact = self.fact(hop)
        kinds = list(fact.misses)
        page = self.new(fact.values["so"[which % 2]], [fact.misses[kinds[(self.turn // 4 + which) % len(kinds)]]], (), size)
        return self.add(page, "misses_long" if size == "long" else "misses", pool=(hop,))

    # the copies

    def near(self, parent: Planted, most: float, one_sided: bool = False) -> Planted:
        return self.add(self.edited(parent.page, parent, most), "kept", parent, one_sided=one_sided)

    def reworded(self, parent: Planted) -> Planted:
        page = parent.page
        for hop, sentence in self.stated(page):
            page = encyclopedia.exchanged(page, sentence, self.state(hop, but=sentence))
        return self.add(self.edited(page, parent, 0.93), "reworded", parent)

    def bare(self, parent: Planted, only: int | None = None) -> Page:
        """The parent's page without the sentences that state its hops, or without one hop's."""
        page = parent.page
        for hop, sentence in self.stated(page):
            if only in (None, hop):
                page = encyclopedia.without(page, sentence, (self.question.qid, hop))
        return page

    def dropped(self, parent: Planted, most: float = 0.9) -> Planted:
        return self.add(self.edited(self.bare(parent), parent, most), "dropped", parent)

    def changed(self, parent: Planted, pool: tuple[int, ...] = ()) -> Planted:
        page = parent.page
        for hop, sentence in self.stated(page):
            page = encyclopedia.exchanged(page, sentence, self.rng.choice(list(self.fact(hop).misses.values())))
        return self.add(self.edited(replace(page, facts=frozenset()), parent, 0.94), "changed", parent, pool)

    def with_other(self, page: Page, parent: Planted, kind: str) -> Planted:
        """A copy that states one more live hop than `page`, where there is one that pages of the pool state too."""
        others = [hop for hop, fate in self.fates.items() if fate.live and fate.supported and hop not in parent.hops(self.question.qid)]
        if not others:
            return self.near(parent, 0.9)
        hop = others[-1]
        page = encyclopedia.joined(self.rng, page, self.state(hop), (self.question.qid, hop))
        return self.add(self.edited(page, parent, 0.9), kind, parent)

    def chain(self, parent: Planted, links: int = 3) -> None:
        """Copies of copies, each near the one before it only."""
        for _ in range(links):
            parent = self.add(self.edited(parent.page, parent, 0.77), "chain", parent)

    def beyond(self, parent: Planted) -> None:
        """A page that states the hop, but is near a rejected copy only, so that closure never reaches it."""
        rejected = self.dropped(parent, 0.77)
        (hop, sentence), *_ = self.stated(parent.page)
        page = encyclopedia.joined(self.rng, rejected.page, sentence, (self.question.qid, hop))
        self.add(self.edited(page, rejected, 0.77), "beyond_rejection", rejected)

    def exact(self, of: Planted, n: int = 1, pool: tuple[int, ...] = ()) -> None:
        for _ in range(n):
            self.add(of.page, "exact", of, pool)


def plant(rng: Random, question: Question, turn: int) -> list[Planted]:
    """All pages of a question, those of its pool first."""
    kit = _Kit(rng, question, turn)
    _pool(kit)
    _copies(kit)
    return kit.made


def _pool(kit: _Kit) -> None:
    hops = len(kit.fates)
    late = kit.turn % hops + 1
    for hop, fate in kit.fates.items():
        for k in range(SUPPORTS[hops] if fate.supported else 0):
            if k == 1 and hop < hops and hop % 2 and kit.fates[hop + 1].supported:
                kit.bridging(hop)
            elif k == 1 and hop == hops and kit.turn % 4 == 1:
                kit.supporting(hop, "long")
            else:
                kit.supporting(hop, "late" if hop == late and k == 0 else "plain")
        for k in range(MISSES[hops] if fate.supported else 3):
            kit.missing(hop, k, "long" if kit.turn % 8 == 2 and hop == 1 and k == 0 else "plain")


def _copies(kit: _Kit) -> None:
    live = [hop for hop, fate in kit.fates.items() if fate.live and fate.supported]
    stating = [p for p in kit.made if any(hop in live for hop in p.hops(kit.question.qid)) and set(p.pool) & set(live)]
    singles = [p for p in stating if p.kind != "states_two"]
    first, last = singles[0], singles[-1]
    two = next((p for p in stating if p.kind == "states_two"), first)
    match kit.turn % 6:
        case 0:
            kit.chain(first)
            kit.exact(kit.dropped(last))
            kit.exact(last, pool=last.pool)
        case 1:
            kit.exact(kit.near(last, 0.85))
            kit.with_other(first.page, first, "fuller")
            kit.exact(kit.changed(first), 2)
        case 2:
            kit.exact(first, 2)
            kit.near(first, 0.8, one_sided=True)
            kit.reworded(last)
            kit.dropped(two)
        case 3:
            kit.add(kit.edited(kit.bare(two, two.pool[0]), two, 0.93), "partial", two)
            kit.with_other(last.page, last, "fuller")
            kit.add(replace(first.page, wrapped=not first.page.wrapped), "reflowed", first)
            kit.near(last, 0.75)
            kit.beyond(first)
        case 4:
            kit.chain(last)
            kit.exact(kit.changed(two))
            kit.near(kit.made[-3], 0.9, one_sided=True)
        case 5:
            kit.with_other(kit.bare(first), first, "swapped")
            kit.near(last, 0.97)
            kit.near(last, 0.72, one_sided=True)
            kit.changed(first, first.pool)
            kit.exact(two, 3)
    miss = next(p for p in kit.made if p.kind == "misses")
    kit.add(kit.edited(miss.page, miss, 0.9), "copy_of_miss", miss)
