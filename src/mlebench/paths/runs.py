"""Where the files of runs are. `mlebench.paths` draws the whole tree, and has all of these names."""

from dataclasses import dataclass
from pathlib import Path

SUBMISSION, LOGS, CODE, RUN_LOG = "submission", "logs", "code", "run.log"
RUNNER_LOG, FINDINGS = "runner.log", "findings"  # also in a run's folder
SCRATCH = "mlebench-"  # the prefix of scratch folders' names


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

    def work(self, token: str) -> Path:
        return self.root / ".work" / token

    def run(self, competition: str, run_id: str) -> RunPaths:
        return RunPaths(self.root / f"{competition}_{run_id}")


def model_use(work: Path) -> Path:
    """What an attempt's model calls have used so far."""
    return work / "model.json"


def model_calls(folder: Path) -> Path:
    """A line for each call to a model: in an attempt's working folder, and among the logs once it has ended."""
    return folder / "model-calls.jsonl"


def trajectory(logs: Path) -> Path:
    """An agent's own account of what it did."""
    return logs / "trajectory.jsonl"


def door_prefix(token: str) -> str:
    """The prefix of the folders that hold an attempt's doors."""
    return f"{SCRATCH}{token}-"
