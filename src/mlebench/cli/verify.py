"""mlebench verify"""

from pathlib import Path

import click

from mlebench.cli.console import log_line, print_table, track
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.invocation import Failures
from mlebench.cli.options import data_dir_option, profile_option, registry_at
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import disk_errors
from mlebench.core.paths import CompetitionPaths, default_data_dir
from mlebench.core.untrusted import printable
from mlebench.data.state import holds_twins, preparation_fault, read_manifest_head
from mlebench.data.verification import changes, command_to_prepare_again
from mlebench.registry import Competition, Registry


@click.command()
@click.argument("ids", metavar="[COMPETITION_ID]...", nargs=-1)
@click.option("--deep", is_flag=True, help="Read every file and the archive; an md5 that was unknown is recorded.")
@click.option(
    "--adopt", is_flag=True, help="Accept data that another program prepared, and files whose checksum is unknown."
)
@data_dir_option
@profile_option
def command(ids: tuple[str, ...], deep: bool, adopt: bool, data_dir: Path | None, profile: str) -> None:
    """Compare prepared data with what was recorded when it was made, and with the published checksums.

    Without ids, all prepared data. The exit code is 1 if anything differs.
    """
    from mlebench.core.processes import cpu_count
    from mlebench.data.verification import verify

    registry = registry_at(data_dir, profile)
    chosen = list(dict.fromkeys(ids)) or _prepared(registry)
    rows: list[tuple[str, str, str]] = []
    failures = Failures()
    for id in track(chosen, str):
        with failures.of(id):
            differences = verify(registry.get_competition(id), deep=deep, adopt=adopt, processes=cpu_count())
            rows += [(id, printable(difference.file), difference.fault) for difference in differences]
            verdict = _verdict(len({difference.file for difference in differences}))
            log_line(f"{id}: {verdict}{_advice(registry.get_competition(id), differs=bool(differences))}")
    if rows:
        print_table(["competition", "file", "what is wrong"], rows)
    failures.finish()
    if rows:
        raise SystemExit(FAILED)


def _prepared(registry: Registry) -> list[str]:
    """Everything that is prepared, or was and has lost files since."""
    data_dir = registry.get_data_dir()

    def was_prepared(id: str) -> bool:
        where = CompetitionPaths(data_dir, id, registry.profile)
        try:
            if not where.prepared.is_dir():
                return False
            return where.manifest.exists() or preparation_fault(registry.get_competition(id)) is None
        except PermissionError:  # reported when it is checked
            return True

    with disk_errors(data_dir, data_dir):
        there = {path.name for path in data_dir.iterdir()} if data_dir.is_dir() else set()
        chosen = [id for id in registry.list_competition_ids() if id in there and was_prepared(id)]
    if not chosen:
        twins = default_data_dir(twin=True)
        hint = f"; twins are in {twins}" if twins != data_dir and holds_twins(twins) else ""
        raise PrerequisiteError(
            f"nothing is prepared in {data_dir}: prepare something, or name another --data-dir{hint}"
        )
    return chosen


def _verdict(count: int) -> str:
    if count == 0:
        return "ok"
    return "1 file differs" if count == 1 else f"{count} files differ"


def _advice(competition: Competition, *, differs: bool) -> str:
    """What to do about our data that differs from what would be prepared now; nothing for any other."""
    changed = [] if differs else changes(competition)
    if read_manifest_head(competition) is None or not (differs or changed):
        return ""
    reason = f", but {', and '.join(changed)}" if changed else ""
    return f"{reason}; `{command_to_prepare_again(competition)}` prepares it again"
