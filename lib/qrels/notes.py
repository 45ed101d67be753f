"""What a reviewer's note says of its hop, read as a whole: skip it, judge it, or ask the reviewer."""

import re
import unicodedata
from typing import Literal

from lib.qrels.columns import fold

# The grammar of whole notes, after folding. No pattern has room for a second thought: a hop's number, an exception, a quotation.
_THING = r"(?:it|this|that|the|(?:(?:this|that|the) )?(?:hop|sub-?question|step))"
_ANSWER = r"(?: (?:for|to answer|in answering) (?:the|this) (?:final |main |full )?(?:answer|question)| any ?more| any longer| at all)?"
_IS, _NOT = rf"(?:{_THING} (?:is|was) )?", rf"(?:{_THING} (?:is|was) |{_THING}'s )?"
_ISNT = rf"(?:(?:{_THING} )?(?:isn't|wasn't|is not|was not))"
_NEEDED = r"(?:needed|necessary|required)"
_SKIP = re.compile("|".join((
    rf"(?:{_NOT}(?:not|no longer)|{_ISNT}) {_NEEDED}{_ANSWER}",  # not needed; this hop is no longer necessary; it isn't required at all
    rf"{_NOT}(?:unnecessary|unneeded|redundant|superfluous|needless){_ANSWER}",
    rf"(?:{_THING} )?(?:can|may|should) be (?:skipped|dropped|omitted|left out)",
    rf"(?:please )?(?:skip|drop|omit)(?: {_THING})?",
    rf"(?:there is |there's )?no need for {_THING}",
)))
_LIVE = re.compile("|".join((
    rf"{_NOT}(?:still |also |really |definitely )?(?:needed|necessary|required|essential|indispensable){_ANSWER}",
    rf"{_NOT}(?:not|never) (?:redundant|superfluous|optional)",
    rf"(?:please )?(?:do not|don't|never) (?:skip|drop|omit|remove)(?: {_THING})?",
    rf"(?:{_THING} )?(?:must not|mustn't|should not|shouldn't|cannot|can not|can't|may not) be (?:skipped|dropped|omitted|left out)",
    rf"(?:please )?keep(?: {_THING})?",
)))
# Words that touch the question whether the hop is needed, also misspelt, also in the languages that reviewers fall back to.
_TOUCHES = re.compile(r"|".join((
    r"\bne+d+e?(?:d|s|ing|less\w*)?\b", r"\bunne+d", r"n(?:ot|o)?ne+ded", r"ne+ce*s+[aeio]", r"n[eé]c+es+[aei]", r"re?qui?[ri]", r"\brequ[ae]rie?d",
    r"\bskip", r"\bdrop", r"\bomi[ts]", r"redund", r"superflu", r"dispens", r"essential", r"ir+elev", r"\bnot relevan", r"\boptional",
    r"\buseless", r"pointless", r"\bunused", r"\bignor", r"\bdisregard", r"\b(?:leave|left|leaving|take|taken) (?:\w+ )?out\b", r"\bremov", r"\bexclud",
    r"\bdiscard", r"\bdelete\b", r"\bkeep", r"\bkept\b", r"\bwithout (?:it|this|that)\b", r"\bdo(?:es)? without\b", r"\bmust (?:stay|remain)\b", r"\bobsolete",
    r"\bnicht\b", r"\bn[oö]e?tig", r"noetig|nötig", r"\bbrauch", r"[uü]e?berfl[uü]", r"\bentf[aä]ll", r"\bweglass", r"\berforder",
    r"\bbesoin", r"\binutil", r"\bsauter\b", r"\bpas\b", r"\bfalta\b", r"\bomitir", r"\bsaltar", r"\bnodig", r"\boverbodig", r"\bserve\b", r"\bsobra\b",
    r"\bprecis[ao]\b", r"\bpotrzeb", r"\bzbedn", r"\bnuzhn", r"\bgerek", r"\bbehov", r"\bonodig", r"\btarpe", r"\bbu ?bi ?yao\b", r"\bfuyo\b",
)))


def note_class(note: str | None) -> Literal["skip", "live", "ask"]:
    """Whether the whole note says that the hop is not needed.

    `skip` only where the note is one plain statement of it: "Not needed.", "This hop is no longer necessary", "can be skipped",
    "skip", "redundant", "no need for this hop". `live` where it is blank, is about something else, or states the opposite
    ("still needed", "do not skip"). `ask` for everything else that touches the subject, and for what is not in English: a question,
    a doubt, a condition, a second thought, a quotation, a hop's number. Case, white space, invisible characters, curly
    apostrophes and marks at the end (. and !) do not count.
    """
    if note is None:
        return "live"
    text = re.sub(r"(?: ?[.!])+$", "", re.sub("[\u2018\u2019\u02bc`\u00b4]", "'", _folded(note)))
    if not text:
        return "live" if not fold(note).strip(".") else "ask"
    if _SKIP.fullmatch(text):
        return "skip"
    if _LIVE.fullmatch(text):
        return "live"
    return "ask" if _TOUCHES.search(text) or _foreign(note) else "live"


def _folded(note: str) -> str:
    # the apostrophes first: NFKC makes a blank and an accent of the acute accent
    return fold(note.replace("\u00b4", "'"))


def _foreign(note: str) -> bool:
    """Whether a word looks foreign: a letter of another script, three Greek ones in a row, or a small word with an accented letter.

    A name such as Gödel and a symbol such as α are no foreign words.
    """
    for number, word in enumerate(re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", note))):
        odd = [letter for letter in word if not letter.isascii()]
        scripts = [unicodedata.name(letter, "").split(" ")[0] for letter in odd]
        if any(script not in ("LATIN", "GREEK") for script in scripts) or scripts.count("GREEK") > 2:
            return True
        if "LATIN" in scripts and (number == 0 or not word[0].isupper()):
            return True
    return False
