"""A budget is never exceeded, whatever happens at the same time."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from endpoints import PRICE, Call, Endpoint, NewFront
from hypothesis import given
from hypothesis import strategies as st

from mlebench.gateway.access import Budget, ModelAccess
from mlebench.gateway.accounting import Ended, Ledger
from mlebench.gateway.policy import RefusedError, estimated_input
from mlebench.gateway.prices import Tokens

PROMPT = 100  # tokens that each call reports


def expensive(call: Call) -> None:
    """As much as the request allows."""
    limits = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    most = next(call.body[name] for name in limits if name in call.body)
    call.answer({"choices": [], "usage": {"prompt_tokens": PROMPT, "completion_tokens": most}})


@pytest.mark.parametrize("budget", ["20000tokens", "0.1usd"])
@pytest.mark.parametrize("limit", [{"max_tokens": 1000}, {}])
def test_parallel_calls_do_not_exceed_it(server: Endpoint, front: NewFront, budget: str, limit: dict[str, Any]) -> None:
    server.behave = expensive
    gate = front(budget=budget, models=("m",))
    text = "word " * PROMPT
    messages = [{"role": "user", "content": text}]
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda _: gate.post(messages=messages, **limit), range(60)))
    assert {answer.status_code for answer in done} == {200, 403}
    refused = next(answer for answer in done if answer.status_code == 403).json()["error"]
    assert refused["type"] == "budget_exceeded"
    assert budget in refused["message"]
    use = gate.use
    assert use["budget"]["exceeded"]
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


@pytest.mark.parametrize("value", [-1, 0, "many", 1.5, True])
def test_a_limit_that_is_not_a_number_is_refused(server: Endpoint, front: NewFront, value: object) -> None:
    """The gateway and the endpoint could read it differently."""
    assert front(budget="2000tokens").post(max_tokens=value).status_code == 400
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


@given(calls, st.sampled_from(["3000tokens", "0.01usd"]))
def test_reserved_and_spent_together_stay_within(items: list[Any], budget: str) -> None:
    """Calls that overlap in every order of beginning and ending."""
    access = ModelAccess("openai", "http://x", ("m",), budget=Budget.parse(budget), prices={"m": PRICE})

    async def play() -> None:
        ledger = Ledger(access, Path("/nowhere"))
        limit = access.budget.amount + 1e-9 if access.budget else 0

        async def one(input: int, asked: int | None, answers: int, share: float, end: str) -> None:
            try:
                reserved = await ledger.reserve("m", input, asked, answers)
            except RefusedError:
                return
            assert ledger.spent + ledger.reserved <= limit
            for _ in range(int(share * 5)):
                await asyncio.sleep(0)
            most = (asked or reserved.output or 0) * answers
            tokens = Tokens(input, 0, int(most * share)) if end == "known" else Tokens()
            ledger.settle(reserved, Ended("m", tokens, 0.0, is_answered=end != "failed"))
            assert ledger.spent + ledger.reserved <= limit

        await asyncio.wait_for(asyncio.gather(*(one(*item) for item in items)), 120)
        assert ledger.reserved == pytest.approx(0, abs=1e-9)

    asyncio.run(play())


def test_the_estimate_of_input_errs_on_the_high_side() -> None:
    prose = "The quick brown fox jumps over the lazy dog. " * 100  # about 1,000 tokens
    table = "0.1234567,12.5,-3\n" * 100  # 18 bytes, about 12 tokens a line
    for text, tokens in ((prose, 1000), (table, 800)):
        assert tokens <= estimated_input({"messages": [{"role": "user", "content": text}]}) < 4 * tokens
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    assert 1500 <= estimated_input(picture) < 20_000
