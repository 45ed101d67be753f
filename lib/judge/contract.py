"""The contract of a judge's reply: one table, the two schemas made from it, and the local check.

The flat schema goes to the server with `strict`; it knows types and enumerations only. The
full schema, with the ties between the fields, lies in `prompts/judge_contract.schema.json`:
    python -m lib.judge.contract      # writes it again
"""

import hashlib
import json
import re
from typing import NamedTuple

from lib import files, paths

GUIDELINE = "strict-math-retrieval-v1"
FIELDS = (
    "task_id", "guideline_version", "query_evaluable", "score", "answer_validity", "reason_codes", "confidence", "rationale"
)
LONGEST_RATIONALE = 4_000  # code points
FULL_SCHEMA = paths.PROMPTS / "judge_contract.schema.json"

NOT_JSON, VIOLATION = "not JSON", "contract violation"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Tie(NamedTuple):
    """What goes with one score: at least one code of `needs`, none outside `needs` and `allows`."""

    query_evaluable: bool
    answer_validity: tuple[str, ...]
    needs: tuple[str, ...]
    allows: tuple[str, ...] = ()


TIES: dict[int | None, Tie] = {
    2: Tie(True, ("correct",), ("full_solution", "direct_answer"), ("equivalent_problem", "minor_gap")),
    1: Tie(
        True, ("correct", "partial"),
        ("key_lemma", "applicable_method", "solved_subcase", "partial_derivation"), ("equivalent_problem", "minor_gap"),
    ),
    0: Tie(
        True, ("correct", "incorrect", "unverifiable", "no_answer"),
        ("wrong_problem", "condition_mismatch", "topic_only", "no_answer", "major_math_error", "unsupported_conclusion", "unverifiable_math"),
    ),
    None: Tie(False, ("not_assessed",), ("query_missing_figure", "query_missing_context", "query_corrupted")),
}  # fmt: skip
VALIDITIES = tuple(dict.fromkeys(value for tie in TIES.values() for value in tie.answer_validity))
CODES = tuple(dict.fromkeys(code for tie in TIES.values() for code in tie.needs + tie.allows))
# the one tie inside score 0: this validity if and only if this code
WRONG, WRONG_CODE = "incorrect", "major_math_error"


class Judgment(NamedTuple):
    """A valid reply, its fields as the judge gave them; score is null where the query cannot be evaluated."""

    task_id: str
    guideline_version: str
    query_evaluable: bool
    score: int | None
    answer_validity: str
    reason_codes: tuple[str, ...]
    confidence: float
    rationale: str


class ContractViolation(ValueError):
    """A reply that is no judgment; `kind` is `not JSON` or `contract violation`."""

    def __init__(self, reason: str, kind: str = VIOLATION):
        super().__init__(reason)
        self.reason, self.kind = reason, kind


def flat_schema() -> dict:
    """What the server's strict mode is given: the same for every pair."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(FIELDS),
        "properties": {
            "task_id": {"type": "string"},
            "guideline_version": {"type": "string", "const": GUIDELINE},
            "query_evaluable": {"type": "boolean"},
            "score": {"type": ["integer", "null"], "enum": [0, 1, 2, None]},
            "answer_validity": {"type": "string", "enum": list(VALIDITIES)},
            "reason_codes": {"type": "array", "items": {"type": "string", "enum": list(CODES)}},
            "confidence": {"type": "number"},
            "rationale": {"type": "string"},
        },
    }


def _tied(score: int | None, tie: Tie) -> dict:
    branch = {
        "properties": {
            "score": {"const": score},
            "query_evaluable": {"const": tie.query_evaluable},
            "answer_validity": {"enum": list(tie.answer_validity)},
            "reason_codes": {"items": {"enum": list(tie.needs + tie.allows)}, "contains": {"enum": list(tie.needs)}},
        }
    }
    if WRONG in tie.answer_validity:
        with_code = {"properties": {"reason_codes": {"contains": {"const": WRONG_CODE}}}}
        branch |= {
            "if": {"properties": {"answer_validity": {"const": WRONG}}},
            "then": with_code,
            "else": {"properties": {"reason_codes": {"not": {"contains": {"const": WRONG_CODE}}}}},
        }
    return branch


def full_schema() -> dict:
    """The contract with its ties, JSON Schema 2020-12.

    It cannot say three things that `check` holds: no repeated key, whole numbers written without
    a fraction (2.0 is an integer there), and which task_id is the right one.
    """
    schema = flat_schema()
    properties = schema["properties"]
    properties["task_id"] |= {"pattern": "^[0-9a-f]{16}$"}
    properties["reason_codes"] |= {"minItems": 1, "uniqueItems": True}
    properties["confidence"] |= {"minimum": 0, "maximum": 1}
    properties["rationale"] |= {
        "maxLength": LONGEST_RATIONALE, "pattern": "\\S", "not": {"pattern": "[\\ud800-\\udfff]"}
    }  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A judgment under {GUIDELINE}",
        **schema,
        "oneOf": [_tied(score, tie) for score, tie in TIES.items()],
    }


def canonical(value) -> bytes:
    """JSON with sorted keys and no spaces: equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


SCHEMA_SHA256 = hashlib.sha256(canonical(flat_schema())).hexdigest()


def _once(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ContractViolation(f"the key {_short(twice)} stands twice")
    return found


def _no_constant(name: str):
    raise ContractViolation(f"{name} is no JSON number", NOT_JSON)


def _parse(reply: str) -> dict:
    try:
        found = json.loads(reply, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ContractViolation(f"the reply is not JSON: {error}", NOT_JSON) from None
    except ContractViolation:
        raise
    except RecursionError:
        raise ContractViolation("the reply is nested too deep for 8 flat fields") from None
    except ValueError:  # an integer of more digits than Python reads
        raise ContractViolation("a number of the reply has thousands of digits") from None
    if not isinstance(found, dict):
        raise ContractViolation(f"the reply is a JSON {type(found).__name__}, not an object of 8 fields")
    if set(found) != set(FIELDS):
        missing, extra = [f for f in FIELDS if f not in found], sorted(set(found) - set(FIELDS))
        raise ContractViolation(f"the reply lacks the fields {missing} and has the unknown fields {_short(extra)}")
    return found


def _short(value: object) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _hold(holds: bool, field: str, value: object, rule: str) -> None:
    if not holds:
        raise ContractViolation(f"{field} is {_short(value)}; it must be {rule}")


def check(reply: str, task_id: str) -> Judgment:
    """The judgment that a reply states, word for word, or ContractViolation(reason).

    Nothing is repaired: a fence, a word before or after, 2.0 or true for a whole number, a repeated
    key or code, NaN are all refused. White space around the object is JSON's own and allowed.
    A lone surrogate is refused, because such text has no UTF-8.
    """
    found = _parse(reply)
    score, validity, codes = found["score"], found["answer_validity"], found["reason_codes"]
    _hold(found["task_id"] == task_id, "task_id", found["task_id"], f"{task_id!r}, the one that was asked")
    _hold(found["guideline_version"] == GUIDELINE, "guideline_version", found["guideline_version"], repr(GUIDELINE))
    _hold(score is None or (type(score) is int and score in TIES), "score", score, "0, 1, 2 or null")
    tie = TIES[score]
    _hold(found["query_evaluable"] is tie.query_evaluable, "query_evaluable", found["query_evaluable"], f"{tie.query_evaluable} with score {score}")
    _hold(
        isinstance(validity, str) and validity in tie.answer_validity,
        "answer_validity", validity, f"one of {', '.join(tie.answer_validity)} with score {score}",
    )  # fmt: skip
    _hold(isinstance(codes, list) and codes and all(isinstance(c, str) for c in codes), "reason_codes", codes, "a list of codes")
    _hold(len(set(codes)) == len(codes), "reason_codes", codes, "without repeats")
    _hold(set(codes) <= {*tie.needs, *tie.allows}, "reason_codes", codes, f"of {', '.join(tie.needs + tie.allows)} with score {score}")
    _hold(not set(codes).isdisjoint(tie.needs), "reason_codes", codes, f"with one of {', '.join(tie.needs)} at score {score}")
    _hold(
        (validity == WRONG) == (WRONG_CODE in codes),
        "answer_validity", validity, f"{WRONG} if and only if {WRONG_CODE} is a code",
    )  # fmt: skip
    confidence, rationale = found["confidence"], found["rationale"]
    # NaN cannot get here and infinity (1e999) is above 1
    _hold(type(confidence) in (int, float) and 0 <= confidence <= 1, "confidence", confidence, "a number from 0 to 1")
    _hold(
        isinstance(rationale, str) and rationale.strip() != "" and len(rationale) <= LONGEST_RATIONALE,
        "rationale", rationale, f"text of at most {LONGEST_RATIONALE} characters that is not blank",
    )  # fmt: skip
    _hold(not _SURROGATE.search(rationale), "rationale", rationale, "text that has UTF-8 (no lone surrogate)")
    return Judgment(**found | {"reason_codes": tuple(codes), "confidence": float(confidence)})


def write_full_schema() -> None:
    files.write_json(FULL_SCHEMA, full_schema())


if __name__ == "__main__":
    write_full_schema()
    print(paths.shown(FULL_SCHEMA))
