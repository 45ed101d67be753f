"""The checker reads two texts and finds the label that the planted world gave the pair."""

from collections import Counter, defaultdict
from fractions import Fraction
from random import Random

import pytest

from lib.sample import truth, world
from lib.sample.checker import parse, verify
from lib.sample.families import FAMILIES
from lib.sample.families.family import fill
from lib.sample.reading import equalities

PAIRS = 200


@pytest.fixture(scope="module")
def planted():
    return list(world.queries(0, 440, 12_700)), list(world.documents(0, 440, 12_700))


def as_query(key, rng):
    """A query for a problem key: its truth, and a text in one of the family's own wordings."""
    name, _, numbers = key.split("|")
    wordings = FAMILIES[name].wordings
    values = dict(pair.split("=") for pair in numbers.split(","))
    text = fill(rng.choice([*wordings["ask"], *wordings["notation"], *wordings["plain"]]), values)
    return {"problem": key, "family": name, "query_evaluable": True, "reason_codes": [], "text": text}


def problems(document):
    return sorted({r["problem"] for r in document["relations"] if not r["problem"].startswith("family:")})


def pairs_by_kind(queries, documents, rng):
    """PAIRS pairs of each kind: the queries that the pages are about, then their problems put as queries."""
    asked, pairs = defaultdict(list), defaultdict(list)
    for query in queries:
        asked[query["problem"]].append(query)
    for document in rng.sample(documents, len(documents)):
        pairs[document["kind"]] += [(q, document) for key in problems(document) for q in asked[key]]
    for document in rng.sample(documents, len(documents)):
        about = problems(document)
        if about and len(pairs[document["kind"]]) < PAIRS:
            pairs[document["kind"]].append((as_query(rng.choice(about), rng), document))
    return {kind: found[:PAIRS] for kind, found in pairs.items()}


def test_the_checker_confirms_the_label_of_200_pairs_of_each_kind(planted):
    queries, documents = planted
    pairs = pairs_by_kind(queries, documents, Random(1))
    assert len(pairs) == 18
    confirmed = Counter()
    for kind, found in pairs.items():
        for query, document in found:
            expected = truth.label(query, document, len(document["text"]))["score"]
            assert verify(query["text"], document["text"]) == expected, (kind, query["text"], document["text"])
            confirmed[kind] += 1
    assert all(count == PAIRS for count in confirmed.values()), confirmed


def test_the_checker_confirms_what_a_cut_left_of_a_page(planted):
    _, documents = planted
    rng, cut = Random(3), 0
    for document in documents[:1500]:
        for key in problems(document)[:2]:
            query = as_query(key, rng)
            cuts = {r["needs"] for r in document["relations"] if r["problem"] == key and r["needs"]}
            for needs in sorted(cuts | {rng.randint(1, len(document["text"]))}):
                expected = truth.label(query, document, needs)["score"]
                assert verify(query["text"], document["text"][:needs]) == expected
                cut += expected > 0 and needs < len(document["text"])
    assert cut > 500


def test_the_checker_confirms_random_pairs_and_pairs_inside_a_family(planted):
    queries, documents = planted
    rng, of_family = Random(4), defaultdict(list)
    for document in documents:
        of_family[document["family"]].append(document)
    for query in queries[:150]:
        near = rng.sample(of_family[query["family"]], 12) if query["query_evaluable"] else []
        for document in rng.sample(documents, 8) + near:
            assert verify(query["text"], document["text"]) == truth.label(query, document, len(document["text"]))["score"]


def test_every_query_parses_to_its_problem_and_a_broken_one_to_nothing(planted):
    for query in planted[0]:
        found = parse(query["text"])
        assert (found is not None) == query["query_evaluable"]
        if found:
            numbers = ",".join(f"{k}={v}" for k, v in sorted(found.parameters.items()))
            assert f"{found.family}|ask=answer|{numbers}" == query["problem"]


ASKED = "Hi, Find the least common multiple of 60 and 84. Thanks!"
STATED = "Find the least common multiple of 60 and 84."


@pytest.mark.parametrize(("label", "text"), [
    (2, STATED + r" $\gcd = 12$, $5 \cdot 7 = 35$; $\operatorname{lcm} = 12 \cdot 35 = 420$."),
    (0, STATED + r" $\gcd = 12$, $5 \cdot 7 = 35$; $\operatorname{lcm} = 12 \cdot 35 = 840$."),
    (0, STATED + r" $\gcd = 12$, $5 \cdot 7 = 36$; $\operatorname{lcm} = 12 \cdot 36 = 420$."),
    (1, STATED + r" $\gcd = 12$, $5 \cdot 7 = 35$;"),
    (1, STATED + " Euclid's algorithm applied to 60 and 84 ends with the greatest common divisor 12."),
    (0, STATED + " The answer is 420."),
    (0, STATED.replace("84", "48") + r" $\gcd = 12$, $5 \cdot 4 = 20$; $\operatorname{lcm} = 12 \cdot 20 = 240$."),
    (0, "Find the greatest common divisor of 60 and 84. Euclid's algorithm helps."),
    (1, "Which is the smallest positive whole number that both sixty and eighty-four divide evenly?  Both numbers contain "
        "the factor twelve, and stripped of it they are five and seven, which have no divisor in common. Any shared "
        "multiple must absorb the factor twelve a single time as well as five and seven."),
])
def test_a_page_is_worth_what_it_shows(label, text):
    assert verify(ASKED, text) == label


def test_a_question_without_mathematics_is_not_evaluated():
    assert verify("See the figure. [image not available]", STATED) is None


def test_the_answer_is_recomputed_from_the_question():
    assert parse(ASKED).answer == Fraction(420)


@pytest.mark.parametrize(("text", "found"), [
    (r"so $3 \cdot 4 + 2 = 14$ holds", [True]),
    (r"so $(3 + 5)/2 = 5$", [False]),
    (r"$2x + 3 = 11$ and $x^2 = 16$", []),
    ("f(3) = 9, C(5, 2) = 10", []),
    ("12 · 5 − 4 · 3 = 48 = 50", [True, False]),
    ("$x = 3 + 4 = 7$", [True]),
])
def test_only_equations_of_plain_numbers_are_tested(text, found):
    assert [true for _, _, true in equalities(text)] == found
