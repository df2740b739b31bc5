"""What is planned for runs with a model: prices, endpoints, keys; and what is refused at once."""

import json
from pathlib import Path

import msgspec
import pytest

from mlebench.core.errors import PrerequisiteError
from mlebench.gateway.access import Budget, ModelAccess, plan_access, upstream_url
from mlebench.gateway.prices import Price, TokenUsage, find_price, read_prices
from mlebench.gateway.proxy import refuse_other_secrets

PRICES = read_prices()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MY_KEY"):
        monkeypatch.setenv(name, f"key-of-{name}")


def test_hand_worked_costs() -> None:
    price = Price(input=3, output=15, cached=0.3, cache_write=3.75, cache_write_long=6)
    million = 1_000_000
    assert price.cost(TokenUsage(million, 0, 0)) == 3
    assert price.cost(TokenUsage(million, million, 0)) == pytest.approx(0.3)
    assert price.cost(TokenUsage(million, 200_000, 100_000)) == pytest.approx(2.4 + 0.06 + 1.5)
    assert price.cost(TokenUsage(million, 0, 0, None, million)) == pytest.approx(3.75)
    assert price.cost(TokenUsage(million, 0, 0, None, million, million)) == 6
    assert Price(input=2, output=8).cost(TokenUsage(million, 500_000, 0)) == 2, "no price of its own: as other input"


def test_prices_of_versions_are_those_of_the_model() -> None:
    assert find_price("gpt-4o-2024-08-06", PRICES) == PRICES["gpt-4o"]
    assert find_price("claude-haiku-4-5-20251001", PRICES) == PRICES["claude-haiku-4-5"]
    assert find_price("gpt-4o-audio", PRICES) is None


def test_the_table_says_when_it_was_looked_up() -> None:
    table = json.loads(Path(plan_access.__code__.co_filename).with_name("prices.json").read_text())
    assert "check" in table["about"]
    assert table["looked_up"] >= "2026-11-16"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "needs an object `models`"),
        ('{"models": {"a": {"input": 1}}}', "`input` and `output`"),
        ('{"models": {"a": {"input": -1, "output": 1}}}', "`input` must be a number"),
        ('{"models": {"a": {"input": 1, "output": NaN}}}', "`output` must be a number"),
        ('{"models": {"a": {"input": 1, "output": 1, "inputs": 1}}}', "`inputs` is not known"),
    ],
)
def test_price_files_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(PrerequisiteError, match=words):
        read_prices(tmp_path / "p.json")


@pytest.mark.parametrize(
    ("models", "options", "provider", "endpoint", "key_env"),
    [
        (["gpt-5"], {}, "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        (["claude-opus-5"], {}, "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        (["x"], {"provider": "anthropic"}, "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
        (
            ["x"],
            {"endpoint": "https://api.anthropic.com/"},
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
        ),
        (
            ["gemini-2.5-pro"],
            {},
            "google",
            "https://generativelanguage.googleapis.com",
            "GEMINI_API_KEY",
        ),
        (["gemini-x"], {"endpoint": "http://127.0.0.1:8000"}, "openai", "http://127.0.0.1:8000", None),
        (
            ["gemini-x"],
            {"endpoint": "https://generativelanguage.googleapis.com/v1beta/openai"},
            "openai",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            None,
        ),
        (["claude-x"], {"endpoint": "http://127.0.0.1:8000/v1"}, "openai", "http://127.0.0.1:8000/v1", None),
        (["x"], {"endpoint": "https://h/api/v1", "key_env": "MY_KEY"}, "openai", "https://h/api/v1", "MY_KEY"),
    ],
)
def test_missing_options_are_filled_in(
    models: list[str], options: dict[str, str], provider: str, endpoint: str, key_env: str | None
) -> None:
    access = plan_access(models, PRICES, **options)
    assert (access.provider, access.endpoint, access.key_env) == (provider, endpoint, key_env)
    assert ModelAccess.from_facts(access.facts()) == access
    assert "key-of" not in msgspec.json.encode(access.facts()).decode()


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ([], {}, "--model"),
        (["unheard-of"], {"budget": "5usd"}, "--prices FILE"),
        (["gpt-5"], {"budget": "five"}, "5usd or 200000tokens"),
        (["gpt-5"], {"budget": "0usd"}, "5usd or 200000tokens"),
        (["gpt-5"], {"endpoint": "ftp://h"}, "http:// or https://"),
        (["gpt-5"], {"endpoint": "https://user:secret@h/v1"}, "plain address"),
        (["gpt-5"], {"endpoint": "https://h/v1?key=secret"}, "plain address"),
        (["gpt-5"], {"endpoint": "https://h:99999/v1"}, "not a URL"),
        (["gpt-5"], {"key_env": "UNSET_KEY"}, "set the variable UNSET_KEY"),
        (["gpt-5-search-api"], {}, "--allow-tool web_search"),
        (["o3-deep-research"], {}, "--allow-tool web_search"),
    ],
)
def test_impossible_requests_are_refused(models: list[str], options: dict[str, str], words: str) -> None:
    with pytest.raises(PrerequisiteError, match=words):
        plan_access(models, PRICES, **options)


def test_tokens_need_no_price() -> None:
    assert plan_access(["unheard-of"], PRICES, budget="1000tokens").budget == Budget(1000, "tokens")


@pytest.mark.parametrize(
    ("endpoint", "path", "url"),
    [
        ("https://api.openai.com/v1", "/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
        ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com", "/v1/chat/completions", "https://api.anthropic.com/v1/chat/completions"),
        ("http://127.0.0.1:8000/v1", "/v1/messages", "http://127.0.0.1:8000/v1/messages"),
        ("https://h/api/v1/", "/v1/responses", "https://h/api/v1/responses"),
        ("https://h/v1beta/openai", "/v1/chat/completions", "https://h/v1beta/openai/chat/completions"),
        ("https://h/anthropic", "/v1/messages", "https://h/anthropic/v1/messages"),
        ("https://h", "/v1beta/models/m:generateContent", "https://h/v1beta/models/m:generateContent"),
        ("https://h/v1beta/", "/v1beta/models/m:countTokens", "https://h/v1beta/models/m:countTokens"),
        ("http://h/v1", "/v1/models/m:generateContent", "http://h/v1/models/m:generateContent"),
        (
            "https://h/g",
            "/v1beta/models/a/b c?:generateContent",
            "https://h/g/v1beta/models/a/b%20c%3F:generateContent",
        ),
        (
            "https://h",
            "/v1beta/models/m:streamGenerateContent",
            "https://h/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
    ],
)
def test_upstream_urls(endpoint: str, path: str, url: str) -> None:
    assert upstream_url(endpoint, path) == url


def test_only_providers_keys_count_as_known_secrets() -> None:
    refuse_other_secrets([("OPENAI_API_KEY", "OPENAI_API_KEY"), ("KEY", "GEMINI_API_KEY"), ("OPENAI_BASE_URL", "URL")])
    with pytest.raises(PrerequisiteError, match="HF_TOKEN"):
        refuse_other_secrets([("HF_TOKEN", "HF_TOKEN")])
