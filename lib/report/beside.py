"""Which cell of which table of a run measures what a published figure states."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pandas as pd

# the notebook that writes a table
WRITTEN_BY = {
    "corpus": "01-corpus", "probe": "03-probe", "fused_inside_dense": "03-probe", "rerank": "04-rerank", "routed": "05-route",
    "ledger_v1": "06-judge", "score_2_by_rank": "06-judge", "training": "07-train", "checkpoints": "08-evaluate", "spread": "08-evaluate",
    "heldout": "08-evaluate", "arms": "08-evaluate", "gate": "09-label", "new_candidates": "10-extend", "second_judge": "11-agreement",
    "combination": "11-agreement", "overlap": "11-agreement", "who_judged": "12-merge", "label_mix": "12-merge", "labelling_mix": "12-merge",
}  # fmt: skip
SHARES = ("0", "1", "2", "unevaluable")
_VERSIONS = {"v1": "v1", "v2_gap": "v2 gap", "v2": "v2"}  # as the keys of published.yaml name them

Where = Callable[[pd.DataFrame], pd.DataFrame]


class Line(NamedTuple):
    """A published figure and where ours stands: the rows `where` of a table, a column of them, and the column of their n.

    Counts are summed over the rows; of any other column the one row is read. n is that of a share's denominator.
    """

    table: str
    figure: str
    published: float
    source: str
    where: Where
    column: str
    n: str | None = None
    unit: str = "pairs"


def ours(line: Line, found: pd.DataFrame | None) -> tuple[object, str]:
    """Our value and its n; None, and the reason in place of the n, where the run has none."""
    if found is None:
        return None, f"no tables/{line.source}; {WRITTEN_BY[line.source]} writes it"
    rows = line.where(found)
    if rows.empty:  # a stage that no pair reached, a checkpoint that was not made
        return None, f"no such row in tables/{line.source}"
    counts = pd.api.types.is_integer_dtype(rows[line.column])
    value = rows[line.column].sum(min_count=1) if counts else rows[line.column].iloc[0]
    return None if pd.isna(value) else value, f"{rows[line.n].sum():,.0f} {line.unit}" if line.n else ""


def _rows(**wanted) -> Where:
    """The rows that have one of the values; in a keyword `_` stands for a blank."""

    def where(found: pd.DataFrame) -> pd.DataFrame:
        for name, values in wanted.items():
            found = found[found[name.replace("_", " ")].isin(values if isinstance(values, tuple) else [values])]
        return found

    return where


# of the tables on the held-out pairs, in which the labelling arm stands first
def _labelling_arm(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["arm"] == found["arm"].iloc[0]]


def _first(found: pd.DataFrame) -> pd.DataFrame:
    return found.head(1)


def _another_arm(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["arm"] != found["arm"].iloc[0]].head(1)


def _picks(last: bool) -> Where:
    """The picks of the last round, or of those before it."""

    def where(found: pd.DataFrame) -> pd.DataFrame:
        picks = _rows(set="v1", stage="pick")(found)
        return picks[(picks["round"] == picks["round"].max()) == last]

    return where


def _label(label: int) -> Where:
    return lambda found: _rows(LLM_label=label)(_labelling_arm(found))


def _between_used_and_last(found: pd.DataFrame) -> pd.DataFrame:
    found = _labelling_arm(found)
    return found[found["step"] > found.loc[found["used"] == "used", "step"].iloc[0]].iloc[:-1].tail(1)


def _at(step: int, otherwise: Where) -> Where:
    """The labelling arm's checkpoint at a published step, or the one that plays its part."""

    def where(found: pd.DataFrame) -> pd.DataFrame:
        same = _rows(step=step)(_labelling_arm(found))
        return otherwise(found) if same.empty else same

    return where


# ours for the four published checkpoints
_CHECKPOINTS: dict[str, Where] = {
    "first": lambda found: _labelling_arm(found).head(1), "used": _rows(used="used"),
    "between used and last": _between_used_and_last, "last": lambda found: _labelling_arm(found).tail(1),
}  # fmt: skip


def lines(known: dict) -> Iterator[Line]:
    """Every figure of the paper's tables, in the paper's order."""
    yield from _retrieval(known)
    yield from _judged(known)
    yield from _labels(known)
    yield from _second_judge(known["second_judge"])
    yield from _student(known["student"])
    yield from _labelling(known)


def _retrieval(known: dict) -> Iterator[Line]:
    yield Line("corpus", "documents", known["corpus"]["documents"], "corpus", _rows(fact="documents"), "count")
    for row in known["probe"]["rows"]:
        for depth in ("top 5", "top 10", "top 20"):
            figure, where = f"positives a query, {row['order']}, {depth}", _rows(order=row["order"])
            yield Line("probe", figure, row[depth], "probe", where, depth, "queries", "queries")
    inside = known["probe"]["fused_top_5_inside_dense_top_5"]
    yield Line("probe", "fused top 5 inside the dense top 5", inside, "fused_inside_dense", lambda found: found, "share", "places", "places")
    for rank, rate in enumerate(known["score_2_by_dense_rank"], 1):
        figure = f"score-2 rate at dense rank {rank}"
        yield Line("score 2 by rank", figure, rate, "score_2_by_rank", _rows(dense_rank=rank), "rate", "rows", "rows")
    for order in ("reranker", "weighted RRF"):
        value, where = known["rerank_auc"][order], _rows(order=order)
        yield Line("reranker", f"AUC 2 against 0, {order}", value, "rerank", where, "pooled AUC", "queries", "queries")


def _judged(known: dict) -> Iterator[Line]:
    sent, pages = known["corpus"]["source_pages_sent"], _rows(version="v1", stage="source_page")
    yield Line("who judged, v1", "sent, source_page", sent, "who_judged", pages, "sent")
    v1 = known["who_judged"]["v1"]
    for when, key, last in (("before the last round", "sent_in_three_rounds", False), ("in the last round", "sent_in_the_final_round", True)):
        yield Line("who judged, v1", f"sent, pick, {when}", v1["pick"][key], "ledger_v1", _picks(last), "sent")
    long = _rows(stage="long", judge="llm")
    yield Line("who judged, v1", "queries with a long document", v1["long"]["queries"], "routed", long, "queries")
    for name, stages in known["who_judged"].items():
        version = _VERSIONS[name]
        for stage, row in stages.items():
            where = _rows(version=version, stage=stage, judge="llm")
            if row["judge"] == "student":  # the page counts all that it was sent: in v1 its long pairs and source pages too
                stage, where = "relevance model", _rows(version=version, judge="student")
            for column, n in (("sent", None), ("judged", None), ("share", "sent")):
                if column in row:
                    figure = f"{'judged of sent' if n else column}, {stage}"
                    yield Line(f"who judged, {version}", figure, row[column], "who_judged", where, column, n)
    gaps, where = known["gaps"]["dense_top_20_without_judgment"], _rows(version="v2 gap", stage=("dense_1_5", "long"))
    yield Line("gaps", "dense top 20 without a judgment after v1", gaps, "who_judged", where, "sent")
    new, facts = known["new_candidates"], "new_candidates"
    yield Line("new candidates", "in all", new["all"], facts, _rows(fact="new candidates"), "pairs")
    yield Line("new candidates", "a query", new["a_query"], facts, _rows(fact="new candidates"), "pairs a query", "queries", "queries")
    yield Line("new candidates", "long", new["long"]["count"], facts, _rows(fact="long"), "pairs")
    yield Line("new candidates", "share of long ones", new["long"]["share"], facts, _rows(fact="long"), "share", "of")
    outside = new["outside_dense_top_100"]
    for name, key, column, n in (("not in", "count", "pairs", None), ("share not in", "share", "share", "of")):
        yield Line("new candidates", f"{name} the dense top 100", outside[key], facts, _rows(fact="not in the dense top 100"), column, n)
    for figure, key, fact in (
        ("short", "short", "short, to the relevance model"), ("long at fused 1-5", "long_at_fused_1_5", "long at fused 1-5, to the LLM"),
        ("long at fused 6-20", "long_at_fused_6_20", "long at fused 6-20, to the relevance model"),
    ):
        yield Line("new candidates", figure, new[key], facts, _rows(fact=fact), "pairs")
    for key, part in (("pick", "picks"), ("long", "long"), ("source_page", "source pages"), ("trial", "trial"), ("all", "all")):
        yield Line("overlap", f"pairs with both, {part}", known["overlap"][key], "overlap", _rows(part=part), "pairs")


def _labels(known: dict) -> Iterator[Line]:
    for name, stages in known["label_mix"].items():
        version = _VERSIONS[name]
        for stage, row in stages.items():
            where = _rows(version=version, stage=stage, judge=row["judge"])
            yield Line(f"label mix, {version}", f"rows, {stage}", row["rows"], "label_mix", where, "rows")
            for label in SHARES:
                if label in row:
                    yield Line(f"label mix, {version}", f"share of {label}, {stage}", row[label], "label_mix", where, label, "rows", "rows")


def _second_judge(known: dict) -> Iterator[Line]:
    pairs_of = {"llm": known["pairs"], "combined": known["combined_pairs"]}
    for judge, name in (("llm", "LLM judge alone"), ("second", "second judge"), ("combined", "combined")):
        if pairs := pairs_of.get(judge):
            yield Line("second judge", f"pairs, {name}", pairs, "second_judge", _rows(judge=name), "pairs")
        for label in SHARES[:3]:
            yield Line("second judge", f"share of {label}, {name}", known[judge][label], "second_judge", _rows(judge=name), label, "pairs")
        if "at_least_partially_relevant" in known[judge]:
            value, column = known[judge]["at_least_partially_relevant"], "at least partially relevant"
            yield Line("second judge", f"{column}, {name}", value, "second_judge", _rows(judge=name), column, "pairs")
    for key, fact in (("exact", "equal labels"), ("arbitration", "sent to the third judge"), ("zero_against_two", "0 against 2")):
        yield Line("second judge", fact, known[key], "combination", _rows(fact=fact), "share", "of")


def _student(known: dict) -> Iterator[Line]:
    yield Line("held-out set", "training pairs", known["training_pairs"], "training", _first, "training pairs")
    held = known["held_out"]
    for column in ("pairs", "queries"):
        yield Line("held-out set", column, held[column], "heldout", _first, column)
    for label in SHARES[:3]:
        yield Line("held-out set", f"share of {label}", held[label], "heldout", _first, label, "pairs")
    figure, share = "share of the label variance between queries", known["between_query_share"]
    yield Line("held-out set", figure, share, "heldout", _first, "between-query share", "pairs")
    columns = {"within": "within-query R2", "low": "low", "high": "high", "exact": "exact", "kept": "LLM 2 kept", "flips": "flips"}
    for row, (name, part) in zip(known["checkpoints"], _CHECKPOINTS.items(), strict=True):
        where = part if name == "used" else _at(row["step"], part)
        for key, column in columns.items():
            if key in row:
                figure, n = f"{column}, {name} checkpoint (published step {row['step']:,})", "LLM 2 pairs" if key == "kept" else "pairs"
                yield Line("checkpoints", figure, row[key], "checkpoints", where, column, n)
    for label, shares in enumerate(known["spread"]):
        for cut, share in enumerate(shares):
            yield Line("spread", f"LLM {label}, model {cut}", share, "spread", _label(label), str(cut), "pairs")
    yield Line("smaller arm", "within-query R2", known["smaller_within"], "arms", _another_arm, "within-query R2", "queries", "queries")


def _labelling(known: dict) -> Iterator[Line]:
    for version, row in known["labelling_mix"].items():
        yield Line("labelling mix", f"pairs scored, {version}", row["pairs"], "labelling_mix", _rows(version=version), "pairs")
        for label in SHARES[:3]:
            yield Line("labelling mix", f"share of {label}, {version}", row[label], "labelling_mix", _rows(version=version), label, "pairs")
    yield Line("labelling run", "held-out pairs of the gate", known["student"]["gate"]["pairs"], "gate", _first, "pairs")
    yield Line("labelling run", "Pearson of the gate", known["student"]["gate"]["pearson"], "gate", _first, "Pearson", "pairs")
