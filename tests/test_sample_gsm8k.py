"""GSM8K files become a planted collection whose labels follow from them."""

import json

import pytest

from lib import ids, paths
from lib.sample import gsm8k, truth
from lib.sample.received import Planted

REAL = paths.ROOT.parent / "shared" / "data" / "gsm8k"

QUESTIONS = [
    {"question": "Ann has 2 apples and buys 3.  How many?", "answer": "She has 2+3=<<2+3=5>>5 apples.\n#### 5"},
    {"question": "Ben\u2019s 4 boxes hold 6 pens each. How many?", "answer": "4*6=<<4*6=24>>24 pens\n#### 24"},
    {"question": "Cy runs 3 km.", "answer": "So 3.\n#### 3"},
]


def line(question, *solutions):
    """solutions: (text, is_correct) of the four models in their order."""
    pages = [{"is_correct": correct, "solution": text} for text, correct in solutions]
    return {"question": question, "ground_truth": "unused", **dict(zip(gsm8k.MODELS, pages, strict=True))}


SOLUTIONS = [
    line(QUESTIONS[1]["question"], ("4+6=<<4+6=10>>10\nA: 10", False), ("4+6=10\nA: 10", False), ("6*4=24\nA: 24", True), ("A: 42", False)),
    line(QUESTIONS[0]["question"], ("2+3=5\nA: 5", True), ("2*3=6\nA: 6", False), ("3+2=5\nA: 5", True), ("3-2=<<3-2=", False)),
]


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source", QUESTIONS, SOLUTIONS)


def write(folder, questions, solutions):
    folder.mkdir(exist_ok=True)
    for name, rows in zip(gsm8k.FILES, (questions, solutions), strict=True):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def rows(folder, name):
    return [json.loads(row) for row in (folder / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]


def test_questions_are_queries_and_every_solution_a_page(source, tmp_path):
    counts = gsm8k.plant(source, tmp_path / "planted")
    assert counts == {"queries": 3, "documents": 3 + 2 * 4, "correct": 1 + 2, "wrong": 3 + 2, "matched": 2, "removed": 1}
    queries, documents = rows(tmp_path / "planted", "queries"), rows(tmp_path / "planted", "documents")
    assert queries[1] == {"qid": "gsm8k-test-0002", "text": QUESTIONS[1]["question"], "source_docid": "gsm8k-test-0002-solution"}
    assert [document["docid"] for document in documents[:6]] == [
        "gsm8k-test-0001-solution", *(f"gsm8k-test-0001-{model}" for model in gsm8k.MODELS), "gsm8k-test-0002-solution",
    ]
    assert documents[0] == {"docid": "gsm8k-test-0001-solution", "text": "She has 2+3=5 apples.\n#### 5", "removed": False}


def test_the_truth_follows_from_the_files(source, tmp_path):
    gsm8k.plant(source, tmp_path / "planted")
    queries, documents = truth.load(tmp_path / "planted")

    def label(query, document, visible=10**6):
        judged = truth.label(queries[f"gsm8k-test-{query}"], documents[f"gsm8k-test-{document}"], visible)
        return judged["score"], judged["answer_validity"], judged["reason_codes"]

    assert label("0001", "0001-solution") == (2, "correct", ["full_solution"])
    assert label("0001", "0001-175b_finetuning") == (2, "correct", ["full_solution"])
    assert label("0001", "0001-6b_verification") == (0, "incorrect", ["major_math_error"])
    assert label("0001", "0002-solution")[::2] == (0, ["wrong_problem"])
    assert label("0001", "0001-solution", visible=len("She has 2+3=5 apples.\n#### "))[0] == 0  # the answer was cut off
    assert all(query["query_evaluable"] for query in queries.values())


def test_calculator_marks_are_taken_out_and_an_unfinished_one_stays(source, tmp_path):
    gsm8k.plant(source, tmp_path / "planted")
    marked = [d["docid"] for d in rows(tmp_path / "planted", "documents") if "<<" in d["text"]]
    assert marked == ["gsm8k-test-0001-175b_verification"]


def test_the_later_of_two_equal_texts_is_removed(source, tmp_path):
    gsm8k.plant(source, tmp_path / "planted")  # equal once the marks are out
    assert [d["docid"] for d in rows(tmp_path / "planted", "documents") if d["removed"]] == ["gsm8k-test-0002-6b_verification"]


def test_equal_texts_of_two_questions_carry_what_both_are_worth(source, tmp_path):
    write(source, QUESTIONS, [SOLUTIONS[0], line(QUESTIONS[0]["question"], ("A: 42", False), ("6*4=24\nA: 24", False), ("a", False), ("b", True))])
    gsm8k.plant(source, tmp_path / "planted")
    known = Planted(tmp_path / "planted")
    assert [known.truth(QUESTIONS[i]["question"], "6*4=24\nA: 24")["score"] for i in (0, 1)] == [0, 2]


def test_the_judge_server_can_serve_it(source, tmp_path):
    gsm8k.plant(source, tmp_path / "planted")
    known = Planted(tmp_path / "planted")
    assert known.truth(QUESTIONS[1]["question"], "4+6=10\nA: 10")["answer_validity"] == "incorrect"


def test_a_limit_takes_the_first_questions(source, tmp_path):
    counts = gsm8k.plant(source, tmp_path / "planted", limit=1)
    assert (counts["queries"], counts["documents"], counts["matched"]) == (1, 5, 1)
    assert [q["qid"] for q in rows(tmp_path / "planted", "queries")] == ["gsm8k-test-0001"]


BAD = line("Who?", *[("a", True)] * 4)


@pytest.mark.parametrize(
    ("questions", "solutions", "sentence"),
    [
        (QUESTIONS + QUESTIONS[:1], SOLUTIONS, r"gsm8k_test.jsonl:4: the question of gsm8k-test-0001 stands here again"),
        (QUESTIONS + [{"question": "Who?"}], SOLUTIONS, r"gsm8k_test.jsonl:4: answer is None, not a text"),
        (QUESTIONS + [{"question": " ", "answer": "x"}], SOLUTIONS, r"gsm8k_test.jsonl:4: question is ' ', not a text"),
        (QUESTIONS + [["question"]], SOLUTIONS, r"gsm8k_test.jsonl:4: a list, not an object"),
        (QUESTIONS + [QUESTIONS[0] | {"question": "Again?"}], SOLUTIONS, r"solution of gsm8k-test-0004 equals an earlier text"),
        (QUESTIONS, SOLUTIONS + [BAD], r"model_solutions.jsonl:3: this question is not in gsm8k_test.jsonl"),
        (QUESTIONS, SOLUTIONS + SOLUTIONS[:1], r"model_solutions.jsonl:3: this question stands here a second time"),
        (QUESTIONS, [SOLUTIONS[0] | {"175b_finetuning": {"solution": "x"}}], r"model_solutions.jsonl:1: 175b_finetuning needs a solution and is_correct"),
        (QUESTIONS, [SOLUTIONS[0] | {"175b_finetuning": {"is_correct": 1, "solution": "x"}}], r":1: 175b_finetuning needs .* true or false"),
        (QUESTIONS, [SOLUTIONS[0] | {"6b_finetuning": {"is_correct": True, "solution": ""}}], r"model_solutions.jsonl:1: solution is '', not a text"),
        (QUESTIONS, [SOLUTIONS[0] | {"6b_finetuning": {"is_correct": True, "solution": "4+6=10\nA: 10"}}], r"gsm8k-test-0002-6b_verification has the text"),
    ],
)
def test_bad_lines_are_refused_by_file_and_number(source, tmp_path, questions, solutions, sentence):
    write(source, questions, solutions)
    with pytest.raises(ValueError, match=sentence):
        gsm8k.plant(source, tmp_path / "planted")
    assert not (tmp_path / "planted").exists()


def test_a_line_that_is_no_json_is_refused_by_its_number(source, tmp_path):
    with open(source / gsm8k.FILES[0], "a") as file:
        file.write('{"question": ')
    with pytest.raises(ValueError, match=r"gsm8k_test.jsonl:4: no JSON"):
        gsm8k.plant(source, tmp_path / "planted")


def test_the_published_files_have_the_published_size_where_they_are_at_hand(tmp_path):
    for folder in [REAL] if REAL.exists() else []:
        counts = gsm8k.plant(folder, tmp_path / "planted")
        assert counts == {"queries": 1319, "documents": 1319 * 5, "correct": 2001, "wrong": 4 * 1319 - 2001, "matched": 1319, "removed": 8}
        documents = rows(tmp_path / "planted", "documents")
        assert not any(ids.fault(document["docid"]) for document in documents)
        assert sum("<<" in document["text"] for document in documents) == 5  # models that stopped inside a mark
        known = Planted(tmp_path / "planted")
        for query, document in zip(rows(tmp_path / "planted", "queries"), documents[::5], strict=True):
            assert known.truth(query["text"], document["text"])["score"] == 2
