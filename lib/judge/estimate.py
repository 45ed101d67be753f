"""What asking a set would take, before anything is sent: `python -m lib.judge estimate --run sample --set v1`.

Expected is one call for each pair that is owed one, a token for four bytes of the request, and the output tokens that earlier
replies of the model took on average (`SAID` without any). Worst is every call that the passes and the budget of a pair allow,
each at the worst case that caps are held by (lib.judge.budget).
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from lib import contracts, paths
from lib.judge import budget, pairs, prices, prompt, store, turns, unrendered
from lib.judge.pairs import Pairs
from lib.judge.prices import Prices
from lib.judge.prompt import Judge
from lib.judge.turns import Config

SAID = 250  # output tokens of a reply, where none is known yet
_BYTES = 4  # of a token
COLUMNS = ["set", "version", "stage", "pairs", "owed", "calls", "input tokens", "output tokens", "cost"]
WORST = ["worst calls", "worst input tokens", "worst output tokens", "worst cost"]


class Unasked(ValueError):
    """The options name no judge that could be asked."""


def estimate(configs: Sequence[Config], by: Judge, known: Prices) -> pd.DataFrame:
    """One row a set, version and stage: pairs, pairs owed a call, and expected and worst calls, tokens and cost of one judge.

    Costs are None where the model has no price, worst output tokens and costs too where the parameters set no limit. Withdrawn pairs
    are in `pairs` and owed nothing. The same sets of one run, asked, send nothing else. A pair is rendered only where a call for it
    may be there and its key is not kept.
    """
    run, render = configs[0].run, Pairs(configs[0].run, by)
    said, most, documents = _said(run, by.model), budget.worst_output(by), unrendered.document_bytes(run, _cuts(configs))
    lines = []
    for config in configs:
        counts = defaultdict(Counter)
        for part in turns.part_names(config):
            rows = pairs.intents(run, config.set, part).combine_chunks()
            left = unrendered.calls_left(config, render, part, rows)
            sent = np.where(left > 0, unrendered.worst_inputs(render, part, rows, documents), 0)
            counted = {"pairs": 1, "owed": left > 0, "calls": left, "bytes": sent, "worst": sent * left}
            told = pd.DataFrame({"stage": rows["stage"].to_pandas(), **counted})
            for stage, sums in told.groupby("stage").sum().to_dict("index").items():
                counts[stage].update(sums)
        version = store.SETS[config.set]
        lines += [{"set": config.set, "version": version, "stage": stage, **_line(counts[stage], said, most, by, known)} for stage in sorted(counts)]
    return pd.DataFrame(lines, columns=[*COLUMNS, *WORST])


def _cuts(configs: Sequence[Config]) -> list[int]:
    """Where the documents of the sets are cut, each once."""
    found = set()
    for config in configs:
        for part in turns.part_names(config):
            found.update(np.unique(unrendered.cuts(pairs.intents(config.run, config.set, part, ["max_chars"]))).tolist())
    return sorted(found)


def _line(counted: Counter, said: float, most: int | None, by: Judge, known: Prices) -> dict:
    owed, sent, out = counted["owed"], -(-counted["bytes"] // _BYTES), round(counted["owed"] * said)
    priced = by.model in known.models
    at_most = None if most is None else most * counted["calls"]
    return {
        "pairs": counted["pairs"], "owed": owed, "calls": owed, "input tokens": sent, "output tokens": out,
        "cost": known.cost(by.model, sent, out) if priced else None, "worst calls": counted["calls"], "worst input tokens": counted["worst"],
        "worst output tokens": at_most, "worst cost": known.cost(by.model, counted["worst"], at_most) if priced and at_most is not None else None,
    }  # fmt: skip


def _said(run: str | Path, model: str) -> float:
    """The mean output tokens of what this model has said in the run."""
    total, count = 0, 0
    for name in store.SETS:
        for rows in store.scan(run, name, ["model", "output_tokens"]):
            told = rows.filter(pc.equal(rows["model"], model))["output_tokens"].drop_null()
            total, count = total + (pc.sum(told).as_py() or 0), count + len(told)
    return total / count if count else SAID


def routed(run: str | Path) -> list[str]:
    """The finished sets of intents that one judge is asked, oldest first; second judge and arbiter are others."""
    found = [name for name, version in store.SETS.items() if version not in store.APART and (Path(run) / "intents" / name / "manifest.json").exists()]
    if not found:
        raise contracts.ContractError(f"{paths.shown(run)} has no finished intents; route first, or name another run")
    return found


def shown(table: pd.DataFrame, known: Prices, model: str) -> Iterator[str]:
    """The table as text with a line of sums, and what its prices are of."""
    totals = {name: _total(table[name]) for name in [*COLUMNS[3:], *WORST]}
    whole = pd.concat([table.astype(object), pd.DataFrame([{"set": "all", "version": "", "stage": "", **totals}]).astype(object)])
    texts = whole.map(lambda value: "-" if value is None or value != value else value if isinstance(value, str) else f"{value:,.2f}")
    for name in texts.columns[3:]:
        if not name.endswith("cost"):
            texts[name] = texts[name].str.removesuffix(".00")
    yield texts.to_string(index=False)
    if model in known.models:
        yield f"cost in {known.currency}, at the prices of {known.date} in {known.path.name}"
    else:
        yield f"no cost: {known.path.name} has no price of the model {model!r}"


def _total(column: pd.Series):
    values = column.tolist()
    return None if any(value is None or value != value for value in values) else sum(values)


def arguments(step: argparse.ArgumentParser) -> None:
    """The options of the command."""
    step.add_argument("--run", default="sample", help="the plan's name, or a run folder")
    step.add_argument("--set", action="append", dest="sets", choices=list(store.SETS), help="again for more; all that are routed to one judge")
    step.add_argument("--model", default="planted-judge")
    step.add_argument("--prompt", type=Path, default=prompt.PROMPT)
    step.add_argument("--sampling", default="{}", metavar="JSON", help='the parameters of a call, like {"max_completion_tokens": 500}')
    step.add_argument("--passes", type=int, default=2)
    step.add_argument("--budget", type=int, default=3, help="calls of a pair in a pass")
    step.add_argument("--prices", type=Path, help="a list of prices in the place of the one here")


def lines(run: Path, given: argparse.Namespace) -> Iterator[str]:
    """What the command prints; Unasked where the options are wrong."""
    try:
        by, known = prompt.judge(given.model, given.prompt, **prompt.sampling(given.sampling)), prices.read(given.prices)
        common = {"run": str(run), "base_url": "http://127.0.0.1/v1", "model": by.model, "parameters": by.parameters, "prompt": str(by.prompt.path)}
        common |= {"passes": given.passes, "budget": given.budget}
        configs = [turns.checked(Config(set=name, **common)) for name in given.sets or routed(run)]
    except contracts.ContractError:
        raise
    except (ValueError, TypeError) as error:
        raise Unasked(str(error)) from None
    return shown(estimate(configs, by, known), known, by.model)
