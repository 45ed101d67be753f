"""How a query is put into words, and the few that nobody can evaluate."""

from random import Random

from lib.sample.draft import Problem

BEFORE = ("Please help.", "Hi,", "Quick question:", "Homework help needed.", "I would like to know:", "Stuck here.")
AFTER = ("Thanks!", "Full reasoning, please.", "How is this done?", "Merci d'avance.", "Any hint welcome.")
FIGURES = ("See the figure. [image not available] Find the marked length.",
           "What is the shaded area? (picture attached: img_{}.png)",
           "In the diagram, compute the angle at {}. [figure]")
CONTEXTS = ("Using part (a), prove part (c) of exercise {}.", "Same question as above, but for row {} of the table.",
            "With the notation of the previous page, is claim {} true?")


def question(rng: Random, p: Problem, wording: tuple[str, int]) -> str:
    """A query: the problem in the given wording, sometimes with a greeting or a plea."""
    words = p.say(wording[0], which=wording[1])
    if rng.random() < 0.2:
        words = f"{rng.choice(BEFORE)} {words}"
    if rng.random() < 0.15:
        words = f"{words} {rng.choice(AFTER)}"
    return words


def damaged(rng: Random, text: str) -> tuple[str, str]:
    """A reason code and a query text that cannot be interpreted any more."""
    code = rng.choice(("query_missing_figure", "query_missing_context", "query_corrupted"))
    if code == "query_missing_figure":
        return code, rng.choice(FIGURES).format(rng.randint(10, 9999))
    if code == "query_missing_context":
        return code, rng.choice(CONTEXTS).format(rng.randint(2, 999))
    return code, "".join("\ufffd" if letter.isdigit() or rng.random() < 0.15 else letter for letter in text)
