"""Golden figures: what another implementation made of the same twins, on disk and compared.

A file holds, for each twin, `files` (a fingerprint) and `scores`. Most files of a fingerprint were only placed: those
of one folder that come from one raw folder are one entry, `public/train/*: {raw: train/*: a.png/b.png}`. A file that
got another name is `new<old`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlebench.contract.case import CompetitionCase
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
    condensed_cases = {name: {**case, "files": condensed(case["files"])} for name, case in figures.items()}
    return json.dumps(condensed_cases, indent=1, ensure_ascii=False) + "\n"


def condensed(files: dict[str, Any]) -> dict[str, Any]:
    """A fingerprint with its placed files joined."""
    short: dict[str, Any] = {}
    for name, value in sorted(files.items()):
        if isinstance(value, dict):
            short[name] = condensed(value)
        elif value.startswith(_RAW) and _FROM not in name + value and all(_split(part)[1] for part in (name, value)):
            (folder, new), (origin, old) = _split(name), _split(value)
            joined, shortened = short.setdefault(f"{folder}{_ALL}", {}), f"{origin}{_ALL}"
            word = new if new == old else f"{new}{_FROM}{old}"
            joined[shortened] = f"{joined[shortened]}{_BETWEEN}{word}" if shortened in joined else word
        else:
            short[name] = value
    return short


def expanded(files: dict[str, Any]) -> dict[str, Any]:
    """The fingerprint that was condensed."""
    expanded_files: dict[str, Any] = {}
    for name, value in files.items():
        if not isinstance(value, dict):
            expanded_files[name] = value
        elif name.endswith(_ALL):
            for origin, words in value.items():
                for word in words.split(_BETWEEN):
                    new, _, old = word.partition(_FROM)
                    expanded_files[f"{name.removesuffix(_ALL)}{new}"] = f"{origin.removesuffix(_ALL)}{old or new}"
        else:
            expanded_files[name] = expanded(value)
    return expanded_files


def _split(name: str) -> tuple[str, str]:
    """Folder, including its separator, and name; for files directly in an archive the separator is `!`."""
    start = max(name.rfind("/"), name.rfind("!")) + 1 or (len(_RAW) if name.startswith(_RAW) else 0)
    return name[:start], name[start:]


def golden_files(case: CompetitionCase) -> Iterator[str]:
    """Prepared files are those of the golden figures."""
    actual, expected = case.file_hashes, case.golden["files"] if case.golden else {}
    for name in sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name)):
        yield f"{name} is {actual.get(name, 'missing')!s:.200}, golden is {expected.get(name, 'no such file')!s:.200}."


def golden_scores(case: CompetitionCase) -> Iterator[str]:
    """Scores and verdicts are those of the golden figures."""
    actual, expected = case.verdicts, case.golden["scores"] if case.golden else {}
    for name in sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name)):
        yield f"the submission {name!r} gets {actual.get(name)}, golden is {expected.get(name)}."
