"""A score against a leaderboard: graders, medal thresholds and the report of one submission."""

import csv
import importlib
import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mlebench.core import paths
from mlebench.core.authors import author_errors, location_of_function, require_parameters
from mlebench.core.errors import (
    CompetitionError,
    InvalidSubmissionError,
    MissingCodeError,
    MissingPackageError,
    PrerequisiteError,
)
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.records.report import Report

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

GradeFn = Callable[["pd.DataFrame", Any], float]


_MODULES_OF_V1 = {"prepare": "prepare", "grade": "grade", "stand_in": "grade"}
# What competition folders written for the reference import besides what we install: the extra `reference` has it.
# fmt: off
REFERENCE_PACKAGES = {
    "Levenshtein", "bson", "fastparquet", "pycocotools", "pymongo", "pyquaternion", "requests", "scipy", "shapely",
    "sklearn", "tqdm",
}
# fmt: on


def import_fn(fn_import_string: str) -> Callable[..., Any]:
    """The function that `package.module:function` names; what a competition's `v2` does not define is that of v1."""
    module, _, function = fn_import_string.partition(":")
    code = import_code(module)
    package, _, name = module.rpartition(".")
    if name in paths.PROFILES and function in _MODULES_OF_V1 and not hasattr(code, function):
        code = import_code(f"{package}.{_MODULES_OF_V1[function]}")
    try:
        return getattr(code, function)
    except AttributeError:
        raise MissingCodeError(f"{Path(code.__file__ or module).name} has no function `{function}`") from None


def import_code(module: str) -> ModuleType:
    """A module of a competition; MissingPackageError if it imports a package that is not installed or does not work."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise MissingCodeError(f"there is no {module.rpartition('.')[2]}.py in the competition's folder") from None
        if (error.name or "").partition(".")[0] not in REFERENCE_PACKAGES:
            raise
        raise MissingPackageError(
            f"{module} imports {error.name}, which is not installed: run `pip install 'mlebench[reference]'`"
        ) from error
    except ImportError as error:
        if not str(error).startswith("pyarrow requires NumPy"):  # pip does not know of this requirement
            raise
        raise MissingPackageError(f"{error}: run `pip install 'numpy>=2'` or `pip install 'pyarrow<26'`") from error


class Grader:
    """A competition's metric. Its code is imported when it is first used."""

    def __init__(self, name: str, grade_fn: str | GradeFn, *, finite: bool = False):
        if not isinstance(name, str) or not name:
            raise ValueError("a grader needs a name")
        self.name = name
        self._grade_fn = grade_fn
        self._finite = finite  # whether a score that is infinite or no number is the grader's fault, not a result

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Grader":
        return cls(**data)

    @property
    def grade_fn(self) -> GradeFn:
        if isinstance(self._grade_fn, str):
            self._grade_fn = import_fn(self._grade_fn)
        return self._grade_fn

    def require_packages(self) -> None:
        """MissingPackageError if its code imports what is not installed; other faults show when it is used."""
        try:
            _ = self.grade_fn
        except MissingPackageError:
            raise
        except (Exception, SystemExit):
            return

    @property
    def module(self) -> str:
        """The name of the module that holds the grading function."""
        return self._grade_fn.partition(":")[0] if isinstance(self._grade_fn, str) else self._grade_fn.__module__

    def score(self, submission: "pd.DataFrame", answers: Any) -> float:
        """The score, to five decimals; InvalidSubmissionError if the submission has none."""
        import numpy as np

        with author_errors():
            grade = self.grade_fn
            require_parameters(grade, "submission", "answers")
            score = grade(submission, answers)
        try:
            with np.errstate(over="ignore"):  # rounding makes numpy's largest floats infinite
                # Python and numpy round ties differently; `round` goes by the kind of float that the metric returns.
                score = float(round(score, 5))
        except TypeError:
            kind = "nothing" if score is None else f"a {type(score).__name__}"
            raise CompetitionError(
                f"`grade` returned {kind}, not a number: return the score", location_of_function(grade)
            ) from None
        if self._finite and not math.isfinite(score):
            raise CompetitionError(f"`grade` returned {score}: every valid submission has a finite score")
        return score

    def __call__(self, submission: "pd.DataFrame", answers: Any) -> float | None:
        """The score, or None whatever the reason: existing clients rely on that. New code uses `score`."""
        self.require_packages()
        try:
            return self.score(submission, answers)
        except InvalidSubmissionError as error:
            logger.warning("Invalid submission: %s", error)
        except CompetitionError as error:
            logger.error("The grader of this competition failed: %s", error)
        except (Exception, SystemExit):
            logger.exception("The grader of this competition failed; this is a fault of the grader")
        return None

    def is_lower_better(self, leaderboard: "pd.DataFrame") -> bool:
        """The direction that a leaderboard shows, best score first."""
        return lower_is_better(leaderboard["score"].tolist())

    def rank_score(self, score: float | None, leaderboard: "pd.DataFrame") -> dict[str, Any]:
        """Medals and thresholds of a score, as a flat mapping."""
        scores = leaderboard["score"].tolist()
        thresholds = Thresholds.of(scores)
        medals = Medals.of(score, thresholds, lower=lower_is_better(scores))
        return {**medals._asdict(), **{f"{name}_threshold": value for name, value in thresholds._asdict().items()}}


class Thresholds(NamedTuple):
    """The scores that earn medals, and the median, on a human leaderboard."""

    gold: float | None  # None: withheld, because the profile's test set does not measure what the leaderboard did
    silver: float | None
    bronze: float | None
    median: float

    @classmethod
    def of(cls, scores: Sequence[float]) -> "Thresholds":
        """Kaggle's medal places for that many teams, looked up on a leaderboard with the best score first."""
        if not scores:
            raise ValueError("a leaderboard without scores has no thresholds")
        gold, silver, bronze = (float(scores[max(1, rank) - 1]) for rank in _medal_places(len(scores)))
        ordered = sorted(scores)
        middle = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return cls(gold, silver, bronze, sum(middle) / 2)

    def withholding(self, medals: Collection[str]) -> "Thresholds":
        """The thresholds without those of some medals; `gold`, `silver` and `bronze` are their names."""
        return self._replace(**dict.fromkeys(medals))


def _medal_places(teams: int) -> tuple[int, int, int]:
    """The last places that earn gold, silver and bronze."""
    if teams < 100:
        return int(teams * 0.1), int(teams * 0.2), int(teams * 0.4)
    if teams < 250:
        return 10, int(teams * 0.2), int(teams * 0.4)
    gold = 10 + int(teams * 0.002)
    return (gold, 50, 100) if teams < 1000 else (gold, int(teams * 0.05), int(teams * 0.1))


class Medals(NamedTuple):
    """What a score earned; at most one of the three medals. None: a medal that is withheld."""

    above_median: bool
    gold_medal: bool | None
    silver_medal: bool | None
    bronze_medal: bool | None

    @classmethod
    def of(cls, score: float | None, thresholds: Thresholds, *, lower: bool) -> "Medals":
        """The best medal whose threshold the score reaches."""
        *levels, middle = thresholds
        sign = -1 if lower else 1
        reached = [level is not None and score is not None and sign * score >= sign * level for level in levels]
        best = reached.index(True) if True in reached else None
        medals = [None if level is None else number == best for number, level in enumerate(levels)]
        return cls(score is not None and sign * score > sign * middle, *medals)

    @property
    def any_medal(self) -> bool | None:
        """Whether it earned a medal; None if all three are withheld."""
        return any(medals) if (medals := [medal for medal in self[1:] if medal is not None]) else None


def lower_is_better(scores: Sequence[float]) -> bool:
    return bool(scores[0] < scores[-1])


def read_leaderboard(path: Path) -> list[float]:
    """The scores of a leaderboard file, in its order: best first."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
            column = header.index("score")
            return [float(row[column]) for row in rows if row and row[column] != ""]
    except FileNotFoundError:
        raise PrerequisiteError(f"there is no leaderboard at {path}") from None
    except (IndexError, ValueError):
        fault = LFS_POINTER if is_lfs_pointer(path.read_bytes()) else "needs a column `score` of numbers"
        raise PrerequisiteError(f"{path} {fault}") from None


# fmt: off
PUBLISHED_FIELDS = (
    "competition_id", "score", "gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold",
    "any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median",
    "submission_exists", "valid_submission", "is_lower_better", "created_at", "submission_path",
)
# fmt: on


REPORT_SCHEMA = 1


@dataclass(frozen=True)
class RunInfo:
    """The run a submission comes from."""

    run_id: str
    agent: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class CompetitionReport:
    """The graded outcome of one submission.

    In JSON the reference's sixteen fields come first, in its order. `status` says how grading ended: `graded`,
    `missing` (no submission), `invalid` (the agent's fault), `grader_error` (ours), `limit` (it took more than limits
    of the user's own), `not_prepared`, `model_unavailable` or `infra_error` (how the run ended, so nothing was graded);
    `reason` says why. Existing clients do not pass it; then it follows from the other fields. Anything else that is
    unknown is None.
    """

    competition_id: str
    submission_path: str
    created_at: datetime
    is_lower_better: bool
    submission_exists: bool
    valid_submission: bool
    score: float | None
    above_median: bool
    any_medal: bool | None  # None, like the six below: the competition's profile withholds medals
    bronze_medal: bool | None
    silver_medal: bool | None
    gold_medal: bool | None
    median_threshold: float
    bronze_threshold: float | None
    silver_threshold: float | None
    gold_threshold: float | None
    profile: str = "v1"
    source: str = "unknown"
    status: str = ""
    reason: str | None = None
    schema: int = REPORT_SCHEMA
    mlebench: str | None = None  # the version that graded
    graded_at: str | None = None  # like created_at, with the zone
    submission_sha256: str | None = None
    data: str | None = None  # the identity of the prepared data
    description: str | None = None  # whose text agents get: ours, or the original
    competition_version: int | None = None
    agent: str | None = None
    seed: int | None = None
    run_id: str | None = None
    graded_during_run: bool = False  # not as part of a run, while a run of this competition was open
    teams: int | None = None  # on the human leaderboard
    teams_beaten: int | None = None  # those with a worse score
    percentile: float | None = None  # the share of teams beaten, 0 to 1
    normalised_score: float | None = None  # 0: the sample submission's on real data, 1: the gold threshold
    suspicious: str | None = None  # why to doubt that the score was earned
    known_issues: int | None = None  # how many the competition has
    score_low: float | None = None  # the score's interval, if requested and the metric allows it
    score_high: float | None = None
    medal_holds: float | None = None  # the share of draws of test rows that earn the medal, or a better one
    board: str | None = None  # what the profile's test set shares with Kaggle's leaderboard: config.BOARDS
    release: str | None = None  # of the profile, if it has releases: v2.0rc1
    test_units: int | None = None  # groups of test rows that belong together, or else rows of the answers
    badges: str | None = None  # why to look twice at a medal, as in "leak L4, low_power": clients need flat reports
    groups: str | None = None  # the beginning of the SHA-256 of private/groups.csv, if the data has this file
    seen: str | None = None  # the profile whose data the submission was made on, if it is not that of this report

    def __post_init__(self) -> None:
        if not self.status:
            status = "graded" if self.valid_submission else "invalid" if self.submission_exists else "missing"
            object.__setattr__(self, "status", status)

    def to_dict(self) -> dict[str, Any]:
        """Flat and ready for JSON: a score that is not a finite number becomes null; `reason` then says so."""
        values = asdict(self)
        data: dict[str, Any] = {name: values.pop(name) for name in PUBLISHED_FIELDS} | values
        data["created_at"] = self.created_at.isoformat()
        if self.score is not None:
            data["score"] = float(self.score) if math.isfinite(self.score) else None
        return {name: value.item() if hasattr(value, "item") else value for name, value in data.items()}

    def to_record(self) -> Report:
        """The report as records hold it."""
        return msgspec.convert(self.to_dict(), Report)

    @classmethod
    def from_record(cls, report: Report) -> "CompetitionReport":
        return cls.from_dict(msgspec.structs.asdict(report))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CompetitionReport":
        """A report from JSON: the reference's, or one of this version or an older one."""
        if data.get("schema", 0) > REPORT_SCHEMA:
            raise PrerequisiteError(f"this report was written by mlebench {data.get('mlebench')}: update mlebench")
        known = {field.name for field in fields(cls)}
        fields_of_report: dict[str, Any] = {name: value for name, value in data.items() if name in known}
        fields_of_report["created_at"] = datetime.fromisoformat(data["created_at"])
        return cls(**fields_of_report)
