"""The rules that give a run its category: the first that applies.

docs/understanding/inspecting.md explains each of them.

`RULES` is in order of precedence. A rule of `UNGRADED` names the category of a run only if it has no score: a timeout
with a graded submission is graded, and also lists timeout. A rule of `BELOW` also does so if the score is not above the
median: the crash is what to fix first. `CAUSES` and `LAST_WORDS` say why code crashed; their
patterns match one line or message of bounded length, and have no nested repetition.
"""

import re
from typing import NamedTuple

from mlebench.core.outcomes import OUT_OF_MEMORY, OVER_DISK
from mlebench.records.findings import NOT_GRADED

ANY, UNGRADED, BELOW = "any", "ungraded", "below"


class CategoryRule(NamedTuple):
    category: str
    of: str  # the runs whose category it can name
    words: str  # for tables


RULES = (
    CategoryRule("model_unavailable", ANY, "model unavailable"),
    CategoryRule("infrastructure", ANY, "infrastructure"),
    CategoryRule("cancelled", ANY, "cancelled"),
    CategoryRule("unfinished", ANY, "not finished"),
    CategoryRule("timeout", UNGRADED, "timeout"),
    CategoryRule("out_of_memory", UNGRADED, "out of memory"),
    CategoryRule("over_disk", UNGRADED, "over disk"),
    CategoryRule("invalid_format", UNGRADED, "invalid format"),
    CategoryRule("crashed", BELOW, "code crashed"),
    CategoryRule("no_submission", UNGRADED, "no submission"),
    CategoryRule("trivial", ANY, "trivial submission"),
    CategoryRule("metric_misunderstood", ANY, "metric misunderstood"),
    CategoryRule("validation_gap", ANY, "worse than its own validation"),
    CategoryRule("below_median", ANY, "below median"),
    CategoryRule("suspicious", ANY, "suspicious"),
    CategoryRule("medal", ANY, "medal"),
    CategoryRule("above_median", ANY, "above median"),
    CategoryRule(NOT_GRADED, UNGRADED, "not graded"),
)
OTHER = CategoryRule("other", ANY, "other")
GOOD = ("medal", "above_median")

CODE = "code"  # the cause of a crash if no other applies


class Cause(NamedTuple):
    """Why code crashed: patterns for the exception's whole name and for part of its message. Empty: any."""

    cause: str
    names: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()

    def fits(self, name: str, message: str) -> bool:
        return (not self.names or any(re.fullmatch(pattern, name) for pattern in self.names)) and (
            not self.messages or any(re.search(pattern, message) for pattern in self.messages)
        )


MEMORY, DISK = OUT_OF_MEMORY, OVER_DISK  # causes that are separate categories

# In order: the first that applies.
# fmt: off
CAUSES = (
    Cause("gpu_memory", ("(Cuda)?OutOfMemoryError",), ("CUDA", "GPU", "HIP")),
    Cause("gpu_memory", (), (
        "CUDA (error: )?out of memory", "(CUDNN|CUBLAS)_STATUS_ALLOC_FAILED", "cudaErrorMemoryAllocation",
        "OOM when allocating tensor", "RESOURCE_EXHAUSTED: Out of memory",
    )),
    Cause(MEMORY, ("_?(Array)?MemoryError",)),
    Cause(MEMORY, (), ("Cannot allocate memory", r"Unable to allocate [\d.]{1,20} [KMGTPE]iB", "std::bad_alloc")),
    Cause(MEMORY, (), (r"exitcode *: -9\b", "died with <Signals.SIGKILL")),
    Cause(DISK, (), ("No space left on device", "File too large", "Disk quota exceeded")),
    Cause("missing_package", ("ModuleNotFoundError", "PackageNotFoundError", r"\w*ImportError", r"DLL\w*")),
    Cause("missing_package", (), ("[Mm]issing optional dependency", "is not installed", "[Pp]lease install")),
    Cause("network", (
        "URLError", "gaierror", "SSLError", "MaxRetryError", "ConnectTimeout", "LocalEntryNotFoundError",
        r"\w*Connect(ion|Timeout)?\w*Error",
    )),
    Cause("network", (), (
        "[Nn]ame resolution", "Name or service not known", "Connection refused", "Network is unreachable",
        "Max retries exceeded", "couldn't connect to",
    )),
    Cause("wrong_path", (
        "FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "PermissionError", "FileExistsError",
    )),
    Cause("wrong_path", (), (
        "No such file or directory", "Read-only file system", "Is a directory", "Permission denied",
    )),
    Cause("missing_column", ("KeyError", "ColumnNotFoundError")),
    Cause("missing_column", (), (
        "not (found )?in (axis|index)", "columns? .{0,200}(not found|do(es)? not exist|missing)", "No column",
    )),
    Cause("data_type", (
        "JSONDecodeError", r"Unicode\w*Error", "ParserError", "EmptyDataError", "IntCastingNaNError",
        "OutOfBoundsDatetime", r"\w*Dtype\w*Error",
    )),
    Cause("data_type", ("TypeError",), (
        "unsupported operand", "ufunc", "dtype", "convert", "not supported between", "can only concatenate",
        "must be (str|real number|int)",
    )),
    Cause("data_type", ("ValueError",), (
        "could not convert", "invalid literal", "[Cc]annot convert", "contains? NaN", "NaN or infinity", "dtype",
        r"Input \w+ contains",
    )),
    Cause("data_type", ("ValueError", "RuntimeError", "InvalidArgumentError", "IndexError"), (
        "shape", "broadcast", "dimension", "mismatch", "inconsistent numbers", "same length", "size of tensor",
        "Length of values", "Found array with",
    )),
    Cause("data_type", ("RuntimeError",), (
        "expected scalar type", "should be the same", "expected .{0,100} but got", "Input type",
    )),
    Cause("native", (), (
        "CUDA error: (device-side assert|an illegal memory access)", r"exitcode *: -(6|11)\b",
        "died with <Signals.SIG(SEGV|ABRT)",
    )),
)

# Last words of programs that are not Python, or that died before Python could report. Only the last lines are searched.
LAST_WORDS = (
    (MEMORY, (
        r"^(\S{0,200}: line \d+: +\d+ )?Killed\b", "[Oo]ut of memory: [Kk]illed", "oom-kill",
        "terminate called .{0,80}bad_alloc",
    )),
    ("missing_package", (
        ": (command )?not found$", r": No module named \S+$", "env: .{0,100}: No such file or directory$",
    )),
    ("wrong_path", (
        "can't open file .{1,400}No such file or directory", "cannot access .{1,400}: No such",
        r"^\S{1,200}: .{0,400}: (No such file or directory|Permission denied|Read-only file system)$",
    )),
    (DISK, (": No space left on device$", ": File too large$")),
    ("native", (
        "^Fatal Python error: ", "Segmentation fault", r"\bAborted\b", "Bus error", "Illegal instruction",
        "Floating point exception",
    )),
)
# fmt: on
# Exit codes of processes ended by a signal, as a run's record gives them in `detail`.
SIGNALS = {"exit code 139": "native", "exit code 134": "native", "exit code 135": "native", "exit code 132": "native"}

CAUSE_WORDS = {
    "missing_package": "missing package",
    "wrong_path": "wrong path",
    "missing_column": "missing column or key",
    "data_type": "data type or shape",
    "gpu_memory": "GPU memory",
    "network": "no network",
    "native": "native code",
    CODE: "error in its code",
}

# An exception with more lines than these after it did not end a program that ended with exit code 0.
LINES_AFTER_THE_END = 10
LAST_LINES = 30  # that are searched for last words

# How much worse a score must be than the agent's own measurement: its error (the distance from 1 for metrics whose
# best is 1, else the value itself) is GAP_FACTOR times as large, and larger by at least GAP_LEAST.
GAP_FACTOR, GAP_LEAST = 1.5, 0.03
# If inverting or rescaling predictions brings the error down to this share, that is what was wrong.
MISREAD_FACTOR = 0.6
# Without the data to try that: an area under the ROC curve below this is no accident.
LEAST_HONEST_AUC = 0.4
