"""How a page of each kind is composed around one problem."""

from random import Random

from lib.sample import chat
from lib.sample.chat import pick
from lib.sample.draft import Draft, Problem, any_problem, problem
from lib.sample.families import BRANCH_OF, BRANCHES
from lib.sample.families.family import DERIVATIONS, Family, fill, halves, spelled


def a_wording(rng: Random, p: Problem, but: tuple[str, int] | None = None) -> tuple[str, int]:
    """One of the ordinary wordings of a question (mostly words, sometimes notation), another than `but`."""
    words = [("ask", i) for i in range(len(p.family.wordings["ask"]))]
    return rng.choice([wording for wording in 2 * words + [("notation", 0)] if wording != but])


def _fitting(rng: Random, p: Problem, style: str) -> tuple[str, int]:
    """A wording of the question that the words of a derivation go on from."""
    return ("plain", 0) if style == "other" else a_wording(rng, p)


def _solve(draft: Draft, rng: Random, p: Problem, lead: str) -> None:
    style = rng.choice(DERIVATIONS)
    draft.state(p, _fitting(rng, p, style), lead)
    draft.derive(p, style, pick(rng, chat.SOLUTIONS))


def _open(rng: Random) -> Draft:
    draft = Draft()
    if rng.random() < 0.6:
        draft.put(pick(rng, chat.OPENINGS))
    return draft


def _aside(draft: Draft, rng: Random, family: Family, chance: float = 0.35) -> None:
    if rng.random() < chance:
        sentences = family.wordings["topic"][0].split(". ")
        draft.put(rng.choice(sentences).rstrip(".") + ".")


def _close(draft: Draft, rng: Random) -> Draft:
    draft.put(pick(rng, chat.CLOSINGS))
    return draft


def solved(rng: Random, p: Problem, style: str = "other", but: tuple[str, int] | None = None,
           deciding: bool = True) -> Draft:
    """Statement and derivation; without `deciding` the last sentence is missing and so is the rest of the page."""
    draft = _open(rng)
    if style != "other" or rng.random() < 0.4:
        draft.state(p, a_wording(rng, p, but), pick(rng, chat.STATEMENTS))
    if style == "other":
        draft.state(p, ("plain", 0), pick(rng, chat.RETELLINGS))
    _aside(draft, rng, p.family)
    draft.derive(p, style, pick(rng, chat.SOLUTIONS), deciding=deciding)
    if not deciding:
        draft.put(f"Rest of the page missing. {pick(rng, chat.UNANSWERED)}")
        return draft
    return _close(draft, rng)


def source(rng: Random, p: Problem, wording: tuple[str, int]) -> Draft:
    """The query's own page: mostly solved, in a few cases begun only or bare."""
    draft = _open(rng)
    draft.state(p, wording, pick(rng, chat.STATEMENTS))
    fate = rng.random()
    if fate < 0.03:
        draft.put(pick(rng, chat.UNANSWERED, 2))
    else:
        _aside(draft, rng, p.family, 0.2)
        draft.derive(p, "solution", pick(rng, chat.SOLUTIONS), deciding=fate >= 0.07)
    return _close(draft, rng)


def semantic_only(rng: Random, p: Problem) -> Draft:
    """The problem in plain words and all numbers spelled out."""
    draft = Draft()
    draft.state(p, ("plain", 0), spell=spelled)
    draft.derive(p, "other", spell=spelled, codes=("full_solution", "equivalent_problem"))
    return draft


def lexical_only(rng: Random, p: Problem) -> Draft:
    """Notation and nothing else, question and answer."""
    draft = Draft()
    draft.state(p, ("notation", 0))
    draft.derive(p, "terse", codes=("direct_answer",))
    return draft


def helping(rng: Random, p: Problem, label: str) -> Draft:
    """A lemma, the method or a solved subcase for a problem that is stated but not solved."""
    draft = _open(rng)
    draft.state(p, a_wording(rng, p), pick(rng, chat.STATEMENTS))
    _aside(draft, rng, p.family)
    leads = {"lemma": chat.LEMMAS, "method": chat.METHODS, "subcase": chat.SUBCASES}[label]
    draft.help(p, label, pick(rng, leads))
    return _close(draft, rng)


def changed_condition(rng: Random, p: Problem) -> Draft:
    """The same numbers under another question, or the same question with one number changed, solved either way."""
    draft = _open(rng)
    lead = pick(rng, chat.STATEMENTS)
    if rng.random() < 0.5:
        draft.put(f"{lead} {p.say('changed')}".strip())
        _aside(draft, rng, p.family)
        end = draft.put(f"{pick(rng, chat.SOLUTIONS)} {p.say('altered')}")
        draft.relate(p.key, 0, "correct", ["condition_mismatch"], end)
    else:
        _solve(draft, rng, problem(p.family, p.family.neighbour(p.parameters, rng)), lead)
    return _close(draft, rng)


def no_answer(rng: Random, p: Problem) -> Draft:
    """The problem and people who cannot solve it."""
    draft = _open(rng)
    draft.state(p, a_wording(rng, p), pick(rng, chat.STATEMENTS))
    _aside(draft, rng, p.family)
    draft.put(pick(rng, chat.UNANSWERED, rng.randint(2, 5)))
    return draft


def major_error(rng: Random, p: Problem) -> Draft:
    """The typical fallacy of the family, or a sound derivation with a wrong conclusion."""
    draft = _open(rng)
    fallacy = rng.random() < 0.6
    style = "error" if fallacy else rng.choice(DERIVATIONS)
    draft.state(p, _fitting(rng, p, style), pick(rng, chat.STATEMENTS))
    lead = pick(rng, chat.SOLUTIONS)
    if fallacy:
        end = draft.put(f"{lead} {p.say('error')}")
    else:
        draft.derive(p, style, lead, deciding=False)
        conclusion = halves(p.family.wordings[style][0])[1]
        end = draft.put(fill(conclusion, {**p.values, "answer": p.values["wrong"]}), " ")
    draft.relate(p.key, 0, "incorrect", ["major_math_error"], end)
    return _close(draft, rng)


def unverifiable(rng: Random, p: Problem) -> Draft:
    """A conclusion, right or wrong, without any basis."""
    draft = _open(rng)
    draft.state(p, a_wording(rng, p), pick(rng, chat.STATEMENTS))
    claimed = p.values["answer"] if rng.random() < 0.7 else p.values["wrong"]
    guessed = rng.random() < 0.5
    basis = pick(rng, chat.BASES if guessed else chat.EVASIONS)
    end = draft.put(f"{pick(rng, chat.CLAIMS).format(claimed)} {basis}")
    codes = ["unsupported_conclusion"] if guessed else ["unsupported_conclusion", "unverifiable_math"]
    draft.relate(p.key, 0, "unverifiable", codes, end)
    return _close(draft, rng)


def topic(rng: Random, p: Problem) -> Draft:
    """History and colour of a family, with one question as a specimen."""
    draft = Draft()
    draft.put(f"{pick(rng, chat.HEADINGS)}, {p.family.name.replace('_', ' ')}")
    end = draft.put(p.family.wordings["topic"][0])
    draft.relate(f"family:{p.family.name}", 0, "no_answer", ["topic_only"], end)
    draft.state(p, a_wording(rng, p), pick(rng, chat.INTERLUDES))
    return _close(draft, rng)


def general_method(family: Family) -> Draft:
    """The method of a whole family, without numbers: partially relevant to each of its problems."""
    draft = Draft()
    draft.put(f"Handbook: {family.name.replace('_', ' ')}")
    end = draft.put(family.wordings["general"][0])
    draft.relate(f"family:{family.name}", 1, "correct", ["applicable_method"], end)
    return draft


def _others(rng: Random, p: Problem) -> Problem:
    """A problem of the same family or, now and then, of its branch."""
    return any_problem(rng, (p.family,) if rng.random() < 0.6 else BRANCHES[BRANCH_OF[p.family.name]])


def exercises(rng: Random, p: Problem) -> Draft:
    """A numbered list of questions without answers; one of them is the problem."""
    draft = Draft()
    draft.put(f"{pick(rng, chat.SHEETS)} {rng.randint(1, 40)}")
    count = rng.randint(3, 7) if rng.random() < 0.75 else rng.randint(9, 20)
    place = rng.randrange(count)
    for number in range(count):
        stated = p if number == place else _others(rng, p)
        draft.state(stated, a_wording(rng, stated), f"{number + 1}.")
    return draft


def booklet(rng: Random, problems: list[Problem]) -> Draft:
    """Several problems, each solved in its own way."""
    draft = Draft()
    draft.put(f"{pick(rng, chat.BOOKLETS)} {rng.randint(1, 40)}")
    for number, p in enumerate(problems, 1):
        _solve(draft, rng, p, f"{number}.")
    return draft


def long_late(rng: Random, p: Problem) -> Draft:
    """Notes that announce a problem, help with it on the way and solve it after 1,100 to 6,600 characters."""
    draft = Draft()
    draft.put(f"{pick(rng, chat.HEADINGS)} {rng.randint(1, 40)}: {p.family.name.replace('_', ' ')}")
    draft.put(p.family.wordings["topic"][0])
    draft.state(p, a_wording(rng, p), pick(rng, chat.STATEMENTS))
    depth = rng.choice((rng.randint(1100, 1500), rng.randint(1500, 2400), rng.randint(1500, 3500), rng.randint(6000, 6600)))
    helped = rng.random() < 0.5 and rng.randint(600, depth)
    while len(draft.text) < depth:
        if helped and len(draft.text) > helped:
            helped = False
            draft.state(p, a_wording(rng, p), pick(rng, chat.RETURNS))
            draft.help(p, rng.choice(("lemma", "method", "subcase")), pick(rng, chat.LEMMAS))
        other = _others(rng, p)
        if rng.random() < 0.7:
            _solve(draft, rng, other, pick(rng, chat.INTERLUDES))
        else:
            draft.state(other, a_wording(rng, other), pick(rng, chat.INTERLUDES))
    _solve(draft, rng, p, pick(rng, chat.RETURNS))
    return _close(draft, rng)
