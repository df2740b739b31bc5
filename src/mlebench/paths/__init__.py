"""The only place where directory and file names are spelled.

<data-dir>/
├── data-dir.json             says that this data directory holds twins (absent: real data)
├── grades.jsonl              a line for every submission graded with this data; else beside the report
└── <id>/
    ├── <id>.zip              the archive as Kaggle ships it
    ├── <id>.zip.json         what is known about that archive: whether we downloaded it, when, its md5
    ├── from.json             the md5 of an archive elsewhere, while data is prepared from it
    ├── <id>.zip.part         what has been downloaded so far; .part.json says of which archive
    ├── raw/                  the same, as a folder; read-only for us
    ├── raw.staging/          becomes raw/ in one rename, when we unpack or make it to be kept; .json: from what
    ├── twin.json             how raw/ was made, when it is a twin
    ├── runs-open/            a file for each run of this competition in progress
    ├── lock                  held while a process prepares this competition
    ├── prepared.staging/     becomes prepared/ in one rename
    │   ├── attempt.json      the data and the code that it is being made with
    │   ├── written.jsonl     a line for each file written, with its md5, so that it is not written again
    │   └── unpacked/         archives from inside the raw data
    ├── prepared.replaced/    the previous prepared/, about to be deleted
    └── prepared/             profile v2: prepared-v2/
        ├── public/           what the agent may see
        ├── private/          what only the grader may see
        ├── manifest.json     how it was prepared; absent when the reference prepared it
        └── manifest.files.jsonl  a line for each file: its name, size, checksum or time

<runs-dir>/<timestamp>_run-group_<agent>/
├── group.json                what was asked for; written before the first run starts
├── metadata.json             the group as the reference describes it
├── <timestamp>_grading_report.json; superseded/ holds those that a newer one replaced
├── .leases/                  which process writes the grading report
├── .slurm/<n>.{sh,txt,log}   what was submitted to Slurm: a script, its runs, errors before a run began
├── .work/<token>/            a live sandbox's writable folders, under a name that gives nothing away
│   ├── model.json            what the run's model calls have used so far
│   └── model-calls.jsonl     a line for each of its calls; moves to logs/ when the run ends
└── <competition>_<run-id>/
    ├── run.json              state, timings, limits, outcome; replaced atomically at each step
    ├── leases/<n>.json       which process works on it, with a heartbeat; the highest number wins
    ├── result/               appears in one rename when a run has ended: only one of two results counts
    ├── submission/, logs/, code/, run.log    what the agent left
    │   └── logs/trajectory.jsonl     what it did, in its own words
    ├── runner.log            messages of the benchmark itself
    ├── snapshots/            earlier states of the submission
    ├── attempts/<n>/         what earlier attempts left
    └── findings/             what was found about the run later

<runs-dir>/verified-bundles/<sha256>.json   the outcome of verifying a bundle

<cache-dir>/kernels/<id>/<owner>/<name>.ipynb   published notebooks of a competition; scripts end in .py
<cache-dir>/fingerprints/<sha256>.npy           their fingerprints, by the hash of their content

Settings come from the environment, then from a YAML file (keys `data_dir`, `competition_path`, `slurm`).
"""

import os
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mlebench.paths.runs import CODE as CODE
from mlebench.paths.runs import FINDINGS as FINDINGS
from mlebench.paths.runs import LOGS as LOGS
from mlebench.paths.runs import RUN_LOG as RUN_LOG
from mlebench.paths.runs import RUNNER_LOG as RUNNER_LOG
from mlebench.paths.runs import SCRATCH as SCRATCH
from mlebench.paths.runs import SUBMISSION as SUBMISSION
from mlebench.paths.runs import GroupPaths as GroupPaths
from mlebench.paths.runs import RunPaths as RunPaths
from mlebench.paths.runs import door_prefix as door_prefix
from mlebench.paths.runs import model_calls as model_calls
from mlebench.paths.runs import model_use as model_use
from mlebench.paths.runs import trajectory as trajectory
from mlebench.settings import read_setting

PROFILES = ("v1", "v2")
PREPARED, PUBLIC, PRIVATE = "prepared", "public", "private"
MANIFEST, MANIFEST_FILES = "manifest.json", "manifest.files.jsonl"
CONFIG, DESCRIPTION = "config.yaml", "description.md"  # in a competition folder, like the next three
LEADERBOARD, CHECKSUMS, TWIN = "leaderboard.csv", "checksums.yaml", "twin.py"
KERNELS = "kernels.txt"  # also there: the names of published notebooks
GRADING_REPORT = "grading_report.json"  # preceded by a timestamp
DATA_DIR_VARIABLE = "MLEBENCH_DATA_DIR"
VENVS_DIR_VARIABLE = "MLEBENCH_VENVS_DIR"
COMPETITION_PATH_VARIABLE = "MLEBENCH_COMPETITION_PATH"
CONFIG_VARIABLE = "MLEBENCH_CONFIG"
VARIABLE_PREFIX = "MLEBENCH_"
VARIABLES = (DATA_DIR_VARIABLE, COMPETITION_PATH_VARIABLE, VENVS_DIR_VARIABLE, CONFIG_VARIABLE)


@dataclass(frozen=True)
class CompetitionPaths:
    """Where one competition's files are in a data directory."""

    data_dir: Path
    id: str
    profile: str = "v1"
    folder: Path | None = None  # where it is, if not in <data-dir>/<id>

    @cached_property
    def root(self) -> Path:
        return self.folder or self.data_dir / self.id

    @cached_property
    def archive(self) -> Path:
        return self.root / f"{self.id}.zip"

    @cached_property
    def archive_record(self) -> Path:
        return self.root / f"{self.id}.zip.json"

    @cached_property
    def archive_elsewhere_record(self) -> Path:
        return self.root / "from.json"

    @cached_property
    def archive_part(self) -> Path:
        return self.root / f"{self.id}.zip.part"

    @cached_property
    def archive_part_record(self) -> Path:
        return self.root / f"{self.id}.zip.part.json"

    @cached_property
    def raw(self) -> Path:
        return self.root / "raw"

    @cached_property
    def raw_staging(self) -> Path:
        return self.root / "raw.staging"

    @cached_property
    def raw_staging_record(self) -> Path:
        return self.root / "raw.staging.json"

    @cached_property
    def twin(self) -> Path:
        return twin_record(self.raw)

    @cached_property
    def lock(self) -> Path:
        return self.root / "lock"

    @cached_property
    def runs_open(self) -> Path:
        return self.root / "runs-open"

    @cached_property
    def prepared(self) -> Path:
        return self.root / (PREPARED if self.profile == "v1" else f"{PREPARED}-{self.profile}")

    @cached_property
    def staging(self) -> Path:
        return self.prepared.with_name(f"{self.prepared.name}.staging")

    @cached_property
    def replaced(self) -> Path:
        return self.prepared.with_name(f"{self.prepared.name}.replaced")

    @cached_property
    def attempt(self) -> Path:
        return self.staging / "attempt.json"

    @cached_property
    def written(self) -> Path:
        return self.staging / "written.jsonl"

    @cached_property
    def unpacked(self) -> Path:
        return self.staging / "unpacked"

    @cached_property
    def public(self) -> Path:
        return self.prepared / PUBLIC

    @cached_property
    def private(self) -> Path:
        return self.prepared / PRIVATE

    @cached_property
    def manifest(self) -> Path:
        return self.prepared / MANIFEST


def pages_dir(runs_dir: Path) -> Path:
    """Where the demo writes pages about its runs."""
    return runs_dir.with_name(f"{runs_dir.name}-pages")


def own_validation(logs: Path) -> Path:
    """The score an agent expects, if it writes no trajectory."""
    return logs / "validation.json"


def twin_record(raw: Path) -> Path:
    return raw.parent / "twin.json"


def data_dir_record(data_dir: Path) -> Path:
    return data_dir / "data-dir.json"


def grades_log(folder: Path) -> Path:
    """In a data directory or, if that is not writable, in a folder of reports."""
    return folder / "grades.jsonl"


def bundle(folder: Path, group: str) -> Path:
    return folder / f"{group}.bundle.tar.gz"


def bundle_signature(bundle: Path) -> Path:
    return bundle.with_name(f"{bundle.name}.sig")


def bundle_verdict(runs_dir: Path, sha256: str) -> Path:
    """The outcome of verifying a bundle: not beside it, where the sender could have put a forged one."""
    return runs_dir / "verified-bundles" / f"{sha256}.json"


def grading_report(folder: Path, name: str) -> Path:
    return folder / f"{name}_grading_report.json"


def experiments_table(runs_dir: Path) -> Path:
    """Which run groups belong to which experiment, at the reference's location."""
    return runs_dir / "run_group_experiments.csv"


def module_dir() -> Path:
    return Path(__file__).parents[1].resolve()


def competitions_dir() -> Path:
    return module_dir() / "competitions"


def splits_dir() -> Path:
    return module_dir() / "splits"


def agents_dir() -> Path:
    return module_dir() / "agents"


def cache_dir() -> Path:
    if sys.platform == "darwin":
        base = Path("~/Library/Caches").expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return base / "mle-bench"


def kernels_dir(competition_id: str) -> Path:
    """Where published notebooks of a competition are kept, as `owner/name.ipynb` or `.py`."""
    return cache_dir() / "kernels" / competition_id


def fingerprints_dir() -> Path:
    """Where the fingerprints of notebooks are kept."""
    return cache_dir() / "fingerprints"


def fingerprints(folder: Path, sha256: str) -> Path:
    return folder / sha256[:2] / f"{sha256}.npy"


def judge_dir() -> Path:
    """What judges were asked and answered, and how good they are. Never inside a run."""
    return _state_dir() / "judge"


def familiarity_dir() -> Path:
    """What models were asked about competitions, and answered."""
    return _state_dir() / "familiarity"


def _state_dir() -> Path:
    base = "~/Library/Application Support" if sys.platform == "darwin" else os.environ.get("XDG_STATE_HOME")
    return Path(base or "~/.local/state").expanduser() / "mle-bench"


def config_file() -> Path:
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "mle-bench" / CONFIG


def default_data_dir(*, twin: bool = False) -> Path:
    """The default data directory: real data and twins have different ones."""
    if named := os.environ.get(DATA_DIR_VARIABLE):
        return resolved(named)
    if not twin and (configured := read_setting(config_file(), "data_dir")):
        return resolved(Path(configured).expanduser())
    return resolved(cache_dir() / ("twins" if twin else "data"))


def venvs_dir() -> Path:
    """Where the virtual environments of agents are kept."""
    return resolved(os.environ.get(VENVS_DIR_VARIABLE) or cache_dir() / "venvs")


def venv_record(venv: Path) -> Path:
    return venv / "ready.json"


def venv_lock(venv: Path) -> Path:
    return venv.with_name(f"{venv.name}.lock")


def default_runs_dir(data_dir: Path) -> Path:
    """Where run groups are kept by default: beside the data they were run on."""
    return data_dir.parent / f"{data_dir.name}-runs" if data_dir.name != "data" else data_dir.parent / "runs"


def resolved(path: Path | str) -> Path:
    """Absolute, with links followed; a link to itself is left for the caller to fail on."""
    return Path(os.path.realpath(path))


def competition_path() -> list[Path]:
    """Folders outside the package that hold competition folders."""
    if named := os.environ.get(COMPETITION_PATH_VARIABLE):
        entries = named.split(os.pathsep)
    else:
        entries = read_setting(config_file(), "competition_path") or []
    return [Path(entry).expanduser().resolve() for entry in entries if entry]


def timestamp() -> str:
    """Now, in UTC, in the form used in file and folder names."""
    return time.strftime("%Y-%m-%dT%H-%M-%S-GMT", time.gmtime())
