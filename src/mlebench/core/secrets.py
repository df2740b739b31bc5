"""What keys look like: one list for all code that looks for them, each part with its own policy.

Bundles are refused because of a key, so they look for what is *certain* to be one. What goes to a judge is scrubbed, so
whatever is *likely* to be one is removed. Whatever is certain is also likely.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

SHORTEST = 8  # characters; a shorter value may be an everyday word
# Names of variables whose values are secrets
CERTAIN_NAMES = re.compile(r".*(_KEY|_TOKEN|_SECRET)|.*PASSWORD.*", re.IGNORECASE)
LIKELY_NAMES = re.compile(r".*(KEY|TOKEN|SECRET|PASSW|CREDENTIAL).*", re.IGNORECASE)

_PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S]){0,16384}"
    r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
)


class KeyPattern(NamedTuple):
    """Patterns of one kind of key. Each starts at the beginning of a word, so that no text makes the search slow."""

    what: str
    certain: str  # if it has a group `secret`, only that is the key
    likely: str


FORMS = (
    KeyPattern("an Anthropic key", r"(?<![\w-])sk-ant-[\w-]{20,}", r"\bsk-ant-[\w-]{16,}"),
    KeyPattern("an OpenAI key", r"(?<![\w-])sk-(?!ant-)(?=[\w-]{0,200}[0-9])[\w-]{20,}", r"\bsk-[\w-]{16,}"),
    KeyPattern("an AWS key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    KeyPattern(
        "a GitHub token",
        r"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})",
    ),
    KeyPattern("a GitLab token", r"(?<![\w-])glpat-[\w-]{20,}", r"\bglpat-[\w-]{16,}"),
    KeyPattern("a Hugging Face token", r"(?<!\w)hf_[A-Za-z0-9]{30,}", r"\bhf_[A-Za-z0-9]{20,}"),
    KeyPattern("a Slack token", r"(?<!\w)xox[abeoprs]-[\w-]{10,}", r"\bxox[abeoprs]-[\w-]{10,}"),
    KeyPattern("a Google key", r"(?<![\w-])AIza[\w-]{35}(?![\w-])", r"\bAIza[\w-]{30,}"),
    KeyPattern(
        "a JSON web token",
        r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{5,}",
    ),
    KeyPattern("a private key", _PRIVATE_KEY, _PRIVATE_KEY),
    KeyPattern(
        "a Kaggle key",
        r"(?:KAGGLE_KEY\W{1,8}|\\?\"key\\?\"\s{0,8}:\s{0,8}\\?\")(?P<secret>[0-9a-f]{32})(?![0-9a-f])"
        r"|(?<!\w)KGAT_[A-Za-z0-9]{16,}",
        # Only with escaped quotes: `"key": "…"` is announced, and is found by that (`integrity.secrets`).
        r"(?:KAGGLE_KEY\W{1,8}|\\?\"key\\\"\s{0,8}:\s{0,8}\\?\")[0-9a-f]{32}|\bKGAT_[A-Za-z0-9]{16,}",
    ),
)


_ESCAPE = r"\\{1,16}"  # a backslash of JSON, doubled with each level of JSON around it; bounded, to be quick
_SHORT = {"/": "/", '"': '"', "\\": "\\", "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def spellings(value: str) -> str:
    """A pattern of everything that JSON can make of a value, also JSON within a text of JSON."""
    return "".join(map(_spellings, value))


def _spellings(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    ways = [re.escape(character), "".join(rf"{_ESCAPE}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))]
    if short := _SHORT.get(character):
        ways.append(_ESCAPE + re.escape(short))
    return f"(?:{'|'.join(ways)})"


def hiding(secret: str | None) -> Callable[[str], str]:
    """A function that takes a secret out of texts, however JSON spells it."""
    if not secret:
        return lambda text: text
    pattern = re.compile(spellings(secret))

    def hide(text: str) -> str:
        if "\\" not in text:  # nothing is escaped, as in most pieces of a stream
            return text.replace(secret, "[key]")
        return pattern.sub("[key]", text)

    return hide
