"""The scripted endpoint speaks all APIs, streamed or not, and misbehaves as its script says."""

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.endpoints import GEMINI, PRICE, front_of
from support.scripted_models import playing

from mlebench.core.errors import PrerequisiteError
from mlebench.gateway.access import plan_access
from mlebench.gateway.probe import BODIES
from mlebench.gateway.scripted import script
from mlebench.gateway.scripted.script import read_script, shipped
from mlebench.gateway.scripted.server import application
from mlebench.records.timeline import said

USER = {"role": "user", "content": "What is 6 times 7?"}
OWN = {"role": "assistant", "content": "Let me see."}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}
ANSWER = """
- text: It is 42, says the script.
  tool_calls: [{name: look, arguments: {where: [here, "dänn"]}}]
  usage: {input: 100, cached: 60, output: 20, reasoning: 5}
"""
Start = Callable[..., "Client"]
CALL = {"where": ["here", "dänn"]}


class Client:
    def __init__(self, application: Any):
        self._transport = httpx2.ASGITransport(application)

    def post(self, path: str, **options: Any) -> httpx2.Response:
        return asyncio.run(self._ask("POST", path, options))

    def get(self, path: str) -> httpx2.Response:
        return asyncio.run(self._ask("GET", path, {}))

    async def _ask(self, method: str, path: str, options: Any) -> httpx2.Response:
        async with httpx2.AsyncClient(transport=self._transport, base_url="http://here") as client:
            return await client.request(method, path, **options)


@pytest.fixture
def client(tmp_path: Path) -> Callable[..., Client]:
    def start(text: str, **files: str) -> Client:
        for name, content in files.items():
            (tmp_path / f"{name}.py").write_text(content)
        (tmp_path / "script.yaml").write_text(text)
        return Client(application(read_script(str(tmp_path / "script.yaml"))))

    return start


@pytest.mark.parametrize("path", BODIES)
def test_a_probe_uses_up_no_answer(client: Callable[..., Client], path: str) -> None:
    endpoint, path, body = client("- text: the first"), path.format(model="m"), BODIES[path]
    other = {"messages": [USER], "input": "x", "contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    assert "Yes." in endpoint.post(path, json={"model": "m", **body}).text
    assert "the first" in endpoint.post(path, json={"model": "m", **other}).text


def _chat(client: Client, *messages: Any, **options: Any) -> httpx2.Response:
    return client.post("/v1/chat/completions", json={"model": "m", "messages": messages or [USER], **options})


def _said(response: httpx2.Response) -> str:
    return response.json()["choices"][0]["message"]["content"]


def _events(response: httpx2.Response) -> list[Any]:
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_chat_completions(client: Start) -> None:
    whole = _chat(client(ANSWER)).json()
    message = whole["choices"][0]["message"]
    assert message["content"] == "It is 42, says the script."
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == CALL
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    assert whole["usage"]["prompt_tokens"] == 100
    assert whole["usage"]["prompt_tokens_details"] == {"cached_tokens": 60}
    assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}


def test_chat_completions_as_a_stream(client: Start) -> None:
    *chunks, done = _events(_chat(client(ANSWER), stream=True, stream_options={"include_usage": True}))
    assert done == "[DONE]"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]) == ([], 120)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    texts = [delta["content"] for delta in deltas if delta.get("content")]
    assert len(texts) > 1
    assert "".join(texts) == "It is 42, says the script."
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [call["function"]["name"] for call in calls if "name" in call["function"]] == ["look"]
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == CALL


def test_a_stream_has_usage_only_on_request(client: Start) -> None:
    assert not any("usage" in chunk for chunk in _events(_chat(client(ANSWER), stream=True))[:-1])


def test_completions(client: Start) -> None:
    body = {"model": "m", "prompt": "6 times 7 is"}
    assert client(ANSWER).post("/v1/completions", json=body).json()["choices"][0]["text"].startswith("It is 42")
    *chunks, _ = _events(client(ANSWER).post("/v1/completions", json=body | {"stream": True}))
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "It is 42, says the script."


def test_responses(client: Start) -> None:
    body = {"model": "m", "input": "What is 6 times 7?"}
    whole = client(ANSWER).post("/v1/responses", json=body).json()
    message, call = whole["output"]
    assert message["content"][0]["text"] == "It is 42, says the script."
    assert (call["name"], json.loads(call["arguments"])) == ("look", CALL)
    assert whole["usage"]["input_tokens_details"] == {"cached_tokens": 60}
    events = _events(client(ANSWER).post("/v1/responses", json=body | {"stream": True}))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["response"]["output"][0]["content"] == message["content"]
    for kind, text in (("output_text", "It is 42, says the script."), ("function_call_arguments", json.dumps(CALL))):
        assert "".join(event["delta"] for event in events if event["type"] == f"response.{kind}.delta") == text


def test_messages(client: Start) -> None:
    body = {"model": "m", "max_tokens": 100, "messages": [USER], "system": [{"type": "text", "text": "Be brief."}]}
    whole = client(ANSWER).post("/v1/messages", json=body).json()
    text, call = whole["content"]
    assert text["text"] == "It is 42, says the script."
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "look", CALL)
    assert whole["stop_reason"] == "tool_use"
    assert (whole["usage"]["input_tokens"], whole["usage"]["cache_read_input_tokens"]) == (40, 60)
    events = _events(client(ANSWER).post("/v1/messages", json=body | {"stream": True}))
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "It is 42, says the script."
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == CALL
    assert events[-2]["usage"] == {"output_tokens": 20}


GOOGLE = "/v1beta/models/m"


def _google_body(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"contents": contents or [{"role": "user", "parts": [{"text": "What is 6 times 7?"}]}], **more}


def test_gemini(client: Start) -> None:
    whole = client(ANSWER).post(f"{GOOGLE}:generateContent", json=_google_body()).json()
    (candidate,) = whole["candidates"]
    text, call = candidate["content"]["parts"]
    assert (text, call["functionCall"]) == ({"text": "It is 42, says the script."}, {"name": "look", "args": CALL})
    assert candidate["finishReason"] == "STOP"
    names = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    assert [whole["usageMetadata"][name] for name in names] == [100, 60, 15, 5]
    streamed = client(ANSWER).post(f"{GOOGLE}:streamGenerateContent?alt=sse", json=_google_body())
    *pieces, last = _events(streamed)
    assert (last["usageMetadata"], last["candidates"][0]["finishReason"]) == (whole["usageMetadata"], "STOP")
    parts = [part for piece in pieces for part in piece["candidates"][0]["content"]["parts"]]
    texts = [part["text"] for part in parts if "text" in part]
    assert len(texts) > 1
    assert "".join(texts) == text["text"]
    assert [part for part in parts if "text" not in part] == [call]


def test_answers_to_gemini_are_chosen_by_what_was_asked(client: Start) -> None:
    script = """
- {when: {tool: look, turn: 1, last: "d.nn"}, text: after the call}
- {when: {prompt: "be brief", model: "^m$"}, text: by the instructions, repeat: true}
- {status: 429, text: slower}
"""
    endpoint = client(script)
    call = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "dänn"}}}]}
    tools = [{"functionDeclarations": [{"name": "look"}]}]
    asked = [
        _google_body(systemInstruction={"parts": [{"text": "be brief"}]}),
        _google_body(_google_body()["contents"][0], call, result, tools=tools),
    ]
    answers = [endpoint.post(f"{GOOGLE}:generateContent", json=body).json() for body in asked]
    texts = [answer["candidates"][0]["content"]["parts"][0]["text"] for answer in answers]
    assert texts == ["by the instructions", "after the call"]
    for body in (asked[1], {"generateContentRequest": asked[1]}):
        assert endpoint.post(f"{GOOGLE}:countTokens", json=body).json()["totalTokens"] > 10
    fault = endpoint.post(f"{GOOGLE}:generateContent", json=_google_body())
    assert fault.status_code == 429
    assert fault.json()["error"] == {"code": 429, "message": "slower", "status": "RESOURCE_EXHAUSTED"}
    assert endpoint.post(f"{GOOGLE}:embedContent", json={}).status_code == 404
    for body in ([1], {"contents": [{"parts": 1}]}, {"tools": [1]}):
        assert endpoint.post(f"{GOOGLE}:generateContent", json=body).status_code == 400
        assert endpoint.post(f"{GOOGLE}:countTokens", json=body).status_code == 400


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", GEMINI])
def test_the_gateway_reads_every_api_that_it_speaks(tmp_path: Path, path: str, stream: bool) -> None:
    """Tokens, cost and the answer in the trace are those of the script."""
    usage = {"input": 100, "cached": 40, "output": 20, "reasoning": 5}
    answer = {"text": "It is 42.", "tool_calls": [{"name": "look", "arguments": CALL}], "usage": usage}
    with playing([answer], tmp_path) as url:
        access = plan_access(["m"], {"m": PRICE}, endpoint=url, budget="1usd")
        with front_of(access, tmp_path) as gate:
            assert gate.post(path, stream=stream, max_tokens=1000).status_code == 200
            counts, (line,) = gate.use, gate.trace
    cached_price = 0.5 * 40
    assert [counts[f"{name}_tokens"] for name in ("input", "cached", "output")] == [100, 40, 20]
    assert counts["cost"] == pytest.approx((2 * 60 + cached_price + 10 * 20) / 1e6)
    assert said(line["answer"]).splitlines()[0] == "It is 42."
    assert "look" in said(line["answer"])
    assert "dänn" in said(line["answer"]) or "d\\u00e4nn" in said(line["answer"])


def test_answers_are_chosen_by_what_was_asked(client: Start) -> None:
    script = """
- {when: "sev[e]n|7", text: by the last message, repeat: true}
- {when: {prompt: secret}, text: by any message, repeat: true}
- {when: {model: "^big"}, text: by the model, repeat: true}
- {when: {tool: look}, text: by a tool, repeat: true}
- {when: {turn: 2}, text: by the turn, repeat: true}
- {text: first of the rest}
- {text: second of the rest}
"""
    plain = client(script)
    other = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    assert _said(_chat(plain, other, OWN, USER)) == "by the last message"
    assert _said(_chat(plain, {"role": "system", "content": "a secret"}, USER | {"content": "x"})) == "by any message"
    assert _said(_chat(plain, other, model="big-one")) == "by the model"
    assert _said(_chat(plain, other, tools=[TOOL])) == "by a tool"
    assert _said(_chat(plain, USER, OWN, other, OWN, other)) == "by the turn"
    assert [_said(_chat(plain, other)) for _ in range(2)] == ["first of the rest", "second of the rest"]
    used_up = _chat(plain, other)
    assert used_up.status_code == 400
    assert "no answer" in used_up.json()["error"]["message"]


def test_the_model_s_items_of_one_answer_are_one_turn(client: Start) -> None:
    script = "[{when: {turn: 1}, text: one}, {text: not one}]"
    items = [USER, {"type": "reasoning"}, {"type": "function_call", "name": "look", "arguments": "{}"}]
    items.append({"type": "function_call_output", "output": "nothing"})
    answer = client(script).post("/v1/responses", json={"model": "m", "input": items}).json()
    assert answer["output"][0]["content"][0]["text"] == "one"


def test_a_line_is_replaced_by_a_file(client: Start) -> None:
    script = "- text: |\n    Run this:\n      <<program.py>>\n"
    said = _said(_chat(client(script, program="if 1:\n\n    print(1)\n")))
    assert said == "Run this:\n  if 1:\n\n      print(1)\n"


def test_faults(client: Start) -> None:
    script = """
- {status: 429, text: slower, headers: {Retry-After: 1}}
- {status: 500}
- {garbage: "<html>busy"}
- {garbage: "data: {oh\\n\\n"}
"""
    failing = client(script)
    slower = _chat(failing)
    assert (slower.status_code, slower.headers["retry-after"]) == (429, "1")
    assert slower.json()["error"] == {"message": "slower", "type": "rate_limit_error", "param": None, "code": None}
    assert _chat(failing).status_code == 500
    assert _chat(failing).text == "<html>busy"
    with pytest.raises(ValueError, match="Expecting"):
        _events(_chat(failing, stream=True))
    assert failing.post("/v1/messages", content=b"{").status_code == 400
    assert failing.post("/v1/messages", json=[1]).status_code == 400
    assert failing.get("/v1/models").json()["data"][0]["id"] == "scripted"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1", "must be a list of answers"),
        ("[]", "must be a list of answers"),
        ("[1]", "answer 1 must hold keys and values"),
        ("[{texts: a}]", "`texts` is not known; known are when, "),
        ("[{text: 1}]", "`text` must be str"),
        ("[{status: 99}]", "`status` must be from 200"),
        ("[{delay: true}]", "`delay` must be int"),
        ("[{when: '('}]", "`when.last` is not a regular expression"),
        ("[{when: {turn: a}}]", "`when.turn`: give"),
        ("[{usage: {total: 1}}]", "`usage.total`: give whole numbers for input, cached"),
        ("[{tool_calls: [{arguments: {}}]}]", "a tool call has a `name`"),
        ("[{text: <<missing.py>>}]", "cannot read .*missing.py, which the script includes"),
        ("[", "is not YAML"),
    ],
)
def test_a_wrong_script_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(text)
    with pytest.raises(PrerequisiteError, match=fault):
        read_script(str(tmp_path / "script.yaml"))


def test_scripts_that_ship_can_be_read() -> None:
    assert {"aide", "mlab", "openhands"} <= set(shipped())
    for name in shipped():
        read_script(name)
    with pytest.raises(PrerequisiteError, match=r"built-in scripts are aide, claude-code, .*, openhands"):
        read_script("nothing")


def test_the_page_describes_every_key_and_its_example_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/guides/models.md").read_text(encoding="utf-8")
    section = page.partition("## Try an agent without paying")[2].partition("\n## ")[0]
    keys, conditions = (
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
        for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    )
    assert keys == list(script.KEYS)
    assert conditions[1:] == list(script.CONDITIONS)
    (tmp_path / "solve.py").write_text("print(1)\n")
    (tmp_path / "script.yaml").write_text(section.partition("```yaml\n")[2].partition("```")[0])
    read_script(str(tmp_path / "script.yaml"))


def test_the_command_prints_its_url_first_logs_requests_and_cuts_connections(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text(json.dumps([{"text": "hello"}, {"text": "x" * 1000, "disconnect": True}]))
    command = [sys.executable, "-P", "-m", "mlebench", "dev", "scripted-model", str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stderr
        try:
            url = server.stdout.readline().strip()
            body = json.dumps({"model": "m", "messages": [USER]}).encode()
            request = urllib.request.Request(f"{url}/chat/completions", body)
            with urllib.request.urlopen(request, timeout=120) as answer:
                assert json.load(answer)["choices"][0]["message"]["content"] == "hello"
            with pytest.raises(httpx2.RemoteProtocolError, match="peer closed connection"):
                httpx2.post(f"{url}/chat/completions", content=body, timeout=120)
        finally:
            server.terminate()
            server.wait()
        assert server.stderr.read() == ""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["answer"] for line in lines] == [1, 2]
    assert lines[0]["request"]["messages"] == [USER]
