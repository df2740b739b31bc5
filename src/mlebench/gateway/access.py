"""Which models a run may use, where, with which key, and for how much. Decided when runs are planned."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from mlebench.core.errors import PrerequisiteError
from mlebench.gateway.prices import Price, find_price, price_of
from mlebench.records.group import ModelFacts

OPENAI, ANTHROPIC, GOOGLE = PROVIDERS = ("openai", "anthropic", "google")
ENDPOINTS = {
    OPENAI: "https://api.openai.com/v1",
    ANTHROPIC: "https://api.anthropic.com",
    GOOGLE: "https://generativelanguage.googleapis.com",
}
KEYS = {OPENAI: "OPENAI_API_KEY", ANTHROPIC: "ANTHROPIC_API_KEY", GOOGLE: "GEMINI_API_KEY"}
USD, TOKENS = "usd", "tokens"
SEARCH = "web_search"
# Models that search the web by themselves, whatever the request says.
_SEARCHING = re.compile(r"(^|[-/])search(-|$)|deep-research|:online\b|(^|/)sonar")
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(usd|tokens)", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """The most that one attempt at a run may use."""

    amount: float
    unit: str

    @classmethod
    def parse(cls, text: str) -> "Budget":
        match = _BUDGET.fullmatch(text.strip())
        if match is None or not float(match[1]):
            raise PrerequisiteError(f"{text!r} is not a budget; write 5usd or 200000tokens")
        return cls(float(match[1]), match[2].lower())

    def __str__(self) -> str:
        return f"{self.amount:g}{self.unit}" if self.unit == USD else f"{self.amount:.0f}{self.unit}"


@dataclass(frozen=True)
class ModelAccess:
    """Models, their endpoint and budget. Never the key itself, only the variable that holds it."""

    provider: str
    endpoint: str
    models: tuple[str, ...]  # the allow-list; the first is the default
    key_env: str | None = None  # None: the endpoint needs no key
    budget: Budget | None = None
    tools: tuple[str, ...] = ()  # provider-side tools that are allowed
    prices: Mapping[str, Price] = field(default_factory=dict)
    fields: tuple[str, ...] = ()  # of requests, opened although they are unknown or lead out

    def facts(self) -> ModelFacts:
        """What a group's record holds."""
        return ModelFacts(
            provider=self.provider,
            endpoint=self.endpoint,
            models=list(self.models),
            key_env=self.key_env,
            budget=str(self.budget) if self.budget else None,
            tools=list(self.tools),
            prices={model: price.to_dict() for model, price in self.prices.items()},
            fields=list(self.fields),
        )

    @classmethod
    def from_facts(cls, facts: ModelFacts) -> "ModelAccess":
        return cls(
            provider=facts.provider,
            endpoint=facts.endpoint,
            models=tuple(facts.models),
            key_env=facts.key_env,
            budget=Budget.parse(facts.budget) if facts.budget else None,
            tools=tuple(facts.tools),
            prices={model: price_of(entry, model) for model, entry in facts.prices.items()},
            fields=tuple(facts.fields),
        )

    def key(self) -> str | None:
        """The key, from this process's environment."""
        if self.key_env is None:
            return None
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise PrerequisiteError(
                f"the key for {self.endpoint} is missing: set the variable {self.key_env}, or use --key-env"
            )
        if not key.isascii() or not key.isprintable():
            raise PrerequisiteError(
                f"the variable {self.key_env} does not hold a key: it has characters that no key has"
            )
        return key


def plan_access(
    models: Sequence[str],
    table: Mapping[str, Price],
    *,
    provider: str | None = None,
    endpoint: str | None = None,
    key_env: str | None = None,
    budget: str | None = None,
    tools: Sequence[str] = (),
    fields: Sequence[str] = (),
) -> ModelAccess:
    """Fill in what was not given, and refuse what cannot work."""
    if not models:
        raise PrerequisiteError("`--network model` needs a model: name it with --model")
    provider = provider or _provider(models[0], endpoint)
    own = ENDPOINTS[provider]
    endpoint = _checked_endpoint(endpoint or own)
    if key_env is None and urlsplit(endpoint).hostname == urlsplit(own).hostname:
        key_env = KEYS[provider]  # any other endpoint gets it only if it is named
    prices = {model: price for model in models if (price := find_price(model, table))}
    access = ModelAccess(
        provider,
        endpoint,
        tuple(dict.fromkeys(models)),
        key_env,
        Budget.parse(budget) if budget else None,
        tuple(dict.fromkeys(tools)),
        prices,
        tuple(dict.fromkeys(fields)),
    )
    _refuse(access)
    return access


def _refuse(access: ModelAccess) -> None:
    unpriced = [model for model in access.models if model not in access.prices]
    if unpriced and access.budget and access.budget.unit == USD:
        raise PrerequisiteError(
            f"a budget in dollars needs the price of {unpriced[0]}, which is not known: give it with --prices FILE"
        )
    searching = [model for model in access.models if _SEARCHING.search(model)]
    if searching and SEARCH not in access.tools:
        raise PrerequisiteError(
            f"{searching[0]} searches the web by itself: allow it with `--allow-tool {SEARCH}`, or use another model"
        )
    access.key()


def _provider(model: str, endpoint: str | None) -> str:
    parts = urlsplit(endpoint or "")
    host = parts.hostname or ""
    if "anthropic" in host or (not host and model.startswith("claude")):
        return ANTHROPIC
    is_google = host == urlsplit(ENDPOINTS[GOOGLE]).hostname and not parts.path.endswith("/openai")
    return GOOGLE if is_google or (not host and model.startswith("gemini")) else OPENAI


def _checked_endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port != 0
    except ValueError:
        raise PrerequisiteError(f"--endpoint: {text!r} is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise PrerequisiteError(f"--endpoint: {text!r} must begin with http:// or https:// and name a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PrerequisiteError("--endpoint must be a plain address: keys go into the variable that --key-env names")
    return text.rstrip("/")


def upstream_url(endpoint: str, path: str) -> str:
    """The full URL of a path. OpenAI's clients take a base URL with `/v1`, the others one without."""
    base = endpoint.rstrip("/")
    if path.startswith(("/v1beta/", "/v1/models/")):
        is_stream = path.endswith(":streamGenerateContent")
        return base.removesuffix("/v1beta").removesuffix("/v1") + quote(path, safe="/:") + "?alt=sse" * is_stream
    if path.startswith("/v1/messages"):
        return base.removesuffix("/v1") + path
    return base + path if not urlsplit(base).path else base + path.removeprefix("/v1")
