"""Is a competition's data prepared, and what is this data directory for?"""

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

from mlebench.config import FIRST_PROFILE
from mlebench.core import paths
from mlebench.core.errors import NotPreparedError, PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.os_errors import disk_errors
from mlebench.data.manifest import read_head
from mlebench.records.data import Manifest
from mlebench.registry import Competition

logger = logging.getLogger(__name__)


def is_dataset_prepared(competition: Competition, grading_only: bool = False) -> bool:
    """Whether agents can run on the data, or (`grading_only`) submissions be graded with it; says why not."""
    fault = preparation_fault(competition, grading_only)
    if fault:
        logger.warning("%s", fault)
    return fault is None


def preparation_fault(competition: Competition, grading_only: bool = False) -> str | None:
    """What is missing or unreadable, in one sentence; None if the data is prepared.

    Only files count: data that the reference prepared, or a mounted private folder alone, is as good as ours.
    """
    root = competition.paths.root
    try:
        with disk_errors(root, root):
            return _missing(competition, grading_only)
    except PrerequisiteError as error:
        return f"{error}."


def is_prepared(competition: Competition) -> bool:
    """Whether the data is prepared; a PrerequisiteError if we cannot tell because we may not read it."""
    root = competition.paths.root
    with disk_errors(root, root):
        return _missing(competition, grading_only=False) is None


def _missing(competition: Competition, grading_only: bool) -> str | None:
    folders = (
        {"Private": competition.private_dir}
        if grading_only
        else {
            "Public": competition.public_dir,
            "Private": competition.private_dir,
        }
    )
    for name, folder in folders.items():
        if not folder.is_dir():
            return f"{name} directory does not exist."
        if not any(folder.iterdir()):
            return f"{name} directory is empty."
    if not competition.answers.is_file():
        return "Answers file does not exist."
    # Under v2, grading compares a submission with the public sample first.
    needs_sample = not grading_only or competition.profile != FIRST_PROFILE
    if needs_sample and not competition.sample_submission.is_file():
        return "Sample submission file does not exist."
    return None


def require_prepared(competition: Competition, grading_only: bool = False, *, for_run: bool = False) -> None:
    root = competition.paths.root
    with disk_errors(root, root):
        fault = _missing(competition, grading_only)
    if fault:
        raise NotPreparedError(
            f"{competition.id} is not prepared in {competition.paths.data_dir}: {fault} "
            f"Run `{command_to_prepare(competition)}` first.{twin_elsewhere([competition], for_run=for_run)}"
        )


def command_to_prepare(competition: Competition, *options: str) -> str:
    """The command that puts its data where we look for it. Options may name more competitions."""
    data_dir = competition.paths.data_dir
    usual = paths.default_data_dir(twin=holds_twins(data_dir)) == data_dir
    location = () if usual else (f"--data-dir {shlex.quote(str(data_dir))}",)
    return " ".join([competition.prepare_command, *options, *location])


def twin_elsewhere(competitions: Sequence[Competition], *, for_run: bool = False) -> str:
    """A sentence saying where twins of all of them are, or how to make one; empty if this data is twins.

    In the usual data directory, `run` makes missing twins itself.
    """
    twins = paths.default_data_dir(twin=True)
    data_dir = competitions[0].paths.data_dir
    if holds_twins(data_dir):
        return ""
    have_twins = all((competition.folder / paths.TWIN).is_file() for competition in competitions)
    if for_run and have_twins and data_dir == paths.default_data_dir() != twins:
        return " Without Kaggle's data, add `--twin`: it runs on synthetic data."
    are_twins = (
        paths.CompetitionPaths(twins, competition.id, competition.profile).manifest.is_file()
        for competition in competitions
    )
    subject = "A twin of it is" if len(competitions) == 1 else "Twins of them are"
    if holds_twins(twins) and all(are_twins):
        return f" {subject} in {twins}: `--data-dir {shlex.quote(str(twins))}`."
    if len(competitions) > 1 or not have_twins:
        return ""
    return f" Without Kaggle's data, try a twin: `{competitions[0].prepare_command} --twin`."


def read_manifest_head(competition: Competition) -> Manifest | None:
    """How the data was prepared; None if another program prepared it, if nobody did, or if it cannot be understood."""
    return read_head(competition.paths.manifest)


def data_identity(competition: Competition) -> str | None:
    """One hash of the prepared data, the same on every machine; None without a manifest."""
    head = read_manifest_head(competition)
    return head.identity if head else None


def source_kind(competition: Competition) -> str:
    """Where prepared data came from: `twin`, `local`, `kaggle`, or `unknown` when there is no manifest."""
    head = read_manifest_head(competition)
    return head.source.kind if head else "unknown"


def description_kind(competition: Competition) -> str | None:
    """Whose text agents get: `ours` or the `original`; None if it was not recorded."""
    head = read_manifest_head(competition)
    return head.description if head and head.description != "unknown" else None


def holds_twins(data_dir: Path) -> bool:
    return paths.data_dir_record(data_dir).is_file()


def claim_data_dir(data_dir: Path, *, twin: bool) -> None:
    """Refuse a data directory that holds the other kind: it has twins or real data, never both."""
    if fault := data_dir_fault(data_dir, twin=twin):
        raise PrerequisiteError(fault)
    if twin and not holds_twins(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True)
        write_whole(paths.data_dir_record(data_dir), '{"kind": "twin"}\n')


def data_dir_fault(data_dir: Path, *, twin: bool) -> str | None:
    """Why a data directory is not for twins, or not for real data."""
    if not twin:
        return f"{data_dir} holds twins; give real data another --data-dir" if holds_twins(data_dir) else None
    # Look at the contents before the record: another process may be making the first twin right now.
    occupied = data_dir.is_dir() and any(_holds_data(entry) for entry in data_dir.iterdir() if entry.is_dir())
    if occupied and not holds_twins(data_dir):
        return f"{data_dir} holds real data; give twins another --data-dir"
    return None


def _holds_data(folder: Path) -> bool:
    """Whether a competition's folder holds more than a lock; one that we may not read counts as yes."""
    lock = paths.CompetitionPaths(folder.parent, folder.name).lock.name
    try:
        return any(entry.name != lock for entry in folder.iterdir())
    except PermissionError:
        return True
