"""Which command was probably meant. Imports nothing: `mlebench --help` should not wait."""

from mlebench.core.suggestions import did_you_mean

TYPE_CHECKING = False  # see there
if TYPE_CHECKING:
    from collections.abc import Iterable

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
