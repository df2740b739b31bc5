"""Checks a bundle's claims by grading its submissions again, with identical data."""

import math
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal

from mlebench import __version__
from mlebench.bundles import signature
from mlebench.bundles.archive import printable_name
from mlebench.bundles.reader import Bundle, read_bundle
from mlebench.core.errors import PrerequisiteError
from mlebench.core.outcomes import MODEL_UNAVAILABLE, UNGRADED_STATUSES
from mlebench.core.paths import SCRATCH, bundle_verdict
from mlebench.data.state import data_identity, preparation_fault, twin_elsewhere
from mlebench.grade.in_process import GradingJob, Ungraded
from mlebench.grade.limits import DEFAULT_LIMITS, GradingLimits
from mlebench.grade.submission import Workers
from mlebench.records import read, write
from mlebench.records.bundle import AGREES, CLAIMED, DIFFERS, NOT_REGRADED, BundleVerdict, RunVerdict
from mlebench.records.report import Report
from mlebench.records.run_groups import Run
from mlebench.registry import Registry
from mlebench.scoring import CompetitionReport

# Scores have five decimals; other library versions may round the last one differently.
TOLERANCE = 1.5e-5
FLAGS = (
    "gold_medal", "silver_medal", "bronze_medal", "any_medal", "above_median",
    "submission_exists", "valid_submission", "is_lower_better",
)  # fmt: skip
THRESHOLDS = ("gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold")
Tracker = Callable[[list[Run]], Iterable[Run]]
Outcome = CompetitionReport | Ungraded
Agreement = Literal["agrees", "differs", "not regraded"]


def verify_bundle(
    path: Path,
    data_dir: Path,
    signers: Path | None = None,
    track: Tracker = iter,
    *,
    jobs: int = 1,
    limits: GradingLimits = DEFAULT_LIMITS,
) -> BundleVerdict:
    """Check a bundle, and grade its submissions again with the data of this machine.

    `signers` is a file of allowed signers, as ssh-keygen reads it; `track` wraps the runs and yields each as it is
    compared. Raises BundleRefusedError if the bundle is not intact, PrerequisiteError if it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch:
        bundle = read_bundle(path, Path(scratch))
        checked = signature.check(path, bundle.manifest_bytes, signers)
        registry = Registry(data_dir, bundle.group.record.profile)
        with Workers(jobs) as workers:
            rows = _rows(bundle, registry, workers, limits, track)
    record = bundle.group.record
    return BundleVerdict(bundle=bundle.sha256, group=record.id, agent=record.agent.name, signature=checked, runs=rows)


def record_verdict(verdict: BundleVerdict, runs_dir: Path) -> Path:
    """Write a verdict where `mlebench report` looks for it."""
    path = bundle_verdict(runs_dir, verdict.bundle)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, verdict)
    return path


def verdict_on(bundle: Bundle, runs_dir: Path) -> BundleVerdict | None:
    """The outcome of verifying this exact file here; None if it has not been verified."""
    path = bundle_verdict(runs_dir, bundle.sha256)
    return read(path, BundleVerdict) if path.is_file() else None


def _rows(
    bundle: Bundle, registry: Registry, workers: Workers, limits: GradingLimits, track: Tracker
) -> list[RunVerdict]:
    known = set(registry.list_competition_ids())
    folder = bundle.path.absolute().parent  # where grades are logged if the data directory is not writable
    settled: dict[str, tuple[Agreement, str | None]] = {}
    waiting: dict[str, Future[Outcome]] = {}
    for run in bundle.group.runs():
        id = run.record.run_id
        if verdict := _without_grading(run, bundle, registry, known):
            settled[id] = verdict
        else:
            job = GradingJob(registry, run.record.competition, str(bundle.submissions[id]), limits, folder)
            waiting[id] = workers.grade(job)
    rows = []
    for run in track(list(bundle.group.runs())):
        id = run.record.run_id
        outcome = waiting[id].result() if id in waiting else None
        verdict, why = settled[id] if outcome is None else _verdict(run, outcome)
        rows.append(_row(run, outcome, verdict, why))
    return rows


def _row(run: Run, outcome: Outcome | None, verdict: Agreement, why: str | None) -> RunVerdict:
    record = run.record
    return RunVerdict(
        run_id=record.run_id,
        competition=record.competition,
        seed=record.seed,
        claimed=record.report.score if record.report else None,
        regraded=outcome.to_record().score if isinstance(outcome, CompetitionReport) else None,
        verdict=verdict,
        why=why,
    )


def _without_grading(
    run: Run, bundle: Bundle, registry: Registry, known: set[str]
) -> tuple[Agreement, str | None] | None:
    """The verdict on a run whose submission cannot or need not be graded."""
    record = run.record
    report = record.report
    is_there = record.run_id in bundle.submissions
    if report is None and record.ended == MODEL_UNAVAILABLE:  # its submission is kept, but was never graded
        return AGREES, "no score is claimed"
    if report is None:
        return (DIFFERS, "there is a submission but no report on it") if is_there else (AGREES, "no score is claimed")
    if not is_there:
        return _without_submission(run, bundle)
    if report.submission_sha256 not in (None, bundle.submission_hashes[record.run_id]):
        return DIFFERS, "the report is for another submission"
    if record.competition not in known:
        return NOT_REGRADED, f"there is no competition {printable_name(record.competition)} here"
    competition = registry.get_competition(record.competition)
    if fault := preparation_fault(competition, grading_only=True):
        return NOT_REGRADED, f"the data is not prepared here: {fault}{twin_elsewhere([competition])}"
    if report.data is None:
        return NOT_REGRADED, "the bundle does not say which data it was graded with"
    if (identity := data_identity(competition)) != report.data:
        known_as = "has no identity: `mlebench verify --adopt` gives it one" if identity is None else "is not the same"
        return NOT_REGRADED, f"the data here {known_as}"
    return None


def _without_submission(run: Run, bundle: Bundle) -> tuple[Agreement, str | None]:
    name = f"{run.paths.root.name}/"
    is_left_out = any(row.name.startswith(name) for row in bundle.manifest.left_out)
    report = run.record.report
    if report is None or (report.score is None and not any(getattr(report, flag) for flag in FLAGS[:-1])):
        return AGREES, "no score is claimed"
    if run.record.submission == "present" and is_left_out:
        return NOT_REGRADED, "the submission is not in the bundle"
    return DIFFERS, "a score is claimed without a submission"


def _verdict(run: Run, outcome: Outcome) -> tuple[Agreement, str | None]:
    if isinstance(outcome, Ungraded) or outcome.status in UNGRADED_STATUSES:
        return NOT_REGRADED, outcome.reason
    claimed, graded = run.record.report, outcome.to_record()
    if claimed is None:
        return DIFFERS, "there is a submission but no report on it"
    if not _same_score(claimed.score, graded.score):
        why = "the score differs"
    elif claimed.status != graded.status:
        why = f"it is {graded.status}, not {printable_name(str(claimed.status))}"
    elif any(getattr(claimed, flag) != getattr(graded, flag) for flag in FLAGS):
        why = "the medal differs"
    elif any(getattr(claimed, name) != getattr(graded, name) for name in THRESHOLDS):
        why = "the thresholds differ"
    elif not all(_same_score(claim, getattr(graded, name)) for name, claim in _stated_standing(claimed).items()):
        why = "the percentile or the normalised score differs"
    elif (claimed.source == "twin") != (graded.source == "twin"):
        why = f"the data is {graded.source}, not {printable_name(str(claimed.source))}"
    else:
        return AGREES, None
    versions = [(report.mlebench, report.competition_version) for report in (claimed, graded)]
    return DIFFERS, why if versions[0] == versions[1] else f"{why}; {_versions(*versions)}"


def _versions(theirs: tuple[Any, Any], ours: tuple[Any, Any]) -> str:
    return (
        f"it was graded by mlebench {printable_name(str(theirs[0]))}, competition version {theirs[1]}, "
        f"and here by mlebench {__version__}, competition version {ours[1]}"
    )


def _stated_standing(claimed: Report) -> dict[str, float]:
    """Where a report says that its score stands; older ones do not say."""
    stated = {"percentile": claimed.percentile, "normalised_score": claimed.normalised_score}
    return {name: value for name, value in stated.items() if value is not None}


def _same_score(claimed: float | None, graded: float | None) -> bool:
    if claimed is None or graded is None:
        return claimed is graded
    return math.isclose(claimed, graded, rel_tol=1e-9, abs_tol=TOLERANCE)


def require_credible(verdict: BundleVerdict | None, path: Path) -> str:
    """How far a bundle's scores can be trusted: `claimed` or `regraded`; refuses a bundle that was found false."""
    if verdict is None:
        return CLAIMED
    if verdict.differs:
        raise PrerequisiteError(f"{path} makes false claims: see `mlebench bundle verify {path}`")
    return verdict.trust
