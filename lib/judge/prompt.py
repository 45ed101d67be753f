"""What the judge is sent: the rubric as the system message, one pair between derived fences as the user message."""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from lib import files, paths
from lib.judge import contract

PROMPT = paths.PROMPTS / "judge_prompt.md"
# what may be set for a call; the messages, the schema and the model are not parameters
PARAMETERS = frozenset(
    "temperature top_p max_tokens max_completion_tokens seed reasoning_effort frequency_penalty presence_penalty".split()
)

DEFAULT_FORMAT = "json_schema"
# what asks the server for JSON; the reply is checked alike, whichever it is
FORMATS = {
    DEFAULT_FORMAT: {
        "response_format": {"type": "json_schema", "json_schema": {"name": "judgment", "strict": True, "schema": contract.flat_schema()}}
    },
    "json_object": {"response_format": {"type": "json_object"}},
    "none": {},
}


class Prompt(NamedTuple):
    """The rubric: the text of the file, the hash of its bytes, and where it lies."""

    text: str
    sha256: str
    path: Path


class Judge(NamedTuple):
    """What can change an answer beside the texts: the model, its parameters, the prompt, and whether JSON is forced (one of FORMATS).

    Where the server stands, how many calls run at once and how often one is tried are not here.
    """

    model: str
    parameters: dict
    prompt: Prompt
    response_format: str = DEFAULT_FORMAT

    @property
    def format(self) -> dict:
        """The fields of a request that ask for JSON."""
        return FORMATS[self.response_format]


def load(path: str | Path = PROMPT) -> Prompt:
    """Read a prompt file; its hash is over the bytes that are sent, so other line ends or a mark are refused."""
    data = files.read_bytes(path)
    for mark, name in ((b"\xef\xbb\xbf", "a byte order mark"), (b"\r", "a carriage return")):
        if mark in data:
            raise ValueError(f"{paths.shown(path)} holds {name}; save it as plain UTF-8 with line feeds, its hash names the judge")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{paths.shown(path)} is not UTF-8 ({error}); save it as UTF-8") from None
    if not text.strip():
        raise ValueError(f"{paths.shown(path)} is empty; a judge needs its rubric")
    return Prompt(text, hashlib.sha256(data).hexdigest(), Path(path))


def judge(model: str, prompt: str | Path = PROMPT, response_format: str = DEFAULT_FORMAT, **parameters) -> Judge:
    """A judge by model name, prompt file, format and sampling parameters; None leaves a parameter to the server."""
    if response_format not in FORMATS:
        raise ValueError(f"response_format is {response_format!r}; it must be one of {', '.join(FORMATS)}")
    unknown = sorted(set(parameters) - PARAMETERS)
    if unknown:
        raise ValueError(f"a judge has no parameter {unknown[0]!r}; it takes {', '.join(sorted(PARAMETERS))}")
    for name in ("max_tokens", "max_completion_tokens"):
        if (most := parameters.get(name)) is not None and (type(most) is not int or most < 1):
            raise ValueError(f"{name} is {most!r}; it must be a whole number from 1")
    return Judge(model, {name: value for name, value in sorted(parameters.items()) if value is not None}, load(prompt), response_format)


def sampling(text: str) -> dict:
    """The parameters of a call from JSON, for `judge`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.keys() & {"model", "prompt"}:
        raise ValueError(f'the sampling {text[:80]!r} is no JSON object of parameters like {{"temperature": 0}}')
    return found


def task_id(qid: str, docid: str) -> str:
    """The first 16 hex digits of sha256 of qid, line feed, docid."""
    return hashlib.sha256(f"{qid}\n{docid}".encode()).hexdigest()[:16]


def cut(text: str, max_chars: int | None) -> str:
    """The first `max_chars` code points; None keeps all."""
    return text if max_chars is None else text[:max_chars]


def nonce(prompt_sha256: str, task: str, query: str, document: str) -> str:
    """16 hex digits of sha256 over the four parts, each as `<bytes>:<UTF-8>,` so that no two quadruples look alike."""
    digest = hashlib.sha256()
    for part in (prompt_sha256, task, query, document):
        data = part.encode()
        digest.update(b"%d:%b," % (len(data), data))
    return digest.hexdigest()[:16]


def user_message(task: str, query: str, document: str, mark: str) -> str:
    """One pair; a text ends at the fence line with the message's own mark, wherever else it seems to end."""
    if mark in query or mark in document:
        raise ValueError(f"task {task}: a text holds its own fence mark {mark}; it cannot be sent, take it out of the corpus")
    return (
        f"task_id: {task}\nguideline_version: {contract.GUIDELINE}\n\n"
        f"<<<QUERY {mark}>>>\n{query}\n<<<END QUERY {mark}>>>\n\n"
        f"<<<DOCUMENT {mark}>>>\n{document}\n<<<END DOCUMENT {mark}>>>"
    )


def messages(prompt: Prompt, task: str, query: str, document: str) -> list[dict]:
    """The two messages of a call; `document` is already cut."""
    user = user_message(task, query, document, nonce(prompt.sha256, task, query, document))
    return [{"role": "system", "content": prompt.text}, {"role": "user", "content": user}]


def key(sent: list[dict], by: Judge) -> str:
    """The hash of all that an answer depends on: rendered messages, schema, model, parameters, and the format where it is not the default."""
    known = {"messages": sent, "schema": contract.flat_schema(), "model": by.model, "parameters": by.parameters}
    if by.response_format != DEFAULT_FORMAT:
        known["response_format"] = by.response_format
    return hashlib.sha256(contract.canonical(known)).hexdigest()
