"""How AIDE reaches a model. AIDE picks a provider by the model's name; here every name goes to the gateway."""
# pyright: reportMissingImports=false

import time
from typing import Any

import openai
from bench import Clock, Trajectory, is_budget
from review import read_review

TRIES = 3  # for an answer that can be read
ANSWER_SECONDS = 600.0  # for one answer
LONGEST_WAIT, PATIENCE = 60.0, 900.0  # seconds between tries, and before giving up
PASSING = (openai.RateLimitError, openai.APIConnectionError, openai.InternalServerError)


class ModelGoneError(Exception):
    """The model will not answer any more. Running out of budget or time is not the agent's fault."""

    def __init__(self, reason: str, exit_code: int = 1):
        super().__init__(reason)
        self.exit_code = exit_code


class ModelClient:
    def __init__(self, base_url: str, key: str, clock: Clock, trajectory: Trajectory):
        self._client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0)
        self._clock = clock
        self._trajectory = trajectory
        self._refused: set[str] = set()  # settings that the model does not accept
        self._lower_is_better: bool | None = None

    def query(
        self,
        system_message: Any,
        user_message: Any,
        model: str,
        temperature: float | None = None,
        func_spec: Any = None,
    ) -> Any:
        """In place of `aide.backend.query`: text, or the arguments of the function that AIDE asks for."""
        from aide.backend.utils import compile_prompt_to_md

        # Some models refuse a conversation without a user message, so AIDE's prompts are sent as the user's.
        parts = [compile_prompt_to_md(part) for part in (system_message, user_message) if part]
        request: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "\n\n".join(parts)}]}
        if temperature is not None:
            request["temperature"] = temperature
        if func_spec is None:
            return self._ask(request).content or ""
        request["tools"] = [func_spec.as_openai_tool_dict]
        request["tool_choice"] = func_spec.openai_tool_choice_dict
        return self._review(request, func_spec.name)

    def _review(self, request: dict[str, Any], function: str) -> dict[str, Any]:
        text = ""
        for _ in range(TRIES):
            message = self._ask(request)
            text = message.content or text
            calls = [call.function for call in message.tool_calls or [] if call.type == "function"]
            for arguments in (*(call.arguments for call in calls if call.name == function), message.content):
                if review := read_review(arguments):
                    return self._same_direction(review)
        # AIDE would fail without a review. A program that nobody could judge does not count.
        return {"is_bug": True, "summary": f"There is no review. {text}", "metric": None, "lower_is_better": True}

    def _same_direction(self, review: dict[str, Any]) -> dict[str, Any]:
        """AIDE fails when two reviews disagree about what is better, so the first one that has a metric decides."""
        if self._lower_is_better is None and not review["is_bug"] and review["metric"] is not None:
            self._lower_is_better = review["lower_is_better"]
        if self._lower_is_better is not None:
            review["lower_is_better"] = self._lower_is_better
        return review

    def _ask(self, request: dict[str, Any]) -> Any:
        first, wait = time.monotonic(), 1.5
        while True:
            began = time.monotonic()
            settings = {key: value for key, value in request.items() if key not in self._refused}
            try:
                seconds = min(ANSWER_SECONDS, max(1.0, self._clock.left()))
                answer = self._client.chat.completions.create(**settings, timeout=seconds)
            except openai.APIError as error:
                if self._is_passing(error, settings, time.monotonic() - first):
                    self._pause(wait, error)
                    wait = min(2 * wait, LONGEST_WAIT)
            else:
                self._tell(answer, time.monotonic() - began)
                return answer.choices[0].message

    def _is_passing(self, error: openai.APIError, settings: dict[str, Any], failing: float) -> bool:
        """Whether to wait before trying again: not if the model only refused a setting. Raises if it is hopeless."""
        if is_budget(error):
            raise ModelGoneError(f"budget: {error}", 0) from error
        if isinstance(error, openai.BadRequestError):
            if "temperature" not in settings or "temperature" not in str(error):
                raise error  # only this request is refused; the next one may work
            self._refused.add("temperature")
            return False
        if not isinstance(error, PASSING) or failing > PATIENCE:
            raise ModelGoneError(f"the model cannot be reached: {error}") from error
        return True

    def _pause(self, wait: float, error: openai.APIError) -> None:
        if self._clock.left() < wait:
            raise ModelGoneError("time", 0) from error
        print(f"the model cannot be reached, trying again in {wait:.0f} s: {error}", flush=True)
        time.sleep(wait)

    def _tell(self, answer: Any, seconds: float) -> None:
        usage = answer.usage
        details = (getattr(usage, "prompt_tokens_details", None), getattr(usage, "completion_tokens_details", None))
        self._trajectory.tell_step(
            "call",
            model=answer.model,
            input_tokens=getattr(usage, "prompt_tokens", None),
            cached_tokens=getattr(details[0], "cached_tokens", None),
            output_tokens=getattr(usage, "completion_tokens", None),
            reasoning_tokens=getattr(details[1], "reasoning_tokens", None),
            cost=None,
            seconds=round(seconds, 3),
        )
