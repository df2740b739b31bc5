"""mlebench verify"""

from pathlib import Path

import click

from mlebench.cli.common import Failures, data_dir_option, print_table, registry_at, track
from mlebench.data.state import preparation_fault


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--deep", is_flag=True, help="Read every file; of linked ones the md5 goes on record the first time.")
@click.option("--adopt", is_flag=True, help="Accept data that another program prepared: give it a manifest.")
@data_dir_option
def command(ids: tuple[str, ...], deep: bool, adopt: bool, data_dir: Path | None) -> None:
    """Compare prepared data with what was recorded when it was made, and with the published checksums.

    Without ids, all that is prepared. The exit code is 1 when something differs.
    """
    from mlebench.data.verification import verify

    registry = registry_at(data_dir)
    chosen = list(ids) or [
        id for id in registry.list_competition_ids() if preparation_fault(registry.get_competition(id)) is None
    ]
    rows: list[tuple[str, str, str]] = []
    failures = Failures()
    for id in track(chosen, str):
        with failures.of(id):
            found = verify(registry.get_competition(id), deep=deep, adopt=adopt)
            rows += [(id, difference.file, difference.fault) for difference in found]
            click.echo(f"{id}: {f'{len(found)} files differ' if found else 'as it should be'}", err=True)
    if rows:
        print_table(["competition", "file", "what is wrong"], rows)
    failures.finish()
    if rows:
        raise SystemExit(1)
