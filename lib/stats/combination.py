"""The combined label of two judges and a third one. Source: spec, "Reliability against a second judge"."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.judge import answers
from lib.routing.agreement import to_arbiter
from lib.stats.agreement import Agreement, agreement

POLICIES = {"strict": 0, "lenient": 1}  # what 0 against 1 is combined to
WAITING, WAITING_THIRD = "no reply of the second judge", "no reply of the third judge"
REASONS = ("equal", "0 against 1", "third judge", WAITING, WAITING_THIRD)
LABELS = (0, 1, 2)


class Replies(NamedTuple):
    """What one judge said of n pairs: label float64[n], NaN where there is none; valid bool[n], unevaluable replies included."""

    label: np.ndarray
    valid: np.ndarray


class Sample(NamedTuple):
    """The pairs that the second judge was sent, by query, then document: each judge's replies, row for row."""

    query: np.ndarray
    doc: np.ndarray
    first: Replies
    second: Replies
    third: Replies


class Combined(NamedTuple):
    """label float64[n], NaN where there is none; reason object[n], one of REASONS: what gave the label, or what it waits for."""

    label: np.ndarray
    reason: np.ndarray


def combine(first: Replies, second: Replies, third: Replies, policy: str = "strict") -> Combined:
    """Equal replies -> that label; 0 against 1 -> 0 (`lenient`: 1); any other disagreement -> the third judge's valid reply.

    Unevaluable is a reply: two of them, or the third judge's, give no label, and the reason tells it from one that is
    awaited. A pair without a valid reply of the first judge raises ValueError: it was never a candidate.
    """
    if policy not in POLICIES:
        raise ValueError(f"the policy is {policy!r}; it is one of {', '.join(POLICIES)}")
    if not first.valid.all():
        raise ValueError(f"{int((~first.valid).sum())} of {len(first.valid)} pairs have no valid reply of the first judge; "
                         "route the second judge again")
    disputed = second.valid & to_arbiter(first.label, second.label)
    mild = second.valid & ~disputed & (first.label != second.label) & ~np.isnan(first.label)
    reason = np.select(
        [~second.valid, disputed & ~third.valid, disputed, mild],
        [WAITING, WAITING_THIRD, "third judge", "0 against 1"], "equal",
    ).astype(object)  # fmt: skip
    label = np.select([~second.valid | (disputed & ~third.valid), disputed, mild], [np.nan, third.label, float(POLICIES[policy])], first.label)
    return Combined(label, reason)


def load(run: str | Path) -> Sample:
    """Read the answers to `second` and `arbiter`, and those of v1 to the same pairs.

    ValueError where the third judge was sent other pairs than the two replies ask for.
    """
    tables = []
    for told in zip(*(answers.read(run, name, ["query", "doc", "answer", "score"]) for name in ("second", "v1", "arbiter")), strict=True):
        both, *others = (_replies(rows) for _, rows in told)
        for name, other in zip(("v1", "arbiter"), others, strict=True):
            both = both.merge(other, on=["query", "doc"], how="left", suffixes=("", f" {name}"), validate="one_to_one", indicator=f"in {name}")
        tables.append(both)
    rows = pd.concat(tables).sort_values(["query", "doc"], kind="stable")
    first, second, third = (
        Replies(rows[f"label{of}"].to_numpy(np.float64), rows[f"valid{of}"].eq(True).to_numpy(bool)) for of in (" v1", "", " arbiter")
    )
    wrong = (rows["in arbiter"] == "both").to_numpy() != (second.valid & to_arbiter(first.label, second.label))
    if wrong.any():
        raise ValueError(f"the third judge was sent other pairs than the two judges dispute, {int(wrong.sum())} of {len(rows)} differ; "
                         "route the arbiter again")
    return Sample(rows["query"].to_numpy(), rows["doc"].to_numpy(), first, second, third)


def _replies(told) -> pd.DataFrame:
    rows = told.to_pandas()
    return rows[["query", "doc"]].assign(label=rows["score"].astype(np.float64), valid=rows["answer"].isin(answers.VALID))


def judges(sample: Sample) -> Agreement:
    """The first judge against the second, over the pairs with a valid reply of both."""
    both = sample.first.valid & sample.second.valid
    return agreement(sample.first.label[both], sample.second.label[both], LABELS)


def second_judge_table(sample: Sample, policy: str = "strict") -> pd.DataFrame:
    """One row a judge (the LLM alone, the second, combined): its pairs with a label, the shares of the labels in them, the
    share that is at least partially relevant (1 or 2), and the pairs without: unevaluable, and without a reply.

    Each row has its own n: pairs + unevaluable + no reply are the pairs sent.
    """
    combined = combine(sample.first, sample.second, sample.third, policy)
    waiting = np.isin(combined.reason, [WAITING, WAITING_THIRD])
    rows = []
    for name, label, valid in (("LLM judge alone", *sample.first), ("second judge", *sample.second), ("combined", combined.label, ~waiting)):
        known = label[valid & ~np.isnan(label)]
        shares = {str(one): float((known == one).mean()) if len(known) else None for one in LABELS}
        relevant = float((known >= 1).mean()) if len(known) else None
        rows.append({"judge": name, "pairs": len(known), **shares, "at least partially relevant": relevant,
                     "unevaluable": int((valid & np.isnan(label)).sum()), "no reply": int((~valid).sum())})
    return pd.DataFrame(rows)


def combination_table(sample: Sample, policy: str = "strict") -> pd.DataFrame:
    """One row a fact of the combination: pairs, of how many, and the share.

    How the labels of the two judges stand to each other is of the pairs with both labels; arbitration (0 or 1 against 2, or
    a label against unevaluable) is of the pairs with both replies.
    """
    both, found = judges(sample), combine(sample.first, sample.second, sample.third, policy)
    replies, sent = int(sample.second.valid.sum()), len(sample.query)
    count = {reason: int((found.reason == reason).sum()) for reason in REASONS}
    apart = {(i, j): int(both.table[i, j] + both.table[j, i]) for i in LABELS for j in LABELS if i < j}
    arbitrated = count["third judge"] + count[WAITING_THIRD]
    facts = [
        ("valid replies of the second judge", replies, sent), ("two labels", both.n, replies),
        ("equal labels", int(np.trace(both.table)), both.n), ("0 against 1", apart[0, 1], both.n), ("1 against 2", apart[1, 2], both.n),
        ("0 against 2", apart[0, 2], both.n), ("sent to the third judge", arbitrated, replies),
        ("valid replies of the third judge", count["third judge"], arbitrated), ("combined label", int((~np.isnan(found.label)).sum()), sent),
    ]  # fmt: skip
    return pd.DataFrame([{"fact": fact, "pairs": pairs, "of": of, "share": pairs / of if of else None} for fact, pairs, of in facts])
