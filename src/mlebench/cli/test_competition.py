"""mlebench test-competition"""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import print_json, spinner
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import json_option, profile_option
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.registry import Registry

if TYPE_CHECKING:
    from mlebench.contract import CheckOutcome

STATES = {"ok": "ok", "failed": "FAILED", "not tried": "not tried"}


@click.command("test-competition")
@click.argument("competition")
@click.option(
    "--golden",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also compare with another implementation's figures, in the form of tests/golden/ID.json.",
)
@json_option
@profile_option
def command(competition: str, golden: Path | None, as_json: bool, profile: str) -> None:
    """Check everything that COMPETITION, an id or a folder, must satisfy. Uses its twin, no real data.

    A check that fails says what to change; the exit code is then 1.
    """
    from mlebench.contract import run_contract
    from mlebench.contract.golden import read_golden

    figures = read_golden(golden) if golden else None
    logging.getLogger("mlebench").setLevel(logging.CRITICAL)  # submissions are refused by the dozen, on purpose
    failed, rows = 0, []
    with TemporaryDirectory() as folder:
        checked = _registry(competition, Path(folder), profile).get_competition(Path(competition).resolve().name)
        outcomes = run_contract(checked, figures)
        while True:
            with spinner("checking"):
                outcome = next(outcomes, None)
            if outcome is None:
                break
            failed += bool(outcome.faults)
            rows.append(row := _row(outcome))
            if not as_json:
                click.echo(f"{STATES[row['state']]:<9}  {row['check']:<13}  {row['what']}")
                for fault in row["faults"]:
                    click.echo(f"{'':<9}  - {fault}")
    if as_json:
        print_json(rows)
    else:
        verdict = f": {failed} of {len(rows)} checks failed" if failed else " satisfies the contract"
        click.echo(f"{checked.id}{verdict}", err=True)
    if failed:
        raise SystemExit(FAILED)


def _registry(competition: str, data_dir: Path, profile: str) -> Registry:
    """A registry that knows the competition, even one named by its folder."""
    folder = Path(competition)
    registry = Registry(data_dir, profile)
    if folder.name == competition and not (folder / paths.CONFIG).is_file():
        return registry
    if not (folder / paths.CONFIG).is_file():
        raise PrerequisiteError(f"{folder} is not a competition's folder: it has no {paths.CONFIG}")
    registry = Registry(data_dir, profile, also=[folder.resolve().parent])
    if registry.competition_dir(folder.resolve().name) != folder.resolve():
        raise PrerequisiteError(f"there is another competition {folder.resolve().name}: give the folder another name")
    return registry


def _row(outcome: "CheckOutcome") -> dict[str, Any]:
    state = "not tried" if outcome.faults is None else "failed" if outcome.faults else "ok"
    return {
        "check": outcome.check.name,
        "what": outcome.check.what,
        "state": state,
        "faults": outcome.faults or [],
    }
