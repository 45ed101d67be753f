"""Canaries: judged pairs asked once more with an attack behind the document, to see whether it moves the judge.

They are sets of intents of versions of their own, apart from all others, so no canary becomes a label: `canary` beside version 1,
`canary_v2` beside its gaps and version 2.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lib import contracts, draw, processes
from lib.judge import answers, attacks, pairs, store
from lib.judge.attacks import SETS

COLUMNS = ["round", "attack", "n", "moved up", "moved down", "unanswered", "share moved"]
_EVERY, _GONE = "every attack", "former answer gone"


def draw_pairs(run: str | Path, sets: Sequence[str], n: int, seed: int = 0, into: str = SETS[0]) -> int:
    """Make `intents/<into>` of `n` pairs a round that have a valid answer in `sets` and give its rows.

    The draw is by hash, the same for the same answers; attacks take turns in it. What was asked before stays in the attempts.
    The answers are read part by part, and the drawn pairs alone are kept.
    """
    folder, names = Path(run) / "intents" / into, list(attacks.known())
    drawn = None
    for part in pairs.parts(run, sets[0]):
        found = _answered(run, sets, part)
        found["hash"] = draw.unit_hash(seed, found["query"].to_numpy(np.int32), found["doc"].to_numpy(np.int32))
        drawn = found if drawn is None else pd.concat([drawn, found], ignore_index=True)
        drawn = drawn.sort_values(["round", "hash"], kind="stable").groupby("round").head(n).reset_index(drop=True)
    drawn["reason"] = [names[at % len(names)] for at in drawn.groupby("round").cumcount()]
    with processes.lock(Path(run)):
        (folder / "manifest.json").unlink(missing_ok=True)
        for old in folder.glob("part-*"):
            old.unlink()
        lines = []
        for part in pairs.parts(run, sets[0]):
            mine = drawn[drawn["part"] == part].sort_values(["query", "doc"])
            rows = [_intent(row, into) for row in mine.to_dict("records")]
            lines.append(contracts.write("intents", contracts.table("intents", rows), folder / f"{part}.parquet"))
        contracts.finish(folder, lines)
    return len(drawn)


def _answered(run: str | Path, sets: Sequence[str], part: str) -> pd.DataFrame:
    """The validly answered pairs of one part of the sets, the newest answer of each, with the cut that was sent."""
    frames = []
    for name in sets:
        judged = contracts.read_part("answers", answers.folder(run, name) / f"{part}.parquet", ["query", "doc", "round", "answer", "score"])
        sent = pairs.intents(run, name, part, ["query", "doc", "round", "max_chars"])
        sent, judged = (rows.to_pandas(types_mapper=pd.ArrowDtype) for rows in (sent, judged))
        judged = judged[judged["answer"].isin(list(contracts.VALID))].drop(columns="answer")
        frames.append(judged.merge(sent, on=["query", "doc", "round"]).assign(part=part))
    return pd.concat(frames, ignore_index=True).drop_duplicates(["query", "doc"], keep="last")


def _intent(row: dict, into: str) -> dict:
    cut = None if pd.isna(row["max_chars"]) else int(row["max_chars"])
    return {
        "query": int(row["query"]), "doc": int(row["doc"]), "judge": "llm", "version": store.SETS[into], "stage": "canary", "round": int(row["round"]),
        "reason": row["reason"], "max_chars": cut, "rank": 0, "withdrawn": False,
    }  # fmt: skip


def table(run: str | Path, sets: Sequence[str], of: str = SETS[0]) -> pd.DataFrame:
    """A row a round for all attacks, then one for each kind of attack: canaries that moved against their answer in `sets`.

    An unevaluable query counts as below 0. `unanswered` got no valid reply; the share is of those that got one, and is
    missing where none did. Canaries whose pair has no valid answer in `sets` any more could not move: they are in no row but one
    of their own, where a round has some.
    """
    kinds = {attack.id: attack.kind for attack in attacks.known().values()}
    frames = []
    for part, told in answers.read(run, of, ["query", "doc", "answer", "score"]):
        before = _answered(run, sets, part)[["query", "doc", "score"]].rename(columns={"score": "before"})
        asked = pairs.intents(run, of, part, ["query", "doc", "round", "reason"]).to_pandas(types_mapper=pd.ArrowDtype)
        frames.append(asked.merge(told.to_pandas(types_mapper=pd.ArrowDtype), on=["query", "doc"]).merge(before, how="left", on=["query", "doc"], indicator="known"))
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    found = pd.concat(frames, ignore_index=True)
    valid = found["answer"].isin(list(contracts.VALID)).to_numpy(bool)
    change = found["score"].fillna(-1).to_numpy(int) - found["before"].fillna(-1).to_numpy(int)
    gone = (found["known"] == "left_only").to_numpy(bool)
    change[gone] = 0
    kind = np.where(gone, _GONE, [kinds[name] for name in found["reason"]])
    known = pd.DataFrame({
        "round": found["round"].to_numpy(int), "attack": kind, "n": 1,
        "moved up": valid & (change > 0), "moved down": valid & (change < 0), "unanswered": ~valid,
    })  # fmt: skip
    order = {name: place for place, name in enumerate([_EVERY, *dict.fromkeys(kinds.values()), _GONE])}
    both = pd.concat([known[~gone].assign(attack=_EVERY), known], ignore_index=True)
    summed = both.groupby(["round", "attack"], as_index=False).sum().astype({name: int for name in COLUMNS[2:6]})
    summed = summed.sort_values(["round", "attack"], key=lambda column: column.map(order) if column.name == "attack" else column, ignore_index=True)
    answered = (summed["n"] - summed["unanswered"]).to_numpy(float)
    moved = (summed["moved up"] + summed["moved down"]).to_numpy(float)
    summed["share moved"] = np.divide(moved, answered, out=np.full(len(summed), np.nan), where=(answered > 0) & (summed["attack"] != _GONE).to_numpy(bool))
    return summed[COLUMNS]
