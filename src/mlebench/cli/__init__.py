"""The command line: one module per verb, imported when that verb is used. No logic lives here.

The verbs are click commands. Choosing among them is done by hand, because `mlebench --help` should not wait for click.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

from mlebench import __version__

TYPE_CHECKING = False  # what `typing` has under this name; to import it takes a tenth of the time of --help
if TYPE_CHECKING:
    from typing import NoReturn

VERBS = {
    "agents": "show the agents there are; begin one of your own; install what one needs",
    "demo": "see the whole path work on synthetic data: make, prepare, run, grade",
    "dev": "for those who maintain competitions",
    "doctor": "look over this machine and say what to do",
    "grade": "grade many submissions, named in a JSON-lines file",
    "grade-sample": "grade one submission; the report is JSON on stdout",
    "list": "show the competitions there are",
    "prepare": "turn raw data into what agents and graders need",
    "run": "run an agent on competitions, in sandboxes, and grade what it submits",
    "runs": "list run groups, and tell the story of a run",
    "show": "show what is known about one competition",
    "twin": "make synthetic raw data in a competition's exact layout",
    "validate": "check a submission's format, without the answers",
    "verify": "compare prepared data with its record and the published checksums",
}

_TO_MODULE = str.maketrans("- ", "__")


def main(arguments: Sequence[str] | None = None) -> "NoReturn":
    """Run a verb and end the program with its exit code: 2 for wrong usage, 1 for failure."""
    verb, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    if verb in ("-h", "--help"):
        sys.stdout.write(_help())
        sys.exit(0)
    if verb == "--version":
        sys.stdout.write(f"mlebench {__version__}\n")
        sys.exit(0)
    if verb not in VERBS:
        sys.stderr.write(f"Error: there is no command {verb!r}; `mlebench --help` shows them\n")
        sys.exit(2)
    if verb == "prepare" and any(word.startswith("--jobs") for word in rest):
        import_module("mlebench.workers").start_server()  # it gets ready while this process does
    if verb == "run" and rest[:1] == ["exec"]:
        verb, rest = "run exec", rest[1:]
    common = import_module("mlebench.cli.common")
    common.run_verb(import_module(f"mlebench.cli.{verb.translate(_TO_MODULE)}").command, verb, rest)
    sys.exit(0)


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "".join(f"  {verb.ljust(width)}  {what}\n" for verb, what in VERBS.items())
    return (
        "Usage: mlebench COMMAND [OPTIONS] ...\n\n"
        "Measure how well AI agents do machine-learning engineering.\n\n"
        f"Commands:\n{verbs}\n"
        "`mlebench COMMAND --help` says more; `mlebench --version` tells the version.\n"
    )
