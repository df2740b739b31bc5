"""The list of checks, and how they are run on one competition."""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench.contract.case import Case
from mlebench.contract.facts import code, description, facts, leaderboard
from mlebench.contract.golden import golden_files, golden_scores
from mlebench.contract.grading import faults, format_check, gold, messages, row_order, sample
from mlebench.contract.leaks import leaks
from mlebench.contract.texts import columns_named, example, files_named
from mlebench.contract.twins import prepare, twin
from mlebench.core.errors import PrerequisiteError
from mlebench.data.pipeline import IncompleteError
from mlebench.data.pipeline import prepare as make_data
from mlebench.data.sources import TwinSource
from mlebench.registry import Competition


@dataclass(frozen=True)
class Check:
    """One thing that must hold; if it does not, later checks may make no sense (`stops`)."""

    find_faults: Callable[[Case], Iterator[str]]
    stops: bool = False

    @property
    def name(self) -> str:
        return self.find_faults.__name__.strip("_").replace("_", " ")

    @property
    def what(self) -> str:
        """What holds, in a sentence."""
        return (self.find_faults.__doc__ or "").strip()


FACTS = (
    Check(facts, stops=True),
    Check(leaderboard, stops=True),
    Check(description),
    Check(code, stops=True),
    Check(twin, stops=True),
    Check(prepare, stops=True),
)
# On every twin of our own competitions, whatever its seed and size.
DATA = (
    Check(sample, stops=True),
    Check(gold),
    Check(faults),
    Check(row_order),
    Check(format_check),
    Check(messages),
    Check(leaks),
)
TEXT = (Check(example), Check(files_named), Check(columns_named))
GOLDEN = (Check(golden_files), Check(golden_scores))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a check; `faults` is None if it was not run."""

    check: Check
    faults: list[str] | None


def run_contract(competition: Competition, golden: dict[str, Any] | None = None) -> Iterator[Outcome]:
    """Every check on a competition over an empty data directory.

    Golden figures are what another implementation made of some twins, in the form of `tests/golden/<id>.json`.
    """
    stopped = False
    case = Case(competition)
    for check in (*FACTS, *DATA, *TEXT):
        if check is DATA[0] and not stopped and (failures := faults_of(Check(_make_data), case)):
            stopped = True
            yield Outcome(Check(_make_data), failures)
        outcome = Outcome(check, None if stopped else faults_of(check, case))
        stopped = stopped or bool(check.stops and outcome.faults)
        yield outcome
    if golden:
        yield from [Outcome(check, None) for check in GOLDEN] if stopped else _compare(competition, golden)


def _compare(competition: Competition, golden: dict[str, Any]) -> Iterator[Outcome]:
    """Compare with golden figures, one twin after another."""
    differences: dict[Check, list[str]] = {check: [] for check in GOLDEN}
    for name, figures in golden.items():
        case = Case(competition, *twin_named(name), figures)
        for check in GOLDEN:
            found = faults_of(Check(_make_data), case) or faults_of(check, case)
            differences[check] += [f"{name}: {fault}" for fault in found]
    yield from (Outcome(check, found) for check, found in differences.items())


def _make_data(case: Case) -> Iterator[str]:
    """The data can be prepared."""
    make_data(case.competition, TwinSource(case.seed, case.size))
    yield from ()


def twin_named(name: str) -> tuple[int, float]:
    """Seed and size of a twin that golden figures name."""
    try:
        seed, size = name.removeprefix("seed ").split(", size ")
        return int(seed), float(size)
    except ValueError:
        raise PrerequisiteError(f"golden figures name a twin {name!r}; it should read `seed 0, size 1.0`") from None


def faults_of(check: Check, case: Case) -> list[str]:
    """What a check finds; an exception in the competition's code is a fault, reported with its place."""
    found: list[str] = []
    try:
        found.extend(check.find_faults(case))
    except (PrerequisiteError, IncompleteError) as error:
        found.append(str(error))
    except (Exception, SystemExit) as error:
        if (place := _place(error, case.competition.folder)) is None:
            raise
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        found.append(f"{place}: {type(error).__name__}: {error}{notes}.")
    return found


def _place(error: BaseException, folder: Path) -> str | None:
    """Where in a competition's own code an exception came from; None if it came from elsewhere."""
    chain: BaseException | None = error
    while chain:
        for frame in reversed(traceback.extract_tb(chain.__traceback__)):
            if Path(frame.filename).parent == folder:
                return f"{Path(frame.filename).name}, line {frame.lineno}"
        chain = chain.__cause__ or chain.__context__
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).parent == folder:
        return f"{Path(error.filename).name}, line {error.lineno}"
    return None
