"""mlebench bundle"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlebench.cli.console import log_line, print_json, print_table, track
from mlebench.cli.console import mask_braces as plain
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.invocation import VerbGroup
from mlebench.cli.options import data_dir_option, json_option, registry_at, runs_dir_at, runs_dir_option, runs_dirs_at
from mlebench.cli.quantities import size_text
from mlebench.core import paths
from mlebench.core.os_errors import reason_of

if TYPE_CHECKING:
    from mlebench.records.bundle import BundleVerdict

FILE = click.Path(dir_okay=False, path_type=Path)
MOST_JOBS = 8


@click.group(cls=VerbGroup)
def command() -> None:
    """Pack a run group into one file that others can check."""


@command.command()
@click.argument("group")
@click.option(
    "-o", "--output", type=FILE, help="The file to write. Default: GROUP.bundle.tar.gz in the current folder."
)
@click.option("--sign", "key", metavar="KEY", type=FILE, help="Sign it with an SSH key; the signature is FILE.sig.")
@click.option(
    "--redact", is_flag=True, help="Remove secrets, and record that in the bundle. Default: refuse to pack them."
)
@runs_dir_option
@data_dir_option
def make(
    group: str, output: Path | None, key: Path | None, redact: bool, runs_dir: Path | None, data_dir: Path | None
) -> None:
    """Pack a run group.

    A bundle holds records, submissions, code, logs, reports and findings. GROUP is the group's path or the beginning of
    its name. Packing it again gives the same bytes.
    """
    from mlebench.bundles import make_bundle
    from mlebench.records.run_groups import find_group

    run_group = find_group(group, *runs_dirs_at(runs_dir, data_dir))
    target = output or paths.bundle(Path(), run_group.record.id)
    manifest = make_bundle(
        run_group, target, redact=redact, key=key, track=lambda runs: track(runs, lambda run: run.record.competition)
    )
    counts = {
        "files": manifest.members,
        "secrets removed": manifest.redacted,
        "logs cut": manifest.cut,
        "left out": manifest.left_out,
    }
    files, *changes = [f"{len(rows)} {noun}" for noun, rows in counts.items() if rows]
    log_line(f"{target}: {', '.join([files, size_text(target.stat().st_size), *changes])}")


@command.command()
@click.argument("file", type=FILE)
@click.option("--signers", type=FILE, help="A file of allowed signers (see ssh-keygen); one of them must have signed.")
@json_option
@runs_dir_option
@data_dir_option
def verify(file: Path, signers: Path | None, as_json: bool, runs_dir: Path | None, data_dir: Path | None) -> None:
    """Check a bundle and grade its submissions again.

    They are graded with the data of this machine; nothing in the bundle is executed. The verdict is kept in the
    runs directory, where `mlebench report` finds it. Exit code 1: the bundle is refused, a run differs, or
    --signers is given and none of them has signed.
    """
    from mlebench.bundles import record_verdict, verify_bundle
    from mlebench.bundles.signature import GOOD
    from mlebench.core.processes import cpu_count

    registry = registry_at(data_dir)
    verdict = verify_bundle(
        file,
        registry.get_data_dir(),
        signers,
        lambda runs: track(runs, lambda run: plain(run.record.competition)),
        jobs=min(cpu_count(), MOST_JOBS),
    )
    try:
        record_verdict(verdict, runs_dir_at(runs_dir, data_dir))
    except OSError as error:
        log_line(f"Warning: cannot keep the verdict: {reason_of(error)}")
    if as_json:
        print_json(verdict.to_dict() | {"trust": verdict.trust})
    else:
        _show(verdict)
    if verdict.differs or (signers and verdict.signature.state != GOOD):
        raise SystemExit(FAILED)


def _show(verdict: "BundleVerdict") -> None:
    header = ["competition", "seed", "claimed", "regraded", "verdict"]
    rows = []
    for run in verdict.runs:
        why = f": {run.why}" if run.why else ""
        rows.append([plain(run.competition), run.seed, run.claimed, run.regraded, plain(run.verdict + why)])
    print_table(header, rows)
    signature = verdict.signature
    detail = signature.signer or signature.why
    log_line(f"signature: {signature.state}{f' ({plain(detail)})' if detail else ''}")
    log_line(f"The scores of {plain(verdict.agent)} are {verdict.trust}.")
