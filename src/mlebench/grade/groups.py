"""Which test rows belong together: `private/groups.csv`, which `prepare` of profile v2 writes for some competitions.

Its ids are those of the sample submission. Where a competition's `submission.groups` has a pattern, they may also be
what the pattern finds in those ids: of a page's pixels, the page.
"""

import hashlib
import re
from typing import Any

from mlebench.config import FIRST_PROFILE
from mlebench.core.errors import NotPreparedError
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import GROUPS
from mlebench.data.state import command_to_prepare
from mlebench.registry import Competition

_COLUMNS = ["id", "group"]
_DIGITS = 16  # of the hash: enough to tell two files of one competition apart


def hash_of_groups(competition: Competition) -> str | None:
    """The beginning of the file's SHA-256; None without a file. Under v1, a file of this name means nothing."""
    content = _content(competition)
    return None if content is None else hashlib.sha256(content).hexdigest()[:_DIGITS]


def read_groups(competition: Competition) -> dict[Any, str] | None:
    """The group of each id of the sample submission; None without a file, NotPreparedError if it does not say it."""
    from mlebench.kit.submission_form import SubmissionForm

    if (content := _content(competition)) is None:
        return None
    facts = competition.submission
    ids = SubmissionForm.of(competition).ids[facts["id"]].tolist()
    group_of = _parsed(content, competition)
    names = [str(id) for id in ids]
    pattern = facts.get("groups", {}).get("pattern")
    if pattern and {*names} != group_of.keys():
        units = [match[0] if (match := re.match(pattern, name)) else name for name in names]
        names = units if {*units} == group_of.keys() else names
    if unnamed := [name for name in names if name not in group_of]:
        raise _fault(competition, f"it has no group for {len(unnamed)} ids, the first of which is {unnamed[0]!r}")
    if unknown := group_of.keys() - {*names}:
        raise _fault(competition, f"the sample submission does not have its id {min(unknown)!r}")
    return {id: group_of[name] for id, name in zip(ids, names, strict=True)}


def count_groups(competition: Competition) -> int | None:
    """How many groups the file has; None without one that can be read."""
    try:
        content = _content(competition)
        return None if content is None else len({*_parsed(content, competition).values()})
    except NotPreparedError:
        return None  # `--interval` and `verify` say what is wrong


def _content(competition: Competition) -> bytes | None:
    if competition.profile == FIRST_PROFILE:
        return None
    try:
        return (competition.private_dir / GROUPS).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _fault(competition, f"it cannot be read: {reason_of(error)}") from error


def _parsed(content: bytes, competition: Competition) -> dict[str, str]:
    """The group of each id in the file, both as they are spelled."""
    from io import BytesIO

    import pandas as pd

    try:
        table = pd.read_csv(BytesIO(content), dtype=str, keep_default_na=False, na_filter=False)
    except ValueError as error:  # not CSV, not UTF-8, or empty
        raise _fault(competition, f"it cannot be read: {error}") from None
    if [*table] != _COLUMNS or not isinstance(table.index, pd.RangeIndex):
        raise _fault(competition, f"its columns must be {' and '.join(_COLUMNS)}")
    group_of: dict[str, str] = {}
    for id, group in zip(table["id"].tolist(), table["group"].tolist(), strict=True):
        if not group or group_of.setdefault(id, group) != group:
            raise _fault(competition, f"its id {id!r} has {'several groups' if group else 'no group'}")
    return group_of


def _fault(competition: Competition, fault: str) -> NotPreparedError:
    command = command_to_prepare(competition, "--force")
    path = competition.private_dir / GROUPS
    text = " ".join(fault.split()).rstrip(".")
    return NotPreparedError(f"{path} does not say which test rows belong together: {text}. Prepare again: `{command}`")
