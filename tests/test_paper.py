"""The paper's comparison: every published figure beside ours, and a missing table named with the notebook that writes it."""

import json
from pathlib import Path

import pandas as pd
import pytest

from lib.report import beside, paper, tables
from lib.report.published import published

KNOWN = published()


@pytest.fixture
def run(tmp_path):
    """A run that has checkpoints, spread, arms and the second judge, and nothing else."""
    columns = ["within-query R2", "low", "high", "exact", "LLM 2 kept", "flips", "pairs", "LLM 2 pairs"]
    rows = [("larger", step, *(step / 100 + i for i in range(6)), 90, 9, used) for step, used in ((1, ""), (2, "used"), (3, ""), (4, ""))]
    rows += [("smaller", 4, *range(6), 80, 8, "")]
    tables.write(pd.DataFrame(rows, columns=["arm", "step", *columns, "used"]), tmp_path / "tables", "checkpoints", caption="c")
    spread = pd.DataFrame({"arm": ["larger"] * 3 + ["smaller"] * 3, "LLM label": [0, 1, 2] * 2, "pairs": [5, 4, 0, 1, 1, 1],
                           "0": [0.6, 0.5, None, 1, 1, 1], "1": [0.2, 0.25, None, 0, 0, 0], "2": [0.2, 0.25, None, 0, 0, 0]})
    tables.write(spread, tmp_path / "tables", "spread", caption="c")
    arms = pd.DataFrame({"arm": ["larger", "smaller", "larger less smaller"], "within-query R2": [0.4, 0.1, 0.3], "queries": [7, 7, 7]})
    tables.write(arms, tmp_path / "tables", "arms", caption="c")
    judged = [("v1", "short", "student", 10, None, None), ("v1", "long", "student", 2, None, None), ("v1", "long", "llm", 7, 6, 6 / 7), ("v1", "source_page", "llm", 8, 1, 1 / 8),
              ("v2 gap", "dense_1_5", "llm", 3, 3, 1.0), ("v2 gap", "long", "llm", 2, 2, 1.0),
              ("v2 gap", "pick", "llm", 9, 9, 1.0), ("v2", "new_short", "student", 20, 20, 1.0), ("v2", "new_long_6_20", "student", 4, 4, 1.0)]
    frame = pd.DataFrame(judged, columns=["version", "stage", "judge", "sent", "judged", "share"]).assign(withdrawn=None, gaps=None).astype({"sent": "Int64", "judged": "Int64"})
    tables.write(frame, tmp_path / "tables", "who_judged", caption="c")
    return tmp_path


def cells(run, name, *columns):
    table = paper.comparison(run)
    return [tuple(row) for row in table.loc[table["table"] == name, list(columns)].astype(object).where(lambda frame: frame.notna(), None).to_numpy()]


def test_checkpoints_are_set_side_by_side_by_their_part(run):
    found = dict(cells(run, "checkpoints", "figure", "this run"))
    assert found["within-query R2, first checkpoint (published step 5,000)"] == 0.01
    assert found["within-query R2, used checkpoint (published step 10,000)"] == 0.02
    assert found["within-query R2, between used and last checkpoint (published step 12,500)"] == 0.03
    assert found["flips, last checkpoint (published step 15,000)"] == 5.04


def test_a_checkpoint_at_the_published_step_is_set_beside_it_whatever_others_there_are(run):
    columns = ["arm", "step", "within-query R2", "low", "high", "exact", "LLM 2 kept", "flips", "pairs", "LLM 2 pairs", "used"]
    rows = [("larger", step, *[step / 1e5] * 6, 9, 2, "used" if step == 10_000 else "") for step in range(2_500, 20_000, 2_500)]
    tables.write(pd.DataFrame(rows, columns=columns), run / "tables", "checkpoints", caption="c")
    found = dict(cells(run, "checkpoints", "figure", "this run"))
    assert [found[f"within-query R2, {part} checkpoint (published step {step:,})"] for part, step in (
        ("first", 5_000), ("used", 10_000), ("between used and last", 12_500), ("last", 15_000))] == [0.05, 0.1, 0.125, 0.15]


def test_the_spread_and_the_smaller_arm_are_of_their_arms(run):
    found = cells(run, "spread", "published", "this run", "n of this run")
    assert found[0] == (0.754, 0.6, "5 pairs") and found[4] == (0.765, 0.25, "4 pairs")
    assert found[8] == (0.633, None, "0 pairs")  # a label that no pair has is a dash, never 0
    assert cells(run, "smaller arm", "published", "this run", "n of this run") == [(0.14, 0.1, "7 queries")]


def test_counts_are_summed_over_their_rows_and_a_count_that_is_missing_stays_missing(run):
    assert cells(run, "gaps", "published", "this run") == [(37_228, 3 + 2)]
    found = dict(cells(run, "who judged, v2", "figure", "this run"))
    assert found == {"sent, new_long_1_5": None, "sent, relevance model": 20 + 4}
    v1 = dict(cells(run, "who judged, v1", "figure", "this run"))
    assert v1["sent, relevance model"] == 10 + 2 and v1["judged, relevance model"] is None  # the published one holds its long pairs too
    assert not isinstance(v1["sent, relevance model"], float)
    assert v1["sent, source_page"] == 8
    assert (v1["sent, long"], v1["judged, long"], v1["judged of sent, long"]) == (7, 6, pytest.approx(6 / 7))


def test_picks_are_split_at_their_last_round_whatever_their_number(run):
    lines = [("source_page", "source_page", 1, 9), ("v1", "pick", 1, 5), ("v1", "pick", 2, 4), ("v1", "pick", 3, 1), ("v1", "long", 4, 7)]
    tables.write(pd.DataFrame(lines, columns=["set", "stage", "round", "sent"]), run / "tables", "ledger_v1", caption="c")
    tables.write(pd.DataFrame([("long", "llm", 8, 6), ("long", "student", 2, 2)], columns=["stage", "judge", "pairs", "queries"]), run / "tables", "routed", caption="c")
    found = dict(cells(run, "who judged, v1", "figure", "this run"))
    assert (found["sent, pick, before the last round"], found["sent, pick, in the last round"], found["queries with a long document"]) == (9, 1, 6)
    tables.write(pd.DataFrame(lines[:2], columns=["set", "stage", "round", "sent"]), run / "tables", "ledger_v1", caption="c")
    assert dict(cells(run, "who judged, v1", "figure", "this run"))["sent, pick, before the last round"] is None


def test_a_share_stands_beside_the_n_that_it_is_of(run):
    facts = pd.DataFrame([("new candidates", 9, 3, 3.0, 9, 1.0), ("long", 4, 3, 4 / 3, 9, 4 / 9), ("not in the dense top 100", 0, 3, 0.0, 9, 0.0),
                          ("short, to the relevance model", 5, 3, 5 / 3, 9, 5 / 9), ("long at fused 6-20, to the relevance model", 3, 3, 1.0, 9, 3 / 9)],
                         columns=["fact", "pairs", "queries", "pairs a query", "of", "share"])
    tables.write(facts, run / "tables", "new_candidates", caption="c")
    found = {figure: (value, n) for figure, value, n in cells(run, "new candidates", "figure", "this run", "n of this run")}
    assert found["in all"] == (9, "") and found["a query"] == (3.0, "3 queries") and found["long"] == (4, "")
    assert found["share of long ones"] == (pytest.approx(4 / 9), "9 pairs") and found["share not in the dense top 100"] == (0.0, "9 pairs")
    assert found["short"] == (5, "") and found["long at fused 6-20"] == (3, "")
    assert found["long at fused 1-5"] == (None, "no such row in tables/new_candidates")
    assert dict(cells(run, "who judged, v1", "figure", "n of this run"))["judged of sent, long"] == "7 pairs"
    of = dict(cells(run, "checkpoints", "figure", "n of this run"))
    assert [of[f"{name}, last checkpoint (published step 15,000)"] for name in ("flips", "LLM 2 kept")] == ["90 pairs", "9 pairs"]


def test_arbitration_is_all_that_went_to_the_third_judge_and_agreement_is_of_two_labels(run):
    facts = pd.DataFrame([("equal labels", 6, 8, 6 / 8), ("0 against 1", 1, 8, 1 / 8), ("0 against 2", 1, 8, 1 / 8), ("sent to the third judge", 3, 9, 3 / 9),
                          ("valid replies of the third judge", 2, 3, 2 / 3)], columns=["fact", "pairs", "of", "share"])
    tables.write(facts, run / "tables", "combination", caption="c")
    found = {row[0]: row[1:] for row in cells(run, "second judge", "figure", "published", "this run", "n of this run")}
    assert found["equal labels"] == (0.776, 6 / 8, "8 pairs") and found["0 against 2"] == (0.01, 1 / 8, "8 pairs")
    assert found["sent to the third judge"] == (0.072, 3 / 9, "9 pairs")


def test_a_missing_table_is_named_with_the_notebook_that_writes_it(run):
    assert cells(run, "smaller arm", "n of this run") != cells(run, "labelling mix", "n of this run")
    assert set(cells(run, "labelling mix", "this run", "n of this run")) == {(None, "no tables/labelling_mix; 12-merge writes it")}
    nothing = paper.comparison(run / "empty")
    assert nothing["this run"].isna().all() and nothing["n of this run"].str.startswith("no tables/").all()
    with pytest.raises(FileNotFoundError, match="run 03-probe that writes the table probe first"):
        paper.table(run, "probe")


def test_what_a_killed_process_left_half_written_is_no_figure_of_the_paper(run, tmp_path):
    (run / "figures").mkdir()
    for name in ("r2.pdf", ".r2.pdf.tmp-7"):
        (run / "figures" / name).write_text(name)
    collected = paper.collect(run, tmp_path / "collected")
    assert "r2.pdf" in collected and "checkpoints.csv" in collected and sorted(path.name for path in (tmp_path / "collected").iterdir()) == sorted(collected)
    assert not any(name.startswith(".") for name in collected)


def test_the_headline_is_of_the_release_or_of_what_there_is(run):
    assert paper.headline(run)["sent"].tolist() == [10, 2, 7, 8, 3, 2, 9, 20, 4] and paper.headline(run)["rows"].isna().all()
    mix = pd.DataFrame({"version": ["v2"], "stage": ["new_short"], "judge": ["student"], "candidates": ["c"], "rows": [18], "0": [0.5], "1": [0.5], "2": [0.0], "unevaluable": [None]})
    tables.write(mix, run / "tables", "label_mix", caption="c")
    assert paper.headline(run)["rows"].dropna().tolist() == [18] and len(paper.headline(run)) == 9
    (run / "tables" / "who_judged.csv").rename(run / "tables" / "judged.csv")
    assert paper.headline(run)["sent"].tolist() == [10, 2, 7, 8, 3, 2, 9, 20, 4]  # a plan without a release
    (run / "tables" / "judged.csv").unlink()
    assert paper.headline(run).empty and list(paper.headline(run).columns) == [*paper.JUDGED, *paper.MIX]
    tables.write(paper.headline(run), run, "t", caption="c", percent=("share", "0"))


def numbers(known):
    """Every number in a part of the published figures."""
    if isinstance(known, dict | list):
        for inner in known.values() if isinstance(known, dict) else known:
            yield from numbers(inner)
    elif not isinstance(known, str):
        yield known


def test_every_figure_of_the_paper_s_tables_has_a_line():
    shown = [line.published for line in beside.lines(KNOWN)]
    whole = {name: KNOWN[name] for name in ("label_mix", "labelling_mix", "overlap", "score_2_by_dense_rank")}
    whole |= {"probe": KNOWN["probe"]["rows"], "second": KNOWN["second_judge"], "spread": KNOWN["student"]["spread"], "held out": KNOWN["student"]["held_out"]}
    whole["judged"] = KNOWN["who_judged"]
    whole["checkpoints"] = [{k: v for k, v in row.items() if k != "step"} for row in KNOWN["student"]["checkpoints"]]
    for name, part in whole.items():
        assert [number for number in numbers(part) if number not in shown] == [], name
    assert len(shown) > 150 and len({(line.table, line.figure) for line in beside.lines(KNOWN)}) == len(shown)


def test_every_source_is_a_table_that_a_notebook_writes():
    notebooks = Path(__file__).resolve().parents[1] / "notebooks"
    for line in beside.lines(KNOWN):
        path = notebooks / f"{beside.WRITTEN_BY[line.source]}.ipynb"
        if path.exists():
            source = "".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
            assert f'"{line.source}"' in source, (line.source, path.name)
