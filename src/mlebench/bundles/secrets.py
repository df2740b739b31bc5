"""Keys that must not leave the house: by the form of well-known ones, and by the values that this process has.

Bytes are searched as they are. What is compressed or encoded in another way cannot be searched.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

MARK = b"[secret removed by mlebench]"
SHORTEST = 8  # characters of a value that is looked for
MOST = 100  # places that are told, for each form and piece of a file
LONGEST = 1 << 15  # bytes of a secret that is found wherever it lies in a stream
_NAMED = re.compile(r".*(_KEY|_TOKEN|_SECRET)|.*PASSWORD.*", re.IGNORECASE)
# Each begins where a word begins, so that no text makes the search slow.
_FORMS = {
    "an Anthropic key": rb"(?<![\w-])sk-ant-[\w-]{20,}",
    "an OpenAI key": rb"(?<![\w-])sk-(?!ant-)(?=[\w-]{0,200}[0-9])[\w-]{20,}",
    "an AWS key": rb"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "a GitHub token": rb"(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})",
    "a Hugging Face token": rb"(?<!\w)hf_[A-Za-z0-9]{30,}",
    "a Slack token": rb"(?<!\w)xox[abeoprs]-[\w-]{10,}",
    "a Google key": rb"(?<![\w-])AIza[\w-]{35}(?![\w-])",
    "a JSON web token": rb"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "a private key": rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S]){0,16384}"
    rb"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
    "a Kaggle key": rb"(?:KAGGLE_KEY\W{1,8}|\\?\"key\\?\"\s{0,8}:\s{0,8}\\?\")(?P<secret>[0-9a-f]{32})(?![0-9a-f])"
    rb"|(?<!\w)KGAT_[A-Za-z0-9]{16,}",
}


class Found(NamedTuple):
    """Where a secret stands; never the secret itself."""

    line: int
    what: str


class Secrets:
    """Looks for secrets, and takes them out."""

    def __init__(self, environment: Mapping[str, str] = os.environ):
        self._forms = {what: re.compile(form, re.ASCII) for what, form in _FORMS.items()}
        for name, value in sorted(environment.items()):
            if _NAMED.fullmatch(name) and len(value) >= SHORTEST:
                spellings = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
                forms = sorted(re.escape(os.fsencode(one)) for one in spellings)
                self._forms[f"the value of ${name}"] = re.compile(b"|".join(forms))

    def find(self, data: bytes, line: int = 1) -> list[Found]:
        """The secrets in a text that begins with that line."""
        found: set[Found] = set()
        for what, form in self._forms.items():
            here, counted = line, 0
            for match in islice(form.finditer(data), MOST):  # an agent may print a million of them
                here += data.count(b"\n", counted, match.start())
                counted = match.start()
                found.add(Found(here, what))
        return sorted(found)

    def find_in(self, pieces: Iterable[bytes]) -> Iterator[Found]:
        """The secrets in a stream; one that lies across two pieces is found, and some may be found twice."""
        kept, line = b"", 1
        for piece in pieces:
            data = kept + piece
            yield from self.find(data, line)
            kept = data[-LONGEST:]
            line += data.count(b"\n", 0, len(data) - len(kept))

    def remove(self, data: bytes) -> bytes:
        for form in self._forms.values():
            data = form.sub(_marked, data)
        return data


def _marked(match: re.Match[bytes]) -> bytes:
    """Of a form that says what it looks at, only the secret goes."""
    if not (secret := match.groupdict().get("secret")):
        return MARK
    return match[0].replace(secret, MARK)
