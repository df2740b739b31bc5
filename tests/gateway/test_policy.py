"""What a request may not ask for, and paths that lead nowhere."""

import socket
from typing import Any

import pytest
from support.endpoints import GEMINI, KEY, TOKEN, Endpoint, NewFront, kind_of

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


def image(url: str) -> list[Any]:
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]


def source(**values: str) -> list[Any]:
    return [{"role": "user", "content": [{"type": "document", "source": values}]}]


def parts(*values: Any) -> list[Any]:
    return [{"role": "user", "parts": list(values)}]


def function_response(**more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "f", "response": {"output": "https://example.com"}, **more}}


GOOGLES_TOOLS = ("googleSearch", "googleSearchRetrieval", "urlContext", "codeExecution", "fileSearch", "googleMaps")
FORBIDDEN: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"web_search_options": {}, "tools": [{"type": "web_search"}]}, "web_search"),
    (CHAT, {"web_search_options": {"search_context_size": "low"}}, "web_search"),
    (CHAT, {"plugins": [{"id": "web"}]}, "plugins"),
    (CHAT, {"search_parameters": {"mode": "on"}}, "search_parameters"),
    (CHAT, {"data_sources": [{"type": "x"}]}, "data_sources"),
    (CHAT, {"messages": image("https://example.com/a.png")}, "url"),
    (CHAT, {"messages": image("file:///etc/passwd")}, "url"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "file_id"),
    (RESPONSES, {"tools": [{"type": "web_search_preview_2025_03_11"}]}, "web_search"),
    (RESPONSES, {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}, "file_search"),
    (RESPONSES, {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, "code_interpreter"),
    (RESPONSES, {"tools": [{"type": "mcp", "server_url": "https://example.com"}]}, "mcp"),
    (RESPONSES, {"tools": [{"type": "computer_use_preview"}]}, "computer_use"),
    (RESPONSES, {"tools": [{"type": "image_generation"}]}, "image_generation"),
    (RESPONSES, {"tools": [{"type": "invented_tomorrow"}]}, "invented_tomorrow"),
    (RESPONSES, {"tools": [{"no": "type"}]}, "None"),
    (RESPONSES, {"tools": {"type": "mcp"}}, "mcp"),
    (RESPONSES, {"input": [{"content": [{"type": "input_file", "file_url": "https://example.com"}]}]}, "url"),
    (RESPONSES, {"input": [{"content": [{"type": "input_image", "image_url": "https://example.com"}]}]}, "url"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "i"}]}, "item_reference"),
    (RESPONSES, {"previous_response_id": "r"}, "previous_response_id"),
    (RESPONSES, {"conversation": "c"}, "conversation"),
    (RESPONSES, {"background": True}, "background"),
    (RESPONSES, {"prompt": {"id": "p"}}, "prompt"),
    (MESSAGES, {"tools": [{"type": "web_search_20250305", "name": "w"}]}, "web_search"),
    (MESSAGES, {"tools": [{"type": "web_fetch_20250910", "name": "w"}]}, "web_fetch"),
    (MESSAGES, {"tools": [{"type": "code_execution_20250825", "name": "c"}]}, "code_execution"),
    (MESSAGES, {"mcp_servers": [{"url": "https://example.com"}]}, "mcp"),
    (MESSAGES, {"container": "c"}, "container"),
    (MESSAGES, {"messages": source(type="url", url="https://example.com/a.pdf")}, "url"),
    (MESSAGES, {"messages": source(type="file", file_id="f")}, "file_id"),
    *((GEMINI, {"tools": [{tool: {}}]}, tool) for tool in GOOGLES_TOOLS),
    (GEMINI, {"tools": [{"functionDeclarations": [{"name": "f"}], "google_search": {}}]}, "googleSearch"),
    (GEMINI, {"tools": {"url_context": {}}}, "urlContext"),
    (GEMINI, {"tools": [{"inventedTomorrow": {}}]}, "inventedTomorrow"),
    (GEMINI, {"tools": ["googleSearch"]}, "None"),
    (GEMINI, {"contents": parts({"fileData": {"fileUri": "https://example.com/a.mp4"}})}, "fileData"),
    (GEMINI, {"contents": parts({"file_data": {"file_uri": "files/f"}})}, "fileData"),
    (GEMINI, {"systemInstruction": parts({"fileData": {"fileUri": "gs://b/a"}})[0]}, "fileData"),
    (GEMINI, {"contents": parts(function_response(parts=[{"fileData": {"fileUri": "x"}}]))}, "fileData"),
    (GEMINI, {"contents": parts({"inlineData": {"mimeType": "image/png", "data": "https://example.com"}})}, "url"),
    (GEMINI, {"cachedContent": "cachedContents/c"}, "cachedContent"),
    (GEMINI, {"cached_content": "cachedContents/c"}, "cachedContent"),
]


@pytest.mark.parametrize(("path", "body", "name"), FORBIDDEN, ids=[f"{name} {path}" for path, _, name in FORBIDDEN])
def test_a_network_in_disguise_is_refused_unless_allowed_by_name(
    server: Endpoint, front: NewFront, path: str, body: dict[str, Any], name: str
) -> None:
    gate = front()
    answer = gate.post(path, max_tokens=9, **body)
    assert (answer.status_code, kind_of(answer)) == (403, "tool_not_allowed")
    assert name in answer.json()["error"]["message"]
    assert server.seen == []
    assert gate.use["refusals"] == {"tool_not_allowed": 1}
    assert gate.use["calls"] == 0
    allowed = front(tools=[name])
    assert allowed.post(path, max_tokens=9, **body).status_code != 403


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"url": {"type": "string"}}}}]}),
        (CHAT, {"messages": image("data:image/png;base64,AAAA")}),
        (CHAT, {"messages": [{"role": "user", "content": "see https://example.com"}], "temperature": 0.5, "n": 2}),
        (CHAT, {"tools": [], "web_search_options": None, "plugins": []}),
        (RESPONSES, {"tools": [{"type": "custom", "name": "c"}], "store": True, "input": "hi"}),
        (
            RESPONSES,
            {"input": [{"type": "function_call", "name": "get", "arguments": '{"url": "https://example.com"}'}]},
        ),
        (MESSAGES, {"tools": [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]}),
        (MESSAGES, {"messages": [{"content": [{"type": "tool_use", "input": {"url": "https://example.com"}}]}]}),
        (MESSAGES, {"messages": source(type="base64", media_type="application/pdf", data="AAAA")}),
        (
            GEMINI,
            {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"url": {}}}], "googleSearch": None}]},
        ),
        (GEMINI, {"contents": parts({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, function_response())}),
        (GEMINI, {"contents": parts({"text": "see https://example.com"}), "cachedContent": None, "tools": []}),
    ],
)
def test_what_stays_in_the_sandbox_is_allowed(front: NewFront, path: str, body: dict[str, Any]) -> None:
    assert front().post(path, max_tokens=9, **body).status_code == 200


@pytest.mark.parametrize(
    ("path", "tool", "reason"),
    [
        (CHAT, {"type": "web_search_preview"}, "it leads out of the sandbox"),
        (RESPONSES, {"type": "mcp", "server_url": "https://example.com"}, "it leads out of the sandbox"),
        (RESPONSES, {"type": "namespace", "tools": [{"type": "web_search"}]}, "it leads out of the sandbox"),
        (RESPONSES, {"type": "namespace", "tools": [{"type": "invented"}]}, "this kind of tool is unknown here"),
        (RESPONSES, {"type": "invented_tomorrow"}, "this kind of tool is unknown here"),
        (MESSAGES, {"type": "advisor_20260301", "name": "a"}, "this kind of tool is unknown here"),
        (MESSAGES, {"type": "web_fetch_20250910", "name": "w"}, "it leads out of the sandbox"),
        *((GEMINI, {tool: {}}, "it leads out of the sandbox") for tool in GOOGLES_TOOLS),
        (GEMINI, {"computerUse": {}}, "this kind of tool is unknown here"),
    ],
)
def test_a_refusal_says_whether_a_tool_leads_out_or_is_unknown(
    front: NewFront, path: str, tool: dict[str, Any], reason: str
) -> None:
    message = front().post(path, tools=[tool]).json()["error"]["message"]
    assert ("leads out" in message, "unknown" in message) == ("leads out" in reason, "unknown" in reason)
    assert reason in message


@pytest.mark.parametrize(
    ("tool", "name"),
    [("googleSearch", "web_search"), ("urlContext", "web_fetch"), ("codeExecution", "code_execution")],
)
def test_googles_tools_are_also_allowed_by_the_names_of_others(front: NewFront, tool: str, name: str) -> None:
    assert front(tools=[name]).post(GEMINI, tools=[{tool: {}}]).status_code == 200
    assert front(tools=["file_search"]).post(GEMINI, tools=[{tool: {}}]).status_code == 403


@pytest.mark.parametrize(
    ("path", "body"),
    [(RESPONSES, {"previous_response_id": "r"}), (GEMINI, {"cachedContent": "c"}), (RESPONSES, {"prompt": "p"})],
)
def test_what_a_provider_stores_is_called_stored(front: NewFront, path: str, body: dict[str, Any]) -> None:
    message = front().post(path, **body).json()["error"]["message"]
    assert "the provider stores" in message
    assert "leads out" not in message


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1beta/models/gpt-99:generateContent", {}, 403),
        ("/v1beta/models/m:generateContent", {"model": "models/gpt-99"}, 403),
        ("/v1beta/models/m:generateContent", {"generationConfig": {"modelSelectionConfig": {"x": 1}}}, 403),
        ("/v1beta/models/m:countTokens", {"generateContentRequest": {"model": "models/gpt-99"}}, 403),
        ("/v1beta/models/m%2f..%2f..%2ffiles:generateContent", {}, 403),
        ("/v1beta/models/m:generateContent", {"model": "models/m"}, 200),
        ("/v1beta/models/m:embedContent", {}, 405),
        ("/v1beta/files", {}, 404),
        ("/v1beta/cachedContents", {}, 404),
        ("/v1beta/tunedModels/m:generateContent", {}, 404),
        ("/v1beta/models/m:streamGenerateContent", {}, 400),
        ("/v1beta/models/m:streamGenerateContent?alt=json", {}, 400),
        ("/v1beta/models/m:generateContent?upload=x&alt=media", {}, 200),
    ],
)
def test_googles_paths_name_the_model(
    server: Endpoint, front: NewFront, path: str, body: dict[str, Any], status: int
) -> None:
    gate = front()
    answer = gate.client.post(f"http://127.0.0.1:{gate.port}{path}", json=body, headers={"x-goog-api-key": TOKEN})
    assert answer.status_code == status
    if status == 200:
        assert [seen.path for seen in server.seen] == [GEMINI], "nothing of its query is passed on"
    else:
        assert (server.seen, answer.json()["error"]["code"]) == ([], status)


def test_a_token_in_the_address_stands_nowhere(
    server: Endpoint, front: NewFront, caplog: pytest.LogCaptureFixture
) -> None:
    gate = front()
    url = f"http://127.0.0.1:{gate.port}{GEMINI}"
    with caplog.at_level("DEBUG"):
        for key, status in ((TOKEN, 200), (f"{TOKEN}x", 401), ("", 401)):
            assert gate.client.post(f"{url}?key={key}", json={"contents": parts({"text": "hi"})}).status_code == status
        assert gate.client.post(f"http://127.0.0.1:{gate.port}{CHAT}?key={TOKEN}", json={}).status_code == 401
    (seen,) = server.seen
    assert (seen.path, seen.headers["x-goog-api-key"]) == (GEMINI, KEY)
    assert TOKEN not in (gate.folder / "calls.jsonl").read_text()
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("httpx2")]  # our client
    assert TOKEN not in str(ours)


@pytest.mark.parametrize("body", [{"model": "gpt-99"}, {"model": None}, {"model": ["m"]}, {"models": ["m", "gpt-99"]}])
@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_only_the_models_of_the_run(server: Endpoint, front: NewFront, path: str, body: dict[str, Any]) -> None:
    answer = front().post(path, **body)
    assert answer.status_code == 403
    assert "m, other" in answer.json()["error"]["message"]
    assert server.seen == []


@pytest.mark.parametrize("token", ["", "x", TOKEN + "x", "ü"])
def test_only_the_token_of_the_run(server: Endpoint, front: NewFront, token: str) -> None:
    gate = front()
    answer = gate.client.post(
        f"http://127.0.0.1:{gate.port}{CHAT}", json={"model": "m"}, headers={b"x-api-key": token.encode()}
    )
    assert answer.status_code == 401
    assert server.seen == []
    assert gate.trace == []


@pytest.mark.parametrize(
    "target",
    [
        "POST http://example.com/v1/chat/completions",
        "POST http://127.0.0.1:{port}/v1/chat/completions",
        "POST //example.com/v1/chat/completions",
        "POST /v1/chat/completions/",
        "POST /v1/../v1/chat/completions",
        "POST /v1/%2e%2e/v1/files",
        "POST /v1/files",
        "POST /v1/chat/completions/../../../etc/passwd",
        "GET /v1/responses/r",
        "GET /v1beta/models/../files",
        "GET /v1beta/models/m:generateContent",
        "POST /v1beta/models",
        "POST http://example.com/v1beta/files",
        "GET /v1/models/../files",
        "DELETE /v1/chat/completions",
        "GET /v1/chat/completions",
        "GET /",
        "GET /etc/passwd",
        "CONNECT example.com:443",
        "CONNECT 127.0.0.1:{port}",
        "OPTIONS *",
        "TRACE /v1/models",
    ],
)
def test_nothing_else_can_be_reached(server: Endpoint, front: NewFront, target: str) -> None:
    gate = front()
    answer = raw(gate.port, target.replace("{port}", str(server.server_port)), "Host: example.com")
    assert answer.split(b" ")[1] in (b"400", b"404", b"405"), answer
    assert server.seen == []


def test_a_host_header_and_an_upgrade_lead_nowhere_else(server: Endpoint, front: NewFront) -> None:
    gate = front()
    tricks = ["Host: example.com", "X-Forwarded-Host: example.com", "Upgrade: websocket\r\nConnection: Upgrade"]
    for trick in tricks:
        host = "" if trick.startswith("Host") else "Host: localhost\r\n"
        assert b" 200 " in raw(gate.port, f"POST {CHAT}", host + trick, b'{"model": "m"}').splitlines()[0]
    assert [seen.headers["host"] for seen in server.seen] == [f"127.0.0.1:{server.server_port}"] * len(tricks)
    assert not any("forwarded" in str(seen.headers).lower() for seen in server.seen)


def raw(port: int, target: str, header: str, body: bytes = b"{}") -> bytes:
    """The response to a request that no proper client would send."""
    lines = [f"{target} HTTP/1.1", header, f"Authorization: Bearer {TOKEN}", f"Content-Length: {len(body)}"]
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return connection.recv(1 << 16)


def test_only_few_headers_are_passed_on(server: Endpoint, front: NewFront) -> None:
    gate = front()
    headers = {"x-api-key": TOKEN, "anthropic-version": "2023-06-01", "cookie": "a=b", "openai-organization": "o"}
    gate.client.post(f"http://127.0.0.1:{gate.port}{MESSAGES}", json={"model": "m", "max_tokens": 1}, headers=headers)
    sent = {name.lower() for name in server.seen[0].headers}
    assert "anthropic-version" in sent
    assert not sent & {"cookie", "openai-organization"}
    assert TOKEN not in str(server.seen)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b'{"model": 1e999}', b'{"model": "m", "n": NaN}', b"[" * 200_000]
)
def test_requests_that_are_not_json_objects(server: Endpoint, front: NewFront, body: bytes) -> None:
    gate = front()
    url, headers = f"http://127.0.0.1:{gate.port}{CHAT}", {"x-api-key": TOKEN}
    assert gate.client.post(url, content=body, headers=headers).status_code in (400, 403)
    assert server.seen == []


@pytest.mark.parametrize("field", ["messages", "metadata"])
def test_a_request_that_is_nested_too_deeply(server: Endpoint, front: NewFront, field: str) -> None:
    gate = front()
    deep: Any = "x"
    for _ in range(900):
        deep = [deep]
    assert gate.post(**{field: deep}).status_code == 400
    assert server.seen == []


def test_the_name_of_a_model_is_cut_in_the_trace(front: NewFront) -> None:
    """The request itself is shortened as a whole."""
    gate = front()
    assert gate.post(model="m" * 2_000_000).status_code == 403
    (line,) = gate.trace
    assert line["model"] == "m" * 200
    assert (gate.folder / "calls.jsonl").stat().st_size < 1_200_000


def test_requests_that_are_too_large(front: NewFront, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlebench.gateway.server.LARGEST_REQUEST", 1000)
    gate = front()
    assert gate.post(messages=["x" * 2000]).status_code == 413
