"""What a bundle says about itself, and the outcome of verifying it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from mlebench.records.base import Count, Name, Record, Text, Time, now

AGREES, DIFFERS, NOT_REGRADED = "agrees", "differs", "not regraded"
CLAIMED, REGRADED = "claimed", "regraded"


class BundledCompetition(msgspec.Struct, frozen=True, kw_only=True):
    """The data and grader behind scores."""

    id: Name
    profile: Text | None = None
    data: Text | None = None
    competition_version: int | None = None
    graded_by: Text | None = None


class BundleMember(msgspec.Struct, frozen=True, kw_only=True):
    name: Text
    size: Count
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that was removed."""

    name: Text
    line: Count
    what: Text


class ShortenedLog(msgspec.Struct, frozen=True, kw_only=True):
    """A long log, of which only the beginning and the end are included."""

    name: Text
    bytes: Count  # before


class OmittedFile(msgspec.Struct, frozen=True, kw_only=True):
    name: Text
    reason: Text


class BundleManifest(Record, frozen=True, kw_only=True):
    group: Name
    created_at: Time | None  # the group, not the bundle: the same group gives the same bytes
    competitions: list[BundledCompetition]
    members: list[BundleMember]  # in the order of the archive
    redacted: list[Redaction] = []
    cut: list[ShortenedLog] = []
    left_out: list[OmittedFile] = []


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    run_id: Name
    competition: Name
    seed: Count | None
    claimed: float | None  # score
    regraded: float | None
    verdict: Literal["agrees", "differs", "not regraded"]
    why: Text | None


class SignatureState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: Literal["none", "not checked", "good", "bad"]
    signer: Text | None = None
    why: Text | None = None


class BundleVerdict(Record, frozen=True, kw_only=True):
    """The outcome of verifying a bundle."""

    bundle: Text  # the sha256 of the file
    group: Name
    agent: Name
    signature: SignatureState
    runs: list[RunVerdict]
    verified_at: Time = field(default_factory=now)

    @property
    def differs(self) -> bool:
        return any(run.verdict == DIFFERS for run in self.runs)

    @property
    def trust(self) -> str:
        """`regraded` when every run agrees; otherwise the scores are still claimed."""
        return REGRADED if all(run.verdict == AGREES for run in self.runs) else CLAIMED
