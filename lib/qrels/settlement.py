"""From verdict lines to one answer for each item, or to the list of all that stands against it."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import NamedTuple


class Settlement(NamedTuple):
    """The items of grade 1 of each question, sorted; and everything that keeps the qrels from being written, in order."""

    accepted: dict[str, list[Hashable]]
    conflicts: list[tuple[str, Hashable]]  # two grades for one item
    unknown_documents: list[tuple[str, Hashable]]  # not in the question's pool, or accepted and not in the corpus
    unknown_questions: list[str]
    empty: list[str]  # questions left without documents


def settle(
    pool: Mapping[str, Collection[Hashable]], corpus: Collection[Hashable] | None, lines: Iterable[tuple[str, Hashable, int]],
) -> Settlement:
    """Settle lines (question, item, grade 0 or 1) against the pool of each question; `corpus` None takes every item as known.

    An item is what is graded, a document, or a document for one hop; those of one call sort among each other.
    Identical repeats are one line. A conflict or an unknown document is no document of its question. The order of
    the lines does not matter: nothing wins by being last.
    """
    grades, unknown_questions = defaultdict(set), set()
    for qid, item, grade in lines:
        if qid in pool:
            grades[qid, item].add(grade)
        else:
            unknown_questions.add(qid)
    accepted, conflicts, unknown = {qid: [] for qid in pool}, [], []
    for (qid, item), given in sorted(grades.items(), key=lambda line: line[0]):
        is_known = item in pool[qid] and (corpus is None or item in corpus or not any(given))
        if not is_known:
            unknown.append((qid, item))
        if len(given) > 1:
            conflicts.append((qid, item))
        elif is_known and given == {1}:
            accepted[qid].append(item)
    return Settlement(accepted, conflicts, unknown, sorted(unknown_questions), [qid for qid, items in accepted.items() if not items])
