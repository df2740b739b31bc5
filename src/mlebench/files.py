"""Writes files completely or not at all, and makes folders that must be new."""

import os
from collections.abc import Iterable
from pathlib import Path

from mlebench.errors import PrerequisiteError


def write_whole(path: Path, text: str | Iterable[str]) -> None:
    """Write a file, from a text or its pieces, completely or not at all."""
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as stream:
            stream.writelines([text] if isinstance(text, str) else text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def make_new_folder(folder: Path) -> None:
    """Make a folder that a person named; it must not exist yet."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise PrerequisiteError(f"{folder} already exists: choose another name, or remove it") from None
    except OSError as error:
        raise PrerequisiteError(f"cannot create {folder}: {(error.strerror or '').lower()}") from None
