"""The published figures are those of the page, and close among themselves: identities of counts, rounded shares, mixes."""

import re

import pytest

from lib.report.published import published

KNOWN = published()
IDENTITIES = KNOWN["identities"]


class Figures(dict):
    """A table of figures whose columns are attributes too, as the equations spell them."""

    def __getattr__(self, name):
        return seen(self[name])


def seen(figure):
    return Figures(figure) if isinstance(figure, dict) else [seen(one) for one in figure] if isinstance(figure, list) else figure


def values(identity, known=KNOWN):
    """Both sides, or all terms, of an equation such as `overlap.all = overlap.pick + label_mix.v2["0"]`."""
    terms = identity["equation"].split("=")
    return [eval(term.strip(), {"__builtins__": {}}, {name: seen(table) for name, table in known.items()}) for term in terms]


def closes(identity, known=KNOWN) -> bool:
    """Equal: exactly, after rounding to `digits` decimals, or `within` a distance."""
    found = values(identity, known)
    found = [round(value, identity["digits"]) for value in found] if "digits" in identity else found
    return len(found) > 1 and max(found) - min(found) <= identity.get("within", 0) + 1e-9  # of rounding in binary


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity["says"][:60])
def test_an_identity_closes(identity):
    assert closes(identity), values(identity)


def test_there_are_as_many_identities_as_the_page_has_and_each_is_said_once():
    assert len(IDENTITIES) >= 40 and len({identity["says"] for identity in IDENTITIES}) == len(IDENTITIES)


def test_the_page_s_ledger_closes_over_the_dense_top_20_by_its_numbers():
    rows = [10_120_955, 10_122_739, 2_093_238, 18_219_336, 35_477, 31_626, 1_751, 3_739, 11_799]
    assert values(IDENTITIES[0]) == [20 * 2_032_033, 40_640_660, sum(rows)]


# the tables of the page, copied from it once more, a row a line: a digit in a neighbour's place closes no identity
PAGE = """
v1 dense_1_5        10,120,955 35.8% 30.6% 32.7% 0.84%
v1 pick             10,122,739 38.2% 37.9% 22.6% 1.39%
v1 long             2,093,238 58.8% 25.9% 12.6% 2.76%
v1 short            18,219,336 49.3% 42.9% 7.8%
v2_gap dense_1_5    35,477 37.8% 33.4% 27.3% 1.43%
v2_gap pick         31,626 36.9% 39.3% 22.5% 1.34%
v2_gap long         1,751 56.5% 27.0% 13.1% 3.37%
v2 new_long_1_5     162,464 38.0% 34.8% 25.7% 1.52%
v2 new_short        8,862,410 38.6% 41.8% 19.6%
v2 new_long_6_20    924,358 46.5% 38.8% 14.7%
dense               1.61 2.56 3.99
best rank           1.78 2.70 4.03
weighted RRF        1.92 2.97 4.56
reranker            0.921
fused               0.599
by rank             59.2% 36.0% 26.6% 22.2% 19.6%
llm                 55.0% 35.4% 9.6% 45.0%
second              58.2% 28.4% 13.4%
combined            68.6% 22.8% 8.5% 31.4%
two judges          337,032 306,993 77.6% 7.2% 1.0%
held out            9,777,827 31,830 6,000 41.4% 37.0% 21.6% 61.2%
5000                .3282 .312 .344
10000               .3641 .349 .380 73.2% 63.3% 1.11%
12500               .3712 .356 .387 73.6% 64.6% 1.10%
15000               .3728 .358 .389 73.7% 67.0% 1.12%
LLM 0               75.4% 23.1% 1.4%
LLM 1               17.1% 76.5% 6.4%
LLM 2               2.4% 34.3% 63.3%
smaller             .140
scored v1           28,411,189 44.3% 44.3% 11.4%
scored v2           9,787,008 39.4% 41.5% 19.1%
"""


def rows_of_the_file():
    """The same rows from the file."""
    for version, stages in KNOWN["label_mix"].items():
        yield from ((f"{version} {stage}", list(row.values())[1:]) for stage, row in stages.items())
    yield from ((row["order"], list(row.values())[1:]) for row in KNOWN["probe"]["rows"])
    yield from (("reranker", [KNOWN["rerank_auc"]["reranker"]]), ("fused", [KNOWN["rerank_auc"]["weighted RRF"]]), ("by rank", KNOWN["score_2_by_dense_rank"]))
    second, student = KNOWN["second_judge"], KNOWN["student"]
    yield from ((name, list(second[name].values())) for name in ("llm", "second", "combined"))
    yield "two judges", [second[name] for name in ("pairs", "combined_pairs", "exact", "arbitration", "zero_against_two")]
    yield "held out", [student["training_pairs"], *student["held_out"].values(), student["between_query_share"]]
    yield from ((str(row["step"]), list(row.values())[1:]) for row in student["checkpoints"])
    yield from ((f"LLM {label}", shares) for label, shares in enumerate(student["spread"]))
    yield "smaller", [student["smaller_within"]]
    yield from ((f"scored {version}", list(row.values())) for version, row in KNOWN["labelling_mix"].items())


def test_every_row_of_the_page_s_tables_is_in_the_file_digit_by_digit():
    number = re.compile(r"(?:\.|\b)\d[\d,.]*%?")
    page = {}
    for line in PAGE.strip().splitlines():
        name, figures = re.fullmatch(r"(.*?) {2,}(.*)", line).groups()
        page[name] = [float(text.rstrip("%").replace(",", "")) / (100 if text.endswith("%") else 1) for text in number.findall(figures)]
    found = dict(rows_of_the_file())
    assert list(found) == list(page)
    for name, figures in found.items():
        assert figures == pytest.approx(page[name], abs=1e-12), name


@pytest.mark.parametrize("change", [("overlap", "pick"), ("new_candidates", "short"), ("gaps", "counted_by_v1")])
def test_a_wrong_digit_does_not_close(change):
    table, figure = change
    wrong = KNOWN | {table: KNOWN[table] | {figure: KNOWN[table][figure] + 1}}
    assert [identity for identity in IDENTITIES if not closes(identity, wrong)]


def mixes(known, path=""):
    """Every set of shares of 0, 1 and 2, with its place in the file."""
    if isinstance(known, dict):
        if {"0", "1", "2"} <= set(known):
            yield path, [known[label] for label in ("0", "1", "2")] + [known.get("unevaluable", 0)]
        for name, inner in known.items():
            yield from mixes(inner, f"{path}.{name}")


def test_every_mix_sums_to_one_within_its_rounding():
    found = dict(mixes({name: table for name, table in KNOWN.items() if name != "known_misfits"}))
    del found[".second_judge.combined"]  # of the known misfit nothing is asserted
    assert len(found) == 15
    for path, shares in found.items():
        assert sum(shares) == pytest.approx(1, abs=0.0016), path
    for row in KNOWN["student"]["spread"]:
        assert sum(row) == pytest.approx(1, abs=0.0016)


def test_intervals_hold_their_value_and_later_checkpoints_are_better():
    lines = KNOWN["student"]["checkpoints"]
    assert all(line["low"] < line["within"] < line["high"] for line in lines)
    assert [line["within"] for line in lines] == sorted(line["within"] for line in lines)
    assert KNOWN["student"]["smaller_within"] < lines[0]["within"]


def test_the_known_misfits_are_listed_and_name_figures_of_the_file():
    assert [misfit.get("pairs") or misfit.get("share") for misfit in KNOWN["known_misfits"]] == [23, 0.686]
    for misfit in KNOWN["known_misfits"]:
        assert values({"equation": misfit["figure"]})[0] > 0
