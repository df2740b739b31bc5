"""The description of a task as agents get it.

Profile v1 shows a text as it was written. Later profiles have one form of submissions for all competitions, so its
rules are not written into each text: they are made from `submission` in config.yaml, by which submissions are checked.
"""

from collections.abc import Iterable

from mlebench.config import FIRST_PROFILE
from mlebench.core.submission_columns import DeclaresColumns, Kind, SubmissionColumns

# The heading is Kaggle's: existing clients cut descriptions by it, and models know it.
SUBMISSION_HEADING = "### Submission File"
MOST_NAMED = 12  # predicted columns; more, if they are alike, are counted
_FORM = """\
The file must have exactly the columns of the sample submission and exactly its rows, each once; both may be in any
order. Anything else is refused.
"""
_CELLS: dict[Kind, str] = {
    "numbers": "a finite number",
    "integers": "a whole number",
    "booleans": "`True` or `False`",
    "text": "text; `NA` and `nan` are words, and an empty cell is an empty text",
}


def with_submission_rules(text: str, competition: DeclaresColumns) -> str:
    """The text of a task with the rules for submissions, at the end of its section on them or else at its own end."""
    if competition.profile == FIRST_PROFILE:
        return text
    lines = text.rstrip("\n").split("\n")
    end = _end_of_section(lines)
    parts = ["\n".join(lines[:end]).rstrip("\n"), submission_rules(competition), "\n".join(lines[end:])]
    return "\n\n".join(filter(None, parts)) + "\n"


def submission_rules(competition: DeclaresColumns) -> str:
    """The form of a submission, in words: its columns, its rows, and what its cells hold."""
    key, kinds = SubmissionColumns.of(competition)
    of_kind: dict[Kind, list[str]] = {kind: [name for name in kinds if kinds[name] == kind] for kind in kinds.values()}
    are_counted = len(of_kind) == 1 and len(kinds) > MOST_NAMED
    rows = [(_names(key), f"{'the' if len(key) == 1 else 'together the'} row's id, as in the sample")]
    rows += [
        (f"the {len(kinds)} others" if are_counted else _names(names), _CELLS[kind]) for kind, names in of_kind.items()
    ]
    return "\n".join(
        [
            _FORM,
            "| column | what each cell holds |",
            "|---|---|",
            *(f"| {columns} | {cells} |" for columns, cells in rows),
        ]
    )


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def _end_of_section(lines: list[str]) -> int:
    """The number of the heading after the section on submissions; if there is none, the number of lines."""
    in_section = in_block = False
    for number, line in enumerate(lines):
        in_block ^= line.startswith("```")
        if line.startswith("#") and not in_block:
            if in_section:
                return number
            in_section = line.rstrip() == SUBMISSION_HEADING
    return len(lines)
