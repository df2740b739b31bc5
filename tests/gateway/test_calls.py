"""Calls that go well: what the agent gets, what is counted, what is written down."""

import json
from typing import Any

import pytest
from support.endpoints import (
    GEMINI,
    GEMINI_USAGE,
    KEY,
    TOKEN,
    Call,
    Endpoint,
    NewFront,
    chunk,
    delta,
    gemini_event,
    say_hello,
)

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
COST = (60 * 2 + 40 * 0.5 + 20 * 10) / 1e6
ANTHROPIC_COST = (50 * 2 + 40 * 0.5 + 10 * 2.5 + 20 * 10) / 1e6


def said(answer: dict[str, Any]) -> str:
    """The text of a whole answer of Anthropic's or Google's."""
    if "candidates" in answer:
        return "".join(part["text"] for part in answer["candidates"][0]["content"]["parts"])
    return "".join(block["text"] for block in answer.get("content", []))


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_an_answer_is_passed_on_and_counted(server: Endpoint, front: NewFront) -> None:
    gate = front()
    answer = gate.post()
    assert answer.json()["choices"][0]["message"]["content"] == "hello"
    (seen,) = server.seen
    assert seen.path == CHAT
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert TOKEN not in str(seen)
    use = gate.use
    assert (use["calls"], use["failed"], use["retries"], use["refused"]) == (1, 0, 0, 0)
    assert [use[f"{name}_tokens"] for name in ("input", "cached", "output", "reasoning")] == [100, 40, 20, 5]
    assert use["cost"] == pytest.approx(COST)
    assert use["models"].keys() == {"m"}
    (line,) = gate.trace
    assert line["request"]["messages"] == [{"role": "user", "content": "hi"}]
    assert line["answer"]["choices"][0]["message"]["content"] == "hello"
    assert (line["status"], line["retries"], line["error"]) == (200, 0, None)
    assert line["cost"] == pytest.approx(COST)


def test_a_stream_is_passed_on_and_its_usage_is_asked_for(server: Endpoint, front: NewFront) -> None:
    gate = front()
    got = events(gate.post(stream=True).text)
    assert server.seen[0].body["stream_options"] == {"include_usage": True}
    assert [event["choices"][0]["delta"].get("content") for event in got[:-1]] == ["hel", "lo", None]
    assert got[-1] == "[DONE]", "and nothing about usage, which the agent did not ask for"
    assert gate.use["output_tokens"] == 20
    (line,) = gate.trace
    assert line["answer"]["choices"] == [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]
    assert line["usage"]["prompt_tokens"] == 100


def test_an_agent_that_asks_for_usage_gets_it(front: NewFront) -> None:
    got = events(front().post(stream=True, stream_options={"include_usage": True}).text)
    assert got[-2]["usage"]["prompt_tokens"] == 100


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "header", "reasoning", "cost"),
    [(MESSAGES, "x-api-key", None, ANTHROPIC_COST), (GEMINI, "x-goog-api-key", 5, COST)],
)
def test_messages_and_gemini(
    server: Endpoint, front: NewFront, path: str, header: str, reasoning: int | None, cost: float, stream: bool
) -> None:
    gate = front()
    answer = gate.post(path, max_tokens=100, stream=stream)
    assert answer.status_code == 200
    (seen,) = server.seen
    assert seen.headers[header] == KEY
    assert TOKEN not in str(seen)
    use = gate.use
    assert [use[f"{name}_tokens"] for name in ("input", "cached", "output", "reasoning")] == [100, 40, 20, reasoning]
    assert use["cost"] == pytest.approx(cost)
    (line,) = gate.trace
    assert (line["model"], line["stream"], said(line["answer"])) == ("m", stream, "hello")
    if stream:
        assert "".join(filter(None, map(said_in, events(answer.text)))) == "hello"
    if path == MESSAGES:
        assert line["answer"]["content"] == [{"type": "text", "text": "hello"}]
    else:
        assert line["answer"]["candidates"][0]["finishReason"] == "STOP"
        assert "model" not in line["request"], "the trace has what the agent sent"


def said_in(event: dict[str, Any]) -> str:
    """The piece of text in an event of Anthropic's or Google's."""
    return said(event) or event.get("delta", {}).get("text", "")


def test_responses_and_their_streams(server: Endpoint, front: NewFront) -> None:
    usage = {"input_tokens": 7, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}}
    response = {"id": "r", "output": [{"type": "message"}], "usage": usage}

    def behave(call: Call) -> None:
        if call.body.get("stream"):
            begun, end = {"type": "response.created"}, {"type": "response.completed", "response": response}
            call.stream(begun, {"type": "response.output_text.delta", "delta": "x"}, end)
        else:
            call.answer(response)

    server.behave = behave
    gate = front()
    for stream in (False, True):
        assert gate.post("/v1/responses", input="hi", stream=stream, messages=None).status_code == 200
    assert [use["reasoning_tokens"] for use in gate.trace] == [2, 2]
    assert (gate.use["calls"], gate.use["input_tokens"], gate.use["reasoning_tokens"]) == (2, 14, 4)
    assert gate.trace[1]["answer"]["output"] == [{"type": "message"}]


def test_tool_calls_in_a_stream_are_put_together(server: Endpoint, front: NewFront) -> None:
    def part(**function: str) -> dict[str, Any]:
        return chunk([{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": function}]}}])

    parts = [part(name="run", arguments='{"a"'), part(arguments=":1}"), chunk([delta(end=True)])]
    server.behave = lambda call: call.stream(*parts, "[DONE]")
    gate = front()
    gate.post(stream=True)
    (choice,) = gate.trace[0]["answer"]["choices"]
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"a":1}'}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (['{"comm', 'and": "ls /', ' \\ud83d\\ude00"}'], {"command": "ls / 😀"}),
        ([], {}),
        (["", ""], {}),
        (['{"command": "ls'], '{"command": "ls'),
    ],
    ids=["in pieces", "no piece", "empty pieces", "cut off"],
)
def test_the_input_of_a_streamed_tool_call_is_put_together(
    server: Endpoint, front: NewFront, pieces: list[str], expected: Any
) -> None:
    """As Anthropic sends it: an empty object first, then pieces of JSON."""
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    parts = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    server.behave = lambda call: call.stream(
        {"type": "message_start", "message": {"id": "1", "content": [], "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": part} for part in parts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
    gate = front()
    gate.post(MESSAGES, max_tokens=100, stream=True)
    assert gate.trace[0]["answer"]["content"] == [block | {"input": expected}]


def test_geminis_stream_is_put_together(server: Endpoint, front: NewFront) -> None:
    """Texts and thoughts grow, and calls come in one piece."""
    call = {"functionCall": {"name": "run", "args": {"command": "ls"}}, "thoughtSignature": "s"}
    server.behave = lambda request: request.stream(
        gemini_event({"text": "I th", "thought": True}),
        gemini_event({"text": "ink", "thought": True}, {"text": "It "}),
        gemini_event({"text": "is"}),
        gemini_event(call, {"functionCall": {"name": "run", "args": {}}}),
        gemini_event(end="STOP", usageMetadata=GEMINI_USAGE),
    )
    gate = front()
    gate.post(GEMINI, stream=True)
    (candidate,) = gate.trace[0]["answer"]["candidates"]
    thought, text = {"text": "I think", "thought": True}, {"text": "It is"}
    assert candidate["content"]["parts"] == [thought, text, call, {"functionCall": {"name": "run", "args": {}}}]
    assert gate.use["output_tokens"] == 20


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"promptTokenCount": 7, "totalTokenCount": 7}, [7, None, 0, None]),
        ({"promptTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 10}, [7, None, 3, 3]),
        ({"promptTokenCount": 7, "toolUsePromptTokenCount": 2, "candidatesTokenCount": 1}, [9, None, 1, None]),
        ({"promptTokenCount": 7}, [7, None, None, None]),
        ({"promptTokenCount": -7, "candidatesTokenCount": "1"}, [None] * 4),
        ([], [None] * 4),
    ],
)
def test_usage_in_googles_words(server: Endpoint, front: NewFront, usage: Any, tokens: list[int | None]) -> None:
    """Also that of a prompt that was blocked, to which there is no answer."""
    answer = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}
    server.behave = lambda call: call.stream(answer) if "alt=sse" in call.path else call.answer(answer)
    gate = front()
    for stream in (False, True):
        assert gate.post(GEMINI, stream=stream).status_code == 200
    for line in gate.trace:
        assert [line[f"{name}_tokens"] for name in ("input", "cached", "output", "reasoning")] == tokens
        assert line["error"] is None


def test_a_response_that_breaks_off_keeps_what_was_complete(server: Endpoint, front: NewFront) -> None:
    item = {"type": "function_call", "name": "shell", "arguments": '{"command": "ls"}'}
    begun = {"type": "response.created", "response": {"id": "r", "output": []}}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    server.behave = lambda call: call.stream(begun, done, done=False)
    gate = front()
    gate.post("/v1/responses", input="hi", stream=True, messages=None)
    assert gate.trace[0]["answer"]["output"] == [item]


def test_unknown_usage_is_null_and_reported(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.answer({"choices": []})
    gate = front()
    gate.post()
    use = gate.use
    assert (use["calls"], use["calls_without_usage"], use["is_lower_bound"]) == (1, 1, True)
    assert [use[f"{name}_tokens"] for name in ("input", "cached", "output", "reasoning")] == [None] * 4
    assert (use["cost"], gate.trace[0]["cost"]) == (None, None), "not nothing: unknown"
    server.behave = say_hello
    gate.post()
    assert (gate.use["cost"], gate.use["is_lower_bound"]) == (pytest.approx(COST), True)


def test_the_cost_of_a_model_without_a_price_is_unknown(front: NewFront) -> None:
    gate = front()
    gate.post()
    gate.post(model="other")
    use = gate.use
    assert use["cost"] is None
    assert (use["models"]["m"]["cost"], use["models"]["other"]["cost"]) == (pytest.approx(COST), None)
    assert use["models"]["other"]["input_tokens"] == 100


def test_models_are_listed_for_all_kinds_of_clients(server: Endpoint, front: NewFront) -> None:
    gate = front()
    headers = {"authorization": f"Bearer {TOKEN}"}
    for path in ("/v1/models", "/v1beta/models"):
        url = f"http://127.0.0.1:{gate.port}{path}"
        models = gate.client.get(url, headers=headers).json()
        assert [entry["id"] for entry in models["data"]] == ["m", "other"]
        assert [entry["name"] for entry in models["models"]] == ["models/m", "models/other"]
        assert gate.client.get(f"{url}/m", headers=headers).json()["id"] == "m"
        assert gate.client.get(f"{url}/else", headers=headers).status_code == 404
    assert server.seen == []


def test_long_requests_and_answers_are_cut_in_the_trace(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.answer({"choices": [{"message": {"content": "y" * (3 << 20)}}]})
    gate = front()
    answer = gate.post(messages=[{"role": "user", "content": "x" * (2 << 20)}, {"role": "user", "content": "short"}])
    assert len(answer.json()["choices"][0]["message"]["content"]) == 3 << 20, "the agent gets all of it"
    (line,) = gate.trace
    long, short = line["request"]["messages"]
    assert len(long["content"]) < 1 << 20
    assert "characters cut" in long["content"]
    assert short["content"] == "short"
    assert "characters cut" in line["answer"]["choices"][0]["message"]["content"]
    assert gate.gateway
    assert gate.gateway.trace.cut == 1


def test_an_answer_with_nan_leaves_a_valid_json_trace(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.answer({"choices": [], "logprob": float("-inf"), "usage": {"prompt_tokens": 1.5}})
    gate = front()
    assert "-Infinity" in gate.post().text
    line = (gate.folder / "calls.jsonl").read_text()
    assert json.loads(line, parse_constant=lambda name: pytest.fail(name))["answer"]["logprob"] is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", {}),
        ("/v1beta/models/m:countTokens", {"contents": [{"parts": [{"text": "hi"}]}]}),
        ("/v1beta/models/m:countTokens", {"generateContentRequest": {"model": "models/m", "contents": []}}),
    ],
)
def test_counting_tokens_is_free(server: Endpoint, front: NewFront, path: str, body: dict[str, Any]) -> None:
    server.behave = lambda call: call.answer({"input_tokens": 77})
    gate = front(budget="1tokens")
    assert gate.post(path, **body).json() == {"input_tokens": 77}
    assert server.seen[0].body.items() >= body.items()
    assert (gate.use["input_tokens"], gate.use["calls_without_usage"]) == (0, 0)
