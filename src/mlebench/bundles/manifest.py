"""What a bundle says about itself: its members with their checksums, and what was left out, cut or removed."""

import re
from dataclasses import dataclass, field
from typing import Any

from mlebench.bundles.archive import LARGEST_MEMBER, BundleRefusedError, header, shown
from mlebench.bundles.shapes import fits, record_of
from mlebench.paths import MANIFEST
from mlebench.records import Record

LARGEST_MANIFEST = 32 << 20
MOST_MEMBERS = 100_000
LARGEST_BUNDLE = 64 << 30  # bytes of all members, unpacked
HIGHEST_RATIO = 500  # of unpacked to packed size, beyond SMALL bytes
SMALL = 256 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class BundleManifest(Record):
    group: str
    created_at: str | None  # the group, not the bundle: the same group gives the same bytes
    competitions: list[dict[str, Any]]  # id, and the data and graders behind its scores
    members: list[dict[str, Any]]  # name, size, sha256; in the order of the archive
    redacted: list[dict[str, Any]] = field(default_factory=list)  # name, line, what
    cut: list[dict[str, Any]] = field(default_factory=list)  # name, and its size before
    left_out: list[dict[str, Any]] = field(default_factory=list)  # name, reason

    def to_bytes(self) -> bytes:
        return self.to_text().encode()


def read_manifest(data: bytes, packed: int) -> BundleManifest:
    """The manifest of an archive of `packed` bytes; refuses one that nobody should unpack."""
    manifest = record_of(BundleManifest, data, MANIFEST)
    if len(manifest.members) > MOST_MEMBERS:
        raise BundleRefusedError(f"it has {len(manifest.members)} members; at most {MOST_MEMBERS} are read")
    seen: set[str] = set()
    total = 0
    for member in manifest.members:
        _check_member(member, seen)
        seen.add(member["name"])
        total += member["size"]
    if inside := next((name for name in seen if not seen.isdisjoint(_folders(name))), None):
        raise BundleRefusedError(f"{shown(inside)} is inside a member that is not a folder")
    if total > LARGEST_BUNDLE:
        raise BundleRefusedError(f"it would unpack to {total} bytes; at most {LARGEST_BUNDLE} are read")
    if total > SMALL and total > packed * HIGHEST_RATIO:
        raise BundleRefusedError(f"{packed} bytes would unpack to {total}, which no genuine bundle does")
    return manifest


def _check_member(member: dict[str, Any], seen: set[str]) -> None:
    name, size, sha256 = (member.get(key) for key in ("name", "size", "sha256"))
    if not isinstance(name, str) or not fits(size, int) or not isinstance(sha256, str):
        raise BundleRefusedError(f"{MANIFEST}: a member needs a name, a size and a sha256")
    if fault := name_fault(name):
        raise BundleRefusedError(f"{shown(name)} {fault}")
    if name in seen:
        raise BundleRefusedError(f"{shown(name)} is in the manifest twice")
    if not 0 <= member["size"] <= LARGEST_MEMBER or not _SHA256.fullmatch(sha256):
        raise BundleRefusedError(f"{shown(name)} has an impossible size or sha256")


def name_fault(name: str) -> str | None:
    """Why a member cannot have this name; manual unpacking must stay inside the folder, too."""
    parts = name.split("/")
    if name == MANIFEST or any(part in ("", ".", "..") for part in parts) or "\\" in name or ":" in parts[0]:
        return "is not a name that a bundle can have inside"
    if not name.isprintable():
        return "has a name that cannot be printed"
    try:
        header(name, 0)
    except ValueError:
        return "has a name that is too long"
    return None


def _folders(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
