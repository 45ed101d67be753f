"""A service that is not there, refuses everybody, or goes away: the run stops, and no pair pays for it."""

import json
import threading
import time

import pytest
from judge_script import DROP, KEY, Script, ask, configured, error, intent, judge, pairs_of, rows, serving, table, told, valid, world

from lib.judge import asking, client, rounds, store, turns

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("status, code", [(301, None), (401, None), (402, None), (403, None), (404, None), (405, None), (400, "model_not_found")])
def test_a_service_that_cannot_be_used_stops_the_run_and_costs_no_pair_its_calls(tmp_path, status, code):
    run = pairs_of(tmp_path, ["a", "b", "c"])
    script = Script({"a": [error(status, code)] * 4 + [valid(2)], "*": [valid(1)]})
    with serving(script) as url:
        for number in range(1, 5):
            summary, ended = ask(run, url, budget=1)
            assert ended == asking.STOPPED and summary["by_class"] == {"unavailable": 1}
            assert "\n" not in summary["stopped"] and any(way in summary["stopped"] for way in ("set ", "check ", "add "))
            assert script.calls == {"a": number}
        assert told(run) == {0: "unavailable", 1: "budget stop", 2: "budget stop"}
        assert ask(run, url, budget=1)[1] == 0
    assert told(run) == {0: "ok", 1: "ok", 2: "ok"}
    assert [row["attempt"] for row in rows(run) if row["doc"] == 0] == [1, 2, 3, 4, 5]


def test_a_server_that_refuses_every_request_as_it_is_stops_the_run_with_its_words(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(40)])
    script = Script({"*": [error(400, "unsupported_value")] * 40})
    with serving(script) as url:
        summary, ended = ask(run, url, concurrency=1)
    assert ended == asking.STOPPED and sum(script.calls.values()) == 10
    assert "the first 10 requests were refused and none was answered (" in summary["stopped"] and summary["stopped"].endswith("mend the model, its sampling or the server")


def test_refusals_after_a_valid_reply_are_each_pairs_own(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(20)])
    script = Script({"t0": [valid(1)], "*": [error(400)] * 2})
    with serving(script) as url:
        assert ask(run, url, concurrency=1, passes=1)[1] == 0
    assert told(run)[0] == "ok" and set(list(told(run).values())[1:]) == {"rejected"}


def test_a_spent_quota_costs_no_pair_its_calls(tmp_path):
    run = pairs_of(tmp_path, ["a"])
    with serving(Script({"a": [error(429, "insufficient_quota")] * 3 + [valid(2)]})) as url:
        assert [ask(run, url, budget=1)[1] for _ in range(4)] == [3, 3, 3, 0]
    assert told(run) == {0: "ok"}


def test_a_filtered_pair_is_its_own_fault_whatever_the_status(tmp_path):
    run = pairs_of(tmp_path, ["a", "b"])
    with serving(Script({"a": [error(403, "content_filter")], "b": [valid(1)]})) as url:
        assert ask(run, url, budget=1)[1] == 0
    assert told(run) == {0: "content filter", 1: "ok"}


def test_a_server_that_is_not_there_stops_the_run_after_three_tries_of_one_pair(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(9)])
    summary, code = ask(run, "http://127.0.0.1:9/v1?token=sesame", concurrency=4, budget=1)
    assert code == asking.STOPPED and summary["by_class"] == {"unavailable": 3}
    assert summary["stopped"] == f"nobody answers at {NOWHERE}; start the server or check the url"
    assert [(row["doc"], row["attempt"]) for row in rows(run)] == [(0, 1), (0, 2), (0, 3)]
    with serving(Script({"*": [valid(1)]})) as url:
        assert ask(run, url, concurrency=4, budget=1)[0]["by_class"] == {"ok": 9}


def test_a_host_that_nobody_knows_stops_the_run(tmp_path):
    summary, code = ask(pairs_of(tmp_path, ["a", "b"]), "http://no-such-host.invalid/v1", budget=1)
    assert code == asking.STOPPED and summary["by_class"] == {"unavailable": 3}


@pytest.mark.parametrize("url", ["127.0.0.1:9/v1", "ftp://127.0.0.1/v1", "http:///v1", "http://somebody:sesame@127.0.0.1:9/v1", ""])
def test_what_is_no_url_of_a_judge_is_refused_without_the_password(tmp_path, url):
    with pytest.raises(ValueError, match="the judge's url .* must be like http://") as caught:
        rounds.ask(pairs_of(tmp_path, ["a"]), "v1", judge(), url)
    assert "sesame" not in str(caught.value)


def test_one_call_is_in_flight_until_the_first_reply(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(20)])
    script = Script({"t0": [DROP], "*": [valid(1)]}, seconds=0.02)
    with serving(script) as url:
        assert ask(run, url, concurrency=8)[1] == 0
    assert [row["doc"] for row in rows(run)][:4] == [0, 0, 0, 1]
    assert script.most_flying == 8
    assert told(run)[0] == "connection"  # it was reached, so the calls count


def test_a_server_that_goes_away_stops_the_run_after_three_calls_a_slot(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(30)])
    script = Script({"t0": [valid(1)], "*": [DROP]})
    with serving(script) as url:
        summary, code = ask(run, url, concurrency=2, budget=2)
    assert code == asking.STOPPED and "nobody answers" in summary["stopped"]
    assert summary["by_class"]["ok"] == 1 and 7 <= summary["by_class"]["connection"] <= 8
    assert set(summary["by_class"]) == {"ok", "connection"}


def test_failed_connections_with_replies_in_between_stop_nothing(tmp_path):
    texts = [f"t{i}" for i in range(16)]
    run = pairs_of(tmp_path, texts)
    replies = {text: [valid(1)] if i % 4 == 3 else [DROP] for i, text in enumerate(texts)}
    with serving(Script(replies)) as url:
        summary, code = ask(run, url, concurrency=1, budget=1)
    assert code == 0 and summary["by_class"] == {"ok": 4, "connection": 12}


def test_a_server_that_starts_again_within_two_seconds_costs_no_pair_its_answer(tmp_path):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(60)])
    ended, first, second = threading.Event(), Script({"*": [valid(1)]}, seconds=0.05), Script({"*": [valid(1)]})
    port = []

    def host():
        with serving(first) as url:
            port.append(int(url.split(":")[2].split("/")[0]))
            while sum(first.calls.values()) < 12:
                time.sleep(0.01)
        time.sleep(2)
        with serving(second, port[0]):
            ended.wait(60)

    thread = threading.Thread(target=host)
    thread.start()
    while not port:
        time.sleep(0.01)
    summary, code = ask(run, f"http://127.0.0.1:{port[0]}/v1", concurrency=8, backoff=0.5)
    ended.set()
    thread.join()
    assert code == 0 and summary["by_class"]["ok"] == 60 and summary["by_class"]["connection"] >= 8
    assert sum(second.calls.values()) > 40


@pytest.mark.parametrize("name, value", [("concurrency", 0), ("passes", 0), ("budget", 0), ("budget", -3), ("passes", 1.5), ("concurrency", True)])
def test_options_that_leave_nobody_to_ask_are_refused(tmp_path, name, value, capsys):
    run = pairs_of(tmp_path / "run", ["a"])
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; it must be a whole number from 1$"):
        rounds.ask(run, "v1", judge(), NOWHERE, **{name: value})
    config = tmp_path / "config.json"
    config.write_text(json.dumps(configured(run, NOWHERE, **{name: value})._asdict()))
    assert client.main([str(config)]) == 1
    assert capsys.readouterr().err == f"lib.judge.client: {name} is {value!r}; it must be a whole number from 1\n"


def test_a_bad_line_in_a_later_file_is_found_before_the_first_call(tmp_path):
    run = world(tmp_path, ["a", "b"], queries_a_part=1, parts=2)
    table(run, "intents", "intents/v1", [[intent(0, 0)], [intent(1, 1)]])
    later = store.path(run, "v1", "part-00001")
    later.parent.mkdir(parents=True)
    later.write_bytes(b"{}\n{}\n")
    script = Script({"*": [valid(1)]})
    with serving(script) as url, pytest.raises(store.StoreError, match="part-00001.jsonl line 1 is no attempt"):
        ask(run, url)
    assert script.calls == {} and rows(run) == []


def test_calls_in_flight_are_written_when_an_error_ends_the_loop(tmp_path, monkeypatch):
    run = pairs_of(tmp_path, [f"t{i}" for i in range(9)])
    owed = turns.owed

    def broken(*arguments):
        for number, line in enumerate(owed(*arguments)):
            if number == 5:
                raise OSError("the intents are gone")
            yield line

    monkeypatch.setattr(turns, "owed", broken)
    script = Script({"*": [valid(1)]}, seconds=0.2)
    with serving(script) as url, pytest.raises(OSError, match="the intents are gone"):
        ask(run, url, concurrency=3)
    assert sum(script.calls.values()) == len(rows(run)) >= 4 and script.most_flying == 3
    assert {row["status"] for row in rows(run)} == {"ok"}


def test_the_key_is_in_no_file_of_a_run_that_found_nobody(tmp_path):
    run = pairs_of(tmp_path, ["a"])
    ask(run, f"http://127.0.0.1:9/{KEY}/v1", key=KEY)
    assert not any(KEY in row["detail"] for row in rows(run))
