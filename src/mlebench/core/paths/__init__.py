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
├── .hosts/<host>             a line for each failure to start an agent there since the last agent that did start
├── .cancelled                the group was cancelled and not resumed yet
├── .work/<token>/            a live sandbox's writable folders, under a name that gives nothing away
│   ├── model.json            what the run's model calls have used so far
│   ├── packages.json         which packages the run has fetched so far
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

/dev/shm/mlebench-<token>.json   how an agent ended, where the disk of its .work/<token>/ took nothing

<runs-dir>/verified-bundles/<sha256>.json   the outcome of verifying a bundle

<cache-dir>/kernels/<id>/<owner>/<name>.ipynb   published notebooks of a competition; scripts end in .py
<cache-dir>/fingerprints/<sha256>.npy           their fingerprints, by the hash of their content
<cache-dir>/packages/<sha256>                   files of packages that runs fetched from an index
<cache-dir>/gold/<id>/<sha256>.json             what grading gold takes, if no manifest says it; by data and version

`data`, `runs` and `machine` define the names; all of them can be imported from here.
"""

from mlebench.core.paths.data import CHECKSUMS as CHECKSUMS
from mlebench.core.paths.data import CONFIG as CONFIG
from mlebench.core.paths.data import DESCRIPTION as DESCRIPTION
from mlebench.core.paths.data import GRADE as GRADE
from mlebench.core.paths.data import GROUPS as GROUPS
from mlebench.core.paths.data import KERNELS as KERNELS
from mlebench.core.paths.data import LEADERBOARD as LEADERBOARD
from mlebench.core.paths.data import MANIFEST as MANIFEST
from mlebench.core.paths.data import MANIFEST_FILES as MANIFEST_FILES
from mlebench.core.paths.data import PREPARE as PREPARE
from mlebench.core.paths.data import PREPARED as PREPARED
from mlebench.core.paths.data import PRIVATE as PRIVATE
from mlebench.core.paths.data import PROFILES as PROFILES
from mlebench.core.paths.data import PUBLIC as PUBLIC
from mlebench.core.paths.data import SCRATCH as SCRATCH
from mlebench.core.paths.data import TWIN as TWIN
from mlebench.core.paths.data import CompetitionPaths as CompetitionPaths
from mlebench.core.paths.data import data_dir_record as data_dir_record
from mlebench.core.paths.data import grades_log as grades_log
from mlebench.core.paths.data import moved as moved
from mlebench.core.paths.data import twin_record as twin_record
from mlebench.core.paths.locations import COMPETITION_PATH_VARIABLE as COMPETITION_PATH_VARIABLE
from mlebench.core.paths.locations import CONFIG_VARIABLE as CONFIG_VARIABLE
from mlebench.core.paths.locations import DATA_DIR_VARIABLE as DATA_DIR_VARIABLE
from mlebench.core.paths.locations import VARIABLE_PREFIX as VARIABLE_PREFIX
from mlebench.core.paths.locations import VARIABLES as VARIABLES
from mlebench.core.paths.locations import VENVS_DIR_VARIABLE as VENVS_DIR_VARIABLE
from mlebench.core.paths.locations import agent_lock as agent_lock
from mlebench.core.paths.locations import agents_dir as agents_dir
from mlebench.core.paths.locations import cache_dir as cache_dir
from mlebench.core.paths.locations import competition_path as competition_path
from mlebench.core.paths.locations import competitions_dir as competitions_dir
from mlebench.core.paths.locations import config_file as config_file
from mlebench.core.paths.locations import default_data_dir as default_data_dir
from mlebench.core.paths.locations import familiarity_dir as familiarity_dir
from mlebench.core.paths.locations import fingerprints as fingerprints
from mlebench.core.paths.locations import fingerprints_dir as fingerprints_dir
from mlebench.core.paths.locations import gold_cost as gold_cost
from mlebench.core.paths.locations import judge_dir as judge_dir
from mlebench.core.paths.locations import kernels_dir as kernels_dir
from mlebench.core.paths.locations import module_dir as module_dir
from mlebench.core.paths.locations import npm_dir as npm_dir
from mlebench.core.paths.locations import packages_dir as packages_dir
from mlebench.core.paths.locations import profiles_dir as profiles_dir
from mlebench.core.paths.locations import resolved as resolved
from mlebench.core.paths.locations import splits_dir as splits_dir
from mlebench.core.paths.locations import venv_lock as venv_lock
from mlebench.core.paths.locations import venv_record as venv_record
from mlebench.core.paths.locations import venvs_dir as venvs_dir
from mlebench.core.paths.runs import CODE as CODE
from mlebench.core.paths.runs import FINDINGS as FINDINGS
from mlebench.core.paths.runs import GRADING_REPORT as GRADING_REPORT
from mlebench.core.paths.runs import LOGS as LOGS
from mlebench.core.paths.runs import RUN_LOG as RUN_LOG
from mlebench.core.paths.runs import RUNNER_LOG as RUNNER_LOG
from mlebench.core.paths.runs import SUBMISSION as SUBMISSION
from mlebench.core.paths.runs import GroupPaths as GroupPaths
from mlebench.core.paths.runs import RunPaths as RunPaths
from mlebench.core.paths.runs import bundle as bundle
from mlebench.core.paths.runs import bundle_signature as bundle_signature
from mlebench.core.paths.runs import bundle_verdict as bundle_verdict
from mlebench.core.paths.runs import default_runs_dir as default_runs_dir
from mlebench.core.paths.runs import demo_dir as demo_dir
from mlebench.core.paths.runs import disk_note as disk_note
from mlebench.core.paths.runs import disk_notes as disk_notes
from mlebench.core.paths.runs import experiments_table as experiments_table
from mlebench.core.paths.runs import grading_report as grading_report
from mlebench.core.paths.runs import is_grading_report as is_grading_report
from mlebench.core.paths.runs import model_calls as model_calls
from mlebench.core.paths.runs import outcome as outcome
from mlebench.core.paths.runs import own_validation as own_validation
from mlebench.core.paths.runs import package_usage_file as package_usage_file
from mlebench.core.paths.runs import pages_below as pages_below
from mlebench.core.paths.runs import proxy_prefix as proxy_prefix
from mlebench.core.paths.runs import runs_below as runs_below
from mlebench.core.paths.runs import spare_outcome as spare_outcome
from mlebench.core.paths.runs import time_in as time_in
from mlebench.core.paths.runs import timestamp as timestamp
from mlebench.core.paths.runs import trajectory as trajectory
from mlebench.core.paths.runs import usage_file as usage_file
