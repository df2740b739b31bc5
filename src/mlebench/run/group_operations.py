"""What changes a whole group: repeating runs, cancelling, reopening, and writing its grading report at the end."""

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from mlebench.core import leases, paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import is_temporary, remove_temporaries, write_whole
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import FINISHED, INFRA_ERROR, MODEL_UNAVAILABLE
from mlebench.grade import aggregate_reports
from mlebench.records import now, write
from mlebench.records.run import PRESENT
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Registry
from mlebench.run.grading import run_info
from mlebench.run.hosts import forget_failures
from mlebench.run.plan import write_metadata
from mlebench.run.publish import reset_run
from mlebench.run.retry_rules import is_due, is_retried, retried
from mlebench.scoring import CompetitionReport


def retry_runs(group: Group, kinds: Collection[str]) -> int:
    """Set runs that ended in these ways back to planned; return how many."""
    runs = [run for run in group.runs() if is_retried(run.record, kinds)]
    if runs:
        forget_report(group)
    return sum(_retry(run, kinds) for run in runs)


def forget_report(group: Group) -> None:
    """Called before runs change: even if we are killed then, no report counts until one has been made of them."""
    with leases.held(group.paths.leases, patience=1) as require_lease:
        record = Group.read(group.paths.root).record.changed(report=None)
        require_lease()
        write(group.paths.record, record)


def _retry(run: Run, kinds: Collection[str]) -> bool:
    lease = leases.acquire(run.paths.leases, wait=False)
    if lease is None:
        return False
    try:
        run = Run.read(run.paths.root)
        if not is_retried(run.record, kinds):  # another runner was quicker
            return False
        reset_run(run, **retried(run.record))
        return True
    finally:
        lease.release()


def to_do(group: Group, kinds: Collection[str] = ()) -> int:
    """How many runs `--resume` would do, with these kinds of `--retry`."""
    return sum(is_due(run.record, kinds) for run in group.runs())


def cancel(group: Group) -> None:
    """Have everybody who works on a group stop, and nobody start any of its runs, until it is resumed."""
    try:
        write_whole(group.paths.cancelled, f"{now()}\n")
    except OSError as error:
        try:
            group.paths.cancelled.touch()  # an empty mark counts, too, and a full disk may have room for one
        except OSError:
            raise PrerequisiteError(
                f"the group is not cancelled: cannot write {group.paths.cancelled}: {reason_of(error)}"
            ) from error


def reopen(group: Group, *, only_here: bool) -> None:
    """Let a group's runs be started again: by whoever works on it, and on hosts that had stopped taking them."""
    group.paths.cancelled.unlink(missing_ok=True)
    forget_failures(group.paths, only_here=only_here)


def finished_report(group: Group, runs: Iterable[Run]) -> Path | None:
    """The report of a group in which nothing is left to do."""
    report = group.paths.root / str(group.record.report)
    return report if report.is_file() and all(run.is_settled for run in runs) else None


def finish(group: Group) -> Path | None:
    """Write the grading report of a group whose runs have all ended: exactly one, named in group.json."""
    with leases.held(group.paths.leases, patience=1) as require_lease:
        return _finish(group, require_lease)


def _finish(group: Group, require_lease: Callable[[], None]) -> Path | None:
    runs = list(group.runs())
    success = {run.paths.root.name: run.record.ended == FINISHED for run in runs}
    write_metadata(group.paths, group.record, success)
    if not all(run.is_settled for run in runs):
        return None
    registry = Registry(group.record.data_dir, group.record.profile)
    reports = [_report(run, group, registry) for run in runs]
    name = f"{paths.timestamp()}_{paths.GRADING_REPORT}"
    require_lease()
    _remove_drafts(group.paths)
    for old in group.paths.root.glob(f"*_{paths.GRADING_REPORT}"):  # existing tools expect exactly one
        group.paths.superseded.mkdir(exist_ok=True)
        old.rename(group.paths.superseded / old.name)
    path = group.paths.root / name
    write_whole(path, json.dumps(aggregate_reports(reports), indent=2))
    is_whole = not any(run.fault for run in runs)  # a record that is mended later still has to get into the report
    write(group.paths.record, group.record.changed(report=name if is_whole else None))
    return path


def _remove_drafts(group: paths.GroupPaths) -> None:
    """Remove files left half-written by processes that were killed."""
    remove_temporaries(group.record, group.metadata)
    for path in group.root.glob(f"*_{paths.GRADING_REPORT}.*"):
        if is_temporary(path.name):
            path.unlink(missing_ok=True)


def _report(run: Run, group: Group, registry: Registry) -> CompetitionReport:
    """A run's report. If it has none, through no fault of the agent, one that says so."""
    if run.record.report is not None:
        return CompetitionReport.from_record(run.record.report)
    from mlebench.grade.in_process import Verdict, ungraded_report, with_verdict

    competition = registry.get_competition(run.record.competition)
    report = ungraded_report(run.paths.submission, competition, run_info(run, group))
    status = MODEL_UNAVAILABLE if run.record.ended == MODEL_UNAVAILABLE else INFRA_ERROR
    return with_verdict(report, Verdict(status, reason=run.fault or run.record.detail))


def submission_lines(group: Group, log: str, code: str) -> list[dict[str, Any]]:
    """The lines of the file that `mlebench grade --submission` reads."""
    lines = []
    for run in group.runs():
        root = run.paths.root
        folders = {"logs_path": root / log, "code_path": root / code}
        lines.append(
            {
                "competition_id": run.record.competition,
                "submission_path": str(run.paths.submission) if run.record.submission == PRESENT else None,
                "seed": run.record.seed,
                **{name: str(path) if path.exists() else None for name, path in folders.items()},
            }
        )
    return lines
