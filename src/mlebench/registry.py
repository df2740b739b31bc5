"""What exists: competitions, their facts, and where their data is. Reading them imports no competition code."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from mlebench.config import (
    FIRST_PROFILE,
    RELEASES,
    CompetitionConfig,
    KnownIssue,
    has_profile,
    is_below_prepared,
    read_description,
)
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError, UnknownCompetitionError, UnknownSplitError
from mlebench.core.suggestions import did_you_mean
from mlebench.description import with_submission_rules
from mlebench.scoring import Grader, import_fn, lower_is_better, read_leaderboard

SPLIT_ALIASES = {"lite": "low", "all": "split75"}


@dataclass(frozen=True)
class Competition:
    """One task: what config.yaml declares, with every path made absolute."""

    id: str
    competition_type: str
    name: str
    grader: Grader
    description: str
    prepare_fn: Callable[..., Any]
    leaderboard: Path
    checksums: Path
    raw_dir: Path
    public_dir: Path
    sample_submission: Path
    private_dir: Path
    answers: Path
    gold_submission: Path
    profile: str = "v1"
    version: int = 1
    category: str | None = None
    complexity: str | None = None
    deadline: date | None = None  # the day Kaggle closed it; None: never, or unknown
    higher_is_better: bool | None = None  # None: not declared, the leaderboard shows it
    sample_score: float | None = None
    size_gb: float | None = None  # of the raw data, if published
    known_issues: tuple[KnownIssue, ...] = ()
    submission: dict[str, Any] = field(default_factory=dict)
    public_sample: Path | None = None  # None: it is `sample_submission`
    board: str | None = None  # what its test set shares with Kaggle's private leaderboard: one of config.BOARDS
    medals_withheld: tuple[str, ...] = ()
    beside_archive: dict[str, str] = field(default_factory=dict)  # files that Kaggle does not have: where they are
    data_dir: Path | None = None  # the registry's; None: a client built this itself

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Competition":
        """From the fields by name; other keys of a config.yaml are ignored."""
        known = {field.name for field in fields(cls)}
        try:
            values: dict[str, Any] = {name: value for name, value in data.items() if name in known}
            values["grader"] = Grader.from_dict(data["grader"])
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise ValueError(f"a competition lacks a field: {error}") from error

    @property
    def folder(self) -> Path:
        """The competition's own folder, with its code and facts."""
        return self.leaderboard.parent

    @property
    def paths(self) -> paths.CompetitionPaths:
        return paths.CompetitionPaths(self.raw_dir.parent.parent, self.id, self.profile)

    def prepared_in(self, folder: Path) -> "Competition":
        """This competition with its prepared files in another folder, such as the one where they are made."""
        names = ("public_dir", "private_dir", "answers", "gold_submission", "sample_submission", "public_sample")
        files = {name: path for name in names if (path := getattr(self, name)) is not None}
        return replace(self, **{name: paths.moved(path, self.paths.prepared, folder) for name, path in files.items()})

    @property
    def checked_on(self) -> str | None:
        """What the current release of the profile was checked on: `real data` or `twins only`; v1 has no releases."""
        if self.profile not in RELEASES:
            return None
        record = paths.profiles_dir() / f"{RELEASES[self.profile]}.json"
        released = json.loads(record.read_text(encoding="utf-8"))["competitions"].get(self.id, {})
        return "real data" if released.get("real") else "twins only"

    @property
    def prepare_command(self) -> str:
        """The command that prepares its data, of the kind that the data directory is for."""
        profile = "" if self.profile == "v1" else f" --profile {self.profile}"
        twin = " --twin" if paths.data_dir_record(self.paths.data_dir).is_file() else ""
        return f"mlebench prepare -c {self.id}{profile}{twin}"

    @property
    def kit_prepare_fn(self) -> Callable[..., Any] | None:
        """Its `prepare`, if written for the kit; None if there is only `prepare_fn`, with plain paths."""
        return getattr(self.prepare_fn, "kit_prepare", None)

    @property
    def lower_is_better(self) -> bool:
        if self.higher_is_better is None:
            return lower_is_better(read_leaderboard(self.leaderboard))
        return not self.higher_is_better

    @property
    def obfuscated_description(self) -> str:
        """Return the description without its header, the only part that names the original competition."""
        return self.description.partition("\n---\n")[2].lstrip() or self.description


class Preparer:
    """`prepare(raw, public, private)` of a competition, for callers that have plain paths.

    A config's `preparer` gets the paths themselves, unless it is decorated with `accepts_paths` of the kit or its
    annotation `raw: Raw` says that it is written for the kit.
    """

    def __init__(self, config: CompetitionConfig):
        self._name = _code(config, "prepare", config.preparer)
        self._is_named = config.preparer is not None
        self.__module__, _, self.__name__ = self._name.partition(":")  # like a function's

    @property
    def function(self) -> Callable[..., Any]:
        return import_fn(self._name)

    @property
    def kit_prepare(self) -> Callable[..., Any] | None:
        """The function, if it is written for the kit; its `run_prepare` calls it."""
        function = self.function
        kind = getattr(function, "__annotations__", {}).get("raw")
        takes_only_paths = self._is_named and getattr(kind, "__name__", kind) != "Raw"
        return getattr(function, "kit_prepare", None if takes_only_paths else function)

    def __call__(self, raw: Path, public: Path, private: Path) -> None:
        from mlebench.kit.outputs import run_prepare

        if prepare := self.kit_prepare:
            run_prepare(prepare, Path(raw), Path(public), Path(private))
        else:
            self.function(raw=raw, public=public, private=private)


def code_name(id: str) -> str:
    """The package that holds a competition's code."""
    return f"mlebench.competitions.{id}"


def _code(config: CompetitionConfig, function: str, named: str | None) -> str:
    """Where a function of a competition is, as `module:function`; `import_fn` knows what a profile takes from v1."""
    if config.has_own_code:
        return f"{code_name(config.id)}.{config.profile}:{function}"
    return named or f"{code_name(config.id)}.{function}:{function}"


class Registry:
    """The competitions of the package and of the search path, with one data directory."""

    def __init__(self, data_dir: Path | str | None = None, profile: str = "v1", also: Sequence[Path] = ()):
        if profile not in paths.PROFILES:
            raise PrerequisiteError(f"there is no profile {profile!r}; profiles are {', '.join(paths.PROFILES)}")
        self._data_dir = None if data_dir is None else paths.resolved(data_dir)
        self.profile = profile
        self._also = tuple(also)  # more folders of competition folders, besides the search path

    def get_competition(self, competition_id: str) -> Competition:
        config = CompetitionConfig.load(self.competition_dir(competition_id), self.profile)
        competition_paths = paths.CompetitionPaths(self.get_data_dir(), config.id, self.profile)

        def data_file(path: str) -> Path:
            return (competition_paths.prepared if is_below_prepared(path) else competition_paths.data_dir) / path

        return Competition(
            id=config.id,
            name=config.name,
            description=with_submission_rules(read_description(config), config),
            grader=Grader(config.metric, _code(config, "grade", config.grade_fn), finite=self.profile != FIRST_PROFILE),
            answers=data_file(config.answers),
            gold_submission=data_file(config.gold_submission),
            sample_submission=data_file(config.sample_submission),
            competition_type=config.competition_type,
            prepare_fn=Preparer(config),
            raw_dir=competition_paths.raw,
            private_dir=competition_paths.private,
            public_dir=competition_paths.public,
            checksums=config.folder / (paths.CHECKSUMS if self.profile == "v1" else f"checksums-{self.profile}.yaml"),
            leaderboard=config.folder / paths.LEADERBOARD,
            profile=self.profile,
            version=config.version,
            category=config.category,
            complexity=config.complexity,
            deadline=config.deadline,
            higher_is_better=config.higher_is_better,
            sample_score=config.sample_score,
            size_gb=config.size_gb,
            known_issues=config.known_issues,
            submission=config.submission,
            board=config.board,
            medals_withheld=config.medals_withheld,
            public_sample=data_file(config.public_sample),
            beside_archive=config.beside_archive,
            data_dir=competition_paths.data_dir,
        )

    def competition_dir(self, competition_id: str) -> Path:
        """The folder of a competition, in the package or on the search path."""
        for root in self._roots():
            if Path(competition_id).name == competition_id and (root / competition_id / paths.CONFIG).is_file():
                make_importable(root)
                return root / competition_id
        ids = self.list_competition_ids()
        hint = did_you_mean(competition_id, ids, "`mlebench list` shows them all", cutoff=0.4, most=3)
        hint = did_you_mean(competition_id, ids, hint, cutoff=0.8, most=3)
        folder = Path(competition_id)
        if (folder / paths.CONFIG).is_file():
            parent = paths.resolved(folder).parent
            hint = f"to use this folder, set {paths.COMPETITION_PATH_VARIABLE}={parent} and name it {folder.name}"
        faults = [f"The search path: {fault}" for fault in self.search_path_faults()]
        end = "" if hint.endswith("?") or not faults else "."
        message = " ".join([f"there is no competition {competition_id!r}; {hint}{end}", *faults])
        raise UnknownCompetitionError(message)

    def list_competition_ids(self) -> list[str]:
        """All ids in this profile, sorted."""
        folders = {
            entry.parent.name: entry.parent for root in self._roots() for entry in root.glob(f"*/{paths.CONFIG}")
        }
        return sorted(id for id, folder in folders.items() if has_profile(folder, self.profile))

    def search_path_faults(self) -> list[str]:
        """What is wrong with folders on the search path, a sentence for each: most are misspelled."""
        return [fault for folder in paths.competition_path() if (fault := _fault_of_root(folder))]

    def get_split(self, name: str) -> list[str]:
        """The ids of a published split, by name."""
        path = self.get_splits_dir() / f"{SPLIT_ALIASES.get(name, name)}.txt"
        if not path.is_file():
            raise UnknownSplitError(f"there is no split {name!r}; there are {', '.join(self.list_splits())}")
        return path.read_text(encoding="utf-8").split()

    def list_splits(self) -> list[str]:
        return sorted({path.stem for path in self.get_splits_dir().glob("*.txt")} | SPLIT_ALIASES.keys())

    def get_lite_competition_ids(self) -> list[str]:
        return self.get_split("lite")

    def get_competitions_dir(self) -> Path:
        return paths.competitions_dir()

    def get_splits_dir(self) -> Path:
        return paths.splits_dir()

    def get_data_dir(self) -> Path:
        return self._data_dir or paths.default_data_dir()

    def set_data_dir(self, new_data_dir: Path | str) -> "Registry":
        """Another registry, with another data directory; this one is unchanged."""
        return Registry(new_data_dir, self.profile, self._also)

    def with_profile(self, profile: str) -> "Registry":
        """Another registry, with another profile; this one is unchanged."""
        return Registry(self._data_dir, profile, self._also)

    def _roots(self) -> Iterator[Path]:
        yield self.get_competitions_dir()
        yield from self._also
        yield from paths.competition_path()


def _fault_of_root(folder: Path) -> str | None:
    if not folder.is_dir():
        return f"{folder} is not a folder" if folder.exists() else f"{folder} does not exist"
    if (folder / paths.CONFIG).is_file():
        return f"{folder} is a competition's own folder; name the folder that contains it, {folder.parent}"
    if not any(folder.glob(f"*/{paths.CONFIG}")):
        return f"{folder} holds no competition: none of its folders has a {paths.CONFIG}"
    return None


def make_importable(root: Path) -> None:
    """Let `mlebench.competitions.<id>` find folders outside the package."""
    import mlebench.competitions

    if str(root) not in mlebench.competitions.__path__:
        mlebench.competitions.__path__.append(str(root))


def competition_of(competition: Competition | str) -> Competition:
    """A competition that may be given by its id; its data is then in the default data directory."""
    if isinstance(competition, str):
        return registry.get_competition(competition)
    if not isinstance(competition, Competition):
        raise TypeError(f"this needs a Competition or the id of one, not {competition!r}")
    return competition


def __getattr__(name: str) -> Any:
    """`DEFAULT_DATA_DIR`, for existing clients: looked up on access, since it may be set until then."""
    if name == "DEFAULT_DATA_DIR":
        return paths.default_data_dir()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


registry = Registry()
