"""What the judge is asked: files in `rubric/`, the user's own questions, and the user's own words."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of

_FOLDER = Path(__file__).parent / "rubric"
_FIXED = _FOLDER / "questions.yaml"
_KEYS = {"id", "asks"}


@dataclass(frozen=True)
class Question:
    id: str
    asks: str


@dataclass(frozen=True)
class Rubric:
    questions: tuple[Question, ...]
    extra: str = ""

    @property
    def system(self) -> str:
        text = _read(_FOLDER / "system.md")
        return f"{text}\nFurther words of the person who asks you:\n\n{self.extra}" if self.extra else text

    @property
    def version(self) -> str:
        """Different words make a different rubric, which needs its own calibration."""
        said = [self.system, [[question.id, question.asks] for question in self.questions]]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]

    @property
    def texts(self) -> list[str]:
        return [self.system, *(question.asks for question in self.questions)]


def fixed_questions() -> dict[str, Question]:
    return {question.id: question for question in _questions(_FIXED)}


def load_rubric(named: Sequence[str] = (), extra: Path | None = None) -> Rubric:
    """The fixed questions, or the named ones: by their ids, or by YAML files with the user's own questions."""
    fixed = fixed_questions()
    chosen: list[Question] = [] if named else list(fixed.values())
    for name in named:
        if name in fixed:
            chosen.append(fixed[name])
        elif Path(name).is_file():
            chosen += _own_questions(Path(name), fixed)
        else:
            raise PrerequisiteError(
                f"{name!r} is neither a question nor a file with questions; the fixed questions are {', '.join(fixed)}"
            )
    ids = [question.id for question in chosen]
    if twice := {id for id in ids if ids.count(id) > 1}:
        raise PrerequisiteError(f"several questions have the id {min(twice)}")
    return Rubric(tuple(chosen), _read(extra).strip() if extra else "")


def _own_questions(path: Path, fixed: dict[str, Question]) -> list[Question]:
    questions = _questions(path)
    if taken := [question.id for question in questions if question.id in fixed]:
        raise PrerequisiteError(f"{path}: {taken[0]} is the id of a fixed question; choose another")
    return questions


def _questions(path: Path) -> list[Question]:
    import yaml

    try:
        items: Any = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise PrerequisiteError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(items, list) or not items:
        raise PrerequisiteError(f"{path} must be a list of questions, each with `id` and `asks`")
    for item in items:
        if not isinstance(item, dict) or set(item) != _KEYS or not all(isinstance(item[key], str) for key in _KEYS):
            raise PrerequisiteError(f"{path}: a question has the keys `id` and `asks`, both strings, not {item!r}")
    return [Question(item["id"], " ".join(item["asks"].split())) for item in items]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise PrerequisiteError(f"cannot read {path}: {reason}") from None
