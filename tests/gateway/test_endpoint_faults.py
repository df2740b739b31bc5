"""An endpoint that disappears, hangs, refuses or sends nonsense: the agent is told, and nothing counts twice."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from support.endpoints import (
    GEMINI,
    KEY,
    QUICK,
    TOKEN,
    Call,
    Endpoint,
    NewFront,
    chunk,
    delta,
    gemini_event,
    kind_of,
    say_hello,
)
from support.waiting import wait_until

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
Behaviour = Callable[[Call], None]


def at_first(behave: Behaviour, times: int = 1) -> Behaviour:
    """Misbehave this many times, and then no longer."""
    left = [times]

    def one(call: Call) -> None:
        if left[0]:
            left[0] -= 1
            behave(call)
        else:
            say_hello(call)

    return one


def refuse(status: int, **headers: str) -> Behaviour:
    return lambda call: call.answer({"error": {"message": "no", "type": "t"}}, status, **headers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, GEMINI])
@pytest.mark.parametrize(
    "behave",
    [refuse(429, retry_after="0.1"), refuse(500), refuse(503), refuse(529), Call.cut],
    ids=["429", "500", "503", "529", "cut off"],
)
def test_temporary_failures_are_retried(
    server: Endpoint, front: NewFront, behave: Behaviour, path: str, stream: bool
) -> None:
    server.behave = at_first(behave, 2)
    gate = front()
    assert gate.post(path, stream=stream).status_code == 200
    use = gate.use
    assert (use["calls"], use["retries"], use["failed"], use["input_tokens"]) == (1, 2, 0, 100)
    assert gate.trace[0]["retries"] == 2


def test_a_stream_that_breaks_before_its_first_event_is_retried(server: Endpoint, front: NewFront) -> None:
    server.behave = at_first(lambda call: call.stream(done=False))
    gate = front()
    assert "[DONE]" in gate.post(stream=True).text
    assert gate.use["retries"] == 1


@pytest.mark.parametrize("path", [CHAT, MESSAGES, GEMINI])
def test_persistent_failures_are_passed_on_in_the_end(server: Endpoint, front: NewFront, path: str) -> None:
    server.behave = refuse(500)
    gate = front()
    answer = gate.post(path, max_tokens=9)
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, "no")
    assert answer.headers["x-should-retry"] == "false", "clients would try again three times as often"
    assert len(server.seen) == 1 + QUICK.retries
    use = gate.use
    assert (use["calls"], use["failed"], use["retries"], use["input_tokens"]) == (1, 1, QUICK.retries, None)
    assert use["cost"] == 0


@pytest.mark.parametrize(
    "behave",
    [refuse(400), refuse(401), refuse(404), refuse(429, retry_after="9999")],
    ids=["400", "401", "404", "a long pause"],
)
def test_permanent_failures_are_passed_on_at_once(server: Endpoint, front: NewFront, behave: Behaviour) -> None:
    server.behave = behave
    gate = front()
    assert gate.post().json()["error"]["message"] == "no"
    assert len(server.seen) == 1


def rate_limit(quota: str, delay: str) -> Behaviour:
    """As Google words it; the headers do not say how long."""
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}}
    return lambda call: call.answer([error] if "alt=sse" in call.path else error, 429)


PER_MINUTE, PER_DAY = (f"GenerateRequestsPer{time}PerProjectPerModel-FreeTier" for time in ("Minute", "Day"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("quota", "delay", "tries", "cause"),
    [
        (PER_MINUTE, "0.1s", 1 + QUICK.retries, "429"),
        (PER_MINUTE, "3600s", 1, "429"),
        (PER_MINUTE, "soon", 1 + QUICK.retries, "429"),
        (PER_DAY, "0.1s", 1, "429 quota"),
    ],
)
def test_googles_limits_for_a_minute_and_for_a_day(
    server: Endpoint, front: NewFront, quota: str, delay: str, tries: int, cause: str, stream: bool
) -> None:
    server.behave = rate_limit(quota, delay)
    gate = front()
    assert gate.post(GEMINI, stream=stream).status_code == 429
    assert len(server.seen) == tries
    assert gate.gateway
    assert (gate.gateway.outages.to_dict() or {})["cause"] == cause


def test_an_empty_account_is_reported_at_once(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.answer({"error": {"code": "insufficient_quota"}}, 429)
    gate = front()
    assert gate.post().status_code == 429
    assert len(server.seen) == 1


def test_a_missing_endpoint(server: Endpoint, front: NewFront) -> None:
    gate = front()
    server.server_close()
    answer = gate.post()
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "connection_error")
    assert gate.use["retries"] == QUICK.retries


def hang(call: Call) -> None:
    call.endpoint.hung.wait(200)


@pytest.fixture
def hung(server: Endpoint) -> Iterator[threading.Event]:
    yield server.hung
    server.hung.set()


@pytest.mark.parametrize("path", [CHAT, MESSAGES, GEMINI])
def test_an_endpoint_that_falls_silent(server: Endpoint, front: NewFront, hung: threading.Event, path: str) -> None:
    server.behave = hang
    gate = front(timing=replace(QUICK, idle=1.0))
    answer = gate.post(path, max_tokens=9)
    assert answer.status_code == 504
    assert "silent" in answer.json()["error"]["message"]
    wait_until(lambda: server.seen, "the endpoint has seen the call")
    assert (len(server.seen), gate.use["retries"]) == (1, 0), "it has had its time"


def test_no_call_outlasts_the_run(server: Endpoint, front: NewFront, hung: threading.Event) -> None:
    server.behave = hang
    gate = front(seconds=0.5)
    assert gate.post().status_code == 504


def drip(call: Call) -> None:
    """A byte now and then, without end: never silent, never done."""
    call.send_response(200)
    call.send_header("content-type", "text/event-stream")
    call.send_header("transfer-encoding", "chunked")
    call.end_headers()
    while not call.endpoint.hung.wait(0.05):
        call.chunk(b": wait\n\n")


def test_a_stream_without_end_is_ended(server: Endpoint, front: NewFront, hung: threading.Event) -> None:
    server.behave = drip
    gate = front(timing=replace(QUICK, call=1.0))
    assert "no complete answer arrived" in gate.post(stream=True).text


@pytest.mark.parametrize("path", [CHAT, MESSAGES, GEMINI])
def test_a_stream_that_breaks_off_is_an_error_and_not_the_end(server: Endpoint, front: NewFront, path: str) -> None:
    start = {"type": "message_start", "message": {"id": "1", "usage": {"input_tokens": 5, "output_tokens": 1}}}
    first = {CHAT: chunk([delta("hel")]), MESSAGES: start, GEMINI: gemini_event({"text": "hel"})}[path]
    server.behave = lambda call: call.stream(first, done=False)
    gate = front()
    answer = gate.post(path, stream=True, max_tokens=9)
    last = json.loads(answer.text.rstrip().splitlines()[-1].removeprefix("data: "))
    assert last["error"].get("type", last["error"].get("status")) in ("connection_error", "UNAVAILABLE")
    assert len(server.seen) == 1, "the agent has seen a part of it"
    (line,) = gate.trace
    assert line["error"]
    assert line["answer"], "what came is kept"
    assert gate.use["calls_without_usage"] == 1


@pytest.mark.parametrize(
    ("path", "first"),
    [
        (CHAT, chunk([delta("hel")])),
        (GEMINI, gemini_event({"text": "hel"}, usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 1})),
    ],
)
def test_a_stream_that_ends_too_early_is_an_error(
    server: Endpoint, front: NewFront, path: str, first: dict[str, Any]
) -> None:
    server.behave = lambda call: call.stream(first)
    gate = front()
    assert "ended early" in gate.post(path, stream=True).text
    use = gate.use
    assert (use["failed"], use["calls_without_usage"]) == (1, 1)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, GEMINI])
@pytest.mark.parametrize(
    "behave",
    [
        lambda call: call.answer(b"<html>it works</html>"),
        lambda call: call.answer([1]),
        lambda call: call.answer(b"\xff\xfe", 200, content_type="application/json"),
        lambda call: call.answer(b"[" * 100_000, 200, content_type="application/json"),
        lambda call: call.answer(b"no events here\n\n", 200, content_type="text/event-stream"),
        lambda call: call.answer(b"data: {no json\n\n", 200, content_type="text/event-stream"),
        lambda call: call.answer({}, 302, location="http://127.0.0.1:1/elsewhere"),
    ],
    ids=["html", "a list", "no text", "deep", "no events", "no json", "a redirect"],
)
def test_garbage_becomes_an_error_of_ours(
    server: Endpoint, front: NewFront, behave: Behaviour, path: str, stream: bool
) -> None:
    server.behave = behave
    gate = front()
    answer = gate.post(path, stream=stream)
    assert (answer.status_code, kind_of(answer)) == (502, "bad_answer")
    assert len(server.seen) == 1


def test_an_answer_that_is_too_large_is_cut_off(
    server: Endpoint, front: NewFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench.gateway.upstream.LARGEST_ANSWER", 1 << 20)
    server.behave = lambda call: call.answer({"text": "x" * (2 << 20)})
    assert front().post().json()["error"]["type"] == "bad_answer"


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {}, {"": 1}, [{"parts": 1}], {"parts": [1, {"text": 1}]}])
def test_no_value_in_geminis_stream_makes_the_gateway_fail(server: Endpoint, front: NewFront, value: Any) -> None:
    """It is passed on as it is, and is no complete answer."""
    candidates = [{"index": 0, "content": value}, {"content": {"parts": value}, "finishReason": None}]
    events = [{name: value} for name in ("candidates", "usageMetadata", "promptFeedback", "responseId")]
    server.behave = lambda call: call.stream(*events, {"candidates": candidates}, done=False)
    gate = front()
    answer = gate.post(GEMINI, stream=True)
    assert answer.status_code == 200
    (line,) = gate.trace
    assert "gave no usable answer" in line["error"]
    assert line["output_tokens"] is None


def test_an_error_within_a_stream_is_passed_on(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.stream(chunk([delta("hel")]), {"error": {"message": "overloaded"}})
    gate = front()
    assert "overloaded" in gate.post(stream=True).text
    assert gate.trace[0]["error"] == "overloaded"


def test_an_agent_that_leaves_ends_the_call(server: Endpoint, front: NewFront, hung: threading.Event) -> None:
    def behave(call: Call) -> None:
        call.send_response(200)
        call.send_header("content-type", "text/event-stream")
        call.send_header("transfer-encoding", "chunked")
        call.end_headers()
        call.chunk(b'data: {"choices": [{"index": 0, "delta": {"content": "hel"}}]}\n\n')
        hung.wait(200)

    server.behave = behave
    gate = front(budget="50000tokens")
    url, headers = f"http://127.0.0.1:{gate.port}{CHAT}", {"authorization": f"Bearer {TOKEN}"}
    body = {"model": "m", "stream": True, "messages": []}
    with gate.client.stream("POST", url, json=body, headers=headers) as answer:
        assert next(answer.iter_bytes())
    wait_until(lambda: gate.use["calls_without_usage"], "the call is counted")
    use = gate.use
    assert (use["calls"], use["failed"], use["calls_without_usage"]) == (1, 1, 1)
    assert use["budget"]["used"] > 32_000, "nobody knows what it cost, so all that was set aside is gone"


def test_an_endpoint_that_repeats_the_key_does_not_give_it_away(server: Endpoint, front: NewFront) -> None:
    gate = front()
    told: list[httpx2.Response] = []
    for behave in (
        lambda call: call.answer({"error": {"message": f"bad key {KEY}"}}, 401),
        lambda call: call.answer({"choices": [], "echo": call.headers["authorization"]}),
        lambda call: call.answer(f"<html>{KEY}</html>".encode()),
    ):
        server.behave = behave
        told.append(gate.post())
    server.behave = lambda call: call.stream(chunk([delta(KEY)]), chunk([delta(end=True)]), "[DONE]")
    told.append(gate.post(stream=True))
    server.behave = lambda call: call.stream(gemini_event({"text": KEY}, end="STOP"))
    told.append(gate.post(GEMINI, stream=True))
    assert all("[key]" in answer.text and KEY not in answer.text for answer in told)
    assert KEY not in (gate.folder / "calls.jsonl").read_text()


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


@pytest.mark.parametrize(
    "echo",
    [
        f'"{escaped(KEY)}"',
        '"' + KEY.replace("-", "\\u002d").replace("a", "\\u0061") + '"',
        json.dumps(json.dumps({"key": KEY}).replace("-", "\\u002D")),
        json.dumps(json.dumps(escaped(KEY))),
    ],
    ids=["all of it", "some of it", "JSON in a text", "JSON in JSON in a text"],
)
def test_the_key_is_also_hidden_when_json_escapes_it(server: Endpoint, front: NewFront, echo: str) -> None:
    gate = front()
    told: list[httpx2.Response] = []
    for status in (200, 401, 500):
        body = f'{{"choices": [], "error": {"null" if status == 200 else echo}, "x": {echo}}}'.encode()
        server.behave = lambda call, body=body, status=status: call.answer(
            body, status, content_type="application/json"
        )
        told.append(gate.post())
    server.behave = lambda call: call.stream(f'{{"choices": [], "x": {echo}}}', f'{{"error": {{"message": {echo}}}}}')
    told.append(gate.post(stream=True))
    for text in [*(answer.text for answer in told), (gate.folder / "calls.jsonl").read_text()]:
        for _ in range(4):  # as a reader would undo the escapes
            assert KEY not in text
            text = re.sub(r"\\+u00([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)
        assert "[key]" in text
