"""Asks the model through the chat completions API at OPENAI_BASE_URL. Standard library only."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LONGEST_CALL = 900.0  # seconds; a reasoning model may take that long
LONGEST_PAUSE = 60.0
Message = dict[str, str]


class BudgetOverError(Exception):
    """The run's model budget is used up."""


class TimeOverError(Exception):
    """The run's time is used up."""


class ModelGoneError(Exception):
    """The model refuses, or has not answered for a long time."""


@dataclass(frozen=True)
class Reply:
    text: str
    facts: dict[str, Any]  # tokens and time, in the trajectory's form


class ChatModel:
    def __init__(self, name: str, patience: float, seconds_left: Callable[[], float]):
        self.name = name
        self._patience = patience
        self._seconds_left = seconds_left
        self._url = f"{os.environ['OPENAI_BASE_URL'].rstrip('/')}/chat/completions"
        # The endpoint is on this machine's loopback, so no proxy is used.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, messages: list[Message]) -> Reply:
        """The answer to a conversation. Temporary failures are retried, with longer and longer pauses."""
        body = json.dumps({"model": self.name, "messages": messages}).encode()
        give_up = time.monotonic() + self._patience
        pause = 1.0
        while True:
            try:
                return self._ask_once(body)
            except _PassingError as error:
                pause = min(max(pause, error.wait), LONGEST_PAUSE)
                if self._seconds_left() < pause:
                    raise TimeOverError from None
                if time.monotonic() + pause > give_up:
                    raise ModelGoneError(f"the model has not answered for {self._patience:.0f} s: {error}") from None
                print(f"the model does not answer ({error}); next try in {pause:.0f} s", flush=True)
                time.sleep(pause)
                pause *= 2

    def _ask_once(self, body: bytes) -> Reply:
        key = os.environ.get("OPENAI_API_KEY", "none")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        begun = time.monotonic()
        try:
            request = urllib.request.Request(self._url, body, headers)
            with self._opener.open(request, timeout=max(1.0, min(LONGEST_CALL, self._seconds_left()))) as answer:
                return _reply(json.load(answer), time.monotonic() - begun)
        except urllib.error.HTTPError as error:
            raise _judged(error) from None
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            raise _PassingError(f"{type(error).__name__}: {error}") from None


class _PassingError(Exception):
    """A failure that may not happen again."""

    def __init__(self, fault: str, wait: float = 0.0):
        super().__init__(fault)
        self.wait = wait


def _judged(error: urllib.error.HTTPError) -> Exception:
    """The kind of failure that a status means. Only a temporary one is worth another try."""
    try:
        text = error.read(10_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        text = ""
    fault = f"HTTP {error.code}: {' '.join(text.split())[:300]}"
    if error.code == 403 and "budget_exceeded" in text:
        return BudgetOverError(fault)
    if error.code in (408, 409, 429) or error.code >= 500:
        wait = error.headers.get("Retry-After") or "0"
        return _PassingError(fault, float(wait) if wait.isdecimal() else 0.0)
    return ModelGoneError(f"the model refuses: {fault}")


def _reply(answer: Any, seconds: float) -> Reply:
    """What was said, and the tokens it took; None where the endpoint does not say."""
    text = answer["choices"][0]["message"]["content"] or ""
    usage = answer.get("usage") or {}
    facts = {
        "model": answer.get("model"),
        "input_tokens": usage.get("prompt_tokens"),
        "cached_tokens": (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
        "output_tokens": usage.get("completion_tokens"),
        "reasoning_tokens": (usage.get("completion_tokens_details") or {}).get("reasoning_tokens"),
        "cost": None,
        "seconds": round(seconds, 3),
    }
    return Reply(str(text), facts)
