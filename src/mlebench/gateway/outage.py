"""Why no call of a run was answered, where that is not the agent's fault: a key, a model, an account, an endpoint."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from mlebench.core.untrusted import plain
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.wire import objects

CONNECTION, TIMEOUT, BAD_ANSWER, BUDGET = "connection", "timeout", "bad answer", "budget"
QUOTA, KEY, MODEL = "quota", "key", "model"  # added to a status that does not say so
PATIENCE = 60.0  # seconds without a byte of an answer; whoever hangs up earlier did not wait for it
LONGEST = 300  # characters quoted of what an endpoint says
_SAYS_QUOTA = re.compile(r"insufficient_quota|current quota|credit balance|billing|payment|out of credits", re.I)
_SAYS_MODEL = re.compile(
    r"model_not_found|\b(unknown|invalid|no such) model\b"
    r"|\bmodel\b.{0,200}\b(not found|not exist|does not exist|not a valid)\b",
    re.I | re.S,
)
_SAYS_KEY = re.compile(r"api[ _-]?key|user location is not supported", re.I)
_SAYS_CONTENT = re.compile(r"flagged|moderation|content[ _]policy", re.I)
# What errors call themselves, for those that arrive without a status of their own.
_STATUSES = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "overloaded_error": 529,
}


@dataclass(frozen=True)
class Outage:
    cause: str  # a status, perhaps with a word, or one of the words above
    says: str
    is_own_load: bool = False  # the agent had made unusually many calls, or a very large one

    @property
    def is_permanent(self) -> bool:
        """Whether every other call will fail in the same way until somebody acts."""
        return self.cause.endswith((QUOTA, KEY, MODEL)) or self.cause in ("401", "403", "404", CONNECTION)

    @property
    def is_local(self) -> bool:
        """Whether another host may fare better."""
        return self.cause == CONNECTION

    @property
    def may_be_provoked(self) -> bool:
        """Whether an agent could make its calls fail like this: on a wrong path, with odd requests, by flooding.

        Proxies answer 408, 502, 504 or 524 for an answer that takes too long, 403 for words that they take for an
        attack; some endpoints answer 401 or 403 on a path that they do not have.
        """
        provoked = ("401", "404", "408", "500", "502", "504", "524", TIMEOUT, BAD_ANSWER)
        return self.is_own_load or self.cause in provoked or self.cause.startswith(("400", "403"))

    def advice(self, access: ModelAccess) -> str:
        """Who must act, and how."""
        if self.cause.endswith(QUOTA):
            return "the account has no quota left: add credit, or use another key"
        if self.cause in ("401", "403") or self.cause.endswith(KEY):
            return f"check the key in {access.key_env}" if access.key_env else "name the key's variable with --key-env"
        if self.cause == "404" or self.cause.endswith(MODEL):
            return "check --model and --endpoint"
        if self.cause == BUDGET:
            return "raise --budget"
        if self.cause == "429":
            return "the endpoint takes fewer calls: use fewer workers, or try later"
        return f"check that {access.endpoint} serves the model"


def outage_of(status: int, error: Any) -> Outage | None:
    """Why an endpoint refused a call; None if it refused what this request asked for."""
    says = quoted(error)
    searched = f"{says} {' '.join(_names(error))}"
    cause = None
    if status == 402 or (status in (400, 403, 429) and _SAYS_QUOTA.search(searched) and not _is_rate(error)):
        cause = f"{status} {QUOTA}"
    elif status == 400 and _SAYS_MODEL.search(searched):
        cause = f"{status} {MODEL}"
    elif status == 400 and _SAYS_KEY.search(searched):
        cause = f"{status} {KEY}"
    elif status in (401, 404, 408, 429) or status >= 500 or (status == 403 and not _SAYS_CONTENT.search(searched)):
        cause = str(status)
    return Outage(cause, says or f"the endpoint answered {status}") if cause else None


def _is_rate(error: Any) -> bool:
    """Whether Google, which words both alike, means a limit for a minute and not the account's quota."""
    violations = [item for detail in _details(error) for item in objects(detail.get("violations"))]
    return any("PerMinute" in str(item.get("quotaId")) for item in violations)


def asked_pause(data: Any) -> float | None:
    """How many seconds Google's error asks to wait."""
    delays = [
        str(detail.get("retryDelay")) for detail in _details(data.get("error") if isinstance(data, dict) else None)
    ]
    return next((float(delay[:-1]) for delay in delays if re.fullmatch(r"\d{1,6}(\.\d{1,9})?s", delay)), None)


def _details(error: Any) -> list[dict[str, Any]]:
    return objects(error.get("details")) if isinstance(error, dict) else []


def status_of(error: Any) -> int:
    """The status that an error without one would have had; 502 if it does not say."""
    for name in _names(error):
        if name in _STATUSES:
            return _STATUSES[name]
        if re.fullmatch(r"[45]\d\d", name):
            return int(name)
    return 502


def quoted(error: Any) -> str:
    """What an error says, on one line."""
    match error:
        case str():
            return " ".join(plain(error[: 4 * LONGEST]).split())[:LONGEST]
        case {"message": str(text)} | {"detail": str(text)}:
            return quoted(text)
    return ""


def _names(error: Any) -> list[str]:
    """What an error calls itself."""
    return [str(error.get(key))[:100] for key in ("code", "type")] if isinstance(error, dict) else []


class Outages:
    """What a run's calls came to, as far as it decides whether the run had a model."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._says: dict[str, str] = {}
        self._under_own_load: set[str] = set()  # causes
        self._had_answer = False

    def answered(self) -> None:
        self._had_answer = True

    def failed(self, outage: Outage) -> None:
        self._counts[outage.cause] += 1
        self._says[outage.cause] = outage.says
        if outage.is_own_load:
            self._under_own_load.add(outage.cause)

    def to_dict(self) -> dict[str, Any] | None:
        """The most frequent cause, if no call was ever answered and not for what the agent asked."""
        if self._had_answer or not self._counts:
            return None
        ((cause, _),) = self._counts.most_common(1)
        return {"cause": cause, "says": self._says[cause], "under_own_load": cause in self._under_own_load}
