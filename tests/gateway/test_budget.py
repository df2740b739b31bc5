"""A budget is never exceeded, whatever happens at the same time."""

import asyncio
import base64
import errno
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.endpoints import (
    GEMINI,
    KEY,
    PRICE,
    QUICK,
    TOKEN,
    Call,
    Endpoint,
    Front,
    NewFront,
    access_to,
    front_of,
    kind_of,
)
from support.waiting import wait_until

from mlebench.gateway.access import Budget, ModelAccess
from mlebench.gateway.accounting import MOST_NAMES, CallLedger, FinishedCall, Reservation
from mlebench.gateway.estimate import CallEstimate, estimate_call, estimated_input
from mlebench.gateway.policy import RequestRefusedError, check
from mlebench.gateway.prices import Price, TokenUsage
from mlebench.gateway.upstream import Exchange, Upstream
from mlebench.records.usage import read_usage

PROMPT = 100  # tokens that each call reports


def expensive(call: Call) -> None:
    """As much as the request allows."""
    limits = ("max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens")
    body = call.body | call.body.get("generationConfig", {})
    most = next(body[name] for name in limits if name in body)
    if "contents" in body:
        call.answer({"candidates": [], "usageMetadata": {"promptTokenCount": PROMPT, "thoughtsTokenCount": most}})
        return
    call.answer({"choices": [], "usage": {"prompt_tokens": PROMPT, "completion_tokens": most}})


@pytest.mark.parametrize("budget", ["20000tokens", "0.1usd"])
@pytest.mark.parametrize("limit", [{"max_tokens": 1000}, {}])
@pytest.mark.parametrize("path", ["/v1/chat/completions", GEMINI])
def test_parallel_calls_do_not_exceed_it(
    server: Endpoint, front: NewFront, path: str, budget: str, limit: dict[str, Any]
) -> None:
    server.behave = expensive
    gate = front(budget=budget, models=("m",))
    text = "word " * PROMPT
    asked = {"contents": [{"parts": [{"text": text}]}]} if path == GEMINI else {"messages": [{"content": text}]}
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda _: gate.post(path, **asked, **limit), range(60)))
    assert {answer.status_code for answer in done} == {200, 403}
    refused = next(answer for answer in done if answer.status_code == 403)
    assert kind_of(refused) == "budget_exceeded"
    assert budget in refused.json()["error"]["message"]
    use = gate.use
    assert use["budget"]["used_up"] + use["budget"]["not_enough"] == use["refusals"]["budget_exceeded"]
    assert use["budget"]["used"] <= use["budget"]["limit"]
    assert use["budget"]["used"] > 0.8 * use["budget"]["limit"], "most of it can be used"
    real = sum((PROMPT + call["output_tokens"]) for call in gate.trace if call["status"] == 200)
    assert real == use["input_tokens"] + use["output_tokens"]
    if budget.endswith("usd"):
        assert use["cost"] == pytest.approx(use["budget"]["used"])
        assert use["cost"] <= 0.1


def test_a_call_waits_for_those_in_progress(server: Endpoint, front: NewFront) -> None:
    """What they do not use is available to it."""
    first, may_end = threading.Event(), threading.Event()

    def behave(call: Call) -> None:
        if not first.is_set():
            first.set()
            may_end.wait(120)
        call.answer({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 10}})

    server.behave = behave
    gate = front(budget="2000tokens")
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(gate.post, max_tokens=1500)
        assert first.wait(120)
        other = pool.submit(gate.post, max_tokens=1500)
        may_end.set()
        assert (one.result().status_code, other.result().status_code) == (200, 200)


def test_an_answer_without_a_limit_gets_one(server: Endpoint, front: NewFront) -> None:
    gate = front(budget="3000tokens")
    for path, name in (
        ("/v1/chat/completions", "max_completion_tokens"),
        ("/v1/completions", "max_tokens"),
        ("/v1/responses", "max_output_tokens"),
    ):
        gate.post(path)
        assert 256 <= server.seen[-1].body[name] < 3000
    front(budget="3000tokens").post(GEMINI)
    assert 256 <= server.seen[-1].body["generationConfig"]["maxOutputTokens"] < 3000


def test_without_a_budget_requests_stay_as_they_are(server: Endpoint, front: NewFront) -> None:
    front().post(max_tokens=7, temperature=0.5)
    assert server.seen[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 7,
        "temperature": 0.5,
    }


def test_failed_calls_cost_nothing(server: Endpoint, front: NewFront) -> None:
    server.behave = lambda call: call.answer({"error": {"message": "no"}}, 400)
    gate = front(budget="1usd", models=("m",))
    assert gate.post().status_code == 400
    assert gate.use["budget"]["used"] == 0


def test_several_answers_are_reserved_for(front: NewFront) -> None:
    gate = front(budget="2000tokens")
    assert gate.post(max_tokens=900).status_code == 200
    assert gate.post(max_tokens=900, n=50).status_code == 403
    assert gate.post(GEMINI, max_tokens=900, generationConfig={"candidateCount": 50}).status_code == 403


@pytest.mark.parametrize("value", [-1, 0, "many", "100", 1.5, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", GEMINI])
def test_a_limit_that_is_not_a_number_is_refused(server: Endpoint, front: NewFront, path: str, value: object) -> None:
    """The gateway and the endpoint could read it differently."""
    assert front(budget="2000tokens").post(path, max_tokens=value).status_code == 400
    assert server.seen == []


calls = st.lists(
    st.tuples(
        st.integers(1, 500),  # input
        st.none() | st.integers(1, 800),  # asked for
        st.integers(1, 3),  # answers
        st.floats(0, 1),  # share of its limit that it uses
        st.sampled_from(["known", "unknown", "failed"]),
    ),
    max_size=30,
)


# What is left of reservations that were released may be a little more than nothing, for which a call once waited.
@example(
    [
        (204, 165, 1, 0.8422611720777766, "failed"),
        (204, 165, 1, 0.8422611720777766, "known"),
        (204, 165, 1, 0.8422611720777766, "known"),
        (475, None, 1, 1e-06, "failed"),
        (246, None, 1, 0.01603522429557192, "known"),
        (399, None, 3, 0.0, "known"),
    ],
    "0.01usd",
)
@given(calls, st.sampled_from(["3000tokens", "0.01usd"]))
def test_reserved_and_spent_together_stay_within(items: list[Any], budget: str) -> None:
    """Calls that overlap in every order of beginning and ending."""
    access = ModelAccess("openai", "http://x", ("m",), budget=Budget.parse(budget), prices={"m": PRICE})

    async def play() -> None:
        ledger = CallLedger(access, Path("/nowhere"))
        limit = access.budget.amount + 1e-9 if access.budget else 0

        async def one(input: int, asked: int | None, answers: int, share: float, end: str) -> None:
            try:
                reserved = await ledger.reserve(CallEstimate("m", input, asked, answers))
            except RequestRefusedError:
                return
            assert ledger.spent + ledger.reserved <= limit
            for _ in range(int(share * 5)):
                await asyncio.sleep(0)
            most = (reserved.output or asked or 0) * answers
            tokens = TokenUsage(input, 0, int(most * share)) if end == "known" else TokenUsage()
            ledger.settle(reserved, FinishedCall("m", tokens, 0.0, is_answered=end != "failed"))
            assert ledger.spent + ledger.reserved <= limit

        await asyncio.wait_for(asyncio.gather(*(one(*item) for item in items)), 120)
        assert ledger.reserved == pytest.approx(0, abs=1e-9)

    asyncio.run(play())


# Texts, and their tokens by the larger count of two tokenizers: o200k (OpenAI's) and Claude's
MEASURED = {
    "prose": ("The quick brown fox jumps over the lazy dog. " * 100, 1_001),
    "table": ("0.1234567,12.5,-3\n" * 1000, 12_000),
    "code": ("    for name, value in items.items():\n        total[name] = total.get(name, 0) + value\n" * 200, 5_201),
    "German": ("Natürlich könnte man auch größere Änderungen vornehmen, aber das würde länger dauern. " * 100, 2_801),
    "Chinese": ("我们使用训练数据来构建模型，然后在测试集上评估其性能。" * 100, 2_300),
    "noise": (base64.b64encode(random.Random(1).randbytes(60_000)).decode(), 56_392),
}


@pytest.mark.parametrize("name", MEASURED)
def test_the_estimate_of_input_is_close_to_what_tokenizers_count(name: str) -> None:
    text, tokens = MEASURED[name]
    assert 0.98 * tokens <= estimated_input({"messages": [{"role": "user", "content": text}]}) <= 2 * tokens


TEXT = "Natürlich könnte man auch größere Änderungen vornehmen. " * 1000
PICTURE = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(300_000)).decode()
ENCODED = base64.b64encode(TEXT.encode()).decode()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}},
        {"type": "document", "source": {"type": "text", "media_type": "image/png", "data": TEXT}},
        {"type": "text", "text": PICTURE[:21] + TEXT},
        {"type": "tool_use", "input": {"url": PICTURE[:21] + TEXT}},
        {"type": "tool_result", "content": [{"type": "text", "text": TEXT}]},
        {"type": "file", "file": {"file_data": ENCODED}},
        {"type": "file", "file": {"file_data": f"data:text/csv;base64,{ENCODED}"}},
        {"type": "file", "file": {"file_data": f"data:image/png;base64,{ENCODED}"}},
        {"type": "file", "file": {"file_data": PICTURE[:32] + ENCODED}},
        {"type": "file", "file": {"file_data": f"data:audio/wav;base64,{ENCODED}"}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}},
        {"type": "document", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": ENCODED}},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": ENCODED}},
        {"text": TEXT, "thought": True},
        {"inlineData": {"mimeType": "image/png", "data": ENCODED}},
        {"functionCall": {"name": "f", "args": {"data": PICTURE[22:] + TEXT}}},
        {"functionResponse": {"name": "f", "response": {"data": PICTURE[22:] + TEXT}}},
        {"functionResponse": {"name": "f", "parts": [{"inlineData": {"mimeType": "image/png", "data": ENCODED}}]}},
    ],
)
def test_text_counts_in_full_wherever_it_is(part: dict[str, Any]) -> None:
    plain = estimated_input({"messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}]}]})
    assert estimated_input({"messages": [{"role": "user", "content": [part]}]}) >= 0.99 * plain
    assert estimated_input({"contents": [{"role": "user", "parts": [part]}]}) >= 0.99 * plain


def test_a_picture_costs_what_providers_charge_at_most() -> None:
    for part in (
        {"image_url": {"url": PICTURE}},
        {"image_url": PICTURE},
        {"source": {"type": "base64", "data": PICTURE}},
    ):
        assert 5_000 <= estimated_input({"input": [{"content": [part]}]}) < 5_500
    inline = {"inlineData": {"mimeType": "image/png", "data": PICTURE.partition(",")[2]}}
    assert 5_000 <= estimated_input({"contents": [{"parts": [inline]}]}) < 5_500


@pytest.mark.parametrize("name", ["n", "best_of", "candidateCount"])
@pytest.mark.parametrize("value", ["100", 0, -1, 1.0, True, 129, [2]])
def test_a_number_of_answers_that_could_be_read_differently_is_refused(
    server: Endpoint, front: NewFront, name: str, value: Any
) -> None:
    asked: dict[str, Any] = {name: value}
    is_google = name == "candidateCount"
    answer = front().post(GEMINI, generationConfig=asked) if is_google else front().post(**asked)
    assert answer.status_code == 400
    assert server.seen == []


OPUS = Price(input=5, output=25, cached=0.5, cache_write=6.25, cache_write_long=10)
CACHED = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize("asked", [32_000, 64_000])
def test_claude_code_can_work_with_a_dollar(server: Endpoint, tmp_path: Path, asked: int) -> None:
    """Its first request has 117 kB of instructions and tools, to be cached, and may think for as long as it likes."""
    access = replace(access_to(server, ("m",), budget="1usd", provider="anthropic"), prices={"m": OPUS})
    text = "Use this tool to run a command in the sandbox, and to read what it prints.\n" * 1560
    with front_of(access, tmp_path) as gate:
        system = [{"type": "text", "text": text, **CACHED}]
        thinking = {"type": "enabled", "budget_tokens": asked - 1}
        answer = gate.post("/v1/messages", max_tokens=asked, system=system, thinking=thinking)
        assert answer.status_code == 200, answer.text
        assert 20_000 < server.seen[0].body["max_tokens"] <= asked
        assert gate.use["budget"]["shortened"] == (server.seen[0].body["max_tokens"] < asked)


@pytest.mark.parametrize(
    ("path", "mark", "price"),
    [
        ("/v1/messages", {}, 5),
        ("/v1/messages", CACHED, 6.25),
        ("/v1/messages", {"cache_control": {"type": "ephemeral", "ttl": "5m"}}, 6.25),
        ("/v1/messages", {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, 10),
        ("/v1/chat/completions", {}, 6.25),  # OpenAI caches without being asked
    ],
)
def test_cache_prices_count_only_where_the_request_asks_for_them(path: str, mark: dict[str, Any], price: float) -> None:
    access = ModelAccess("anthropic", "http://x", ("m",))
    parts = [{"type": "text", "text": "a", **mark}, {"type": "text", "text": "b"}]
    for body in ({"messages": [{"role": "user", "content": parts}]}, {"tools": [{"type": "function", **mark}]}, mark):
        if path == "/v1/chat/completions" or "tools" not in body:
            assert OPUS.dearest_input(estimate_call(path, check(path, {"model": "m", **body}, access)).cache) == price


def test_a_limit_is_lowered_to_what_is_left(server: Endpoint, front: NewFront) -> None:
    gate = front(budget="3000tokens")
    assert gate.post(max_tokens=50_000, max_completion_tokens=60_000).status_code == 200
    sent = server.seen[0].body
    assert 2_500 < sent["max_tokens"] == sent["max_completion_tokens"] < 3_000
    assert gate.use["budget"]["shortened"] == 1
    thinking = {"type": "enabled", "budget_tokens": 49_999}
    assert gate.post("/v1/messages", max_tokens=50_000, thinking=thinking).status_code == 200
    sent = server.seen[1].body
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": sent["max_tokens"] - 1}, "it must be lower"
    config = {"temperature": 0, "thinkingConfig": {"thinkingBudget": 49_999}}
    assert gate.post(GEMINI, max_tokens=50_000, generationConfig=config).status_code == 200
    sent = server.seen[2].body["generationConfig"]
    assert 2_000 < sent["maxOutputTokens"] < 3_000
    assert sent.items() > config.items()


def test_a_refusal_says_whether_the_budget_is_used_up(server: Endpoint, front: NewFront) -> None:
    server.behave = expensive
    gate = front(budget="3000tokens")
    told = [gate.post(messages=[{"role": "user", "content": "word " * 10_000}])]
    use = gate.use["budget"]
    assert (use["used"], use["exceeded"], use["used_up"], use["not_enough"]) == (0, False, 0, 1)
    assert gate.post().status_code == 200
    told.append(gate.post())
    use = gate.use["budget"]
    assert (use["exceeded"], use["used_up"], use["not_enough"]) == (True, 1, 1)
    assert {answer.json()["error"]["type"] for answer in told} == {"budget_exceeded"}
    assert ["used up" in answer.json()["error"]["message"] for answer in told] == [False, True]
    assert ["Not enough is left" in answer.json()["error"]["message"] for answer in told] == [True, False]


def test_text_with_more_tokens_than_estimated_is_reserved_for_once_that_is_known() -> None:
    """No tokenizer is here: an agent could choose a text with unusually many tokens."""

    async def play() -> tuple[float, float]:
        access = ModelAccess("openai", "http://x", ("m",), budget=Budget(1e6, "tokens"))
        ledger = CallLedger(access, Path("/nowhere"))
        before = await ledger.reserve(CallEstimate("m", 2000, 10))
        ledger.settle(before, FinishedCall("m", TokenUsage(6000, 0, 10), 0.0, is_answered=True))
        return before.amount, (await ledger.reserve(CallEstimate("m", 2000, 10))).amount

    assert asyncio.run(play()) == (2010, 6010)


def hang_up(gate: Front, happened: Callable[[], object], **body: Any) -> None:
    """Send a request, and close the connection once something has happened."""
    data = json.dumps({"model": "m", "messages": [], "max_tokens": 10_000, **body}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-api-key: {TOKEN}\r\nContent-Length: {len(data)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gate.port)) as connection:
        connection.sendall(head.encode() + data)
        wait_until(happened, "the moment to hang up has come")


def silent(call: Call) -> None:
    call.endpoint.hung.wait(200)


def headers_only(call: Call) -> None:
    call.send_response(200)
    call.send_header("content-type", "text/event-stream")
    call.end_headers()
    call.wfile.flush()
    call.endpoint.hung.wait(200)


@pytest.fixture
def hung(server: Endpoint) -> Iterator[threading.Event]:
    yield server.hung
    server.hung.set()


@pytest.mark.parametrize("behave", [silent, headers_only])
@pytest.mark.parametrize("stream", [False, True])
def test_calls_that_the_agent_drops_before_the_answer_are_charged(
    server: Endpoint, front: NewFront, hung: threading.Event, behave: Callable[[Call], None], stream: bool
) -> None:
    server.behave = behave
    gate = front(budget="1usd", models=("m",))
    for number in range(1, 4):
        hang_up(gate, lambda number=number: len(server.seen) == number, stream=stream)
        wait_until(lambda number=number: gate.use["calls"] == number, "the call is counted")
    use = gate.use
    assert 0.3 <= use["budget"]["used"] < 0.31, "10,000 tokens of output each, at 10 dollars a million"
    assert (use["calls_without_usage"], use["is_lower_bound"]) == (3, True)
    assert gate.gateway
    assert gate.gateway.ledger.reserved == pytest.approx(0)


def test_a_call_dropped_while_it_waits_for_another_costs_nothing() -> None:
    async def play() -> None:
        ledger = CallLedger(ModelAccess("openai", "http://x", ("m",), budget=Budget(1500, "tokens")), Path("/nowhere"))
        first = await ledger.reserve(CallEstimate("m", 10, 1000))
        second = asyncio.create_task(ledger.reserve(CallEstimate("m", 10, 1000)))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({second})
        assert ledger.reserved == first.amount
        ledger.settle(first, FinishedCall("m", TokenUsage(10, 0, 10), 0.0, is_answered=True))
        assert (ledger.reserved, ledger.spent) == (0, 20)

    asyncio.run(play())


def test_a_call_dropped_between_two_tries_costs_nothing(server: Endpoint) -> None:
    server.behave = lambda call: call.answer({"error": {"message": "no"}}, 503)

    async def play() -> None:
        async def ignore(*_: Any) -> None: ...

        timing = replace(QUICK, first_pause=60, longest_pause=60)
        upstream = Upstream(access_to(server), KEY, timing, time.monotonic() + 100)
        exchange = Exchange("/v1/chat/completions", False, False, ignore, ignore)
        call = asyncio.create_task(upstream.call(exchange, {}, {}))
        while not exchange.retries:
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait({call})
        await upstream.close()
        assert not exchange.may_cost

    asyncio.run(play())


def test_an_endpoint_that_falls_silent_may_still_charge(
    server: Endpoint, front: NewFront, hung: threading.Event
) -> None:
    server.behave = silent
    gate = front(timing=replace(QUICK, idle=0.5), budget="1usd", models=("m",))
    assert gate.post(max_tokens=10_000).status_code == 504
    assert gate.use["budget"]["used"] > 0.1


@pytest.mark.parametrize(
    "behave",
    [
        lambda call: call.answer({"error": {"message": "no"}}, 500),
        lambda call: call.answer({"error": {"message": "no"}}, 429),
        lambda call: call.stream({"error": {"message": "overloaded"}}),
        Call.cut,
    ],
    ids=["500", "429", "in a stream", "cut off"],
)
def test_errors_of_the_provider_and_failed_connections_cost_nothing(
    server: Endpoint, front: NewFront, behave: Callable[[Call], None]
) -> None:
    server.behave = behave
    gate = front(budget="1usd", models=("m",))
    gate.post(stream=True, max_tokens=10_000)
    use = gate.use
    assert (use["failed"], use["budget"]["used"], use["calls_without_usage"]) == (1, 0, 0)


def test_what_is_in_progress_when_the_run_ends_is_charged(
    server: Endpoint, hung: threading.Event, tmp_path: Path
) -> None:
    server.behave = silent
    with ThreadPoolExecutor(1) as pool, front_of(access_to(server, ("m",), budget="1usd"), tmp_path) as gate:
        pool.submit(gate.post, max_tokens=10_000)
        wait_until(lambda: server.seen, "the call is in progress")
    assert json.loads((tmp_path / "use.json").read_text())["budget"]["used"] > 0.1


def test_no_pattern_of_hanging_up_gets_more_than_the_budget(server: Endpoint, front: NewFront) -> None:
    """Each call that reaches the endpoint costs all it asks for, whether or not anybody waits for the answer."""
    chance = random.Random(7)

    def behave(call: Call) -> None:
        time.sleep(chance.random() / 50)
        expensive(call)

    server.behave = behave
    gate = front(budget="40000tokens")
    text = "word " * PROMPT  # about as many tokens as each call reports

    def call(number: int) -> None:
        hang_up(gate, lambda: time.sleep(number % 10 / 300) or True, max_tokens=1000, messages=[{"content": text}])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(call, range(120)))
    gate.post(max_tokens=1000, messages=[{"content": text}])  # those before it have been accepted by then
    assert gate.gateway
    ledger = gate.gateway.ledger
    wait_until(lambda: ledger.reserved == 0, "all calls have ended")
    true = sum(PROMPT + seen.body["max_tokens"] for seen in server.seen)
    assert 0 < true <= ledger.spent <= 40_000


def test_an_agent_cannot_make_a_budget_too_small(tmp_path: Path) -> None:
    """Its own huge request is refused, but that is not a model that it could not call."""
    access = ModelAccess("openai", "http://x", ("m",), budget=Budget.parse("500000tokens"), prices={"m": PRICE})
    assert not CallLedger(access, tmp_path / "use.json").is_too_small_for(CallEstimate("m", 5_000_000, 100, 1))
    small = ModelAccess("openai", "http://x", ("m",), budget=Budget.parse("100tokens"), prices={"m": PRICE})
    assert CallLedger(small, tmp_path / "use.json").is_too_small_for(CallEstimate("m", 5_000, 100, 1))
    assert not CallLedger(small, tmp_path / "use.json").is_too_small_for(CallEstimate("m", 5_000_000, 100, 1))


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_counts_that_a_full_disk_refused_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = CallLedger(ModelAccess("openai", "http://x", ("m",), prices={"m": PRICE}), tmp_path / "use.json")
    with monkeypatch.context() as patch:
        patch.setattr("mlebench.core.files.write_whole", _full)
        ledger.write()
    assert not (tmp_path / "use.json").exists()
    ledger.write()
    assert (tmp_path / "use.json").exists()


def test_a_disk_that_fills_up_during_a_run_still_takes_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the record would say that nothing was spent."""
    access = ModelAccess("openai", "http://x", ("m",), budget=Budget(5e5, "tokens"), prices={"m": PRICE})
    ledger = CallLedger(access, tmp_path / "model.json")
    ledger.write()
    size = (tmp_path / "model.json").stat().st_size
    monkeypatch.setattr("mlebench.core.files.write_whole", _full)
    for _ in range(3):
        ledger.settle(Reservation(0.0), FinishedCall("m", TokenUsage(100, 0, 10, 0), 1.0, is_answered=True))
    ledger.remove([f"field-{number}" for number in range(MOST_NAMES)])
    ledger.write()
    usage = read_usage(tmp_path)
    assert usage
    assert usage.budget
    assert (usage.calls, usage.budget.used) == (3, 330)
    assert (tmp_path / "model.json").stat().st_size == size
