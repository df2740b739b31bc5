"""Finds keys that must not be given away: certain by their form, or equal to a secret of this process.

Raw bytes are searched. Compressed or otherwise encoded content cannot be.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from mlebench.core.secrets import CERTAIN_NAMES, FORMS, SHORTEST, spellings

MARK = b"[secret removed by mlebench]"
MOST = 100  # places reported, for each form and piece of a file
LONGEST = 1 << 15  # bytes; secrets up to this length are found anywhere in a stream


class SecretMatch(NamedTuple):
    """Where a secret is; never the secret itself."""

    line: int
    what: str


class SecretScanner:
    """Looks for secrets, and takes them out."""

    def __init__(self, environment: Mapping[str, str] = os.environ):
        self._forms = {form.what: re.compile(form.certain.encode(), re.ASCII) for form in FORMS}
        for name, value in sorted(environment.items()):
            if CERTAIN_NAMES.fullmatch(name) and len(value) >= SHORTEST:
                self._forms[f"the value of ${name}"] = re.compile(os.fsencode(spellings(value)))

    def find(self, data: bytes, line: int = 1) -> list[SecretMatch]:
        """The secrets in a text whose first line has number `line`."""
        matches: set[SecretMatch] = set()
        for what, form in self._forms.items():
            line_number, counted = line, 0
            for match in islice(form.finditer(data), MOST):  # an agent may print a million of them
                line_number += data.count(b"\n", counted, match.start())
                counted = match.start()
                matches.add(SecretMatch(line_number, what))
        return sorted(matches)

    def find_in(self, pieces: Iterable[bytes]) -> Iterator[SecretMatch]:
        """The secrets in a stream; also those that span two pieces. Some may be found twice."""
        overlap, line = b"", 1
        for piece in pieces:
            data = overlap + piece
            yield from self.find(data, line)
            overlap = data[-LONGEST:]
            line += data.count(b"\n", 0, len(data) - len(overlap))

    def remove(self, data: bytes) -> bytes:
        for form in self._forms.values():
            data = form.sub(_marked, data)
        return data


def _marked(match: re.Match[bytes]) -> bytes:
    """If the form also matches context around the secret, only the secret is removed."""
    if not (secret := match.groupdict().get("secret")):
        return MARK
    return match[0].replace(secret, MARK)
