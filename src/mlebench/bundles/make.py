"""Makes a bundle of a run group. The same group gives the same bytes."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mlebench.bundles.archive import LARGEST_MEMBER, ArchiveWriter
from mlebench.bundles.contents import (
    LARGEST_FILE,
    LOG,
    RECORD,
    SUBMISSION,
    BundleFile,
    OmittedFiles,
    group_items,
    run_items,
)
from mlebench.bundles.reader import read_bundle
from mlebench.bundles.secret_scan import SecretMatch, SecretScanner
from mlebench.bundles.signature import sign
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import remove_stale_temporaries, replacing
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import MANIFEST, bundle_signature
from mlebench.core.untrusted import UntrustedFileError
from mlebench.records.bundle import (
    BundledCompetition,
    BundleManifest,
    BundleMember,
    OmittedFile,
    Redaction,
    ShortenedLog,
)
from mlebench.records.run_groups import Group, Run, unfinished

MOST_SHOWN = 20
Tracker = Callable[[list[Run]], Iterable[Run]]


@dataclass
class _PackingList:
    """What has been decided about the files so far."""

    secrets: SecretScanner
    redact: bool
    items: dict[str, BundleFile] = field(default_factory=dict)
    members: list[BundleMember] = field(default_factory=list)
    redacted: list[Redaction] = field(default_factory=list)
    cut: list[ShortenedLog] = field(default_factory=list)
    left_out: list[OmittedFile] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def take_all(self, name: str, left_out: OmittedFiles, items: Iterable[BundleFile]) -> None:
        """Take the files of a run, or of the group; `left_out` may already hold some."""
        for item in items:
            self._take(item, left_out)
        for omitted in left_out.to_list(name):
            texts = msgspec.structs.asdict(omitted)
            self.left_out.append(
                OmittedFile(**{key: self.secrets.remove(text.encode()).decode() for key, text in texts.items()})
            )

    def _take(self, item: BundleFile, left_out: OmittedFiles) -> None:
        if matches := self.secrets.find(item.name.encode()):
            name = self.secrets.remove(item.name.encode()).decode()
            self._tell(name, [SecretMatch(0, f"{matches[0].what}, in the file's name")])
            return left_out.add(name, "its name contains a secret")
        try:
            if item.kind == SUBMISSION:
                self._take_submission(item, left_out)
            else:
                self._take_whole(item)
        except UntrustedFileError as error:
            if item.kind == RECORD:
                raise PrerequisiteError(f"{item.name} {error}: this is not a record of a run") from None
            left_out.add(item.name, str(error))
        return None

    def _take_whole(self, item: BundleFile) -> None:
        data = item.read()
        self._tell(item.name, self.secrets.find(data))
        if item.kind == LOG and (size := item.size()) > LARGEST_FILE:
            self.cut.append(ShortenedLog(name=item.name, bytes=size))
        cleaned = self._cleaned(data)
        self._add(item, len(cleaned), hashlib.sha256(cleaned).hexdigest())

    def _take_submission(self, item: BundleFile, left_out: OmittedFiles) -> None:
        """A redacted submission would be a different one, so one that contains a secret is left out entirely."""
        digest, size = hashlib.sha256(), 0

        def pieces() -> Iterator[bytes]:
            nonlocal size
            for piece in item.pieces():
                digest.update(piece)
                size += len(piece)
                yield piece

        matches = sorted(set(self.secrets.find_in(pieces())))
        self._tell(item.name, matches)
        if matches:
            left_out.add(item.name, "it holds a secret")
        elif size > LARGEST_MEMBER:
            left_out.add(item.name, f"has more than {LARGEST_MEMBER} bytes")
        else:
            self._add(item, size, digest.hexdigest())

    def _add(self, item: BundleFile, size: int, sha256: str) -> None:
        self.items[item.name] = item
        self.members.append(BundleMember(name=item.name, size=size, sha256=sha256))

    def _tell(self, name: str, matches: list[SecretMatch]) -> None:
        if self.redact:
            self.redacted += [Redaction(name=name, **secret._asdict()) for secret in matches]
        else:
            self.refused += [f"{name}, line {match.line}: {match.what}" for match in matches]

    def _cleaned(self, data: bytes) -> bytes:
        return self.secrets.remove(data) if self.redact else data

    def content(self, member: BundleMember) -> Iterator[bytes]:
        """Yield the bytes that were inspected; PrerequisiteError if the file has changed since."""
        item = self.items[member.name]
        digest = hashlib.sha256()
        changed = f"{item.name} has changed in the meantime: make the bundle again"
        try:
            for piece in item.pieces() if item.kind == SUBMISSION else [self._cleaned(item.read())]:
                digest.update(piece)
                yield piece
        except UntrustedFileError:
            raise PrerequisiteError(changed) from None
        if digest.hexdigest() != member.sha256:
            raise PrerequisiteError(changed)


def make_bundle(
    group: Group, target: Path, *, redact: bool = False, key: Path | None = None, track: Tracker = iter
) -> BundleManifest:
    """Write the bundle of a group whose runs have all ended, and return its manifest. The same group, the same bytes.

    A secret is refused, by file and line; with `redact` it is removed, and the manifest says so. An SSH `key` signs the
    bundle, in a file beside it. `track` wraps the runs and yields each as it is inspected.

    Raises PrerequisiteError if runs have not ended or were not graded, for secrets, and if the bundle cannot be written
    or signed. A bundle that cannot be signed is left unsigned.
    """
    if open_ := unfinished(group):
        raise PrerequisiteError(
            f"{len(open_)} runs of {group.paths.root} have not ended: finish them with `mlebench run --resume`"
        )
    runs = list(group.runs())
    if not runs:
        raise PrerequisiteError(f"{group.paths.root} has no runs, so there is nothing to pack")
    if group.record.origin and not all(run.record.report for run in runs):
        why = group.report_fault() or f"{group.paths.root} has runs that were not graded"
        raise PrerequisiteError(f"{why}: run `mlebench grade {group.paths.root}` first")
    plan = _PackingList(SecretScanner(), redact)
    plan.take_all(group.record.id, OmittedFiles(), group_items(group, runs))
    for run in track(runs):
        left_out = OmittedFiles()
        plan.take_all(run.paths.root.name, left_out, run_items(run, len(runs), left_out))
    _refuse(plan.refused)
    manifest = BundleManifest(
        group=group.record.id,
        created_at=group.record.created_at,
        competitions=_competitions(group, runs),
        members=plan.members,
        redacted=plan.redacted,
        cut=plan.cut,
        left_out=plan.left_out,
    )
    try:
        _write(target, manifest, plan)
        if bundle_signature(target).exists():  # of an earlier bundle
            bundle_signature(target).unlink()
        if key:
            sign(manifest.to_text().encode(), key, bundle_signature(target))
    except OSError as error:
        raise PrerequisiteError(f"cannot write {target}: {reason_of(error)}") from error
    return manifest


def _write(target: Path, manifest: BundleManifest, plan: _PackingList) -> None:
    with replacing(target) as part:
        with part.open("wb") as file:
            writer = ArchiveWriter(file)
            data = manifest.to_text().encode()
            writer.add(MANIFEST, len(data), [data])
            for member in manifest.members:
                writer.add(member.name, member.size, plan.content(member))
            writer.close()
        read_bundle(part)  # never hand out what others would refuse
    remove_stale_temporaries(target)  # as large as the bundle


def _refuse(matches: list[str]) -> None:
    if not matches:
        return
    lines = "\n".join(f"  {line}" for line in matches[:MOST_SHOWN])
    more = f"\n  and {len(matches) - MOST_SHOWN} more" if len(matches) > MOST_SHOWN else ""
    raise PrerequisiteError(f"the bundle would contain secrets: remove them, or use --redact\n{lines}{more}")


def _competitions(group: Group, runs: list[Run]) -> list[BundledCompetition]:
    """Which data and graders the scores come from; a competition whose runs differ in that has several entries."""
    rows: dict[BundledCompetition, None] = {}
    for run in runs:
        report = run.record.report
        row = BundledCompetition(
            id=run.record.competition,
            profile=group.record.profile,
            data=report and report.data,
            competition_version=report and report.competition_version,
            graded_by=report and report.mlebench,
        )
        rows[row] = None
    return list(rows)
