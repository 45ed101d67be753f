"""The release beside dictionaries, and one test for each fault that its coverage refuses."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_script import Script, ask, intent, judge, serving, table, valid
from judge_script import world as asked_world

from lib import contracts
from lib.judge import answers as answers_of
from lib.release import coverage, labels, published
from lib.release.coverage import GapsLeft
from lib.release.merge import ReleaseError, merge

CUTS = {0.2: 0, 0.5: 1, 1.49: 1, 1.5: 2, 2.5: 2}


def told(set_, query, doc, stage, said, round=1) -> dict:
    """A row of answers; said is a label, "unevaluable", "withdrawn" or the class of a gap."""
    ok = isinstance(said, int)
    valid = ok or said == "unevaluable"
    version = {"v2_gap": "v2 gap", "v2": "v2"}.get(set_, "v1")
    return {"query": query, "doc": doc, "version": version, "stage": stage, "round": round, "reason": "r", "rank": 0, "key": "k", "task_id": "t",
            "answer": "ok" if ok else said, "score": said if ok else None, "query_evaluable": ok if valid else None,
            "prompt_sha256": "p" if valid else None, "model": "m" if valid else None}


def to_student(query, doc, stage, version="v1") -> dict:
    return intent(query, doc, version, judge="student", stage=stage, max_chars=None)


def scored(query, doc, score) -> dict:
    return {"query": query, "doc": doc, "score": score, "checkpoint": "larger/100", "gate": "g"}


def merged(answers: dict[str, list[dict]], routed: list[dict], scores: list[dict]) -> list[dict]:
    tables = {name: contracts.table("answers", answers.get(name, [])) for name in ("source_page", "v1", "v2_gap", "v2")}
    pages = tables.pop("source_page")
    halves = [[contracts.table(name, rows[at::2]) for at in (0, 1)] for name, rows in (("intents", routed), ("scores", scores))]
    return merge(pages, list(tables.values()), *halves).to_pylist()


def slow_merge(answers, routed, scores) -> list[dict]:
    """The release by dictionaries: the source page, else the first set that answered, else the student."""
    kept = {(row["query"], row["doc"]): row["score"] for row in scores}
    rows = {}
    for set_ in ("source_page", "v1", "v2_gap", "v2"):
        for row in answers.get(set_, []):
            if row["answer"] in ("ok", "unevaluable"):
                rows.setdefault((row["query"], row["doc"]), {
                    "label": row["score"], "query_evaluable": row["answer"] == "ok", "judge": "llm", "llm_label": row["score"],
                    **{name: row[name] for name in ("version", "stage", "round", "prompt_sha256", "model")}})
    for row in routed:
        if row["judge"] == "student":
            rows.setdefault((row["query"], row["doc"]), {
                "label": CUTS[kept[row["query"], row["doc"]]], "query_evaluable": True, "judge": "student", "llm_label": None,
                **{name: row[name] for name in ("version", "stage", "round")}, "prompt_sha256": None, "model": "larger/100"})
    made = [{"query": q, "doc": d} | rows[q, d] | {"student_score": None if (q, d) not in kept else float(np.float32(kept[q, d]))} for q, d in sorted(rows)]
    return made


SAID = st.sampled_from([0, 1, 2, "unevaluable", "timeout"])
# what may happen to a pair: its stage decides who judges it
PAIR = st.one_of(
    st.tuples(st.just("dense_1_5"), SAID, SAID), st.tuples(st.just("long"), SAID, SAID), st.tuples(st.just("pick"), SAID, SAID),
    st.tuples(st.just("short"), SAID, SAID), st.tuples(st.just("page"), SAID, SAID), st.tuples(st.just("new_long_1_5"), SAID, SAID),
    st.tuples(st.just("new_short"), SAID, SAID), st.tuples(st.just("trial"), SAID, SAID))  # fmt: skip


def world(pairs, scores, both):
    """Answers, intents and scores of pairs (query, doc) -> (stage, said first, said by the gap)."""
    answers, routed, marks = {name: [] for name in ("source_page", "v1", "v2_gap", "v2")}, [], []
    for (query, doc), (stage, first, again) in pairs.items():
        student = stage in ("short", "pick", "new_short", "trial") or (stage == "page" and both) or (stage == "long" and both)
        gap = first == "timeout"
        if stage in ("dense_1_5", "long", "pick"):
            answers["v1"].append(told("v1", query, doc, stage, first, round=1 + doc % 2))
        if stage == "page":
            answers["source_page"].append(told("source_page", query, doc, "source_page", first))
            answers["v1"].append(told("v1", query, doc, "pick", "withdrawn"))
        if stage in ("new_long_1_5", "trial"):
            answers["v2"].append(told("v2", query, doc, stage, first))
        elif gap and stage in ("dense_1_5", "long", "pick", "page"):
            answers["v2_gap"].append(told("v2_gap", query, doc, "source_page" if stage == "page" else stage, again))
        if student:
            name = {"pick": "short", "page": "short", "trial": "new_long_6_20"}.get(stage, stage)
            routed.append(to_student(query, doc, name, "v2" if name.startswith("new") else "v1"))
            marks.append(scored(query, doc, scores[len(marks) % len(scores)]))
    return answers, routed, marks


@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 9)), PAIR, max_size=15), st.lists(st.sampled_from(list(CUTS)), min_size=1, max_size=5), st.booleans())
@example({}, [0.5], False)
@example({(0, 0): ("page", "timeout", 2), (0, 1): ("pick", "timeout", "timeout"), (0, 2): ("long", "timeout", 1)}, [1.5], True)
@example({(1, 3): ("page", "unevaluable", 0), (0, 9): ("trial", "timeout", 0), (2, 0): ("trial", 2, 0)}, [0.5, 1.49], True)
def test_the_release_agrees_with_dictionaries(pairs, scores, both):
    made = world(pairs, scores, both)
    assert merged(*made) == slow_merge(*made)


def test_a_pick_without_a_reply_keeps_the_student_s_label_until_the_gap_fills_it():
    given = {"v1": [told("v1", 0, 1, "pick", "timeout")]}
    pick = merged(given, [to_student(0, 1, "short")], [scored(0, 1, 1.5)])[0]
    assert (pick["label"], pick["judge"], pick["stage"], pick["llm_label"], pick["model"]) == (2, "student", "short", None, "larger/100")
    given["v2_gap"] = [told("v2_gap", 0, 1, "pick", "unevaluable")]
    pick = merged(given, [to_student(0, 1, "short")], [scored(0, 1, 1.5)])[0]
    assert (pick["label"], pick["query_evaluable"], pick["judge"], pick["version"], pick["student_score"]) == (None, False, "llm", "v2 gap", 1.5)


def test_the_source_page_s_label_stands_before_another_of_the_llm():
    given = {"source_page": [told("source_page", 0, 1, "source_page", 2)], "v1": [told("v1", 0, 1, "pick", 0), told("v1", 0, 2, "pick", 1)]}
    assert [(row["doc"], row["label"], row["stage"]) for row in merged(given, [], [])] == [(1, 2, "source_page"), (2, 1, "pick")]


@pytest.mark.parametrize("answers, routed, scores, fault", [
    ({"v1": [told("v1", 0, 1, "pick", 1)] * 2}, [], [], "1 pairs have two answers of the LLM, the first: query 0 document 1"),
    ({"v1": [told("v1", 0, 1, "pick", 1)], "v2_gap": [told("v2_gap", 0, 1, "pick", 0)]}, [], [], "have two answers of the LLM"),
    ({"source_page": [told("source_page", 0, 1, "source_page", 1)] * 2}, [], [], "are answered twice as source pages"),
    ({}, [to_student(0, 1, "short"), to_student(0, 1, "new_short")], [], "are sent to the relevance model twice"),
    ({}, [to_student(0, 1, "short")], [scored(0, 1, 0.5)] * 2, "are scored twice"),
    ({}, [to_student(0, 1, "short"), to_student(0, 2, "short")], [scored(0, 1, 0.5)], "1 pairs have no score of the relevance model, the first: query 0 document 2; label again"),
    ({}, [to_student(0, 1, "short")], [scored(0, 1, 0.5), scored(0, 3, 0.5)], "are scored and were never sent to the relevance model, the first: query 0 document 3"),
])
def test_what_makes_no_release_is_refused_with_the_pair(answers, routed, scores, fault):
    with pytest.raises(ReleaseError, match=fault):
        merged(answers, routed, scores)


def test_scores_of_two_checkpoints_make_no_release():
    other = scored(0, 2, 0.5) | {"checkpoint": "smaller/100"}
    with pytest.raises(ReleaseError, match="scored by larger/100 and smaller/100; label v1 and v2 with one arm and step"):
        merged({}, [to_student(0, 1, "short"), to_student(0, 2, "new_short", "v2")], [scored(0, 1, 0.5), other])


def test_a_score_that_is_not_finite_is_no_label():
    with pytest.raises(ValueError, match="is nan and has no label"):
        merged({}, [to_student(0, 1, "short")], [scored(0, 1, float("nan"))])


def rows(*pairs) -> pa.Table:
    query, doc = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({"query": pa.array(query, pa.int32()), "doc": pa.array(doc, pa.int32())})


def checked(release, gaps=()):
    """Two queries: dense 3 and 4, fused 4 and 5 of the first, whose page is 4; nothing of the second, whose page is 9."""
    query = np.array([0, 1], np.int32)
    dense, fused = np.array([[3, 4, -1], [-1] * 3], np.int32), np.array([[4, 5, -1], [-1] * 3], np.int32)
    return coverage.check(release, query, dense, fused, np.array([4, 9], np.int32), np.array([q << 32 | d for q, d in gaps], np.int64))


WHOLE = [(0, 3), (0, 4), (0, 5)]


def test_coverage_counts_the_lists_the_rows_and_the_source_pages_outside():
    assert checked(rows(*WHOLE)) == {
        "dense top 20": 2, "fused top 20": 2, "distinct": 3, "with a row": 3, "without a row": 0, "source pages outside": 0, "rows": 3}
    assert checked(rows(*WHOLE, (1, 9)))["source pages outside"] == 1
    found = checked(rows(*WHOLE[:2]), gaps=[(0, 5)])
    assert (found["with a row"], found["without a row"], found["rows"]) == (2, 1, 2)
    assert checked(rows(*WHOLE), gaps=[(0, 5)])["without a row"] == 0  # a pick that has the student's label


@pytest.mark.parametrize("release, fault", [
    (WHOLE[1:], "1 of the top 20s have no row, the first: query 0 document 3"),
    ([*WHOLE, (0, 4)], "1 have two rows, the first: query 0 document 4"),
    ([*WHOLE, (0, 6)], "1 with a row are in no top 20 and no source page, the first: query 0 document 6"),
    ([*WHOLE, (1, 4)], "query 1 document 4"),  # another query's page
    ([*WHOLE, (1, 3)], "query 1 document 3"),
    ([], "3 of the top 20s have no row"),
])
def test_coverage_refuses_each_fault(release, fault):
    with pytest.raises(ReleaseError, match=fault):
        checked(rows(*release))


def test_a_missing_pair_that_is_no_known_gap_is_refused_beside_gaps():
    with pytest.raises(ReleaseError, match="1 of the top 20s have no row, the first: query 0 document 3;"):
        checked(rows((0, 4)), gaps=[(0, 5), (1, 9)])


def hits(*docs) -> dict:
    return {"doc": [*docs] + [-1] * (100 - len(docs)), "score": [1.0] * 100}


def fused(*docs) -> dict:
    return {"doc": [*docs] + [-1] * (20 - len(docs)), "score": [1.0] * 20, "best_rank": [1] * 20, "dense_rank": [1] * 20}


@pytest.fixture
def run(tmp_path):
    """Two query parts of one query each: a dense pair, a pick, a new candidate of each judge, a source page; one gap that stays."""
    run = tmp_path
    table(run, "documents", "documents", [[{"docid": f"d{i}", "text": "t", "n_chars": 1, "n_tokens": 1, "removed": False} for i in range(9)]])
    table(run, "queries", "queries", [[{"qid": f"q{q}", "text": "?", "source_docid": "d8", "source_doc": 8, "keep": q == 0}] for q in range(2)])
    table(run, "hits", "hits/dense", [[hits(0, 1, 2)], [hits(0, 1, 2)]])  # an imported run may list a query that is not kept
    table(run, "fused", "fused", [[fused(0, 3, 4)], [fused(5)]])
    v1 = [intent(0, 0, stage="dense_1_5"), intent(0, 1, stage="pick"), intent(0, 2, stage="dense_1_5"), to_student(0, 1, "short")]
    table(run, "intents", "intents/v1", [v1, []])
    table(run, "intents", "intents/v2", [[intent(0, 3, "v2", stage="new_long_1_5"), to_student(0, 4, "new_short", "v2")], []])
    page = [[told("source_page", q, 8, "source_page", 2)] for q in range(2)]
    table(run, "answers", "answers/source_page", page)
    table(run, "answers", "answers/v1", [[told("v1", 0, 0, "dense_1_5", 1), told("v1", 0, 1, "pick", "timeout"), told("v1", 0, 2, "dense_1_5", "refusal")], []])
    table(run, "answers", "answers/v2_gap", [[told("v2_gap", 0, 1, "pick", "timeout"), told("v2_gap", 0, 2, "dense_1_5", "refusal")], []])
    table(run, "answers", "answers/v2", [[told("v2", 0, 3, "new_long_1_5", "unevaluable")], []])
    for version, doc, score in (("v1", 1, 0.5), ("v2", 4, 1.5)):
        units = [contracts.write("scores", contracts.table("scores", found), run / f"scores/{version}/{name}.parquet")
                 for name, found in (("part-00000-00", []), ("part-00000-01", [scored(0, doc, score)]))]
        contracts.finish(run / f"scores/{version}", units)
    return run


def test_a_release_with_gaps_is_refused_with_their_names_unless_so_many_are_accepted(run):
    for accepted in (0, 1):
        with pytest.raises(GapsLeft, match=r"2 pairs have no valid reply after the last pass, the first: query q0, document d1 \(v2 gap pick: timeout\); "
                                           r"query q0, document d2 \(v2 gap dense_1_5: refusal\); .* accept_gaps: 2"):
            labels.write(run, accepted)
        assert not (run / "labels" / "manifest.json").exists()
    assert labels.write(run, 2) == 6
    assert sum(line["gaps"] for line in contracts.parts(run / "labels")) == 2
    facts = dict(coverage.table(run).itertuples(index=False))
    assert facts == {
        "pairs in a dense top 20": 3, "pairs in a fused top 20": 3, "distinct pairs of both": 5, "of them with one row": 4, "of them without a row": 1,
        "rows of source pages outside": 2, "rows of the release": 6, "gaps accepted": 2}
    with pytest.raises(GapsLeft):
        labels.write(run, 1)
    with pytest.raises(contracts.ContractError, match="labels is not finished"):  # an older release is not taken for this one
        contracts.read("labels", run / "labels")


def test_the_release_has_ids_labels_and_who_gave_them(run):
    labels.write(run, 2)
    found = contracts.read("labels", run / "labels").to_pylist()
    assert [(r["qid"], r["docid"], r["label"], r["judge"], r["version"], r["stage"], r["student_score"]) for r in found] == [
        ("q0", "d0", 1, "llm", "v1", "dense_1_5", None), ("q0", "d1", 1, "student", "v1", "short", 0.5), ("q0", "d3", None, "llm", "v2", "new_long_1_5", None),
        ("q0", "d4", 2, "student", "v2", "new_short", 1.5), ("q0", "d8", 2, "llm", "v1", "source_page", None), ("q1", "d8", 2, "llm", "v1", "source_page", None)]
    first = {path.name: path.read_bytes() for path in (run / "labels").glob("*.parquet")}
    for path in (run / "labels").glob("part-*"):
        path.unlink()
    labels.write(run, 2)
    assert {path.name: path.read_bytes() for path in (run / "labels").glob("*.parquet")} == first


def test_a_pair_that_nobody_was_asked_about_stops_the_release(run):
    kept = contracts.read("answers", run / "answers/v1")
    table(run, "answers", "answers/v1", [kept.filter(pc.not_equal(kept["doc"], 0)).to_pylist(), []])
    with pytest.raises(ReleaseError, match="the release does not cover its pairs: 1 of the top 20s have no row, the first: query 0 document 0; route, judge and label again"):
        labels.write(run, 2)
    assert not (run / "labels" / "manifest.json").exists()


def test_a_new_candidate_of_the_llm_without_a_reply_is_a_gap(run):
    table(run, "answers", "answers/v2", [[told("v2", 0, 3, "new_long_1_5", "timeout")], []])
    with pytest.raises(GapsLeft, match=r"3 pairs have no valid reply .* query q0, document d3 \(v2 new_long_1_5: timeout\)"):
        labels.write(run, 2)
    assert labels.write(run, 3) == 5


def test_ten_gaps_are_named_and_all_are_counted(run):
    gaps = [told("v2_gap", 0, doc, "pick", "timeout") for doc in range(9)]
    table(run, "answers", "answers/v2_gap", [gaps, [told("v2_gap", 1, doc, "pick", "timeout") for doc in range(9)]])
    with pytest.raises(GapsLeft, match="18 pairs have no valid reply") as caught:
        labels.write(run)
    assert str(caught.value).count("v2 gap pick") == 10


def test_a_failed_trial_pair_is_no_gap_since_it_has_its_label(run):
    kept = contracts.read("answers", run / "answers/v2").to_pylist()
    table(run, "answers", "answers/v2", [[*kept, told("v2", 0, 4, "trial", "timeout")], []])
    labels.write(run, 2)
    assert next(row for row in contracts.read("labels", run / "labels").to_pylist() if row["docid"] == "d4")["judge"] == "student"


OWN_WORDS = "sentinel: what the judge said in its own words"


def test_no_byte_of_a_release_is_of_a_rationale(tmp_path):
    run, out = asked_world(tmp_path / "run", [f"text {i}" for i in range(6)], queries_a_part=1), tmp_path / "out"
    table(run, "queries", "queries", [[{"qid": "q0", "text": "What is 0?", "source_docid": "d5", "source_doc": 5, "keep": True}]])
    table(run, "hits", "hits/dense", [[hits(0, 1, 2)]])
    table(run, "fused", "fused", [[fused(3, 4)]])
    v1 = [intent(0, 0, stage="dense_1_5"), intent(0, 1, stage="pick"), intent(0, 2, stage="dense_1_5"), to_student(0, 1, "short")]
    v2 = [intent(0, 3, "v2", stage="new_long_1_5"), to_student(0, 4, "new_short", "v2")]
    sent = {"source_page": [intent(0, 5, stage="source_page")], "v1": v1, "v2_gap": [], "v2": v2}
    with serving(Script({"text 2": [valid(None, rationale=OWN_WORDS)], "*": [valid(2, rationale=OWN_WORDS)]})) as url:
        for name, pairs in sent.items():
            table(run, "intents", f"intents/{name}", [pairs])
            ask(run, url, set=name)
    for name in sent:
        answers_of.write(run, name, judge())
    for version, doc in (("v1", 1), ("v2", 4)):
        line = contracts.write("scores", contracts.table("scores", [scored(0, doc, 0.5)]), run / f"scores/{version}/part-00000-00.parquet")
        contracts.finish(run / f"scores/{version}", [line])
    assert labels.write(run) == 6
    published.publish(run, out)
    for name, replies in (("source_page", 1), ("v1", 3), ("v2", 1)):
        assert (run / "attempts" / name / "part-00000.jsonl").read_text().count(OWN_WORDS) >= replies
    files = [path for folder in (out, run / "labels") for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".md", ".json", ".jsonl", ".trec", ".tsv", ".parquet"}
    for path in files:
        assert OWN_WORDS.encode() not in path.read_bytes(), path
        if path.suffix == ".parquet":
            kept = pq.read_table(path)
            assert OWN_WORDS not in f"{kept.to_pylist()} {kept.schema.metadata}", path


def test_merging_is_no_loop_over_pairs():
    queries, rows_each = 2_000, 26
    query, doc = np.repeat(np.arange(queries, dtype=np.int32), rows_each), np.tile(np.arange(rows_each, dtype=np.int32), queries)
    n = len(query)
    llm = doc < 13
    constant = {"version": "v1", "stage": "s", "round": 1, "reason": "r", "rank": 0, "key": "k", "task_id": "t", "answer": "ok", "query_evaluable": True, "prompt_sha256": "p", "model": "m"}
    schema = contracts.TABLES["answers"]
    answers = pa.table([pa.array(values[llm], schema.field(name).type) if (values := {"query": query, "doc": doc, "score": doc % 3}.get(name)) is not None
                        else pa.repeat(pa.scalar(constant[name], schema.field(name).type), int(llm.sum())) for name in schema.names], schema=schema)
    student = doc >= 8
    rows_ = {"query": query[student], "doc": doc[student]}
    known = {"judge": "student", "version": "v1", "stage": "short", "round": 1, "reason": "r", "max_chars": None, "rank": 1, "withdrawn": False}
    routed = contracts.table("intents", rows_ | {name: pa.repeat(pa.scalar(value, contracts.TABLES["intents"].field(name).type), int(student.sum())) for name, value in known.items()})
    marks = contracts.table("scores", rows_ | {"score": (doc[student] % 4 / 2).astype(np.float32)} | {name: pa.repeat(pa.scalar("x"), int(student.sum())) for name in ("checkpoint", "gate")})
    started = time.perf_counter()
    made = merge(contracts.TABLES["answers"].empty_table(), [answers], [routed], [marks])
    seconds = time.perf_counter() - started
    assert made.num_rows == n and seconds < 1e-5 * n + 1, f"{n / seconds:,.0f} rows a second"
