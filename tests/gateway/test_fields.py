"""Fields of requests: known ones pass, those that lead out are refused by name, all others are removed."""

import contextlib
import json
import logging
from typing import Any

import pytest
from support.endpoints import GEMINI, PRICE, TOKEN, Endpoint, Front, NewFront, kind_of

from mlebench.gateway import policy
from mlebench.gateway.access import Budget, ModelAccess
from mlebench.gateway.apis import api_of
from mlebench.gateway.estimate import estimate_call
from mlebench.gateway.fields import GROUPS, KNOWN, opening
from mlebench.gateway.policy import RequestRefusedError

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES = "/v1/messages"
OTHER = "https://example.com/a"
HOUR = {"type": "ephemeral", "ttl": "1h"}


def say(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


def function(**more: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", "parameters": {"type": "object"}, **more}


# A path, what a request adds, and the name that the refusal mentions
LEADS_OUT: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"web_search_options": {}}, "web_search_options"),
    (CHAT, {"search_parameters": {}}, "search_parameters"),
    (CHAT, {"enable_search": True}, "enable_search"),
    (CHAT, {"webSearchOptions": {"x": 1}}, "webSearchOptions"),
    (CHAT, {"plugins": {}}, "plugins"),
    (CHAT, {"fallbacks": ["m"]}, "fallbacks"),
    (CHAT, {"context_window_fallbacks": [{"m": ["other"]}]}, "context_window_fallbacks"),
    (CHAT, {"api_base": OTHER}, "api_base"),
    (CHAT, {"base_url": OTHER}, "base_url"),
    (CHAT, {"API-Base": OTHER}, "API-Base"),
    (CHAT, {"extra_body": {"web_search_options": {}}}, "extra_body"),
    (CHAT, {"extra_headers": {"x": "y"}}, "extra_headers"),
    (CHAT, {"user_config": {"model_list": []}}, "user_config"),
    (CHAT, {"litellm_params": {"api_base": OTHER}}, "litellm_params"),
    (CHAT, {"provider": {"order": ["x"]}}, "provider"),
    (CHAT, {"preset": "p"}, "preset"),
    (CHAT, {"bootstrap_host": "example.com"}, "bootstrap_host"),
    (CHAT, {"kv_transfer_params": {"remote_host": "example.com"}}, "kv_transfer_params"),
    (CHAT, {"lora_path": "other"}, "lora_path"),
    (CHAT, {"custom_logit_processor": "x"}, "custom_logit_processor"),
    (CHAT, {"logits_processors": ["os.system"]}, "logits_processors"),
    (CHAT, {"service_tier": "priority"}, "service_tier"),
    (CHAT, {"modalities": ["text", "audio"]}, "modalities"),
    (CHAT, {"messages": say({"type": "image", "image": OTHER})}, "url"),
    (CHAT, {"messages": say({"type": "video", "video": [OTHER]})}, "url"),
    (CHAT, {"messages": say({"type": "video_url", "video_url": {"url": OTHER}})}, "url"),
    (CHAT, {"messages": say({"type": "audio_url", "audio_url": OTHER})}, "url"),
    (CHAT, {"messages": say({"type": "image_url", "image_url": {"url": "/etc/passwd"}})}, "url"),
    (CHAT, {"messages": say({"type": "image_url", "image_url": {"url": " data:image/png;base64,"}})}, "url"),
    (CHAT, {"messages": say({"type": "file", "file": {"file_data": OTHER}})}, "url"),
    (CHAT, {"messages": say({"type": "file", "file": OTHER})}, "url"),
    (CHAT, {"messages": say({"type": "image", "source": OTHER})}, "url"),
    (CHAT, {"messages": say({"type": "image", "data": [OTHER]})}, "url"),
    (CHAT, {"reasoning": {"mode": "pro"}}, "reasoning"),
    (CHAT, {"messages": [{"role": "system", "content": "x", "tools": [{"type": "web_search"}]}]}, "web_search"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"$ref": OTHER}}}]}, "url"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": {"$ref": OTHER}}}}}, "url"),
    (COMPLETIONS, {"prompt": [{"type": "image", "image": OTHER}]}, "url"),
    (RESPONSES, {"prompt": "a stored one"}, "prompt"),
    (RESPONSES, {"input": [{"id": "msg_1"}]}, "item_reference"),
    (RESPONSES, {"input": [{"type": None, "id": "msg_1"}]}, "item_reference"),
    (RESPONSES, {"input": [{"id": "msg_1", "unknown": 1}]}, "item_reference"),
    (RESPONSES, {"input": [{"id": "msg_1", "role": None}]}, "item_reference"),
    (RESPONSES, {"input": [{"type": "additional_tools", "tools": [{"type": "web_search"}]}]}, "web_search"),
    (RESPONSES, {"tools": [{"type": "namespace", "tools": [function(), {"type": "web_search"}]}]}, "namespace"),
    (RESPONSES, {"tools": [{"type": "namespace", "tools": [{"type": "namespace", "tools": []}]}]}, "namespace"),
    (RESPONSES, {"tools": [{"type": "namespace", "tools": {"type": "mcp"}}]}, "namespace"),
    (RESPONSES, {"tools": [{"type": ["function"]}]}, "function"),
    (GEMINI, {"serviceTier": "priority"}, "serviceTier"),
    (GEMINI, {"service_tier": "PRIORITY"}, "serviceTier"),
    (GEMINI, {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, "responseModalities"),
    (GEMINI, {"generationConfig": {"routingConfig": {"autoMode": {}}}}, "routingConfig"),
    (GEMINI, {"generationConfig": {"responseJsonSchema": {"a": {"$ref": OTHER}}}}, "url"),
    (GEMINI, {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"$ref": OTHER}}]}]}, "url"),
    (GEMINI, {"toolConfig": {"retrievalConfig": {"latLng": {}}}}, "retrievalConfig"),
    (GEMINI, {"mcpServers": [{"url": OTHER}]}, "mcpServers"),
    (MESSAGES, {"fallbacks": [{"model": "m"}]}, "fallbacks"),
    (MESSAGES, {"speed": "fast"}, "speed"),
    (MESSAGES, {"context_management": {"edits": [{"type": "compact_20260112"}]}}, "context_management"),
    (MESSAGES, {"tools": [{"type": "advisor_20260301", "name": "a", "model": "other"}]}, "advisor"),
    (MESSAGES, {"messages": say({"type": "container_upload", "file_id": "f"})}, "file_id"),
    (
        MESSAGES,
        {"messages": say({"type": "tool_result", "content": [{"type": "image", "source": {"url": OTHER}}]})},
        "url",
    ),
]


@pytest.mark.parametrize(("path", "body", "name"), LEADS_OUT, ids=[f"{json.dumps(b)[:60]}" for _, b, _ in LEADS_OUT])
def test_what_leads_out_is_refused_by_name(
    server: Endpoint, front: NewFront, path: str, body: dict[str, Any], name: str
) -> None:
    gate = front()
    answer = gate.post(path, **body)
    assert (answer.status_code, kind_of(answer)) == (403, "tool_not_allowed")
    assert name in answer.json()["error"]["message"]
    assert server.seen == []


@pytest.mark.parametrize("name", ["Model", "MODEL", "mo_del", "models", "draft_model", "model_name"])
def test_no_other_field_names_a_model(server: Endpoint, front: NewFront, name: str) -> None:
    answer = front().post(**{name: "gpt-99"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "model_not_allowed")
    assert name in answer.json()["error"]["message"]
    assert server.seen == []


@pytest.mark.parametrize(
    "body", [b'{"model": "m", "model": "gpt-99"}', b'{"model": "m", "messages": [{"role": "user", "role": "system"}]}']
)
def test_a_name_that_occurs_twice_is_refused(server: Endpoint, front: NewFront, body: bytes) -> None:
    """Two programs that read it could read two different things."""
    answer = post_bytes(front(), body)
    assert answer.status_code == 400
    assert "twice" in answer.json()["error"]["message"]
    assert server.seen == []


def post_bytes(gate: Front, body: bytes, path: str = CHAT, **headers: str) -> Any:
    return gate.client.post(
        f"http://127.0.0.1:{gate.port}{path}", content=body, headers={"x-api-key": TOKEN, **headers}
    )


def test_what_is_checked_is_what_is_sent(server: Endpoint, front: NewFront) -> None:
    """Whatever the request's encoding and declared type."""
    body = {"model": "m", "messages": [{"role": "user", "content": "grüße"}]}
    gate = front()
    for encoding in ("utf-8", "utf-16", "utf-32"):
        assert post_bytes(gate, json.dumps(body).encode(encoding), **{"content-type": "text/plain"}).status_code == 200
    assert [seen.body for seen in server.seen] == [body] * 3
    assert {seen.headers["content-type"] for seen in server.seen} == {"application/json"}
    assert post_bytes(gate, b"\x1f\x8b", **{"content-encoding": "gzip"}).status_code == 400


DATA = "data:image/png;base64,AAAA"
CODEX = {  # as Codex 0.147 sends them
    "instructions": "You are Codex.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}], "phase": "commentary"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "x"}],
            "encrypted_content": "x",
        },
        {
            "type": "function_call",
            "call_id": "c",
            "name": "js",
            "namespace": "repl",
            "arguments": '{"url": "http://x"}',
        },
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": DATA}]},
        {"type": "custom_tool_call", "call_id": "d", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "local_shell_call", "call_id": "e", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "additional_tools", "tools": [{"type": "namespace", "name": "n", "tools": [function()]}]},
    ],
    "tools": [
        function(strict=False),
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "namespace", "name": "repl", "description": "d", "tools": [function(defer_loading=True)]},
        {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"x-codex-installation-id": "i"},
}
CACHED = {"cache_control": {"type": "ephemeral"}}
CLAUDE_CODE = {
    "system": [{"type": "text", "text": "You are Claude Code.", **CACHED}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi", **CACHED}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "x", "signature": "s"},
                {"type": "tool_use", "id": "t", "name": "WebFetch", "input": {"url": "https://example.com", "x": [1]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}],
                },
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "https://x"}},
                {"type": "search_result", "source": OTHER, "title": "t", "content": [{"type": "text", "text": "x"}]},
            ],
        },
    ],
    "tools": [
        {"name": "Bash", "description": "d", "input_schema": {"$schema": "http://json-schema.org/draft-07/schema#"}},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 100},
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
    ],
    "metadata": {"user_id": "u"},
    "max_tokens": 32000,
    "thinking": {"type": "enabled", "budget_tokens": 31999},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "temperature": 1,
    "stream": True,
}
GEMINI_CLI = {  # as gemini-cli 0.61 sends them
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
        {
            "role": "model",
            "parts": [
                {"text": "x", "thought": True, "thoughtSignature": "s"},
                {"functionCall": {"id": "c", "name": "web_fetch", "args": {"url": OTHER, "file_uri": [1]}}},
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c", "name": "web_fetch", "response": {"output": OTHER}}}],
        },
    ],
    "systemInstruction": {"role": "user", "parts": [{"text": "You are Gemini CLI."}]},
    "tools": [
        {"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}]}
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "generationConfig": {
        "temperature": 0,
        "topP": 1,
        "topK": 64,
        "maxOutputTokens": 100,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"max_output_tokens": {"type": "integer"}}},
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 8192},
    },
}
SERVERS = {
    "vLLM": {
        "top_k": 20,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "use_beam_search": False,
        "stop_token_ids": [1],
        "chat_template_kwargs": {"enable_thinking": False},
        "guided_json": {"type": "object"},
        "ignore_eos": True,
        "structured_outputs": {"regex": "a+"},
        "documents": [{"text": "x"}],
        "continue_final_message": True,
    },
    "SGLang": {"regex": "a+", "ebnf": "x", "separate_reasoning": True, "no_stop_trim": True, "input_ids": [1, 2]},
    "llama.cpp": {
        "n_predict": 64,
        "mirostat": 2,
        "grammar": 'root ::= "a"',
        "cache_prompt": True,
        "samplers": ["top_k"],
        "dry_multiplier": 0.8,
        "xtc_probability": 0.1,
        "id_slot": 0,
        "typical_p": 1.0,
    },
    "OpenRouter": {"reasoning": {"max_tokens": 100}, "transforms": [], "usage": {"include": True}, "top_a": 0.1},
    "LiteLLM": {"drop_params": True, "metadata": {"a": "b"}},
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RESPONSES, CODEX),
        (MESSAGES, CLAUDE_CODE),
        (GEMINI, GEMINI_CLI),
        *((CHAT, {"messages": say({"type": "text", "text": OTHER}), **body}) for body in SERVERS.values()),
        (CHAT, {"messages": say({"type": "image_url", "image_url": {"url": DATA, "detail": "low"}})}),
        (CHAT, {"messages": say({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})}),
        (CHAT, {"messages": say({"type": "file", "file": {"file_data": "AAAA", "filename": "a.pdf"}})}),
        (CHAT, {"messages": say("x"), "tools": [{"type": "custom", "custom": {"name": "c", "description": "d"}}]}),
        (MESSAGES, {"messages": say({"type": "text", "text": "x", "cache_control": HOUR}), "max_tokens": 9}),
    ],
    ids=["Codex", "Claude Code", "Gemini CLI", *SERVERS, "image", "audio", "file", "custom tool", "cache for an hour"],
)
def test_what_leads_nowhere_passes_unchanged(
    server: Endpoint, front: NewFront, path: str, body: dict[str, Any]
) -> None:
    gate = front()
    whole = body if path == GEMINI else {"model": "m", **body}
    assert post_bytes(gate, json.dumps(whole).encode(), path).status_code in (200, 502)
    assert server.seen[0].body == whole
    assert gate.use["removed_fields"] == {}


def test_unknown_fields_are_removed_and_named(
    server: Endpoint, front: NewFront, caplog: pytest.LogCaptureFixture
) -> None:
    gate = front()
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi", "novel": {"u": OTHER}}], "x\n": "y"}]
    body = {"messages": messages, "invented": {"u": OTHER}, "metadata": {"a": "b", "tags": ["cheap"]}, "gone": None}
    with caplog.at_level(logging.WARNING, "mlebench.gateway.server"):
        assert [gate.post(**body).status_code for _ in range(3)] == [200] * 3
    sent = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert server.seen[0].body == {"model": "m", "messages": [sent], "metadata": {"a": "b"}}
    names = {"messages.novel", "messages.x\n", "invented", "metadata.tags"}
    assert gate.use["removed_fields"] == dict.fromkeys(names, 3)
    assert gate.trace[0]["request"]["invented"] == {"u": OTHER}, "the trace has what the agent sent"
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == len(names), "each is named once"
    assert not any("\n" in line for line in lines)
    allowed = front(fields=["invented", "novel", "fallbacks", "web_search_options"])
    body |= {"fallbacks": ["m"], "web_search_options": {}}
    assert allowed.post(**body).status_code == 200
    last = server.seen[-1].body
    assert (last["invented"], last["fallbacks"], last["web_search_options"]) == ({"u": OTHER}, ["m"], {})
    assert last["messages"][0]["content"][0]["novel"] == {"u": OTHER}
    assert "x\n" not in last["messages"][0]


def test_googles_two_spellings_are_one(server: Endpoint, front: NewFront) -> None:
    """Its clients send both, and what we do not see we could not refuse."""
    gate = front()
    schema = {"type": "object", "properties": {"max_tokens": {"type": "integer"}}}
    spelled = {
        "system_instruction": {"parts": [{"text": "x", "thought_signature": "s"}]},
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": schema}]}],
        "generation_config": {"max_output_tokens": 7, "thinking_config": {"include_thoughts": True}},
        "labels": {"a_b": "c"},
    }
    assert post_bytes(gate, json.dumps(spelled).encode(), GEMINI).status_code == 200
    assert server.seen[0].body == {
        "systemInstruction": {"parts": [{"text": "x", "thoughtSignature": "s"}]},
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}],
        "generationConfig": {"maxOutputTokens": 7, "thinkingConfig": {"includeThoughts": True}},
        "labels": {"a_b": "c"},
    }
    assert gate.trace[0]["request"] == spelled
    twice = {"generation_config": {}, "generationConfig": {"maxOutputTokens": 5}}
    answer = post_bytes(gate, json.dumps(twice).encode(), GEMINI)
    assert (answer.status_code, "twice" in answer.json()["error"]["message"]) == (400, True)
    assert len(server.seen) == 1


def test_unknown_fields_of_googles_groups_are_removed_and_named(server: Endpoint, front: NewFront) -> None:
    gate = front()
    config = {"temperature": 1, "speechConfig": {"x": OTHER}, "thinkingConfig": {"novel": 1, "thinkingLevel": "LOW"}}
    contents = [{"role": "user", "parts": [{"text": "x", "toolCall": {"toolType": "URL_CONTEXT"}}]}]
    assert gate.post(GEMINI, generationConfig=config, contents=contents, stream_options={}).status_code == 200
    sent = {"temperature": 1, "thinkingConfig": {"thinkingLevel": "LOW"}}
    assert server.seen[0].body == {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": sent}
    names = ("streamOptions", "generationConfig.speechConfig", "thinkingConfig.novel", "contents.toolCall")
    assert gate.use["removed_fields"] == dict.fromkeys(names, 1)
    gate = front(fields=["speechConfig", "toolCall"])
    assert gate.post(GEMINI, generationConfig=config, contents=contents).status_code == 200
    assert server.seen[1].body["generationConfig"]["speechConfig"] == {"x": OTHER}
    assert server.seen[1].body["contents"] == contents


@pytest.mark.parametrize("value", ['{"api_base": "https://example.com"}', ["x"], 1, True])
def test_metadata_that_is_no_object_is_removed(server: Endpoint, front: NewFront, value: Any) -> None:
    """LiteLLM parses a text, and obeys what is in it."""
    gate = front(fields=["metadata"])
    assert gate.post(metadata=value).status_code == 200
    assert "metadata" not in server.seen[0].body
    assert gate.use["removed_fields"] == {"metadata": 1}


# What Claude Code 2.1.326 sends by default, and other betas that its users and clients have
USUAL_BETAS = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,effort-2025-11-24,"
    "mid-conversation-tool-changes-2026-07-01,thinking-token-count-2026-05-13,advanced-tool-use-2025-11-20,"
    "fine-grained-tool-streaming-2025-05-14,prompt-caching-2024-07-31,prompt-caching-scope-2026-01-05,"
    "extended-cache-ttl-2025-04-11,output-128k-2025-02-19,context-1m-2025-08-07,token-efficient-tools-2025-02-19,"
    "structured-outputs-2025-11-13,computer-use-2025-11-24,token-counting-2024-11-01,task-budgets-2026-03-13"
)


def post_with(gate: Front, path: str = MESSAGES, **headers: str) -> Any:
    body = json.dumps({"model": "m", "messages": say({"type": "text", "text": "hi"}), "max_tokens": 9}).encode()
    return post_bytes(gate, body, path, **{name.replace("_", "-"): value for name, value in headers.items()})


def passed_on(server: Endpoint) -> dict[str, str]:
    own = ("host", "content-length", "content-type", "accept-encoding", "user-agent", "x-api-key", "authorization")
    return {name: value for name, value in server.seen[-1].headers.items() if name.lower() not in own}


def test_usual_betas_pass(server: Endpoint, front: NewFront) -> None:
    gate = front()
    assert post_with(gate, anthropic_version="2023-06-01", anthropic_beta=USUAL_BETAS).status_code == 200
    assert passed_on(server) == {"anthropic-version": "2023-06-01", "anthropic-beta": USUAL_BETAS}
    assert gate.use["removed_fields"] == {}


def test_no_other_header_passes(server: Endpoint, front: NewFront) -> None:
    gate = front()
    headers = {"x_forwarded_for": "1", "openai_beta": "assistants=v2", "x_litellm_api_base": OTHER, "cookie": "a=b"}
    assert post_with(gate, **headers).status_code == 200
    assert passed_on(server) == {}
    beta = {"anthropic_beta": "code-execution-2025-05-22", "anthropic_version": "x", "openai_organization": "o"}
    assert post_with(gate, CHAT, **beta).status_code == 200
    assert passed_on(server) == {}
    assert post_with(gate, anthropic_version="2023-06-01; x").status_code == 400


@pytest.mark.parametrize(
    ("beta", "tool"),
    [
        ("code-execution-2025-05-22", "code_execution"),
        ("web-fetch-2025-09-10", "web_fetch"),
        ("web-search-2025-03-05", "web_search"),
        ("files-api-2025-04-14", "file_id"),
        ("mcp-client-2025-11-20", "mcp"),
        ("skills-2025-10-02", "skills"),
        ("Managed-Agents-2026-04-01", None),
        ("server-side-fallback-2026-07-01", None),
        ("code-execution-web-tools-2099-01-01", "code_execution"),
    ],
)
def test_betas_that_lead_out_are_refused_by_name(
    server: Endpoint, front: NewFront, beta: str, tool: str | None
) -> None:
    answer = post_with(front(), anthropic_beta=f"effort-2025-11-24, {beta}")
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "tool_not_allowed")
    assert beta in answer.json()["error"]["message"]
    assert server.seen == []
    for gate in (front(fields=[beta]), front(tools=[tool] if tool else [], fields=[] if tool else [beta])):
        assert post_with(gate, anthropic_beta=beta).status_code == 200
        assert passed_on(server) == {"anthropic-beta": beta}


def test_unknown_betas_are_removed_and_named(
    server: Endpoint, front: NewFront, caplog: pytest.LogCaptureFixture
) -> None:
    gate = front()
    for _ in range(2):
        assert post_with(gate, anthropic_beta="novel-2099-01-01,,effort-2025-11-24,effort").status_code == 200
    assert passed_on(server) == {"anthropic-beta": "effort-2025-11-24"}
    assert gate.use["removed_fields"] == {"anthropic-beta.novel-2099-01-01": 2, "anthropic-beta.effort": 2}
    assert len(caplog.records) == 2
    assert post_with(front(fields=["novel-2099-01-01"]), anthropic_beta="novel-2099-01-01").status_code == 200
    assert passed_on(server) == {"anthropic-beta": "novel-2099-01-01"}


def test_a_header_that_occurs_twice_counts_as_a_list(server: Endpoint, front: NewFront) -> None:
    gate = front()
    twice = [("x-api-key", TOKEN), ("anthropic-beta", "effort-2025-11-24"), ("Anthropic-Beta", "skills-2025-10-02")]
    body = {"model": "m", "messages": [], "max_tokens": 9}
    assert gate.client.post(f"http://127.0.0.1:{gate.port}{MESSAGES}", json=body, headers=twice).status_code == 403
    assert server.seen == []


def test_which_names_open_something() -> None:
    assert opening(["temperature", "effort-2025-11-24", "skills-2025-10-02", "fallbacks"]) == [
        "skills-2025-10-02",
        "fallbacks",
    ]


def test_a_reference_to_a_tool_passes_and_a_definition_in_its_place_does_not(server: Endpoint, front: NewFront) -> None:
    gate = front()
    known = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "Bash"}}
    assert gate.post(MESSAGES, messages=say(known), max_tokens=9).status_code == 200
    assert server.seen[0].body["messages"] == say(known)
    hidden = {"type": "tool_addition", "tool": {"type": "web_fetch_20250910", "name": "web_fetch"}}
    assert gate.post(MESSAGES, messages=say(hidden), max_tokens=9).status_code == 403


def test_an_agent_that_invents_fields_fills_neither_record_nor_log(
    front: NewFront, caplog: pytest.LogCaptureFixture
) -> None:
    gate = front()
    with caplog.at_level(logging.WARNING, "mlebench.gateway.server"):
        for start in range(0, 300, 100):
            names: dict[str, Any] = {f"{number}{'x' * 10_000}": 1 for number in range(start, start + 100)}
            gate.post(**names)
    assert len(json.dumps(gate.use["removed_fields"])) < 10_000
    assert len(caplog.records) <= 50


VALUES = [None, True, 0, -1, 1.5, 10**300, "", "x", "\ud800", [], [None], [[1]], {}, {"type": 1}, {"": {"": ""}}]


@pytest.mark.parametrize("path", KNOWN)
def test_no_value_of_any_field_makes_the_check_fail(path: str) -> None:
    access = ModelAccess("openai", "http://x", ("m",), budget=Budget(1, "usd"), prices={"m": PRICE})
    nested = ("generationConfig", "thinkingConfig", "toolConfig", "functionCallingConfig", "generateContentRequest")
    known, path = KNOWN[path], path.format(model="m")
    for name in known - {"model"}:
        for value in VALUES:
            holder = {"type": value, "content": value, "tools": value, "source": value, "data": value}
            groups = [{group: dict.fromkeys(GROUPS[group], value)} for group in nested if group == name]
            holder |= {"parts": value, "functionDeclarations": value, "inlineData": value, "functionResponse": value}
            for item in (value, holder, [holder], *(group[name] for group in groups)):
                with contextlib.suppress(RequestRefusedError):
                    checked = policy.check(path, {"model": "m", name: item}, access)
                    if not api_of(path).is_free:
                        assert estimate_call(path, checked).input > 0
                        json.dumps(policy.as_sent(path, checked.body, 5))


def test_a_template_of_the_requests_own_needs_a_run_without_a_budget(server: Endpoint, front: NewFront) -> None:
    """A short one can repeat a text a million times."""
    template: dict[str, Any] = {"chat_template": "{{ x }}"}
    bodies: list[dict[str, Any]] = [template, {"chat_template_kwargs": template}]
    for body in bodies:
        assert front(budget="1000tokens").post(**body).status_code == 403
        assert front().post(**body).status_code == 200
    assert front(budget="1000tokens").post(chat_template_kwargs={"enable_thinking": False}).status_code == 200


def test_a_request_that_our_own_check_fails_on_is_refused(
    server: Endpoint, front: NewFront, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mlebench.gateway.policy.check", fail)
    gate = front()
    answer = gate.post()
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "ZeroDivisionError" in answer.json()["error"]["message"]
    assert server.seen == []
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [
        ("a request cannot be checked: ZeroDivisionError", None)
    ]
    assert gate.use["refusals"] == {"invalid_request_error": 1}
