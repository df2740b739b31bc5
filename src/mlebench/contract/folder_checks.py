"""Checks of what a competition's folder says, before any data is made."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mlebench.contract.case import CompetitionCase
from mlebench.contract.description import HEADINGS, ParsedDescription
from mlebench.core.authors import author_errors, require_parameters
from mlebench.core.errors import CompetitionError, MissingCodeError, MissingPackageError
from mlebench.core.paths import CONFIG, DESCRIPTION, LEADERBOARD, PRIVATE, PUBLIC, TWIN
from mlebench.registry import code_name
from mlebench.scoring import import_fn, lower_is_better, read_leaderboard


def facts(case: CompetitionCase) -> Iterator[str]:
    """config.yaml says what a submission looks like, and which way scores improve."""
    declared, example = case.competition.submission, "`submission: {id: COLUMN, targets: [COLUMN, ...]}`"
    if not isinstance(declared.get("id"), str):
        yield f"{CONFIG} does not name the id column of submissions: add {example}."
    if not isinstance(declared.get("targets"), list) or not declared["targets"]:
        yield f"{CONFIG} does not name the columns that are predicted: add {example}."
    if case.competition.higher_is_better is None:
        yield f"{CONFIG} does not declare the metric's direction: add `higher_is_better: true` or `false`."
    _ = case.config  # its errors name the key


def leaderboard(case: CompetitionCase) -> Iterator[str]:
    """The leaderboard has the best score first, in the declared direction."""
    board = read_leaderboard(case.competition.leaderboard)
    if not board:
        yield f"{LEADERBOARD} holds no scores: medals cannot be given. Add at least two."
        return
    higher = not case.competition.lower_is_better
    if board[0] != board[-1] and lower_is_better(board) is higher:
        yield (
            f"{LEADERBOARD} begins with {board[0]} and ends with {board[-1]}, but {CONFIG} says "
            f"`higher_is_better: {str(higher).lower()}`: reverse one of them."
        )
    elif board != sorted(board, reverse=higher):
        yield f"{LEADERBOARD} is not sorted: put the best score first and the worst last."


def description(case: CompetitionCase) -> Iterator[str]:
    """The description names the original in its header only, and has the headings that clients look for."""
    competition = case.competition
    header, line, body = competition.description.partition("\n---\n")
    if not line:
        yield f"{DESCRIPTION} has no header: begin with the title and the origin, then a line `---`, then the task."
        return
    if competition.id not in header:
        yield f"the header of {DESCRIPTION} does not name the id {competition.id}: say which competition it was."
    for name in (competition.id, competition.name, "kaggle"):
        if name.lower() in body.lower():
            yield f"{DESCRIPTION} names {name!r} below its header, so an agent could look it up: leave it out there."
    if competition.obfuscated_description != body.lstrip():
        yield f"{DESCRIPTION} has no text below its header: describe the task there."
    elif [heading for heading in ParsedDescription(body).headings if heading in HEADINGS] != [*HEADINGS]:
        yield (
            f"{DESCRIPTION} needs the headings {', '.join(f'`{heading}`' for heading in HEADINGS)}, each once and in "
            "this order: clients find the parts of a description by them."
        )


def code(case: CompetitionCase) -> Iterator[str]:
    """prepare, grade and twin can be imported and called."""
    for faults in (twin_code, grade_code, prepare_code):
        yield from faults(case)


def twin_code(case: CompetitionCase) -> Iterator[str]:
    """twin can be imported and called."""
    competition = case.competition
    if not (competition.folder / TWIN).is_file():
        yield f"there is no {TWIN}: write a function `twin(raw)` in it that makes synthetic raw data."
        return
    yield from _unusable(lambda: import_fn(f"{code_name(competition.id)}.{Path(TWIN).stem}:twin"), "raw")


def grade_code(case: CompetitionCase) -> Iterator[str]:
    """grade can be imported and called."""
    yield from _unusable(lambda: case.competition.grader.grade_fn, "submission", "answers")


def prepare_code(case: CompetitionCase) -> Iterator[str]:
    """prepare can be imported and called."""
    preparer = case.competition.prepare_fn
    yield from _unusable(lambda: getattr(preparer, "function", preparer), "raw", PUBLIC, PRIVATE)


def _unusable(find: Callable[[], Callable[..., Any]], *arguments: str) -> Iterator[str]:
    """What an import does not find, or a call would not take; other exceptions are the code's own."""
    try:
        with author_errors():
            require_parameters(find(), *arguments)
    except CompetitionError as error:
        advice = f": add the function, or name the right one in {CONFIG}" if isinstance(error, MissingCodeError) else ""
        yield f"{error}{advice}."
    except MissingPackageError as error:
        yield f"{error}."
    except ModuleNotFoundError as error:
        yield f"{error}: add the file, or install the package that it needs."
