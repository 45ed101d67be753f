"""The published figures close among themselves: identities of counts, rounded shares, mixes that sum to one."""

import pytest

from lib.report import published

KNOWN = published.published()
IDENTITIES = published.identities(KNOWN)


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity.says[:60])
def test_an_identity_closes(identity):
    assert identity.closes, identity


def test_there_are_as_many_identities_as_the_page_has_and_each_is_said_once():
    assert len(IDENTITIES) >= 40 and len({identity.says for identity in IDENTITIES}) == len(IDENTITIES)


def test_the_page_s_ledger_closes_over_the_dense_top_20_by_its_numbers():
    rows = [10_120_955, 10_122_739, 2_093_238, 18_219_336, 35_477, 31_626, 1_751, 3_739, 11_799]
    assert IDENTITIES[0].values == [20 * 2_032_033, 40_640_660, sum(rows)]


@pytest.mark.parametrize("change", [("overlap", "pick"), ("new_candidates", "short"), ("gaps", "counted_by_v1")])
def test_a_wrong_digit_does_not_close(change):
    table, figure = change
    wrong = KNOWN | {table: KNOWN[table] | {figure: KNOWN[table][figure] + 1}}
    assert [identity for identity in published.identities(wrong) if not identity.closes]


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
        assert published.value(misfit["figure"], KNOWN) > 0


@pytest.mark.parametrize("term", ["overlap.none", "nothing", "overlap.pick ** 2", "overlap.pick +", "open('x')", "student.spread[9]"])
def test_a_term_that_names_no_figure_is_refused(term):
    with pytest.raises(ValueError, match="is no sum of published figures"):
        published.value(term, KNOWN)
