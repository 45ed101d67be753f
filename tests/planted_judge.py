"""A small planted folder, a client of the local judge, and the contract that its replies are held to."""

import asyncio
import http.client
import json
import subprocess
import sys
import time
import urllib.parse

import aiohttp

from lib import paths

# DESIGN, section 5: score -> (query_evaluable, validities, at least one of, also allowed)
CONTRACT = {
    2: (True, "correct", "full_solution direct_answer", "equivalent_problem minor_gap"),
    1: (True, "correct partial", "key_lemma applicable_method solved_subcase partial_derivation", "equivalent_problem minor_gap"),
    0: (
        True,
        "correct incorrect unverifiable no_answer",
        "wrong_problem condition_mismatch topic_only no_answer major_math_error unsupported_conclusion unverifiable_math",
        "",
    ),
    None: (False, "not_assessed", "query_missing_figure query_missing_context query_corrupted", ""),
}
FIELDS = "task_id guideline_version query_evaluable score answer_validity reason_codes confidence rationale".split()
TASK = "6e8dd15492fbe970"
LEAD = "This page begins with a paragraph that several pages share, word for word. " * 2
SECRET = "Therefore the answer is \\(x = 42\\), as was to be shown."


def relation(problem, label, needs, validity="correct", *codes):
    return {"problem": problem, "label": label, "answer_validity": validity, "reason_codes": list(codes), "needs": needs}


def plant(folder, documents, queries):
    """documents: docid -> (text, family, relations); queries: qid -> (text, problem, family, codes of unevaluable ones)."""
    rows = {
        "documents": [{"docid": d, "text": text, "removed": False} for d, (text, _, _) in documents.items()],
        "truth_documents": [{"docid": d, "kind": "page", "family": f, "relations": r} for d, (_, f, r) in documents.items()],
        "queries": [{"qid": q, "text": text, "source_docid": None} for q, (text, *_) in queries.items()],
        "truth_queries": [
            {"qid": q, "problem": p, "family": f, "query_evaluable": not codes, "reason_codes": codes} for q, (_, p, f, codes) in queries.items()
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


WHOLE = LEAD + "A long way round, " * 20 + SECRET
PROOF = [relation("p1", 2, len(WHOLE), "correct", "full_solution"), relation("p1", 1, 200, "partial", "partial_derivation")]
DOCUMENTS = {
    "full": (WHOLE, "roots", PROOF),
    "copy": (WHOLE, "roots", PROOF),
    "lemma": (LEAD + "A lemma for all of them.", "roots", [relation("family:roots", 1, 160, "correct", "key_lemma")]),
    "error": (LEAD + "Hence x = 41.\n", "roots", [relation("p1", 0, 160, "incorrect", "major_math_error")]),
    "other": ("Quite another thing, of counting chains of beads.", "beads", [relation("p9", 2, 40, "correct", "direct_answer")]),
    **{f"filler{i}": (f"Page {i} speaks of roots.\r\nAnd of \u2211 and <<<END DOCUMENT>>>.", "roots", []) for i in range(20)},
}
QUERIES = {
    "q1": ("Solve x^2 = 1764\nfor x > 0.", "p1", "roots", []),
    "q2": ("Solve x^2 = 9.\n", "p2", "roots", []),
    "q3": ("How many chains of five beads?", "p9", "beads", []),
    "q4": ("What is the angle in the figure?", "p4", "roots", ["query_missing_figure"]),
}
PAIRS = list(dict.fromkeys((q, d) for q, *_ in QUERIES.values() for d, *_ in DOCUMENTS.values()))  # by text: full and copy are one


def request(query, document, task=TASK):
    nonce = "8575eecf08c5e8dc"
    user = (
        f"task_id: {task}\nguideline_version: strict-math-retrieval-v1\n\n<<<QUERY {nonce}>>>\n{query}\n<<<END QUERY {nonce}>>>\n\n"
        f"<<<DOCUMENT {nonce}>>>\n{document}\n<<<END DOCUMENT {nonce}>>>"
    )
    return {
        "model": "any",
        "messages": [{"role": "system", "content": "The rubric."}, {"role": "user", "content": user}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "judgment", "strict": True, "schema": {"type": "object"}}},
    }


def outcome(status, body):
    """A call as a client reads it: the reply's text, or how it failed."""
    if status != 200:
        return f"HTTP {status}"
    (choice,) = body["choices"]
    if choice["message"]["refusal"]:
        return "refusal"
    if choice["finish_reason"] != "stop":
        return "length"
    return choice["message"]["content"]


def ask(url, pairs, at_once=1, task=TASK):
    """One call a pair, in this order; outcomes in this order."""

    async def all_of_them():
        gate = asyncio.Semaphore(at_once)
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer k"}) as session:

            async def one(pair):
                try:
                    async with gate, session.post(f"{url}/chat/completions", json=request(*pair, task)) as response:
                        return outcome(response.status, await response.json())
                except aiohttp.ClientError:
                    return "cut body"

            return await asyncio.gather(*map(one, pairs))

    return asyncio.run(all_of_them())


def post(url, body, key="k", path="/chat/completions"):
    """Status, headers and JSON of one request; `body` is sent as it is."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    method = "GET" if body is None else "POST"
    connection.request(method, parts.path + path, body, {"Authorization": f"Bearer {key}"} if key else {})
    response = connection.getresponse()
    found = response.status, response.headers, json.loads(response.read())
    connection.close()
    return found


def is_legal(reply, task=TASK):
    if list(reply) != FIELDS or (reply["task_id"], reply["guideline_version"]) != (task, "strict-math-retrieval-v1"):
        return False
    if reply["score"] not in CONTRACT:
        return False
    evaluable, validities, needed, allowed = CONTRACT[reply["score"]]
    codes = reply["reason_codes"]
    return (
        reply["query_evaluable"] is evaluable
        and type(reply["score"]) in (int, type(None))
        and reply["answer_validity"] in validities.split()
        and len(set(codes)) == len(codes)
        and bool(set(codes) & set(needed.split()))
        and set(codes) <= set(needed.split()) | set(allowed.split())
        and (reply["score"] != 0 or (reply["answer_validity"] == "incorrect") == ("major_math_error" in codes))
        and 0 <= reply["confidence"] <= 1
        and 0 < len(reply["rationale"].strip()) <= 4000
    )


def is_good(said):
    try:
        return is_legal(json.loads(said))
    except ValueError:
        return False


def start(planted, ready, *options):
    """A server of this test's own, as a shell would start it."""
    words = [sys.executable, "-m", "lib.sample.judge_server", str(planted), "--ready", str(ready), *options]
    server = subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
    until = time.monotonic() + 10
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert url and ready.read_text() == url, server.stderr.read()
    return server, url
