"""The model that is asked. Its answers are kept, so that no call is made twice, even after an interruption."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.gateway.wire import CHAT, COMPLETIONS
from mlebench.integrity.model_endpoint import ModelEndpoint, content_of

GREEDY = {"temperature": 0}
# Two ways to ask for the same thing: OpenAI's old one, and vLLM's own.
_WAYS = ({"echo": True, "logprobs": 1}, {"prompt_logprobs": 1})


class NoLogprobsError(PrerequisiteError):
    """The endpoint does not report how likely the tokens of a prompt are."""


@dataclass
class StudiedModel:
    endpoint: ModelEndpoint
    kept: Path  # the folder with earlier answers
    calls: int = 0  # actually made, not looked up
    _answers: dict[str, Any] = field(default_factory=dict)
    _sampling: dict[str, Any] = field(default_factory=lambda: dict(GREEDY))
    _way: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        access = self.endpoint.access
        name = hashlib.sha256(f"{access.endpoint}\n{self.endpoint.model}".encode()).hexdigest()[:16]
        self._file = self.kept / f"{name}.jsonl"
        if self._file.is_file():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                try:
                    self._answers |= json.loads(line)
                except ValueError:
                    continue  # a line that was cut off: its calls are made again

    def continue_all(self, system: str, prompts: Sequence[str]) -> list[str | None]:
        """The answers to chat prompts, in order; None for a prompt without an answer."""
        conversations = [[{"role": "system", "content": system}, {"role": "user", "content": text}] for text in prompts]
        bodies = [{"messages": messages, **self._sampling} for messages in conversations]
        try:
            self._look_up(CHAT, bodies[:1], content_of)
        except PrerequisiteError:  # some models refuse a temperature
            if not self._sampling:
                raise
            self._sampling = {}
            return self.continue_all(system, prompts)
        return self._look_up(CHAT, bodies, content_of)

    def token_logprobs(self, texts: Sequence[str]) -> list[list[float] | None]:
        """The log-probabilities of each text's tokens, except the first."""
        if not texts:
            return []
        if self._way is None:
            self._way = self._find_way(texts[0])
        return self._look_up(COMPLETIONS, [self._completion(text, self._way) for text in texts], tokens_of)

    def _find_way(self, text: str) -> dict[str, Any]:
        reason = "its answers have none"
        for way in _WAYS:
            try:
                if self._look_up(COMPLETIONS, [self._completion(text, way)], tokens_of)[0]:
                    return way
            except PrerequisiteError as error:
                reason = str(error)
        raise NoLogprobsError(f"the endpoint gives no log-probabilities of prompts: {reason}")

    @staticmethod
    def _completion(text: str, way: dict[str, Any]) -> dict[str, Any]:
        return {"prompt": text, "max_tokens": 1, **GREEDY, **way}

    def _look_up(self, path: str, bodies: list[dict[str, Any]], read: Callable[[Any], Any]) -> list[Any]:
        keys = [hashlib.sha256(json.dumps([path, body]).encode()).hexdigest() for body in bodies]
        missing = {key: body for key, body in zip(keys, bodies, strict=True) if key not in self._answers}
        if missing:
            self.calls += len(missing)
            answers = self.endpoint.call_all(path, list(missing.values()))
            readings = {key: read(answer) for key, answer in zip(missing, answers, strict=True)}
            self._keep({key: value for key, value in readings.items() if value is not None})
        return [self._answers.get(key) for key in keys]

    def _keep(self, new: dict[str, Any]) -> None:
        self._answers |= new
        if new:
            self.kept.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps({key: value})}\n" for key, value in new.items())


def tokens_of(answer: Any) -> list[float] | None:
    """The log-probabilities of the prompt's tokens in an answer; the first token has none."""
    match answer:
        case {"choices": [{"prompt_logprobs": [_, *tokens]}, *_]}:
            numbers = [_logprob(token) for token in tokens]
        case {"choices": [{"logprobs": {"token_logprobs": [_, *tokens]}}, *_], "usage": {"prompt_tokens": int(count)}}:
            # One token more is the answer's own; fewer than the prompt has means that the prompt is missing.
            numbers = tokens[: count - 1] if len(tokens) >= count - 1 else []
        case _:
            return None
    known = [float(number) for number in numbers if isinstance(number, float | int) and number <= 0]
    return known if known and len(known) == len(numbers) else None


def _logprob(token: Any) -> Any:
    """The log-probability of the prompt's own token, which comes first; likelier ones may follow it."""
    match token:
        case {**entries} if entries:
            first = next(iter(entries.values()))
            return first.get("logprob") if isinstance(first, dict) else first
    return None
