"""What a folder holds, to compare it with another."""

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's bytes by its name, without manifests, which hold times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "manifest.files.jsonl")
    }
