"""mlebench doctor"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from mlebench.cli.common import data_dir_option, print_table, registry_at, show_checks
from mlebench.data.state import holds_twins, preparation_fault
from mlebench.registry import Registry


class Finding(NamedTuple):
    state: str  # ok, or what a reader should look at
    what: str
    detail: str
    advice: str = ""


@click.command()
@click.option("--kaggle", is_flag=True, help="Also ask Kaggle about every competition: rules and download size.")
@data_dir_option
def command(kaggle: bool, data_dir: Path | None) -> None:
    """Look over this machine: Python, disk, data, Kaggle login, sandboxes. Each line says what to do."""
    registry = registry_at(data_dir)
    findings = [_python(), *_data(registry), _kaggle(), *_sandboxes()]
    print_table(["", "what", "found", "what to do"], findings)
    if kaggle:
        from mlebench.data.kaggle import KaggleSource

        click.echo()
        show_checks(registry, registry.list_competition_ids(), KaggleSource())


def _python() -> Finding:
    return Finding("ok", "python", f"{platform.python_version()} at {sys.executable}")


def _data(registry: Registry) -> Iterator[Finding]:
    folder = registry.get_data_dir()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    kind = "twins" if holds_twins(folder) else "real data"
    if not os.access(existing, os.W_OK):
        yield Finding("bad", "data dir", f"{folder} is not writable", "name another with --data-dir")
    else:
        yield Finding("ok", "data dir", f"{folder} ({kind if folder.exists() else 'not there yet'})")
    free = shutil.disk_usage(existing).free / 1e9
    enough = free > 200
    yield Finding(
        "ok" if enough else "look", "disk", f"{free:.0f} GB free", "" if enough else "the lite split wants 200 GB"
    )
    competitions = [registry.get_competition(id) for id in registry.list_competition_ids()]
    prepared = sum(preparation_fault(competition) is None for competition in competitions)
    advice = "" if prepared else "mlebench prepare -c ID, or try twins: mlebench demo"
    yield Finding("ok" if prepared else "look", "prepared", f"{prepared} of {len(competitions)} competitions", advice)


def _kaggle() -> Finding:
    from mlebench.data.kaggle_api import credentials

    found = credentials()
    if not found:
        return Finding("look", "kaggle login", "none", "only to download: put an API token in ~/.kaggle/access_token")
    return Finding("ok", "kaggle login", ", ".join(found))


def _sandboxes() -> Iterator[Finding]:
    """Programs that can hold an agent; running agents is not part of this version, so none is needed yet."""
    for name, purpose in {"docker": "containers", "podman": "containers", "bwrap": "bubblewrap"}.items():
        path = shutil.which(name)
        yield Finding(
            "ok" if path else "look", name, path or "not found", "" if path else f"only to run agents in {purpose}"
        )
