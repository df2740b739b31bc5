"""The list of checks, and how they are run on one competition."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mlebench.contract.case import CompetitionCase
from mlebench.contract.description_checks import columns_named, example, files_named, files_placed
from mlebench.contract.folder_checks import code, description, facts, grade_code, leaderboard, prepare_code, twin_code
from mlebench.contract.golden import golden_files, golden_scores
from mlebench.contract.grading_checks import faults, format_check, gold, messages, row_order, sample
from mlebench.contract.leaks import leaks
from mlebench.contract.twins import prepare, twin
from mlebench.core.authors import author_errors, location_in_code
from mlebench.core.errors import CompetitionError, PrerequisiteError, RawDataError
from mlebench.data.pipeline import prepare as make_data
from mlebench.data.sources import TwinSource
from mlebench.registry import Competition

Faults = Callable[[CompetitionCase], Iterator[str]]


def raw_data(case: CompetitionCase) -> Iterator[str]:
    """The twin can be made."""
    TwinSource(case.seed, case.size).fetch(case.competition)
    yield from ()


def data(case: CompetitionCase) -> Iterator[str]:
    """The data can be prepared."""
    make_data(case.competition, TwinSource(case.seed, case.size))
    yield from ()


def allowances(case: CompetitionCase) -> Iterator[str]:
    """What config.yaml says to the contract can be understood."""
    _ = case.config
    yield from ()


def submissions(case: CompetitionCase) -> Iterator[str]:
    """The sample and the gold submission have the columns that config.yaml names."""
    _ = case.submissions
    yield from ()


def verdicts(case: CompetitionCase) -> Iterator[str]:
    """The grader has a verdict on every submission."""
    _ = case.verdicts
    yield from ()


@dataclass(frozen=True)
class ContractCheck:
    """One thing that must hold; what it `needs` must hold first, or it makes no sense."""

    find_faults: Faults
    needs: tuple[Faults, ...] = ()

    @property
    def name(self) -> str:
        return self.find_faults.__name__.replace("_", " ")

    @property
    def what(self) -> str:
        """What holds, in a sentence."""
        return (self.find_faults.__doc__ or "").strip()


FACTS = (
    ContractCheck(facts),
    ContractCheck(leaderboard),
    ContractCheck(description),
    ContractCheck(code),
    ContractCheck(twin, needs=(twin_code,)),
    ContractCheck(prepare, needs=(prepare_code, twin_code, raw_data)),
)
_PREPARED = (prepare_code, twin_code, raw_data, data)
_GRADED = (facts, grade_code, *_PREPARED, verdicts)
# On every twin of our own competitions, whatever its seed and size.
DATA = (
    ContractCheck(sample, needs=(facts, grade_code, *_PREPARED)),
    ContractCheck(gold, needs=(leaderboard, *_GRADED)),
    ContractCheck(faults, needs=_GRADED),
    ContractCheck(row_order, needs=_GRADED),
    ContractCheck(format_check, needs=_GRADED),
    ContractCheck(messages, needs=_GRADED),
    ContractCheck(leaks, needs=(facts, *_PREPARED, submissions)),
)
TEXT = (
    ContractCheck(example, needs=_GRADED),
    ContractCheck(files_named, needs=(allowances, *_PREPARED)),
    ContractCheck(files_placed, needs=(allowances, *_PREPARED)),
    ContractCheck(columns_named, needs=(facts, *_PREPARED)),
)
GOLDEN = (ContractCheck(golden_files, needs=_PREPARED), ContractCheck(golden_scores, needs=_GRADED))


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of a check; `faults` is None if it was not run."""

    check: ContractCheck
    faults: list[str] | None


def run_contract(competition: Competition, golden: dict[str, Any] | None = None) -> Iterator[CheckOutcome]:
    """Every check on a competition over an empty data directory.

    Golden figures are what another implementation made of some twins, in the form of `tests/golden/<id>.json`.
    """
    run = _CheckRun(CompetitionCase(competition))
    for check in (*FACTS, *DATA, *TEXT):
        if check is DATA[0] and (unprepared := run.faults(data)) and not run.faults(prepare):
            yield CheckOutcome(ContractCheck(data), unprepared)
        yield run.outcome(check)
    if golden:
        yield from (
            [CheckOutcome(check, None) for check in GOLDEN] if run.faults(data) else _compare(competition, golden)
        )


class _CheckRun:
    """Checks of one case, each run at most once."""

    def __init__(self, case: CompetitionCase):
        self._case = case
        self._known: dict[Faults, list[str]] = {}

    def faults(self, find_faults: Faults) -> list[str]:
        if find_faults not in self._known:
            self._known[find_faults] = faults_of(ContractCheck(find_faults), self._case)
        return self._known[find_faults]

    def outcome(self, check: ContractCheck) -> CheckOutcome:
        possible = not any(self.faults(need) for need in check.needs)
        return CheckOutcome(check, self.faults(check.find_faults) if possible else None)


def _compare(competition: Competition, golden: dict[str, Any]) -> Iterator[CheckOutcome]:
    """Compare with golden figures, one twin after another."""
    differences: dict[ContractCheck, list[str]] = {check: [] for check in GOLDEN}
    for name, figures in golden.items():
        run = _CheckRun(CompetitionCase(competition, *twin_named(name), figures))
        for check in GOLDEN:
            difference = next(filter(None, map(run.faults, check.needs)), None) or run.faults(check.find_faults)
            differences[check] += [f"{name}: {fault}" for fault in difference]
    yield from (CheckOutcome(check, faults) for check, faults in differences.items())


def twin_named(name: str) -> tuple[int, float]:
    """Seed and size of a twin that golden figures name."""
    try:
        seed, size = name.removeprefix("seed ").split(", size ")
        return int(seed), float(size)
    except ValueError:
        raise PrerequisiteError(f"golden figures name a twin {name!r}; it should read `seed 0, size 1.0`") from None


def faults_of(check: ContractCheck, case: CompetitionCase) -> list[str]:
    """What a check finds; an exception in the competition's code is a fault, reported with its location."""
    faults: list[str] = []
    try:
        with author_errors():
            faults.extend(check.find_faults(case))
    except (CompetitionError, RawDataError) as error:
        text = f"{error.location}: {error.fault}" if error.location else error.fault
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()) if not note.startswith("The last raw"))
        text = f"{text.removeprefix(f'{case.competition.id}: ')}{notes}"
        faults.append(text if text.endswith("?") else f"{text}.")
    except PrerequisiteError as error:
        faults.append(str(error))
    except Exception as error:
        if (location := location_in_code(error)) is None:
            raise
        faults.append(f"{location}: {type(error).__name__}: {error}.")
    return faults
