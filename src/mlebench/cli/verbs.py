"""The verbs, what they do, and what people call them elsewhere. Imports nothing: `mlebench --help` should not wait."""

from mlebench.core.suggestions import did_you_mean

TYPE_CHECKING = False  # see there
if TYPE_CHECKING:
    from collections.abc import Iterable

VERBS = {
    "agents": "list agents, create one of your own, install what an agent needs",
    "bundle": "pack a run group into one file; check such a file and grade it again",
    "demo": "try everything on synthetic data: make, prepare, run, grade",
    "dev": "tools for maintainers of competitions and authors of agents",
    "doctor": "check this machine and say what to fix",
    "grade": "grade many submissions: those of a JSON-lines file or of a run group",
    "grade-sample": "grade one submission; the report is JSON on stdout",
    "image": "build the image that agents run in, or an agent's own",
    "inspect": "find out how runs failed, which rules they broke, what code they share",
    "list": "list the competitions",
    "new-competition": "create a competition of your own: a folder that works as it is",
    "prepare": "turn raw data into what agents and graders need",
    "report": "make standings from run groups and grading reports: medals, intervals, comparisons",
    "run": "run an agent on competitions, in sandboxes, and grade what it submits",
    "runs": "list run groups and runs; show what happened in a run",
    "show": "show what is known about one competition",
    "test-competition": "check everything that a competition must satisfy, yours or ours",
    "twin": "make synthetic raw data in a competition's exact layout",
    "validate": "check a submission's format, without the answers",
    "verify": "compare prepared data with its record and the published checksums",
    "view": "serve pages about runs: standings, competitions, comparisons, runs in progress",
}

# What people call these commands elsewhere.
ALSO_CALLED = {
    "check": "validate",
    "download": "prepare",
    "evaluate": "grade",
    "exec": "run",
    "info": "show",
    "leaderboard": "report",
    "ls": "list",
    "new": "new-competition",
    "score": "grade-sample",
    "serve": "view",
    "standings": "report",
    "submit": "grade-sample",
    "test": "test-competition",
}


def hint(word: str, commands: "Iterable[str]", otherwise: str) -> str:
    """A question that names the nearest command, or what to say if none is near."""
    known = list(commands)
    return did_you_mean(ALSO_CALLED[word] if ALSO_CALLED.get(word) in known else word, known, otherwise)
