"""One module for each kind of page: ROUTES says which paths it makes, `paths` which of them a site has."""

import re
from collections.abc import Iterator

from mlebench.web.pages import compare, competition, grid, group, groups, run, standings
from mlebench.web.site import Page, Site

MODULES = (standings, grid, compare, competition, groups, group, run)


def page_at(site: Site, path: str) -> Page | None:
    """The page with this path; None if there is none."""
    for module in MODULES:
        for pattern, make in module.ROUTES:
            if match := re.fullmatch(pattern, path):
                return make(site, path, *match.groups())
    return None


def paths_of(site: Site) -> Iterator[str]:
    """The paths of all pages, with those that people look at first in front."""
    for module in MODULES:
        yield from module.paths(site)
