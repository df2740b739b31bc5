"""A model on loopback that knows some texts by heart, and guesses what comes next in others."""

import hashlib
import math
import random
from collections.abc import Callable
from typing import Any

from mlebench.integrity.familiarity.probes import sentences_of
from support.endpoints import Call

WORDS = ("the", "a", "model", "data", "label", "image", "of", "with", "test", "train", "each", "row", "value", "score")
LIKELY, UNLIKELY = 0.9, 0.2  # the probabilities of tokens in texts that it knows, and in others


def prose(seed: int, sentences: int = 60) -> str:
    """A text that nobody has ever seen."""
    rng = random.Random(seed)
    return " ".join(sentence(rng) for _ in range(sentences))


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(9, 16))).capitalize() + f" {rng.randint(0, 999)}."


def table(seed: int, rows: int = 200) -> str:
    """Ids that count, and values that nobody can guess."""
    rng = random.Random(seed)
    lines = [f"{number},{rng.choice(WORDS)},{rng.random():.6f},{rng.randint(0, 10**6)}" for number in range(rows)]
    return "\n".join(["id,kind,share,code", *lines, ""])


class Knowing:
    """Continues what it knows, with this share; otherwise it guesses: a sentence, or the line before once more."""

    def __init__(self, *texts: str, share: float = 1.0):
        self._texts = [form for text in texts for form in (text, " ".join(sentences_of(text)))]
        self._share = share

    def continuation(self, shown: str) -> str:
        seed = hashlib.sha256(shown.encode()).hexdigest()
        rng = random.Random(seed)
        if rng.random() < self._share:
            for text in self._texts:
                for part in (shown, shown.partition("\n")[2]):  # rows are below a header that is far away
                    if part and (place := text.find(part)) >= 0:
                        return text[place + len(part) :][:400]
        return shown.strip().rpartition("\n")[2] if "\n" in shown else sentence(rng)

    def knows(self, text: str) -> bool:
        return any(part in known for known in self._texts for part in (text, text.partition("\n")[2]) if part)


def chat(model: Knowing) -> Callable[[Call], None]:
    """An endpoint with only chat completions."""

    def behave(call: Call) -> None:
        if "chat" not in call.path:
            call.answer({"error": {"message": "there is no such API"}}, 404)
            return
        shown = call.body["messages"][1]["content"].partition("\n\n")[2]
        message = {"role": "assistant", "content": model.continuation(shown)}
        call.answer({"choices": [{"message": message}], "usage": {"prompt_tokens": 9, "completion_tokens": 9}})

    return behave


def telling(model: Knowing, way: str) -> Callable[[Call], None]:
    """One that also returns the log-probabilities of a prompt, if asked in one of the ways."""
    talk = chat(model)

    def behave(call: Call) -> None:
        if "chat" in call.path:
            talk(call)
        elif way not in call.body:
            call.answer({"error": {"message": f"this takes {way} only"}}, 400)
        else:
            call.answer(_scored(call.body["prompt"], model, way))

    return behave


def _scored(prompt: str, model: Knowing, way: str) -> dict[str, Any]:
    tokens = prompt.split()
    rng = random.Random(prompt)
    chance = LIKELY if model.knows(prompt) else UNLIKELY
    numbers = [math.log(chance * rng.uniform(0.9, 1.1)) for _ in tokens[1:]]
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
    if way == "echo":
        told: dict[str, Any] = {"logprobs": {"token_logprobs": [None, *numbers, -0.1]}}
    else:
        other = {"logprob": -0.01, "rank": 1, "decoded_token": "x"}
        own = [{"logprob": number, "rank": 7, "decoded_token": "y"} for number in numbers]
        told = {"prompt_logprobs": [None, *({"17": one, "3": other} for one in own)]}
    return {"choices": [{"index": 0, "text": prompt, **told}], "usage": usage}
