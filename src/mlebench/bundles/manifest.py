"""What a bundle says about itself: its members with their checksums, and what was left out, cut or removed."""

from mlebench.bundles.archive import LARGEST_MEMBER, BundleRefusedError, header, printable_name
from mlebench.bundles.strict_json import record_of
from mlebench.core.paths import MANIFEST
from mlebench.records.bundle import BundleManifest, BundleMember

LARGEST_MANIFEST = 32 << 20
MOST_MEMBERS = 100_000
LARGEST_BUNDLE = 64 << 30  # bytes of all members, unpacked
HIGHEST_RATIO = 500  # of unpacked to packed size, beyond SMALL bytes
SMALL = 256 << 20


def read_manifest(data: bytes, packed: int) -> BundleManifest:
    """The manifest of an archive of `packed` bytes; refuses one that nobody should unpack."""
    manifest = record_of(BundleManifest, data, MANIFEST)
    if len(manifest.members) > MOST_MEMBERS:
        raise BundleRefusedError(f"it has {len(manifest.members)} members; at most {MOST_MEMBERS} are read")
    seen: set[str] = set()
    total = 0
    for member in manifest.members:
        _check_member(member, seen)
        seen.add(member.name)
        total += member.size
    if inside := next((name for name in seen if not seen.isdisjoint(_folders(name))), None):
        raise BundleRefusedError(f"{printable_name(inside)} is inside a member that is not a folder")
    if total > LARGEST_BUNDLE:
        raise BundleRefusedError(f"it would unpack to {total} bytes; at most {LARGEST_BUNDLE} are read")
    if total > SMALL and total > packed * HIGHEST_RATIO:
        raise BundleRefusedError(f"{packed} bytes would unpack to {total}, which no genuine bundle does")
    return manifest


def _check_member(member: BundleMember, seen: set[str]) -> None:
    if fault := name_fault(member.name):
        raise BundleRefusedError(f"{printable_name(member.name)} {fault}")
    if member.name in seen:
        raise BundleRefusedError(f"{printable_name(member.name)} is in the manifest twice")
    if member.size > LARGEST_MEMBER:
        raise BundleRefusedError(f"{printable_name(member.name)} has an impossible size")


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
