"""The label of a pair from its two texts alone: parse the question, recompute its answer, read what the page shows.

Nothing here sees how the texts were made. A page is worth 2 for a derivation whose equations hold and whose conclusion
is the recomputed answer, 1 for a derivation without conclusion, a lemma, a method or a solved subcase with the numbers
of the question or for the general method of its family, and 0 otherwise.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from lib.sample.families import FAMILIES
from lib.sample.families.family import DERIVATIONS, halves
from lib.sample.reading import equalities, occurrences, questions
from lib.sample.recount import ANSWERS


class Question(NamedTuple):
    """What a query asks: a family, its parameters by name, and the recomputed answer."""

    family: str
    parameters: Mapping[str, int]
    answer: Fraction


@lru_cache(4096)
def parse(query_text: str) -> Question | None:
    """The question in a query's text, None if it holds none; of several readings the longest counts."""
    readings = [(len(match[0]), name, found) for name in FAMILIES for wording in questions(name)
                for match, found in occurrences(wording, query_text) if found is not None]
    if not readings:
        return None
    _, name, found = max(readings, key=lambda reading: reading[0])
    parameters = {slot: int(found[slot]) for slot in FAMILIES[name].parameters}
    return Question(name, parameters, Fraction(ANSWERS[name](**parameters)))


def verify(query_text: str, document_text: str) -> int | None:
    """The label 0, 1 or 2 that the page earns for the query; None for a query that cannot be interpreted."""
    question = parse(query_text)
    if question is None:
        return None
    general = FAMILIES[question.family].wordings["general"][0]
    labels = [1] if any(occurrences(general, document_text)) else [0]
    labels += [_section(question, document_text, start, end) for start, end in _sections(question, document_text)]
    return max(labels)


def _sections(question: Question, text: str) -> list[tuple[int, int]]:
    """The stretches of the page that follow this very question, each up to the family's next question."""
    stated = [(match.start(), match.end(), found == question.parameters) for wording in questions(question.family)
              for match, found in occurrences(wording, text)]
    changed = FAMILIES[question.family].wordings["changed"][0]
    stated += [(match.start(), match.end(), False) for match, _ in occurrences(changed, text)]
    stated = [*sorted(stated), (len(text), len(text), False)]
    return [(end, until) for (_, end, same), (until, _, _) in pairwise(stated) if same]


def _section(question: Question, text: str, start: int, end: int) -> int:
    """The label that one stretch of the page earns; a refuted conclusion spoils the work before it."""
    wordings = FAMILIES[question.family].wordings
    label = 0
    for style in DERIVATIONS:
        for match, found in occurrences(wordings[style][0], text, start, end):
            if not _holds(question, match[0], found):
                return 0
            label = 2
        work = halves(wordings[style][0])[0]
        if any(_holds(question, match[0], found) for match, found in occurrences(work, text, start, end)):
            label = max(label, 1)
    for kind in ("lemma", "method", "subcase"):
        if any(_holds(question, match[0], found) for match, found in occurrences(wordings[kind][0], text, start, end)):
            label = max(label, 1)
    return label


def _holds(question: Question, passage: str, found: dict | None) -> bool:
    """Whether a passage speaks of the question's numbers, names its answer if any, and every equation in it is true."""
    if found is None:
        return False
    known = {**question.parameters, "answer": question.answer}
    return all(known.get(slot, value) == value for slot, value in found.items()) and all(
        true for _, _, true in equalities(passage))
