"""Makes a site from the run groups on disk, fresh each time: only records that have changed are read again."""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import RunPaths
from mlebench.records.run_groups import Group, Run, groups_in, is_group, read_run
from mlebench.registry import Registry
from mlebench.report.inputs import Inputs
from mlebench.report.standings import make_standings
from mlebench.report.types import TWIN
from mlebench.web.site import Site, StandingsSection

_Version = tuple[int, int, int, int]


class SiteReader:
    """Folders with run groups, or run groups themselves."""

    def __init__(self, folders: Sequence[Path], registry: Registry, *, files: bool = True):
        for folder in folders:
            if not folder.is_dir():
                raise PrerequisiteError(f"there is no folder {folder}")
        self._folders = folders
        self._registry = registry
        self._files = files
        self._runs: dict[str, tuple[_Version, Run]] = {}
        self._sections: dict[tuple[str, bool], tuple[int, StandingsSection | str]] = {}
        self._lock = threading.Lock()

    def site(self) -> Site:
        with self._lock:
            groups, faults = self._groups()
            sections = []
            kinds = [(group.record.profile, bool(group.record.twin)) for group in groups]
            for kind in sorted(set(kinds)):
                section_groups = [group for group, its_kind in zip(groups, kinds, strict=True) if its_kind == kind]
                section = self._section(kind, section_groups)
                if isinstance(section, StandingsSection):
                    sections.append(section)
                elif section:
                    faults.append(section)
            return Site(sections, groups, self._registry, live=True, files=self._files, faults=tuple(faults))

    def _groups(self) -> tuple[list["_FreshGroup"], list[str]]:
        groups: dict[str, _FreshGroup] = {}
        faults = []
        for folder in self._folders:
            for group in [Group.read(folder)] if is_group(folder) else groups_in(folder):
                name = group.paths.root.name
                if name in groups and groups[name].paths.root != group.paths.root:
                    faults.append(f"There are two run groups called {name}; the one in {folder} is not shown.")
                    continue
                fresh = _FreshGroup(group.paths, group.record, tuple(self._read(group, faults)))
                groups[name] = fresh
        return sorted(groups.values(), key=lambda group: group.paths.root.name, reverse=True), faults

    def _read(self, group: Group, faults: list[str]) -> Iterator[Run]:
        if group.record.origin:
            yield from self._read_reference(group, faults)
            return
        for where in group.run_paths():
            try:
                status = os.stat(where.record)
                version = (status.st_mtime_ns, status.st_size, status.st_ino, _findings_version(where))
            except OSError:
                version = (0, 0, 0, 0)
            known = self._runs.get(str(where.root))
            if known is None or known[0] != version:
                known = self._runs[str(where.root)] = (version, read_run(where.root))
            if known[1].fault:
                faults.append(f"{where.root.name} is damaged: {known[1].fault}")
            yield known[1]

    def _read_reference(self, group: Group, faults: list[str]) -> Iterator[Run]:
        """The runs of a group of the reference: the same objects as before if they say the same."""
        if fault := group.report_fault():
            faults.append(f"The runs of {group.paths.root.name} have no scores: {fault}.")
        for run in group.runs():
            version = (_findings_version(run.paths), 0, 0, 0)
            seen, known = self._runs.get(str(run.paths.root), (version, run))
            same = known if (seen, known) == (version, run) else run
            self._runs[str(run.paths.root)] = (version, same)
            yield same

    def _section(self, kind: tuple[str, bool], groups: Sequence["_FreshGroup"]) -> StandingsSection | str | None:
        """Standings of these groups; if there can be none, a text that says why."""
        state = hash(tuple((id(run), run.record.state) for group in groups for run in group.fresh))
        known = self._sections.get(kind)
        if known is None or known[0] != state:
            known = self._sections[kind] = (state, _standings(groups, kind))
        return known[1]


@dataclass(frozen=True)
class _FreshGroup(Group):
    """A group whose runs have been read."""

    fresh: tuple[Run, ...] = ()

    def runs(self) -> Iterator[Run]:
        yield from self.fresh if self.record.origin else self.in_order(self.with_seeds(self.fresh))


def _findings_version(run: RunPaths) -> int:
    """When a tool last recorded findings: the folder changes with each record in it."""
    try:
        return os.stat(run.findings).st_mtime_ns
    except OSError:
        return 0


def _standings(groups: Sequence[Group], kind: tuple[str, bool]) -> StandingsSection | str:
    inputs = Inputs(Path())
    profile, twin = kind
    try:
        for group in groups:
            inputs.add_group(group)
        made = make_standings(inputs, published=profile == "v1" and not twin)
    except PrerequisiteError as error:
        return f"No standings of {TWIN + 's' if twin else 'real data'}: {error}"
    return StandingsSection.of(made)
