"""Which command was probably meant. Imports nothing: `mlebench --help` should not wait."""

TYPE_CHECKING = False  # as in `typing`, whose import alone takes a tenth of the time of --help
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
    import difflib

    known = list(commands)
    if ALSO_CALLED.get(word) in known:
        return f"did you mean {ALSO_CALLED[word]}?"
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else otherwise
