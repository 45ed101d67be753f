"""What a model's tokens cost: a dated list of prices for a million tokens, read from YAML.

    date: 2024-08-06
    currency: USD
    models:
      a-model: {input: "2.50", output: "10.00"}
"""

import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

import yaml

from lib import files, paths

PRICES = Path(__file__).with_name("prices.yaml")
_MILLION = 1_000_000


class PriceError(ValueError):
    """A list of prices that cannot be read, or a model that is not in it."""


class Price(NamedTuple):
    """Of a million tokens that go in, and that come out."""

    input: Decimal
    output: Decimal


class Prices(NamedTuple):
    """A list of prices: where it lies, of which day it is, in which currency."""

    path: Path
    date: datetime.date
    currency: str
    models: dict[str, Price]

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Decimal:
        """The exact cost of so many tokens; PriceError where the model has no price."""
        if model not in self.models:
            raise PriceError(
                f"{paths.shown(self.path)} has no price of the model {model!r}; add it with today's date, or run without a cap on money"
            )
        price = self.models[model]
        return (price.input * input_tokens + price.output * output_tokens) / _MILLION


def _price(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is no price")
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is no price") from None
    if not found.is_finite() or found < 0:
        raise ValueError(f"{value!r} is no price")
    return found


def read(path: str | Path | None = None) -> Prices:
    """The prices of a file, by default those beside this module; PriceError says what is wrong with it."""
    path = Path(path or PRICES)
    try:
        found = yaml.safe_load(files.read_bytes(path))
        if not isinstance(found, dict) or set(found) != {"date", "currency", "models"}:
            raise ValueError("its keys must be date, currency and models")
        if type(found["date"]) is not datetime.date:
            raise ValueError(f"the date {found['date']!r} must be like 2024-08-06")
        if not isinstance(found["currency"], str) or not isinstance(found["models"], dict):
            raise ValueError("the currency must be a word, and models a table by name")
        models = {}
        for name, price in found["models"].items():
            if not isinstance(name, str) or not isinstance(price, dict) or set(price) != {"input", "output"}:
                raise ValueError(f"the model {name!r} must be text with the two prices input and output")
            models[name] = Price(_price(price["input"]), _price(price["output"]))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise PriceError(f"{paths.shown(path)} is no list of prices ({reason}); mend it or name another") from None
    return Prices(path, found["date"], found["currency"], models)
