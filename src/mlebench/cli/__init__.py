"""The command line: one module per verb, imported when that verb is used. No logic lives here.

The verbs are click commands, but they are dispatched here, because `mlebench --help` should not wait for click.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from mlebench import __version__
from mlebench.cli.exit_codes import DONE, FAILED, INTERRUPTED, USAGE
from mlebench.cli.verbs import VERBS, hint
from mlebench.core.os_errors import explanation

TYPE_CHECKING = False  # as in `typing`, whose import alone takes a tenth of the time of --help
if TYPE_CHECKING:
    from typing import NoReturn, TextIO

_TO_MODULE = str.maketrans("- ", "__")


def main(arguments: Sequence[str] | None = None) -> "NoReturn":
    """Run a verb and end the program with its exit code."""
    try:
        try:
            _run(*((sys.argv[1:] if arguments is None else arguments) or ["--help"]))
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except KeyboardInterrupt:
        _end("Interrupted\n", INTERRUPTED)
    except OSError as error:
        unread = isinstance(error, BrokenPipeError) and _nobody_reads()
        _give_up_output()
        if unread:
            sys.exit(FAILED)  # downstream closed the pipe
        if not (fault := explanation(error)):
            raise
        _end(f"Error: {fault}\n", FAILED)
    sys.exit(DONE)


def _run(verb: str, *arguments: str) -> None:
    if verb in ("-h", "--help"):
        _say(_help(), sys.stdout)
    elif verb == "--version":
        _say(f"mlebench {__version__}\n", sys.stdout)
    elif verb not in VERBS:
        _end(f"Error: there is no command {verb!r}; {hint(verb, VERBS, '`mlebench --help` lists them')}\n", USAGE)
    else:
        if verb == "prepare" and any(word.startswith("--jobs") for word in arguments):
            # The fork server starts up in parallel with this one.
            import_module("mlebench.core.isolate").start("mlebench.data.preload")
        running = import_module("mlebench.cli.invocation")
        module = import_module(f"mlebench.cli.{verb.translate(_TO_MODULE)}")
        running.run_verb(module.command, verb, [*arguments])  # not `list(…)`: `list` may be a module here


def _give_up_output() -> None:
    """Keep Python from flushing stdout again at exit, when nobody can read it."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nobody_reads() -> bool:
    """Whether stdout is a pipe whose other end is closed."""
    import select

    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _end(message: str, code: int) -> "NoReturn":
    _say(message, sys.stderr)
    sys.exit(code)


def _say(text: str, stream: "TextIO | None") -> None:
    """Print, unless the stream was closed when the program began and is None."""
    if stream:
        stream.write(text)


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "".join(f"  {verb.ljust(width)}  {what}\n" for verb, what in VERBS.items())
    return (
        "Usage: mlebench COMMAND [OPTIONS] ...\n\n"
        "Measure how well AI agents do machine-learning engineering.\n\n"
        f"Commands:\n{verbs}\n"
        "`mlebench COMMAND --help` shows its options; `mlebench --version` prints the version.\n"
    )
