"""What a reviewer's note says of its hop, read as a whole: skip it, judge it, or ask the reviewer."""

import re
import unicodedata
from typing import Literal

from lib.qrels.sheets.columns import fold

# The grammar of whole notes, after folding. No pattern has room for a second thought: a hop's number, an exception, a quotation.
_HOP = r"(?:hop|sub-?question|step)"
_THING = rf"(?:it|(?:this|that)(?: {_HOP})?|(?:the )?{_HOP})"
_IS = rf"(?:{_THING} is |it's |that's )?"
_NEEDED = r"(?:needed|necessary|required)"
_FOR = r"(?: (?:for|to answer) (?:the|this) (?:final |main )?(?:answer|question)| any ?more| any longer| at all)?"
_DROPPED = r"(?:skipped|dropped|omitted|left out)"
_SKIP = re.compile("|".join((
    rf"(?:{_IS}(?:not|no longer)|(?:{_THING} )?isn't) {_NEEDED}{_FOR}",  # not needed; this hop is no longer necessary
    rf"{_IS}(?:unnecessary|unneeded|redundant|superfluous){_FOR}",
    rf"(?:{_THING} )?(?:can|should) be {_DROPPED}",
    rf"(?:please )?(?:skip|drop|omit)(?: {_THING})?",
    rf"(?:there is |there's )?no need for {_THING}",
)))
_LIVE = re.compile("|".join((
    rf"{_IS}(?:still |also |really )?(?:needed|necessary|required|essential|indispensable){_FOR}",
    rf"(?:{_IS}not|(?:{_THING} )?isn't) (?:redundant|superfluous|optional)",
    rf"(?:please )?(?:do not|don't|never) (?:skip|drop|omit|remove)(?: {_THING})?",
    rf"(?:{_THING} )?(?:must not|mustn't|should not|shouldn't|cannot|can not|can't) be {_DROPPED}",
    rf"(?:please )?keep(?: {_THING})?",
)))
# Words that touch the question whether a hop is needed, also misspelt and without accents, also in languages a reviewer may fall back to.
_TOUCHES = re.compile("|".join((
    r"\bne+d+e?(?:d|s|ing|less\w*)?\b", r"\bun?ne+d", r"notne+d", r"nec+es", r"\brequi?r", r"\bskip", r"\bdrop", r"\bomi[ts]", r"redund",
    r"superflu", r"dispens", r"essential", r"relevan", r"\boptional", r"useless", r"pointless", r"\bmoot\b", r"\btrivial", r"importan",
    r"\bmatters?\b", r"\bapplicab", r"\bn/?a\b", r"\bignor", r"\bdisregard", r"\b(?:leave|left|leaving|take|taken) (?:\w+ )?out\b",
    r"\bremove\b", r"\bexclude\b", r"\bdiscard", r"\bdelete\b", r"\bkeep", r"\bkept\b", r"\b(?:do|does|can do) without\b",
    r"\bwithout (?:it|this|that)\b", r"\bmust (?:stay|remain)\b", r"\bobsolete", r"\bsupersede",
    r"\bnicht\b", r"\bn(?:o|oe)tig", r"un(?:o|oe)tig", r"\bbrauch", r"u(?:e?)berflu", r"\bentfall", r"\bweglass", r"\berforderlich",
    r"\bbesoin", r"\binutil", r"\bpas\b", r"\bsauter\b", r"\bfalta\b", r"\bomitir", r"\bsaltar", r"\bsobra\b",
    r"\bprecis[ao]\b", r"\bnon serve\b", r"\bn?iet\b", r"\bnodig", r"\boverbodig", r"\bbehov", r"\bonodig", r"\bpotrzeb", r"\bzbedn", r"\bgerek",
    r"\btarpe", r"\bfuyo\b", r"\bbu ?xu ?yao\b",
)))


def note_class(note: str | None) -> Literal["skip", "live", "ask"]:
    """Whether the whole note says that the hop is not needed.

    `skip` only where the note is one plain statement of it: "Not needed.", "This hop is no longer necessary", "can be skipped",
    "skip", "redundant", "no need for this hop". `live` where it is blank, is about something else, or states the opposite
    ("still needed", "do not skip"). `ask` for everything else that touches the subject, and for what is not in English: a question,
    a doubt, a condition, a second thought, a quotation, a hop's number. Case, white space, invisible characters, curly
    apostrophes and marks at the end (. and !) do not count.
    """
    text = fold(re.sub("[\u2018\u2019\u02bc\u00b4`]", "'", note or ""))  # first: NFKC makes a blank and a mark of the acute accent
    text = re.sub(r"[ .!]+$", "", text)
    if _SKIP.fullmatch(text):
        return "skip"
    if not text or _LIVE.fullmatch(text):
        return "live"
    doubt = not any(character.isalnum() for character in text) and "?" in text
    return "ask" if doubt or _TOUCHES.search(_plain(text)) or _foreign(note) else "live"


def _plain(text: str) -> str:
    """Without accents, and without the marks that strike letters through."""
    return "".join(character for character in unicodedata.normalize("NFKD", text) if not unicodedata.combining(character))


def _foreign(note: str) -> bool:
    """Whether a word looks foreign: a letter of another script, three Greek ones in a row, or an accent in a small or the first word.

    A name such as Gödel and a symbol such as α are no foreign words.
    """
    for number, word in enumerate(re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", note))):
        scripts = [unicodedata.name(letter, "?").split()[0] for letter in word if not letter.isascii()]
        if not {"LATIN", "GREEK"}.issuperset(scripts) or scripts.count("GREEK") > 2:
            return True
        if "LATIN" in scripts and (number == 0 or not word[0].isupper()):
            return True
    return False
