"""Finds likely secrets in texts: by their form, by a word that announces them, or as a value that this host has."""

import os
import re
from collections.abc import Mapping

from mlebench.core.secrets import FORMS, LIKELY_NAMES, SHORTEST, spellings

REPLACED = "[secret]"
_FORMS = re.compile("|".join(form.likely for form in FORMS))
# A word that announces a secret, and the secret; the word stays.
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
    """The text without secrets, and how many were removed."""
    count = 0
    values = {value for name, value in environment.items() if LIKELY_NAMES.fullmatch(name) and len(value) >= SHORTEST}
    for value in sorted(values, key=len, reverse=True):
        text, hits = re.subn(spellings(value), REPLACED, text)
        count += hits
    text, formed = _FORMS.subn(REPLACED, text)
    text, announced = _ANNOUNCED.subn(rf"\1{REPLACED}", text)
    return text, count + formed + announced
