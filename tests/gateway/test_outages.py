"""A model's outage is not the agent's failure: which calls show one, and what its cause is called."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.endpoints import (
    GEMINI,
    KEY,
    QUICK,
    TOKEN,
    Call,
    Endpoint,
    Front,
    NewFront,
    access_to,
    chunk,
    delta,
    front_of,
    say_hello,
)
from support.waiting import wait_until

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import usage_file
from mlebench.gateway import probe as probing
from mlebench.gateway import server as serving
from mlebench.gateway.access import plan_access
from mlebench.gateway.capacity import FLOOD, LARGE
from mlebench.gateway.outage import Outage
from mlebench.gateway.probe import OUTPUT, probe
from mlebench.run.model_usage import require_model, with_outage
from mlebench.sandbox.session import TaskOutcome

CHAT, COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
Behaviour = Callable[[Call], None]


def saying(status: int, message: str = "no", **error: Any) -> Behaviour:
    return lambda call: call.answer({"error": {"message": message, **error}}, status)


def hang(call: Call) -> None:
    call.endpoint.hung.wait(200)


OUTAGES = {
    "401": saying(401, "Incorrect API key provided", code="invalid_api_key"),
    "403": saying(403, "your country is not supported"),
    "404": saying(404, "The model `m` does not exist", code="model_not_found"),
    "429 quota": saying(429, "You exceeded your current quota", code="insufficient_quota"),
    "400 quota": saying(400, "Your credit balance is too low to access the API", type="invalid_request_error"),
    "402 quota": saying(402, "Insufficient credits"),
    "429": saying(429),
    "503": saying(503),
    "400 model": saying(400, "m is not a valid model ID: no such model"),
    "400 key": saying(400, "API key not valid. Please pass a valid API key."),
    "bad answer": lambda call: call.answer(b"<html>welcome</html>"),
    "connection": Call.cut,
}
AGENTS_OWN = {
    "too long a prompt": saying(400, "maximum context length is 9 tokens", code="context_length_exceeded"),
    "no such field": saying(422, "unknown field"),
    "flagged": saying(403, "your input was flagged by moderation"),
    "too large": saying(413),
}


def written(gate: Front) -> dict[str, str] | None:
    """What the record says, which the run will read."""
    assert gate.gateway
    gate.gateway.write()
    return json.loads((gate.folder / "use.json").read_text())["unavailable"]


@pytest.mark.parametrize("path", [CHAT, GEMINI])
@pytest.mark.parametrize("cause", OUTAGES)
def test_the_cause_of_an_outage_is_named(server: Endpoint, front: NewFront, path: str, cause: str) -> None:
    server.behave = OUTAGES[cause]
    gate = front(timing=replace(QUICK, retries=1))
    gate.post(path)
    record = written(gate) or {}
    assert record["cause"] == cause
    assert record["says"]
    assert KEY not in record["says"]
    server.behave = say_hello
    gate.post()
    assert written(gate) is None, "one answer shows that there was a model"


@pytest.mark.parametrize("fault", AGENTS_OWN)
def test_what_the_agent_asked_for_is_its_own_fault(server: Endpoint, front: NewFront, fault: str) -> None:
    server.behave = AGENTS_OWN[fault]
    gate = front()
    gate.post()
    gate.post(tools=[{"type": "web_search"}])  # refused by the policy
    gate.post(model="another")
    assert gate.use["failed"] == 1
    assert written(gate) is None


def test_an_agent_that_never_called_had_a_model(front: NewFront) -> None:
    assert written(front()) is None


def test_a_budget_too_small_for_a_call_is_no_fault_of_the_agent(server: Endpoint, front: NewFront) -> None:
    gate = front(budget="0.0001usd", models=("m",))
    assert gate.post(max_tokens=30_000).json()["error"]["type"] == "budget_exceeded"
    assert (written(gate) or {})["cause"] == "budget"
    assert server.seen == []


def test_a_budget_that_the_agent_used_up_or_asked_too_much_of_is(server: Endpoint, front: NewFront) -> None:
    gate = front(budget="20000tokens")
    assert gate.post(n=100, max_tokens=1000).json()["error"]["type"] == "budget_exceeded"
    assert written(gate) is None, "one answer could have been paid for"


def test_an_endpoint_that_never_answers_an_agent_that_waits(
    server: Endpoint, front: NewFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents have time limits of their own: some hang up before the gateway does."""
    server.behave = hang
    gate = front()

    def hang_up() -> None:
        before = len(server.seen)
        body = b'{"model": "m", "messages": []}'
        head = (
            f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", gate.port)) as agent:
            agent.sendall(head.encode() + body)
            wait_until(lambda: len(server.seen) > before, "the endpoint has the call")
        wait_until(lambda: gate.use["calls"] > before, "the call is over")

    hang_up()
    assert written(gate) is None, "it did not wait"
    monkeypatch.setattr(serving, "PATIENCE", 0.0)
    hang_up()
    server.hung.set()
    assert (written(gate) or {})["cause"] == "timeout"


def test_an_agent_that_has_read_enough_of_a_stream_had_a_model(server: Endpoint, front: NewFront) -> None:
    def behave(call: Call) -> None:
        call.send_response(200)
        call.send_header("content-type", "text/event-stream")
        call.send_header("transfer-encoding", "chunked")
        call.end_headers()
        call.chunk(b'data: {"choices": [{"index": 0, "delta": {"content": "hel"}}]}\n\n')
        call.endpoint.hung.wait(200)

    server.behave = behave
    gate = front()
    url, headers = f"http://127.0.0.1:{gate.port}{CHAT}", {"authorization": f"Bearer {TOKEN}"}
    body = {"model": "m", "stream": True, "messages": []}
    with gate.client.stream("POST", url, json=body, headers=headers) as answer:
        assert next(answer.iter_bytes())
    wait_until(lambda: gate.use["calls"], "the call is counted")
    server.hung.set()
    server.behave = saying(401)
    gate.post()
    assert written(gate) is None


def test_counting_tokens_is_no_answer_of_a_model(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: (
        call.answer({"input_tokens": 7}) if call.path.endswith("count_tokens") else saying(400, "credit balance")(call)
    )
    gate = front()
    assert gate.post("/v1/messages/count_tokens").status_code == 200
    gate.post(MESSAGES, max_tokens=9)
    assert (written(gate) or {})["cause"] == "400 quota"


def ended_with(gate: Front, server: Endpoint) -> str:
    """How a run ends whose agent finished after these calls."""
    assert gate.gateway
    gate.gateway.write()
    (gate.folder / "use.json").rename(usage_file(gate.folder))
    record = SimpleNamespace(model=access_to(server, ("m",)).facts())
    return with_outage(TaskOutcome("finished", None, 0, 1.0), cast("Any", record), gate.folder).ended


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "Missing Authentication Token"),
        (403, "Missing Authentication Token"),
        (403, "this looks like an attack on a payment"),
        (404, "not found"),
        (400, "Invalid value: 'no such model'"),
        (500, "cannot parse this"),
        (504, "took too long"),
    ],
)
def test_an_agent_cannot_pass_off_a_poor_run_as_one_without_a_model(
    server: Endpoint, front: NewFront, status: int, message: str
) -> None:
    """It calls an API that the endpoint lacks, has its words repeated, or asks for much; others get their answers."""
    server.behave = lambda call: saying(status, message)(call) if call.path == COMPLETIONS else say_hello(call)
    gate = front(timing=replace(QUICK, retries=0))
    gate.post(COMPLETIONS, prompt="x", messages=None)
    assert ended_with(gate, server) == "finished"


@pytest.mark.parametrize(
    ("calls", "prompt", "end"),
    [(1, "x", "model_unavailable"), (FLOOD + 2, "x", "finished"), (1, "x" * 2 * LARGE, "finished")],
    ids=["one", "a flood", "a large one"],
)
def test_an_agent_that_floods_an_endpoint_had_a_model(
    server: Endpoint, front: NewFront, calls: int, prompt: str, end: str
) -> None:
    """The endpoint has too many calls of the agent's, and answers anybody else."""
    server.behave = lambda call: saying(429)(call) if call.path == COMPLETIONS else say_hello(call)
    gate = front(timing=replace(QUICK, retries=0))
    for _ in range(calls):
        assert gate.post(COMPLETIONS, prompt=prompt, messages=None).status_code == 429
    assert ended_with(gate, server) == end


def test_a_model_that_is_unknown_to_everybody_is_the_agents_misfortune(server: Endpoint, front: NewFront) -> None:
    server.behave = saying(404, "no such model")
    gate = front()
    gate.post()
    assert ended_with(gate, server) == "model_unavailable"


# Errors that arrive with status 200

RESPONSE_FAILED = {
    "id": "r",
    "status": "failed",
    "error": {"code": "server_error", "message": "it broke"},
    "output": [],
}
DISGUISED = {
    "chat": (CHAT, {"error": {"message": "it broke", "code": 503}}, "503"),
    "chat, by name": (CHAT, {"error": {"message": "it broke", "type": "insufficient_quota"}}, "429 quota"),
    "chat, a text": (CHAT, {"error": "it broke"}, "502"),
    "chat, vLLM": (CHAT, {"object": "error", "message": "it broke", "code": 500}, "500"),
    "chat, in a choice": (CHAT, {"choices": [{"finish_reason": "error", "error": {"message": "it broke"}}]}, "502"),
    "completions": (COMPLETIONS, {"error": {"message": "it broke", "type": "overloaded_error"}}, "529"),
    "responses": (RESPONSES, RESPONSE_FAILED, "502"),
    "messages": (MESSAGES, {"type": "error", "error": {"type": "authentication_error", "message": "it broke"}}, "401"),
}


@pytest.mark.parametrize("name", DISGUISED)
def test_an_error_body_with_status_200_is_a_failed_call(server: Endpoint, front: NewFront, name: str) -> None:
    path, body, cause = DISGUISED[name]
    server.behave = lambda call: call.answer(body)
    gate = front(timing=replace(QUICK, retries=0), budget="50000tokens")
    answer = gate.post(path, max_tokens=9) if path != RESPONSES else gate.post(path, input="hi", messages=None)
    assert answer.status_code == int(cause[:3]), "clients take no 200 for an error"
    assert answer.json() == body
    use = gate.use
    assert (use["failed"], use["budget"]["used"], use["calls_without_usage"]) == (1, 0, 0)
    assert gate.trace[0]["error"] == "the endpoint answered 200 with an error: it broke"
    assert (written(gate) or {})["cause"] == cause


def test_an_error_body_that_may_pass_is_retried(server: Endpoint, front: NewFront) -> None:
    bodies = [{"error": {"message": "overloaded", "code": 529}}]
    server.behave = lambda call: call.answer(bodies.pop()) if bodies else say_hello(call)
    gate = front()
    assert gate.post().json()["choices"]
    assert (gate.use["retries"], gate.use["failed"]) == (1, 0)


STREAMED = {
    "chat": (CHAT, [{"error": {"message": "it broke", "code": 503}}]),
    "responses": (
        RESPONSES,
        [{"type": "response.created", "response": {}}, {"type": "response.failed", "response": RESPONSE_FAILED}],
    ),
    "responses, an event": (RESPONSES, [{"type": "error", "code": "server_error", "message": "it broke"}]),
    "messages": (MESSAGES, [{"type": "error", "error": {"type": "overloaded_error", "message": "it broke"}}]),
}


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_that_is_only_an_error_is_a_failed_call(server: Endpoint, front: NewFront, name: str) -> None:
    path, events = STREAMED[name]
    server.behave = lambda call: call.stream(*events)
    gate = front(budget="50000tokens")
    more: dict[str, Any] = {"input": "hi", "messages": None} if path == RESPONSES else {"max_tokens": 9}
    assert "it broke" in gate.post(path, stream=True, **more).text
    assert (gate.use["failed"], gate.trace[0]["error"]) == (1, "it broke")
    assert written(gate), "no answer came"
    if len(events) == 1:
        assert gate.use["budget"]["used"] == 0


def test_an_endpoint_that_repeats_the_key_does_not_put_it_into_the_record(server: Endpoint, tmp_path: Path) -> None:
    event = {"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}}
    behaviours: list[Behaviour] = [
        lambda call: call.stream(event),
        lambda call: call.answer(event),
        lambda call: call.answer(event, 401),
        lambda call: call.answer(f"<html>{KEY}</html>".encode()),
    ]
    for number, behave in enumerate(behaviours):
        server.behave = behave
        (folder := tmp_path / str(number)).mkdir()
        with front_of(access_to(server), folder) as gate:
            gate.post(stream=number == 0)
            assert "[key]" in (written(gate) or {})["says"]


def test_answers_that_hold_no_error_are_answers(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.answer(
        {"error": None, "status": "completed", "choices": [{"finish_reason": None}]}
    )
    gate = front()
    assert gate.post().status_code == 200
    server.behave = lambda call: call.stream(chunk([delta("x")], error=None), chunk([delta(end=True)]), "[DONE]")
    gate.post(stream=True)
    assert gate.use["failed"] == 0


# The probe before many runs


def refusal(server: Endpoint, runs: int = 2, **options: Any) -> str | None:
    try:
        require_model(access_to(server, ("m",), **options), runs)
    except PrerequisiteError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        ("401", "check the key in A_KEY"),
        ("404", "check --model and --endpoint"),
        ("429 quota", "add credit"),
        ("connection", "check that http"),
    ],
)
def test_a_probe_stops_many_runs_in_one_line_that_names_who_must_act(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, cause: str, advice: str
) -> None:
    monkeypatch.setattr(probing, "TIMING", QUICK)
    monkeypatch.setenv("A_KEY", KEY)
    server.behave = OUTAGES[cause]
    message = refusal(server, key_env="A_KEY") or ""
    assert f"m at {server.url} cannot be used ({cause})" in message
    assert advice in message
    assert "\n" not in message
    assert KEY not in message


@pytest.mark.parametrize("cause", ["429", "503"])
def test_what_may_pass_is_only_said(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cause: str
) -> None:
    monkeypatch.setattr(probing, "TIMING", replace(QUICK, retries=0))
    server.behave = OUTAGES[cause]
    assert refusal(server) is None
    assert f"({cause})" in caplog.text


def test_a_probe_of_a_model_that_works_is_small(server: Endpoint) -> None:
    assert refusal(server) is None
    (seen,) = server.seen
    assert seen.body["max_completion_tokens"] == OUTPUT
    assert len(json.dumps(seen.body)) < 150


def test_a_single_run_is_not_probed(server: Endpoint) -> None:
    server.behave = saying(401)
    assert refusal(server, runs=1) is None
    assert server.seen == []


@pytest.mark.parametrize("only", [RESPONSES, MESSAGES])
def test_a_model_with_another_api_is_found(server: Endpoint, only: str) -> None:
    server.behave = lambda call: call.answer({"id": "1"}) if call.path == only else saying(404)(call)
    assert refusal(server) is None


def test_an_endpoint_that_only_nodes_can_reach_is_not_refused_here() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    access = plan_access(("m",), {}, endpoint=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(PrerequisiteError, match=r"\(connection\)"):
        require_model(access, 2)
    require_model(access, 2, elsewhere=True)


def test_a_silent_endpoint_does_not_hold_up_a_probe(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "TIMING", replace(QUICK, idle=0.5))
    server.behave = hang
    try:
        assert probe(access_to(server, ("m",))) == {"m": Outage("timeout", "the endpoint fell silent")}
    finally:
        server.hung.set()


def test_every_model_is_probed(server: Endpoint) -> None:
    server.behave = lambda call: say_hello(call) if call.body["model"] == "m" else saying(404, "no such model")(call)
    assert list(probe(access_to(server))) == ["other"]
