"""mlebench validate"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import print_json, spinner
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import data_dir_option, profile_option, registry_at
from mlebench.cli.quantities import Size
from mlebench.core.errors import CompetitionError, NotPreparedError
from mlebench.core.untrusted import LARGEST_SUBMISSION

if TYPE_CHECKING:
    from mlebench.registry import Competition, Registry

logger = logging.getLogger(__name__)

SERVER_PORT = 5000


@click.command()
@click.argument("submission", type=click.Path(readable=False, path_type=Path), required=False)
@click.argument("competition_id", required=False)
@data_dir_option
@profile_option
@click.option(
    "--public",
    type=click.Path(exists=True, file_okay=False, readable=False, path_type=Path),
    help="The competition's public folder, wherever it is; nothing else is read.",
)
@click.option(
    "--max-bytes",
    type=Size(),
    help="Largest submission that is read; a larger one is invalid. Default: 8 GiB; with --serve, 1 GiB.",
)
@click.option("--serve", is_flag=True, help="Answer over HTTP instead: GET /health, POST /validate.")
@click.option(
    "-c",
    "--competition-id",
    "competition",
    metavar="ID",
    envvar="COMPETITION_ID",
    help="With --serve: the competition, for requests that name none. Default: $COMPETITION_ID.",
)
@click.option(
    "--port",
    "ports",
    type=click.IntRange(0, 65535),
    multiple=True,
    help="With --serve: the port to listen on; may be repeated. Default: 5000.",
)
@click.option("--host", help="With --serve: the address to listen on. Default: 127.0.0.1, this machine only.")
@click.option("--unix", type=click.Path(path_type=Path), help="With --serve: a unix socket to listen on.")
@click.option("--memory", type=Size(), help="With --serve: for each check. Default: a third of the machine's memory.")
def command(
    submission: Path | None,
    competition_id: str | None,
    data_dir: Path | None,
    profile: str,
    public: Path | None,
    max_bytes: int | None,
    serve: bool,
    **server: Any,
) -> None:
    """Check a submission's format with public files only; no answer is read and no score shown.

    The exit code is 1 if the format is wrong or the check itself failed. The output has `error` if
    the check failed.
    """
    if public and data_dir:
        raise click.UsageError("give --public or --data-dir, not both")
    registry = registry_at(data_dir, profile)
    find = _finder(registry, public)
    if serve:
        if submission or competition_id:
            raise click.UsageError("--serve takes submissions over HTTP; name the competition with -c")
        _serve(registry.list_competition_ids(), find, public is not None, max_bytes, **server)
        return
    if any(server[name] for name in ("ports", "host", "unix", "memory")):
        raise click.UsageError("--port, --host, --unix and --memory need --serve")
    if not submission or not competition_id:
        raise click.UsageError("name a submission and a competition")
    try:
        _check(submission, find(competition_id), max_bytes or LARGEST_SUBMISSION)
    except NotPreparedError as error:
        if public:
            raise
        raise NotPreparedError(f"{error}. {_advice(registry, competition_id)}") from None


def _finder(registry: "Registry", public: Path | None) -> "Callable[[str], Competition]":
    def find(id: str) -> "Competition":
        from mlebench.validate import over_public

        competition = registry.get_competition(id)
        return over_public(competition, public) if public else competition

    return find


def _advice(registry: "Registry", id: str) -> str:
    """How to get a competition's public files, or where its twin has some."""
    from mlebench.data.state import command_to_prepare, twin_elsewhere

    competition = registry.get_competition(id)
    return f"Run `{command_to_prepare(competition)}` first.{twin_elsewhere([competition])}"


def _check(submission: Path, competition: "Competition", limit: int) -> None:
    from mlebench.validate import CheckFailedError, validate_format

    try:
        with spinner(f"checking {submission.name}"):
            valid, message = validate_format(submission, competition, limit)
    except CheckFailedError as error:
        if isinstance(error.__cause__, CompetitionError):
            logger.error("The grader of %s failed: %s", competition.id, error.__cause__)
        else:
            logger.exception("%s", error)
        print_json({"error": "The validator failed.", "details": str(error)})
        raise SystemExit(FAILED) from None
    print_json({"is_valid": valid, "result": message})
    if not valid:
        raise SystemExit(FAILED)


def _serve(
    known: list[str],
    find: "Callable[[str], Competition]",
    one_only: bool,
    max_bytes: int | None,
    competition: str | None,
    ports: tuple[int, ...],
    host: str | None,
    unix: Path | None,
    memory: int | None,
) -> None:
    from mlebench.core.serve import LOOPBACK, listening
    from mlebench.validate.isolated_check import CheckLimits
    from mlebench.validate.server import Validator, ValidatorLimits, serve

    if one_only and not competition:
        raise click.UsageError("--public holds one competition's files: name it with -c")
    if competition:
        find(competition)  # raises if there is none
    check = CheckLimits(memory=memory) if memory else CheckLimits()
    limits = ValidatorLimits(body=max_bytes, check=check) if max_bytes else ValidatorLimits(check=check)
    validator = Validator(known, find, default=competition, only=one_only, limits=limits)
    with listening(host or LOOPBACK, ports or (() if unix else (SERVER_PORT,)), unix) as sockets:
        serve(validator, sockets)
