"""One module for each kind of page: ROUTES says which paths it makes, `paths` which of them a site has."""

from mlebench.web.pages import compare, competition, grid, group, groups, run, standings

MODULES = (standings, grid, compare, competition, groups, group, run)
