r"""What a planted judge says of a pair whose truth is known: a confusion matrix and a legal reply.

A row of a matrix is the true label 0, 1, 2 or null, a column the label that is said. With 69 / 23 / 8% true
0 / 1 / 2 the matrices of `judge` and `strict` agree exactly on 77% of pairs and say 0 against 2 on 1%, as the two
judges of the spec do ("Reliability against a second judge": 77.6% and 1.0%). `judge` leans to 1 where the truth
is 0, `strict` to 0 where it is 1, `arbiter` is nearly always right.

A draw depends on the seed, the personality and the two texts only, never on order, time or ids.
"""

import hashlib

GUIDELINE = "strict-math-retrieval-v1"

LABELS = (0, 1, 2, None)
MATRICES = {
    "judge": {
        0: (0.842, 0.155, 0.003, 0),
        1: (0.07, 0.88, 0.05, 0),
        2: (0.01, 0.11, 0.88, 0),
        None: (0.03, 0, 0, 0.97),
    },
    "strict": {
        0: (0.965, 0.032, 0.003, 0),
        1: (0.20, 0.73, 0.07, 0),
        2: (0.015, 0.105, 0.88, 0),
        None: (0.05, 0, 0, 0.95),
    },
    "arbiter": {
        0: (0.985, 0.015, 0, 0),
        1: (0.015, 0.97, 0.015, 0),
        2: (0, 0.015, 0.985, 0),
        None: (0.01, 0, 0, 0.99),
    },
}

# label -> the validities it allows, the codes of which it needs one, the codes it allows besides
LEGAL = {
    2: ({"correct"}, {"full_solution", "direct_answer"}, {"equivalent_problem", "minor_gap"}),
    1: (
        {"correct", "partial"},
        {"key_lemma", "applicable_method", "solved_subcase", "partial_derivation"},
        {"equivalent_problem", "minor_gap"},
    ),
    0: (
        {"correct", "incorrect", "unverifiable", "no_answer"},
        {
            "wrong_problem", "condition_mismatch", "topic_only", "no_answer", "major_math_error",
            "unsupported_conclusion", "unverifiable_math",
        },
        set(),
    ),
    None: ({"not_assessed"}, {"query_missing_figure", "query_missing_context", "query_corrupted"}, set()),
}

# what a judge that does not say the true label gives as its reasons
_SLIPS = {
    2: (
        ("correct", ("full_solution",)),
        ("correct", ("full_solution", "equivalent_problem")),
        ("correct", ("direct_answer", "minor_gap")),
    ),
    1: (
        ("correct", ("applicable_method",)),
        ("correct", ("key_lemma", "equivalent_problem")),
        ("partial", ("partial_derivation",)),
        ("partial", ("solved_subcase", "minor_gap")),
    ),
    0: (
        ("correct", ("condition_mismatch",)),
        ("no_answer", ("topic_only", "no_answer")),
        ("incorrect", ("major_math_error",)),
        ("unverifiable", ("unsupported_conclusion",)),
        ("unverifiable", ("unverifiable_math",)),
    ),
    None: (("not_assessed", ("query_missing_context",)),),
}

_RATIONALES = {
    2: (
        r"The page settles the question itself: from \frac{a}{b} = \frac{c}{d} it follows that \(ad = bc\), and the value is right.",
        r"Every step is justified, \binom{n}{k} is counted once, and \text{the answer} agrees with the \"given\" conditions.",
    ),
    1: (
        r"The lemma \alpha \leq \beta is correct and useful, but the last step from \nabla f = 0 to the value is missing.",
        "Only the case \\(n \\equiv 1 \\pmod{4}\\) is solved;\nthe other cases are left open.",
    ),
    0: (
        r"Same notation (\sum_{i=1}^{n} x_i), another question: what is asked for is not derived here.",
        r"The conclusion rests on \frac{0}{0} or on nothing; \text{no} step of it can be used.",
    ),
    None: (r"The question points at something that did not arrive (\ldots), so nothing can be compared with it.",),
}


def pair_hash(seed: int, personality: str, query: str, document: str) -> str:
    """Name a pair by the two texts that were received: 32 hex digits, another name for another seed or personality."""
    found = hashlib.blake2b(f"{seed} {personality} {len(query)} ".encode(), digest_size=16)
    found.update(query.encode("utf-8", "surrogatepass"))
    found.update(document.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def uniform(pair: str, what: str) -> float:
    """A number in [0, 1) that is a function of the pair and of what is being drawn."""
    drawn = hashlib.blake2b(what.encode(), key=pair.encode(), digest_size=8).digest()
    return (int.from_bytes(drawn, "big") >> 11) * 2.0**-53


def pick(pair: str, what: str, choices):
    """One of the choices, each as likely."""
    return choices[int(uniform(pair, what) * len(choices))]


def fault(score: int | None, query_evaluable: bool, answer_validity: str, reason_codes: list[str]) -> str | None:
    """Why a judgment is not legal under the contract, or None."""
    if score not in LEGAL or isinstance(score, bool):
        return f"score {score!r} is none of 0, 1, 2, null"
    validities, needed, allowed = LEGAL[score]
    codes = set(reason_codes)
    if query_evaluable != (score is not None):
        return f"query_evaluable {query_evaluable} does not go with score {score}"
    if answer_validity not in validities:
        return f"answer_validity {answer_validity} does not go with score {score}"
    if not codes & needed or codes - needed - allowed or len(codes) < len(reason_codes):
        return f"reason_codes {reason_codes} do not go with score {score}"
    if score == 0 and (answer_validity == "incorrect") != ("major_math_error" in codes):
        return "answer_validity incorrect and the code major_math_error go together"
    return None


def said(personality: str, truth: int | None, pair: str) -> int | None:
    """The label that the personality says of a pair with this true label."""
    left = uniform(pair, "label")
    row = MATRICES[personality][truth]
    for label, share in zip(LABELS, row, strict=True):
        left -= share
        if left < 0:
            return label
    return truth  # the shares of a row add up to 1 but for rounding


def reply(personality: str, truth: dict, task_id: str, pair: str, ordered: tuple[int | None, ...] = ()) -> dict:
    """The eight fields that the personality answers; `truth` has score, query_evaluable, answer_validity, reason_codes.

    A right label keeps the true reasons, a slip draws legal ones and is less confident. `ordered` holds the label
    that somebody told a gullible judge to say, or nothing.
    """
    label = ordered[0] if ordered else said(personality, truth["score"], pair)
    if label == truth["score"]:
        validity, codes, floor = truth["answer_validity"], truth["reason_codes"], 0.7
    else:
        (validity, codes), floor = pick(pair, "slip", _SLIPS[label]), 0.4
    return {
        "task_id": task_id,
        "guideline_version": GUIDELINE,
        "query_evaluable": label is not None,
        "score": label,
        "answer_validity": validity,
        "reason_codes": list(codes),
        "confidence": round(floor + 0.29 * uniform(pair, "confidence"), 2),
        "rationale": pick(pair, "rationale", _RATIONALES[label]),
    }
