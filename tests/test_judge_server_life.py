"""The local judge's life: it starts, is killed, goes on counting, and never outlives who started it."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

import pytest

from lib import paths
from lib.sample import judge_server
from planted_judge import DOCUMENTS, PAIRS, QUERIES, ask, is_good, plant, start


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return plant(tmp_path_factory.mktemp("run") / "planted", DOCUMENTS, QUERIES)


def kinds_of(said):
    return ["reply" if is_good(s) else s for s in said]


def test_a_killed_server_goes_on_counting_where_it_was(planted, tmp_path):
    pairs = PAIRS[:40]
    with judge_server.running(planted, failures=0.8, calls=tmp_path / "unbroken.txt") as url:
        unbroken = [ask(url, pairs) for _ in range(3)]
    calls = tmp_path / "broken.txt"
    broken = []
    for turn in range(3):
        server, url = start(planted, tmp_path / f"url{turn}", "--failures", "0.8", "--calls", str(calls))
        broken.append(ask(url, pairs))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        with open(calls, "ab") as file:
            file.write(b"0123456789abcdef01")  # killed within a line
    assert broken == unbroken
    assert len(set(kinds_of(unbroken[0]))) > 3 and all(map(is_good, unbroken[2]))
    assert (tmp_path / "unbroken.txt").read_bytes() == calls.read_bytes().rpartition(b"\n")[0] + b"\n"


def is_open(url):
    parts = urllib.parse.urlsplit(url)
    with socket.socket() as client:
        return client.connect_ex((parts.hostname, parts.port)) == 0


def closes(url, within=10):
    until = time.monotonic() + within
    while is_open(url) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_open(url)


def test_the_server_ends_with_the_block(planted, tmp_path):
    with judge_server.running(planted, calls=tmp_path / "calls.txt") as url:
        assert is_open(url)
    assert not is_open(url)
    with pytest.raises(KeyError), judge_server.running(planted, calls=tmp_path / "calls.txt") as url:
        raise KeyError("of the body")
    assert not is_open(url)


def test_the_server_dies_with_a_parent_that_is_killed(planted, tmp_path):
    program = (
        "import sys, time\nfrom lib.sample import judge_server\n"
        f"with judge_server.running({str(planted)!r}, calls={str(tmp_path / 'calls.txt')!r}) as url:\n"
        "    print(url, flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True)
    url = parent.stdout.readline().strip()
    assert is_open(url)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert closes(url)


def test_a_server_whose_parent_is_gone_already_does_not_start(planted, tmp_path):
    words = [sys.executable, "-m", "lib.sample.judge_server", str(planted), "--calls", str(tmp_path / "calls.txt"), "--parent", "1"]
    ended = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and ended.stderr == "lib.sample.judge_server: process 1 has ended\n"


def test_a_server_that_cannot_start_says_why_in_one_sentence(tmp_path):
    with pytest.raises(RuntimeError, match="is no planted folder"), judge_server.running(tmp_path / "nothing"):
        pass


def test_a_server_that_cannot_write_its_calls_down_ends_unanswered(planted, tmp_path):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    words = [sys.executable, "-m", "lib.sample.judge_server", str(planted), "--calls", str(tmp_path / "calls.txt")]
    server = subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=small_files)
    url = server.stdout.readline().strip()
    said = ask(url, PAIRS[:10])
    assert server.wait(10) == 1
    assert list(map(is_good, said)) == [True] * 5 + [False] * 5  # 5 lines of 35 bytes fit into 200
    assert "calls.txt was not written" in server.stderr.read()


def test_a_server_that_ends_in_use_is_the_error_whatever_its_client_says(planted, monkeypatch):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.delenv("QRELBOOK_JUDGE_KEY", raising=False)
    (planted / "calls-strict.txt").unlink(missing_ok=True)
    try:
        with pytest.raises(RuntimeError, match=r"calls-strict.txt was not written \(File too large\); make room"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))  # the child inherits it
            with judge_server.endpoint("sample", planted.parent, personality="strict") as url:
                ask(url, PAIRS[:10])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "QRELBOOK_JUDGE_KEY" not in os.environ


def test_the_sample_endpoint_serves_the_run_and_sets_a_key_for_its_children(planted, monkeypatch):
    monkeypatch.delenv("QRELBOOK_JUDGE_KEY", raising=False)
    with judge_server.endpoint("sample", planted.parent, seed=3, failures=0) as url:
        assert url.startswith("http://127.0.0.1:") and url.endswith("/v1")
        assert os.environ["QRELBOOK_JUDGE_KEY"] == "sample"
        ask(url, PAIRS[:3])
    assert "QRELBOOK_JUDGE_KEY" not in os.environ
    assert len((planted / "calls-judge.txt").read_text().splitlines()) == 3
    monkeypatch.setenv("QRELBOOK_JUDGE_KEY", "mine")
    with judge_server.endpoint("sample", planted.parent, personality="strict") as url:
        assert os.environ["QRELBOOK_JUDGE_KEY"] == "mine"
    assert os.environ["QRELBOOK_JUDGE_KEY"] == "mine"


def test_the_sample_endpoint_stops_where_an_unknown_text_arrived(planted):
    with pytest.raises(RuntimeError, match="got 2 requests with a text that was never planted"):
        with judge_server.endpoint("sample", planted.parent) as url:
            ask(url, [("who?", "what?"), PAIRS[0], ("who?", "what?")])


def test_other_judges_are_named_by_url_or_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("QRELBOOK_JUDGE_URL", "https://judge.example/v1")
    for judge, url in [("env", "https://judge.example/v1"), ("http://localhost:9/v1", "http://localhost:9/v1")]:
        with judge_server.endpoint(judge, tmp_path) as found:
            assert found == url
    monkeypatch.delenv("QRELBOOK_JUDGE_URL")
    for judge, words in [("env", "QRELBOOK_JUDGE_URL is not set"), ("simple", "none of sample, env or a url"), ("", "none of sample")]:
        with pytest.raises(ValueError, match=words), judge_server.endpoint(judge, tmp_path):
            pass
