"""The contract of a judge's reply: the local check against the schema and an independent model."""

import itertools
import json
import math
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_script import TIED, fields

from lib.judge import contract
from lib.judge.contract import ContractViolation, check

TASK = "0123456789abcdef"
CASES = Path(__file__).parent / "cases"
SCHEMA = jsonschema.Draft202012Validator(contract.full_schema())

LEAD = {
    2: {"full_solution", "direct_answer"},
    1: {"key_lemma", "applicable_method", "solved_subcase", "partial_derivation"},
    0: {
        "wrong_problem", "condition_mismatch", "topic_only", "no_answer", "major_math_error", "unsupported_conclusion", "unverifiable_math",
    },
    None: {"query_missing_figure", "query_missing_context", "query_corrupted"},
}  # fmt: skip
BESIDE = {"equivalent_problem", "minor_gap"}
EVERY_CODE = sorted(set().union(*LEAD.values()) | BESIDE)


class Peer(pydantic.BaseModel):
    """The contract once more, written from the design's table and nothing of `lib`."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    task_id: Literal["0123456789abcdef"]
    guideline_version: Literal["strict-math-retrieval-v1"]
    query_evaluable: bool
    score: Annotated[int, pydantic.Field(ge=0, le=2)] | None
    answer_validity: Literal["correct", "partial", "incorrect", "unverifiable", "no_answer", "not_assessed"]
    reason_codes: list[str]
    confidence: Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]
    rationale: Annotated[str, pydantic.Field(max_length=4000)]

    @pydantic.model_validator(mode="after")
    def tied(self):
        codes = set(self.reason_codes)
        lead = codes & LEAD[self.score]
        rest = codes - lead
        assert lead and len(codes) == len(self.reason_codes)
        assert rest <= (BESIDE if self.score in (1, 2) else set())
        assert self.query_evaluable == (self.score is not None)
        match self.score:
            case 2:
                assert self.answer_validity == "correct"
            case 1:
                assert self.answer_validity in ("correct", "partial")
            case 0:
                assert self.answer_validity in ("correct", "incorrect", "unverifiable", "no_answer")
                assert (self.answer_validity == "incorrect") == ("major_math_error" in codes)
            case None:
                assert self.answer_validity == "not_assessed"
        assert self.rationale.strip()
        return self


def accepts(reply: str) -> bool:
    try:
        check(reply, TASK)
    except ContractViolation:
        return False
    return True


def peer_accepts(reply: str) -> bool:
    try:
        Peer.model_validate_json(reply)
    except pydantic.ValidationError:
        return False
    return True


def test_every_combination_with_at_most_two_codes_agrees_with_the_schema_and_with_pydantic():
    tied = {tie: set() for tie in (2, 1, 0, None)}
    combinations = list(itertools.product((0, 1, 2, None), (True, False), contract.VALIDITIES))
    code_sets = [codes for size in (0, 1, 2) for codes in itertools.combinations(EVERY_CODE, size)]
    assert len(combinations) == 48 and len(EVERY_CODE) == 18 and len(code_sets) == 1 + 18 + 153
    valid = 0
    for (score, evaluable, validity), codes in itertools.product(combinations, code_sets):
        reply = fields(score, query_evaluable=evaluable, answer_validity=validity, reason_codes=list(codes))
        text = json.dumps(reply)
        local = accepts(text)
        assert local == peer_accepts(text), reply
        assert local == SCHEMA.is_valid(reply), reply
        valid += local
        if local:
            tied[score].add(validity)
    # 2: one validity x (2 singles + 1 pair of leads + 2 x 2 with a companion)
    # 1: two x (4 + 6 + 4 x 2); 0: three x (6 + 15) without the error, one x (1 + 6) with it; null: 3 + 3
    assert valid == (2 + 1 + 4) + 2 * (4 + 6 + 8) + 3 * (6 + 15) + (1 + 6) + (3 + 3)
    assert tied[1] == {"correct", "partial"}


def test_the_committed_schema_is_the_one_that_the_table_makes(tmp_path, monkeypatch):
    monkeypatch.setattr(contract, "FULL_SCHEMA", tmp_path / "made.json")
    contract.write_full_schema()
    committed = Path(contract.paths.PROMPTS / "judge_contract.schema.json")
    assert (tmp_path / "made.json").read_bytes() == committed.read_bytes()
    jsonschema.Draft202012Validator.check_schema(json.loads(committed.read_text()))


def test_the_servers_schema_uses_only_what_strict_mode_knows():
    allowed = {"type", "enum", "const", "items", "properties", "required", "additionalProperties"}

    def walk(schema):
        assert set(schema) <= allowed
        for child in schema.get("properties", {}).values():
            walk(child)
        if "items" in schema:
            walk(schema["items"])

    schema = contract.flat_schema()
    walk(schema)
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == list(contract.FIELDS)
    assert all(jsonschema.Draft202012Validator(schema).is_valid(fields(score)) for score in TIED)


VALID = json.dumps(fields(2))


@pytest.mark.parametrize(
    "reply",
    [
        "", " ", "null x", "I cannot evaluate this pair.", f"```json\n{VALID}\n```", f"Here: {VALID}", f"{VALID} done", f"\ufeff{VALID}",
        VALID + json.dumps(fields(0)), VALID[:-1], VALID.replace("0.75", "NaN"), VALID.replace("0.75", "Infinity"),
        VALID.replace("0.75", "-Infinity"), VALID.replace('"', "'"), VALID[:-1] + ",}", VALID.replace("The lemma", "The\nlemma"),
    ],
)  # fmt: skip
def test_what_is_no_json_says_so(reply):
    with pytest.raises(ContractViolation) as caught:
        check(reply, TASK)
    assert caught.value.kind == "not JSON"


@pytest.mark.parametrize(
    "reply",
    [
        "null", "[]", "2", '"x"', "{}", f"[{VALID}]", "[" * 100_000 + "]" * 100_000,
        VALID[:-1] + ', "extra": 1}', VALID.replace('"rationale"', '"Rationale"'),
        VALID[:-1] + ', "score": 2}', VALID[:-1] + ', "score": 0}',
        *(json.dumps(fields(2, score=score)) for score in ("2", 3, -1, 2.0, True, [2], {"score": 2})),
        json.dumps(fields(1, score=True)), json.dumps(fields(0, score=False)), VALID.replace('"score": 2', '"score": 2e0'),
        VALID.replace('"score": 2', '"score": ' + "2" * 5000),
        *(json.dumps(fields(2, confidence=c)) for c in ("0.5", None, True, False, -0.01, 1.01, 10**400)),
        VALID.replace("0.75", "1e999"), VALID.replace("0.75", "-1e999"), VALID.replace("0.75", "1" * 5000),
        *(json.dumps(fields(2, query_evaluable=value)) for value in (1, "true", None, False)),
        *(json.dumps(fields(2, rationale=value)) for value in ("", " \n\t\u00a0\u2003", "x" * 4001, None, 5, ["x"], "\ud800", "a\udc00b")),
        *(json.dumps(fields(2, reason_codes=value)) for value in ([], None, "full_solution", {"full_solution": 1}, [1], [["full_solution"]],
            ["full_solution", "full_solution"], ["unknown"], ["minor_gap"], ["full_solution", "topic_only"])),
        *(json.dumps(fields(2, answer_validity=value)) for value in ("Correct", "", None, 1, ["correct"], "partial")),
        json.dumps(fields(2, task_id="0123456789abcdeF")), json.dumps(fields(2, task_id=None)), json.dumps(fields(2, guideline_version="v1")),
    ],
)  # fmt: skip
def test_json_that_breaks_the_contract_says_so_and_is_never_a_judgment(reply):
    with pytest.raises(ContractViolation) as caught:
        check(reply, TASK)
    assert caught.value.kind == "contract violation"
    caught.value.reason.encode()  # a reason can always be stored
    assert len(caught.value.reason) < 600


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, 0.5, 1e-300])
def test_whole_and_broken_numbers_are_a_confidence(confidence):
    judgment = check(json.dumps(fields(2, confidence=confidence)), TASK)
    assert judgment.confidence == confidence and type(judgment.confidence) is float


def test_a_judgment_holds_the_fields_as_they_came():
    judgment = check(f"\n {json.dumps(fields(None, rationale='x' * 4000))}\r\n\t", TASK)
    assert judgment.score is None and judgment.query_evaluable is False
    assert judgment.reason_codes == ("query_corrupted",) and judgment.rationale == "x" * 4000
    assert judgment._fields == contract.FIELDS


def test_the_order_of_the_fields_does_not_matter():
    assert check(json.dumps(dict(reversed(fields(1).items()))), TASK).score == 1


value = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 4), st.floats(), st.sampled_from([0.0, 1.0, 2.0, 0.5]), st.text(max_size=6),
    st.sampled_from(EVERY_CODE), st.lists(st.sampled_from(EVERY_CODE), max_size=3),
    st.sampled_from(contract.VALIDITIES),
)  # fmt: skip


@given(st.sampled_from([0, 1, 2, None]), st.dictionaries(st.sampled_from([*contract.FIELDS, "more"]), value, max_size=2), st.booleans())
@example(2, {"confidence": math.nan}, False)
@example(2, {"score": 2.0}, False)
@example(0, {"reason_codes": ["major_math_error"]}, False)
@example(0, {"reason_codes": ["major_math_error"], "answer_validity": "incorrect"}, False)
def test_fuzzed_replies_agree_with_pydantic_and_never_break_the_check(score, changes, drop):
    reply = fields(score) | changes
    if drop and changes:
        del reply[next(iter(changes))]
    text = json.dumps(reply)
    assert accepts(text) == peer_accepts(text)


@given(st.integers(0, len(VALID) - 1), st.text(max_size=2))
def test_a_reply_with_a_piece_changed_is_read_strictly_or_refused(at, piece):
    reply = VALID[:at] + piece + VALID[at + 1 :]
    try:
        judgment = check(reply, TASK)
    except ContractViolation:
        return
    assert judgment.score == json.loads(reply)["score"] == 2


def test_case_14_a_reply_without_a_score_is_not_zero():
    case = json.loads((CASES / "14-judge-reply-without-a-score-is-not-zero.json").read_text())
    said = {"2": fields(2), "1": fields(1), "0": fields(0)}
    replies = {
        "a": json.dumps(said["2"]),
        "b": f"Here is my judgment.\n```json\n{json.dumps(said['2'])}\n```",
        "c": case["input"]["replies"]["c"],
        "e": json.dumps(said["2"] | {"score": "2"}),
        "f": json.dumps(said["2"] | {"score": 3}),
        "g": json.dumps(said["1"] | {"score": True}),
        "h": json.dumps(said["1"] | {"score": 1.0}),
        "i": case["input"]["replies"]["i"],
        "j": case["input"]["replies"]["j"],
        "k": json.dumps(said["2"]) + "\n" + json.dumps(said["0"]),
    }
    assert set(replies) | {"d"} == set(case["input"]["replies"])  # d has no content: test_judge_client
    assert case["decided"] == "b and h are invalid"
    assert [letter for letter, reply in replies.items() if accepts(reply)] == ["a"]
    assert check(replies["a"], TASK).score == case["right_answer"]["a"]


def test_case_16_latex_backslashes_are_read_as_json_reads_them():
    case = json.loads((CASES / "16-latex-backslashes-in-replies.json").read_text())
    read = {}
    for raw in case["input"]["rationale_raw_inside_the_json_text"]:
        reply = json.dumps(fields(2, rationale="@")).replace("@", raw)
        try:
            judgment = check(reply, TASK)
            assert judgment.score == 2
            read[raw] = judgment.rationale
        except ContractViolation as violation:
            read[raw] = violation.kind
    assert read == {
        "\\frac{1}{2}": "\frac{1}{2}", "\\nabla f": "\nabla f", "\\text{x}": "\text{x}", "\\binom": "\binom",
        "\\alpha": "not JSON", "\\(x\\)": "not JSON", "\\unit": "not JSON",
    }  # fmt: skip
    assert set(read) == set(case["right_answer"]["parse"])
