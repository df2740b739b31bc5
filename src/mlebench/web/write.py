"""All pages of a site, as a folder that opens from disk."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import remove_stale_temporaries, write_whole
from mlebench.core.os_errors import reason_of
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.registry import registry as default_registry
from mlebench.report.standings import Standings
from mlebench.web.pages import page_at, paths_of
from mlebench.web.render import ASSETS, to_html, to_json
from mlebench.web.site import Site, StandingsSection

MARK = ".mlebench-pages"  # marks a folder that may be overwritten


def write_pages(
    standings: Standings,
    groups: Sequence[Group],
    folder: Path,
    *,
    registry: Registry | None = None,
    intro: str = "",
    track: Callable[[list[str]], Iterable[str]] = iter,
) -> Path:
    """Write the pages about standings and run groups to a folder, and return the path of the first page.

    They open from disk and need no server. `registry` knows the competitions, if it is not the default one. The
    first page opens with `intro`.

    Raises PrerequisiteError if the folder cannot be written to, or holds anything but earlier pages.
    """
    site = Site([StandingsSection.of(standings)], groups, registry or default_registry, intro=intro)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / MARK).is_file():
            raise PrerequisiteError(f"{folder} is not empty and does not hold pages of mlebench: name another folder")
        shutil.copytree(ASSETS, folder / ASSETS.name, dirs_exist_ok=True)
        (folder / MARK).touch()
    except OSError as error:
        raise PrerequisiteError(f"cannot write pages to {folder}: {reason_of(error)}") from error
    first, *_ = wanted = list(paths_of(site))
    written: list[Path] = []
    for path in track(wanted):
        page = page_at(site, path)
        if page is None:  # its subject has disappeared meanwhile
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        for file, text in ((target, to_html(page, site)), (target.with_suffix(".json"), to_json(page))):
            write_whole(file, text)
            written.append(file)
    remove_stale_temporaries(*written)
    return folder / first
