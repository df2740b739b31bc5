"""One module for each kind of page: ROUTES says which paths it makes, `paths` which of them a site has."""

from mlebench.web.pages import grid, group, groups, run, standings

MODULES = (standings, grid, groups, group, run)
