"""The rules by which a run gets its category: the first one that fits. docs/inspect.md explains each of them.

`RULES` is in order of precedence. A rule of `UNGRADED` names the category of a run only if it has no score: a timeout
with a graded submission is graded, and says timeout. `CAUSES` and `LAST_WORDS` tell why code crashed; their patterns
are matched against one line or message of bounded length, and hold no repetition within a repetition.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

ANY, UNGRADED = "any", "ungraded"


class Rule(NamedTuple):
    category: str
    of: str  # which runs it can name the category of
    words: str  # for tables


RULES = (
    Rule("infrastructure", ANY, "infrastructure"),
    Rule("cancelled", ANY, "cancelled"),
    Rule("unfinished", ANY, "not finished"),
    Rule("timeout", UNGRADED, "timeout"),
    Rule("out_of_memory", UNGRADED, "out of memory"),
    Rule("over_disk", UNGRADED, "over disk"),
    Rule("invalid_format", UNGRADED, "invalid format"),
    Rule("crashed", UNGRADED, "code crashed"),
    Rule("no_submission", UNGRADED, "no submission"),
    Rule("trivial", ANY, "trivial submission"),
    Rule("metric_misunderstood", ANY, "metric misunderstood"),
    Rule("validation_gap", ANY, "worse than its own validation"),
    Rule("below_median", ANY, "below median"),
    Rule("suspicious", ANY, "suspicious"),
    Rule("medal", ANY, "medal"),
    Rule("above_median", ANY, "above median"),
    Rule("not_graded", UNGRADED, "not graded"),
)
OTHER = Rule("other", ANY, "other")
GOOD = ("medal", "above_median")

CODE = "code"  # the cause of a crash when no other fits


@dataclass(frozen=True)
class Cause:
    """Why code crashed, by the name of its exception, and by its message where that is needed as well."""

    cause: str
    names: str
    message: str = ""

    def fits(self, name: str, message: str) -> bool:
        return bool(re.fullmatch(self.names, name)) and bool(re.search(self.message, message))


ANY_NAME = r"\w+"
MEMORY, DISK = "out_of_memory", "over_disk"  # causes that are categories of their own

# In order: the first one that fits.
CAUSES = (
    Cause("gpu_memory", r"(Cuda)?OutOfMemoryError", r"CUDA|GPU|HIP"),
    Cause("gpu_memory", ANY_NAME, r"CUDA (error: )?out of memory|CUDNN_STATUS_ALLOC_FAILED|CUBLAS_STATUS_ALLOC_FAILED"),
    Cause("gpu_memory", ANY_NAME, r"OOM when allocating tensor|RESOURCE_EXHAUSTED: Out of memory|cudaErrorMemoryAllocation"),
    Cause(MEMORY, r"_?(Array)?MemoryError"),
    Cause(MEMORY, ANY_NAME, r"Cannot allocate memory|Unable to allocate [\d.]+ [KMGTPE]iB|std::bad_alloc"),
    Cause(DISK, ANY_NAME, r"No space left on device|\[Errno 27\]|File too large|Disk quota exceeded"),
    Cause("missing_package", r"ModuleNotFoundError|PackageNotFoundError"),
    Cause("missing_package", r"ImportError|DLL\w*|\w*ImportError"),
    Cause("missing_package", ANY_NAME, r"[Mm]issing optional dependency|is not installed|[Pp]lease install"),
    Cause("network", r"URLError|\w*Connect(ion|Timeout)?\w*Error|gaierror|SSLError|MaxRetryError|ConnectTimeout|LocalEntryNotFoundError"),
    Cause("network", ANY_NAME, r"[Nn]ame resolution|Name or service not known|Connection refused|Network is unreachable"),
    Cause("network", ANY_NAME, r"Max retries exceeded|couldn't connect to|We couldn't connect"),
    Cause("wrong_path", r"FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError|FileExistsError"),
    Cause("wrong_path", ANY_NAME, r"No such file or directory|Read-only file system|Is a directory|Permission denied"),
    Cause("missing_column", r"KeyError|ColumnNotFoundError"),
    Cause("missing_column", ANY_NAME, r"not (found )?in (axis|index)|columns? .{0,200}(not found|do(es)? not exist|missing)|No column"),
    Cause("data_type", r"JSONDecodeError|Unicode\w*Error|ParserError|EmptyDataError|IntCastingNaNError|OutOfBoundsDatetime|\w*Dtype\w*Error"),
    Cause("data_type", r"TypeError", r"unsupported operand|ufunc|dtype|convert|not supported between|must be (str|real number|int)|can only concatenate"),
    Cause("data_type", r"ValueError", r"could not convert|invalid literal|[Cc]annot convert|contains? NaN|NaN or infinity|dtype|Input \w+ contains"),
    Cause("data_type", r"ValueError|RuntimeError|InvalidArgumentError|IndexError", r"shape|broadcast|dimension|mismatch|inconsistent numbers|same length|size of tensor|Length of values|Found array with"),
    Cause("data_type", r"RuntimeError", r"expected scalar type|should be the same|expected .{0,100} but got|Input type"),
    Cause("native", ANY_NAME, r"CUDA error: (device-side assert|an illegal memory access)"),
)

# Lines by which programs end that are not Python, or that Python has no time for. Looked for in the last lines only.
LAST_WORDS = (
    ("out_of_memory", re.compile(r"^(\S{0,200}: line \d+: +\d+ )?Killed\b|[Oo]ut of memory: [Kk]illed|oom-kill|terminate called .{0,80}bad_alloc")),
    ("missing_package", re.compile(r": (command )?not found$|: No module named \S+$|env: .{0,100}: No such file or directory$")),
    ("wrong_path", re.compile(r"can't open file .{1,400}No such file or directory|^\S{1,200}: .{0,400}: (No such file or directory|Permission denied|Read-only file system)$|cannot access .{1,400}: No such")),
    ("over_disk", re.compile(r": No space left on device$|: File too large$")),
    ("native", re.compile(r"^Fatal Python error: |Segmentation fault|\bAborted\b|Bus error|Illegal instruction|Floating point exception")),
)  # fmt: skip
# Exit codes of processes that a signal has ended, as the detail of a run's record has them.
SIGNALS = {"exit code 139": "native", "exit code 134": "native", "exit code 135": "native", "exit code 132": "native"}

CAUSE_WORDS = {
    "missing_package": "a package or program is missing",
    "wrong_path": "wrong path",
    "missing_column": "missing column or key",
    "data_type": "data type or shape",
    "gpu_memory": "GPU memory",
    "network": "no network",
    "native": "crash of native code",
    CODE: "error in its code",
}

# An exception with more lines than these after it did not end a program that ended with exit code 0.
LINES_AFTER_THE_END = 10
LAST_LINES = 30  # where last words are looked for

# How much worse than what the agent measured itself a score must be: its error (the distance from 1 of metrics whose
# best is 1, else the value itself) is this many times as large, and at least so much larger.
GAP_FACTOR, GAP_LEAST = 1.5, 0.03
# How much of the error must go away when predictions are turned round or rescaled: then that is what was wrong.
MISREAD_FACTOR = 0.6
# Where there is no data to try that with: an area under the ROC curve below this is no accident.
LEAST_HONEST_AUC = 0.4
