"""A competition's config.yaml, read into a frozen dataclass; errors name the file and the key.

Keys are a superset of the reference's. What follows from the folder's name or location may be omitted. Beside
the facts of profile v1, a key named after another profile holds what differs there; without that key, the competition
has no such profile.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from mlebench.core.errors import ConfigError, UnknownCompetitionError
from mlebench.core.paths import CONFIG, DESCRIPTION, PRIVATE, PROFILES, PUBLIC
from mlebench.core.suggestions import did_you_mean

logger = logging.getLogger(__name__)

FIRST_PROFILE = "v1"
# The edition of a profile that is corrected further: figures of two editions are never compared.
RELEASES = {"v2": "v2.0rc1"}
GOLD = f"{PRIVATE}/gold_submission.csv"  # what `prepare` makes of the answers, under later profiles
COMPLEXITIES = ("low", "medium", "high", "dev")
MEDALS = ("gold", "silver", "bronze")
# What a profile's test set has in common with the one behind Kaggle's private leaderboard.
BOARDS = ("same_rows", "same_population", "other_population", "other_metric")
KNOWN_KEYS = {
    *("id", "name", "competition_type", "awards_medals", "prizes", "description", "dataset", "grader", "preparer"),
    *("version", "category", "complexity", "deadline", "higher_is_better", "sample_score", "submission"),
    *("known_issues", "contract", "board", "medals_withheld", *PROFILES),
}
DATASET_KEYS = {"answers", "gold_submission", "sample_submission", "public_sample", "size_gb", "beside_archive"}
GRADER_KEYS = {"name", "grade_fn"}
ISSUE_KEYS = ("id", "kind", "text", "seen", "fixed_in", "measured")
ISSUE_KINDS = ("leak", "split", "grader", "sample", "files", "threshold", "description", "contamination")
ISSUE_EVIDENCE = ("code", "twin", "issue", "runs", "real data", "assumed")


@dataclass(frozen=True)
class KnownIssue:
    """A fault of a competition's data, grader or leaderboard that readers of its scores should know.

    A plain string in config.yaml has only a text.
    """

    id: str | None
    kind: str | None  # one of ISSUE_KINDS
    text: str
    seen: tuple[str, ...] = ()  # how it is known, of ISSUE_EVIDENCE
    fixed_in: str | None = None  # the profile without this fault
    measured: str | None = None  # its extent on real data; "no": still to be measured

    @classmethod
    def load(cls, keys: "Keys") -> "KnownIssue":
        keys.only(ISSUE_KEYS)
        measured = keys.get("measured", (str, bool), default=None)  # a bare `no` is false in YAML
        if measured is True:
            raise keys.error("measured", "must be a figure or `no`")
        return cls(
            id=keys.get("id", str),
            kind=keys.choice("kind", ISSUE_KINDS),
            text=keys.get("text", str),
            seen=keys.choices("seen", ISSUE_EVIDENCE),
            fixed_in=keys.choice("fixed_in", PROFILES[1:], default=None),
            measured="no" if measured is False else measured,
        )

    def __str__(self) -> str:
        return f"{self.id} {self.kind}: {self.text}" if self.id else self.text


@dataclass(frozen=True)
class CompetitionConfig:
    """What a competition declares about itself.

    Paths of data that begin with `public/` or `private/` are relative to the prepared folder, others to the data
    directory.
    """

    id: str
    name: str
    metric: str
    answers: str
    sample_submission: str
    gold_submission: str
    public_sample: str
    folder: Path
    size_gb: float | None = None
    profile: str = FIRST_PROFILE
    version: int = 1
    competition_type: str = "simple"
    category: str | None = None
    complexity: str | None = None
    deadline: date | None = None  # the day Kaggle closed it
    higher_is_better: bool | None = None
    sample_score: float | None = None
    submission: dict[str, Any] = field(default_factory=dict)
    known_issues: tuple[KnownIssue, ...] = ()
    board: str | None = None  # one of BOARDS; None: not stated
    medals_withheld: tuple[str, ...] = ()  # those that a score under this profile cannot earn
    grade_fn: str | None = None
    preparer: str | None = None
    beside_archive: dict[str, str] = field(default_factory=dict)
    description: str | None = None

    @classmethod
    def load(cls, folder: Path, profile: str = FIRST_PROFILE) -> "CompetitionConfig":
        values = read_yaml(folder / CONFIG)
        keys = Keys(folder / CONFIG, _of_profile(folder, values, profile))
        if (id := keys.get("id", str)) != folder.name:
            _warn(f"{folder / CONFIG}: `id` is {id}, but the folder is named {folder.name}; that name is used")
        grader, dataset = keys.section("grader"), keys.section("dataset")
        preparer = keys.get("preparer", str, default=None)
        for section, known in ((keys, KNOWN_KEYS), (dataset, DATASET_KEYS), (grader, GRADER_KEYS)):
            section.only(known, warn=preparer is not None)  # a config in the reference's form may have more
        data_path = partial(dataset.data_path, id=folder.name, anywhere=preparer is not None)
        answers, sample = data_path("answers"), data_path("sample_submission")
        config = cls(
            id=folder.name,
            name=keys.get("name", str),
            metric=grader.get("name", str),
            answers=answers,
            sample_submission=sample,
            gold_submission=data_path("gold_submission", default=answers if profile == FIRST_PROFILE else GOLD),
            public_sample=data_path("public_sample", default=sample),
            folder=folder,
            size_gb=dataset.get("size_gb", (int, float), default=None),
            profile=profile,
            version=keys.get("version", int, default=1),
            competition_type=keys.get("competition_type", str, default="simple"),
            category=keys.get("category", str, default=None),
            complexity=keys.get("complexity", str, default=None),
            deadline=keys.get("deadline", date, default=None),
            higher_is_better=keys.get("higher_is_better", bool, default=None),
            sample_score=keys.get("sample_score", (int, float), default=None),
            submission=keys.get("submission", dict, default={}),
            known_issues=_known_issues(folder, values, profile),
            board=keys.get("board", str, default=None),
            medals_withheld=tuple(keys.get("medals_withheld", list, default=[])),
            grade_fn=grader.get("grade_fn", str, default=None),
            preparer=preparer,
            beside_archive=dataset.get("beside_archive", dict, default={}),
            description=keys.get("description", str, default=None),
        )
        config._check(keys)
        return config

    def _check(self, keys: "Keys") -> None:
        if self.complexity is not None and self.complexity not in COMPLEXITIES:
            raise keys.error("complexity", f"must be one of {', '.join(COMPLEXITIES)}, not {self.complexity!r}")
        if self.board is not None and self.board not in BOARDS:
            raise keys.error("board", f"must be one of {', '.join(BOARDS)}, not {self.board!r}")
        if not set(self.medals_withheld) <= set(MEDALS):
            raise keys.error("medals_withheld", f"must list some of {', '.join(MEDALS)}, not {self.medals_withheld}")
        if isinstance(self.deadline, datetime):
            raise keys.error("deadline", f"must be a date such as 2019-07-08, not {self.deadline}")

    @property
    def description_file(self) -> Path:
        """A path from a repository's root, as the reference writes it, means the folder's file."""
        named = Path(self.description or DESCRIPTION)
        return named if named.is_absolute() else self.folder / named.name

    @property
    def has_own_code(self) -> bool:
        """Whether this profile's code differs from that of v1: then it is in a module named after the profile."""
        return self.profile != FIRST_PROFILE and (self.folder / f"{self.profile}.py").is_file()


def has_profile(folder: Path, profile: str) -> bool:
    """Whether a competition declares a profile. A broken config counts as yes: using it reports the error."""
    try:
        return profile == FIRST_PROFILE or profile in read_yaml(folder / CONFIG)
    except ConfigError:
        return True


def _of_profile(folder: Path, values: dict[Any, Any], profile: str) -> dict[Any, Any]:
    """The facts of a profile: those of v1, except for what the profile's own key says."""
    if profile == FIRST_PROFILE:
        return values
    if profile not in values:
        raise UnknownCompetitionError(f"{folder.name} has no profile {profile} yet; it has {FIRST_PROFILE}")
    own = Keys(folder / CONFIG, values).get(profile, dict, default={})
    # The sample submission's score was measured on v1's data.
    merged = {key: value for key, value in values.items() if key != "sample_score"} | own
    for section in ("dataset", "grader", "submission"):
        if isinstance(values.get(section), dict) and isinstance(own.get(section), dict):
            merged[section] = values[section] | own[section]
    return merged


def _known_issues(folder: Path, values: dict[Any, Any], profile: str) -> tuple[KnownIssue, ...]:
    """The issues of a profile: those of v1 that it does not fix, and its own."""
    keys = Keys(folder / CONFIG, values)
    issues = keys.known_issues()
    if profile != FIRST_PROFILE:
        own = Keys(folder / CONFIG, keys.get(profile, dict, default={}), f"{profile}.").known_issues()
        issues = [issue for issue in issues if issue.fixed_in != profile] + own
    ids = [issue.id for issue in issues if issue.id]
    if repeated := next((id for id in ids if ids.count(id) > 1), None):
        raise keys.error("known_issues", f"has the id {repeated} twice")
    return tuple(issues)


def read_description(config: CompetitionConfig) -> str:
    """The text of the task."""
    path = config.description_file
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{config.folder / CONFIG}: `description`: there is no file {path}") from None
    if not text.strip():
        raise ConfigError(f"{path} is empty")
    return text


def is_below_prepared(path: str) -> bool:
    """Whether a data path of a config is relative to the prepared folder."""
    return path.startswith((f"{PUBLIC}/", f"{PRIVATE}/"))


@cache
def _warn(message: str) -> None:
    """Log a warning, once: configs are read often."""
    logger.warning("%s", message)


_REQUIRED = object()


class Keys:
    """A mapping of a YAML file that checks what is taken from it."""

    def __init__(self, path: Path, values: Any, prefix: str = ""):
        self._path = path
        self._values = values
        self._prefix = prefix

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = _REQUIRED) -> Any:
        value = self._values.get(key)
        if value is None:
            if default is _REQUIRED:
                raise self.error(key, "is missing")
            return default
        wrong = isinstance(value, bool) and kind in (int, float, (int, float))
        if wrong or not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            raise self.error(key, f"must be {' or '.join(k.__name__ for k in kinds)}, not {value!r}")
        return value

    def only(self, known: Collection[str], *, warn: bool = False) -> None:
        """Refuse a key that nobody reads, or warn about it: most are misspelled."""
        for key in self._values:
            if key in known:
                continue
            advice = did_you_mean(str(key), sorted(known), cutoff=0.72)
            if not warn:
                raise self.error(key, f"is not known; {advice}")
            _warn(f"{self.error(key, 'is not known, and ignored')}; {advice}")

    def choice(self, key: str, known: Collection[str], default: Any = _REQUIRED) -> Any:
        """A value that must be one of the known words."""
        value = self.get(key, str, default)
        if value is not None and value not in known:
            raise self.error(key, f"is {value!r}; {did_you_mean(value, known)}")
        return value

    def choices(self, key: str, known: Collection[str]) -> tuple[str, ...]:
        """A list of known words."""
        words = self.get(key, list, default=[])
        for word in words:
            if word not in known:
                raise self.error(key, f"holds {word!r}; {did_you_mean(str(word), known)}")
        return tuple(words)

    def known_issues(self) -> list[KnownIssue]:
        issues: list[KnownIssue] = []
        for number, value in enumerate(self.get("known_issues", list, default=[])):
            key = f"known_issues[{number}]"
            if isinstance(value, str):
                issues.append(KnownIssue(None, None, value))
            elif isinstance(value, dict):
                issues.append(KnownIssue.load(Keys(self._path, value, f"{self._prefix}{key}.")))
            else:
                raise self.error(key, f"must be dict or str, not {value!r}")
        return issues

    def section(self, key: str) -> "Keys":
        return Keys(self._path, self.get(key, dict), f"{self._prefix}{key}.")

    def data_path(self, key: str, id: str, *, anywhere: bool, default: Any = _REQUIRED) -> str:
        """A file of the data; `<id>/prepared/private/test.csv` means `private/test.csv`.

        `anywhere` allows files outside the prepared folder, as a competition written for the reference may have them.
        """
        path = self.get(key, str, default)
        prepared = path.removeprefix(f"{id}/prepared/")
        if is_below_prepared(prepared):
            return prepared
        if not anywhere:
            raise self.error(key, f"must be under public/ or private/, not {prepared!r}")
        return path

    def error(self, key: str, fault: str) -> ConfigError:
        return ConfigError(f"{self._path}: `{self._prefix}{key}` {fault}")


def read_yaml(path: Path) -> dict[Any, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold keys and values")
    return values
