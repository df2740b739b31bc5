"""Checks of a competition's twin, and of what prepare makes of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mlebench.contract.case import CompetitionCase
from mlebench.core.paths import DESCRIPTION, MANIFEST, MANIFEST_FILES, TWIN, CompetitionPaths, moved
from mlebench.data.gold import write_gold
from mlebench.data.pipeline import prepare as prepare_data
from mlebench.data.sources import TwinSource
from mlebench.registry import Competition

LARGEST_TWIN = 5_000_000  # bytes
LEAST_GROWTH = 1.3  # of a twin of size 2


def twin(case: CompetitionCase) -> Iterator[str]:
    """The twin is small, reproducible, different for each seed, and grows with its size."""
    with TemporaryDirectory() as folder:
        kinds = {"first": (0, 1.0), "again": (0, 1.0), "other seed": (1, 1.0), "twice as large": (0, 2.0)}
        made = {
            name: _contents(TwinSource(seed, size).fetch(_at(case.competition, Path(folder, name))))
            for name, (seed, size) in kinds.items()
        }
    sizes = {name: sum(map(len, files.values())) for name, files in made.items()}
    if changed := _differing(made["first"], made["again"]):
        yield f"{TWIN} writes {changed} differently each time: take all randomness from `raw.rng`."
    elif made["first"] == made["other seed"]:
        yield f"{TWIN} makes the same files for seeds 0 and 1: draw values from `raw.rng`."
    if sizes["twice as large"] <= LEAST_GROWTH * sizes["first"]:
        yield f"{TWIN} does not grow with its size: take numbers of rows and files from `raw.count`."
    if sizes["first"] > LARGEST_TWIN:
        yield f"the twin has {sizes['first']:,} bytes, {LARGEST_TWIN:,} is the limit: make fewer or smaller files."


def prepare(case: CompetitionCase) -> Iterator[str]:
    """prepare gives the same files every time, even when called with plain paths, and leaves raw untouched."""
    with TemporaryDirectory() as folder:
        first, second = _at(case.competition, Path(folder, "a")), _at(case.competition, Path(folder, "b"))
        source, results = TwinSource(seed=5), []
        for competition in (first, second):
            source.fetch(competition)
            before = _with_times(competition.raw_dir)
            if competition is first:
                prepare_data(competition, source)
            else:
                _with_plain_paths(competition)
            if changed := _differing(before, _with_times(competition.raw_dir)):
                yield f"prepare changes the raw file {changed}: raw data must only be read."
            results.append(_contents(competition.paths.prepared))
    if changed := _differing(*results):
        yield (
            f"prepare writes {changed} differently the second time: sort what it reads from folders and sets, and give "
            "every split a seed."
        )


def _with_plain_paths(competition: Competition) -> None:
    """As existing clients call it: the function itself, if it takes paths."""
    preparer = competition.prepare_fn
    function = getattr(preparer, "function", preparer)
    direct = competition.kit_prepare_fn is not function
    for folder in (competition.public_dir, competition.private_dir):
        folder.mkdir(parents=True)
    (function if direct else preparer)(competition.raw_dir, competition.public_dir, competition.private_dir)
    (competition.public_dir / DESCRIPTION).write_text(competition.description, encoding="utf-8")
    if not competition.gold_submission.exists():
        write_gold(competition, competition.paths.prepared)


def _at(competition: Competition, data_dir: Path) -> Competition:
    """Return the competition in another data directory."""
    there = CompetitionPaths(data_dir, competition.id, competition.profile)

    def there_too(path: Path) -> Path:
        return moved(path, competition.paths.data_dir, data_dir)

    return replace(
        competition,
        raw_dir=there.raw,
        public_dir=there.public,
        private_dir=there.private,
        answers=there_too(competition.answers),
        gold_submission=there_too(competition.gold_submission),
        sample_submission=there_too(competition.sample_submission),
        public_sample=there_too(competition.public_sample or competition.sample_submission),
        data_dir=data_dir,
    )


def _contents(folder: Path) -> dict[str, bytes]:
    """Every file's bytes by its name; a manifest contains times, so it is left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (MANIFEST, MANIFEST_FILES)
    }


def _with_times(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def _differing(first: dict, second: dict) -> str | None:
    """The first file that is missing from one side or differs."""
    return min((name for name in {*first, *second} if first.get(name) != second.get(name)), default=None)
