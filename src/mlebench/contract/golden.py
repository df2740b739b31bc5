"""Golden figures: what another implementation made of the same twins, on disk and compared.

A file holds, for each twin, `files` (a fingerprint) and `scores`. Most files of a fingerprint were only placed: those
of one folder that come from one raw folder are one entry, `public/train/*: {raw: train/*: a.png/b.png}`. A file that
got another name is `new<old`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlebench.contract.case import Case
from mlebench.core.errors import PrerequisiteError

_RAW, _BETWEEN, _FROM, _ALL = "raw: ", "/", "<", "*"


def read_golden(path: Path) -> dict[str, Any]:
    """Golden figures by twin."""
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
        return {name: {**case, "files": expanded(case["files"])} for name, case in figures.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PrerequisiteError(f"{path} does not hold golden figures: {error!r}") from None


def golden_text(figures: dict[str, Any]) -> str:
    """Golden figures as a file holds them."""
    kept = {name: {**case, "files": condensed(case["files"])} for name, case in figures.items()}
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def condensed(files: dict[str, Any]) -> dict[str, Any]:
    """A fingerprint with its placed files joined."""
    short: dict[str, Any] = {}
    for name, value in sorted(files.items()):
        if isinstance(value, dict):
            short[name] = condensed(value)
        elif value.startswith(_RAW) and _FROM not in name + value and all(_split(part)[1] for part in (name, value)):
            (folder, new), (origin, old) = _split(name), _split(value)
            joined, place = short.setdefault(f"{folder}{_ALL}", {}), f"{origin}{_ALL}"
            word = new if new == old else f"{new}{_FROM}{old}"
            joined[place] = f"{joined[place]}{_BETWEEN}{word}" if place in joined else word
        else:
            short[name] = value
    return short


def expanded(files: dict[str, Any]) -> dict[str, Any]:
    """The fingerprint that was condensed."""
    whole: dict[str, Any] = {}
    for name, value in files.items():
        if not isinstance(value, dict):
            whole[name] = value
        elif name.endswith(_ALL):
            for origin, words in value.items():
                for word in words.split(_BETWEEN):
                    new, _, old = word.partition(_FROM)
                    whole[f"{name.removesuffix(_ALL)}{new}"] = f"{origin.removesuffix(_ALL)}{old or new}"
        else:
            whole[name] = expanded(value)
    return whole


def _split(name: str) -> tuple[str, str]:
    """Folder, including its separator, and name; for files directly in an archive the separator is `!`."""
    place = max(name.rfind("/"), name.rfind("!")) + 1 or (len(_RAW) if name.startswith(_RAW) else 0)
    return name[:place], name[place:]


def golden_files(case: Case) -> Iterator[str]:
    """Prepared files are those of the golden figures."""
    found, expected = case.fingerprint, case.golden["files"] if case.golden else {}
    for name in sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name)):
        yield f"{name} is {found.get(name, 'missing')!s:.200}, golden is {expected.get(name, 'no such file')!s:.200}."


def golden_scores(case: Case) -> Iterator[str]:
    """Scores and verdicts are those of the golden figures."""
    found, expected = case.verdicts, case.golden["scores"] if case.golden else {}
    for name in sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name)):
        yield f"the submission {name!r} gets {found.get(name)}, golden is {expected.get(name)}."
