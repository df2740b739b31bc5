"""The contents of a folder or an archive, to compare it with another."""

import tarfile
from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's bytes by its name, without manifests, which hold times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "manifest.files.jsonl")
    }


def tar_members(archive: tarfile.TarFile) -> list[tuple[str, bytes]]:
    """Name and bytes of each member, all of which must be files."""
    found = []
    for info in archive:
        file = archive.extractfile(info)
        assert file, info.name
        found.append((info.name, file.read()))
    return found
