"""All pages of a site, as a folder that opens from disk."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import remove_stale_temporaries, write_whole
from mlebench.core.os_errors import reason_of
from mlebench.web.pages import page_at, paths_of
from mlebench.web.render import ASSETS, to_html, to_json
from mlebench.web.site import Site

MARK = ".mlebench-pages"  # marks a folder that may be overwritten


def write_pages(site: Site, folder: Path, track: Callable[[list[str]], Iterable[str]] = iter) -> Path:
    """Write all pages, overwriting only our own; return the path of the first."""
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
