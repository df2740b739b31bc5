"""Secrets in texts: the forms that keys have, and the values of this host's own variables that are named like keys."""

import os
import re
from collections.abc import Mapping

REPLACED = "[secret]"
_SHORTEST = 8  # characters of a variable's value that is no everyday word
_NAMED = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_FORMS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]{0,30}PRIVATE\ KEY-----.{0,6000}?(?:-----END\ [A-Z ]{0,30}PRIVATE\ KEY-----|\Z)
    | \bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}           # OpenAI, Anthropic, OpenRouter
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                         # AWS
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}   # GitHub
    | \bglpat-[\w-]{16,}                                    # GitLab
    | \bhf_[A-Za-z0-9]{20,}                                 # Hugging Face
    | \bKGAT_[A-Za-z0-9]{16,}                               # Kaggle
    | \bAIza[\w-]{30,}                                      # Google
    | \bxox[abprs]-[\w-]{10,}                               # Slack
    | \beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}                # a signed token
    """,
    re.VERBOSE | re.DOTALL,
)
# What follows a word that announces a secret; the word stays.
_ANNOUNCED = re.compile(
    r"""(\bauthorization["']?\s{0,3}[:=]\s{0,3}["']?(?:bearer|basic)\s{1,3}
       |(?:api[_-]?key|access[_-]?key|secret|password|passwd|auth[_-]?token|access[_-]?token)
        ["']?\s{0,3}[:=]\s{0,3}["']?
       |"key"\s{0,3}:\s{0,3}"(?=[0-9a-f]{32}")
       |\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:(?=[^\s/@]{1,200}@))
       ([^\s"',;@(){}\[\]]{8,})""",
    re.VERBOSE | re.IGNORECASE,
)


def scrubbed(text: str, environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """The text without secrets, and how many were taken out."""
    count = 0
    values = {value for name, value in environment.items() if _NAMED.search(name) and len(value) >= _SHORTEST}
    for value in sorted(values, key=len, reverse=True):
        count += text.count(value)
        text = text.replace(value, REPLACED)
    text, formed = _FORMS.subn(REPLACED, text)
    text, announced = _ANNOUNCED.subn(rf"\1{REPLACED}", text)
    return text, count + formed + announced
