"""Where the files of runs are. `mlebench.core.paths` draws the whole tree, and has all of these names."""

import glob
import re
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mlebench.core.paths.data import SCRATCH

SUBMISSION, LOGS, CODE, RUN_LOG = "submission", "logs", "code", "run.log"
RUNNER_LOG, FINDINGS = "runner.log", "findings"  # also in a run's folder
GRADING_REPORT = "grading_report.json"  # preceded by a timestamp
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(?:GMT|UTC)", re.ASCII)


@dataclass(frozen=True)
class RunPaths:
    """Where the files of one run are."""

    root: Path

    @property
    def group(self) -> "GroupPaths":
        return GroupPaths(self.root.parent)

    @property
    def record(self) -> Path:
        return self.root / "run.json"

    @property
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def result(self) -> Path:
        return self.root / "result"

    def staged_result(self, token: str) -> Path:
        return self.root / f"result.{token}"

    @property
    def submission(self) -> Path:
        return self.root / SUBMISSION / f"{SUBMISSION}.csv"

    @property
    def logs(self) -> Path:
        return self.root / LOGS

    @property
    def code(self) -> Path:
        return self.root / CODE

    @property
    def log(self) -> Path:
        return self.root / RUN_LOG

    @property
    def runner_log(self) -> Path:
        return self.root / RUNNER_LOG

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def over_time(self) -> Path:
        """The scores of snapshots. The file is among them, so that it moves with them."""
        return self.snapshots / "scores.json"

    def attempt(self, number: int) -> Path:
        return self.root / "attempts" / str(number)

    @property
    def findings(self) -> Path:
        return self.root / "findings"

    def finding(self, tool: str) -> Path:
        return self.findings / f"{tool}.json"


@dataclass(frozen=True)
class GroupPaths:
    """Where the files of a run group are."""

    root: Path

    @property
    def record(self) -> Path:
        return self.root / "group.json"

    @property
    def metadata(self) -> Path:
        return self.root / "metadata.json"

    @property
    def superseded(self) -> Path:
        return self.root / "superseded"

    @property
    def leases(self) -> Path:
        return self.root / ".leases"

    @property
    def slurm(self) -> Path:
        return self.root / ".slurm"

    @property
    def cancelled(self) -> Path:
        return self.root / ".cancelled"

    @property
    def hosts(self) -> Path:
        return self.root / ".hosts"

    def host(self, name: str) -> Path:
        return self.hosts / name.replace("/", "_")

    def work(self, token: str) -> Path:
        return self.root / ".work" / token

    def run(self, competition: str, run_id: str) -> RunPaths:
        return RunPaths(self.root / f"{competition}_{run_id}")


def outcome(work: Path) -> Path:
    """How an attempt's agent ended: written by the supervisor, even if the runner is gone or the disk is full."""
    return work / "outcome.json"


def spare_outcome(token: str) -> Path:
    """Where an outcome goes if the disk takes nothing at all: in the memory of this host, until it is started again."""
    memory = Path("/dev/shm")  # noqa: S108 nobody else's file is believed
    return (memory if memory.is_dir() else Path(tempfile.gettempdir())) / f"{SCRATCH}{token}.json"


def disk_note(work: Path) -> Path:
    """What an attempt's agent has written to the disk so far, for the supervisors of runs on the same disk."""
    return work / "disk.json"


def disk_notes(work: Path) -> str:
    """A pattern for the notes of all attempts below the same runs directory."""
    runs_dir = GroupPaths(work.parent.parent).root.parent
    return str(disk_note(GroupPaths(Path(glob.escape(str(runs_dir)), "*")).work("*")))


def usage_file(work: Path) -> Path:
    """What an attempt's model calls have used so far."""
    return work / "model.json"


def package_usage_file(work: Path) -> Path:
    """Which packages an attempt has fetched so far."""
    return work / "packages.json"


def model_calls(folder: Path) -> Path:
    """A line for each call to a model: in an attempt's working folder, and among the logs once it has ended."""
    return folder / "model-calls.jsonl"


def trajectory(logs: Path) -> Path:
    """An agent's own account of what it did."""
    return logs / "trajectory.jsonl"


def proxy_prefix(token: str) -> str:
    """The prefix of the folders that hold an attempt's proxies."""
    return f"{SCRATCH}{token}-"


def default_runs_dir(data_dir: Path) -> Path:
    """Where run groups are kept by default: beside the data they were run on."""
    return data_dir.parent / f"{data_dir.name}-runs" if data_dir.name != "data" else data_dir.parent / "runs"


def demo_dir(data_dir: Path) -> Path:
    """Where the demo keeps its runs and pages: apart from the user's own."""
    return data_dir.with_name(f"{data_dir.name}-demo")


def runs_below(folder: Path) -> Path:
    return folder / "runs"


def pages_below(folder: Path) -> Path:
    return folder / "pages"


def own_validation(logs: Path) -> Path:
    """The score an agent expects, if it writes no trajectory."""
    return logs / "validation.json"


def grading_report(folder: Path, name: str) -> Path:
    return folder / f"{name}_grading_report.json"


def is_grading_report(name: str) -> bool:
    """Whether a file is named like a grading report, by us or by others."""
    return "grading_report" in name and name.endswith(".json")


def experiments_table(runs_dir: Path) -> Path:
    """Which run groups belong to which experiment, at the reference's location."""
    return runs_dir / "run_group_experiments.csv"


def bundle(folder: Path, group: str) -> Path:
    return folder / f"{group}.bundle.tar.gz"


def bundle_signature(bundle: Path) -> Path:
    return bundle.with_name(f"{bundle.name}.sig")


def bundle_verdict(runs_dir: Path, sha256: str) -> Path:
    """The outcome of verifying a bundle: not beside it, where the sender could have put a forged one."""
    return runs_dir / "verified-bundles" / f"{sha256}.json"


def timestamp() -> str:
    """Now, in UTC, in the form used in file and folder names."""
    return time.strftime("%Y-%m-%dT%H-%M-%S-GMT", time.gmtime())


def time_in(name: str) -> str | None:
    """The UTC time that a file or folder name begins with, in the form that records use."""
    if not (match := _TIMESTAMP.match(name)):
        return None
    date, *clock = match.groups()
    try:
        return datetime.fromisoformat(f"{date}T{':'.join(clock)}+00:00").isoformat()
    except ValueError:
        return None
