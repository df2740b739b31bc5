"""Writes files whole or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, text: str | Iterable[str]) -> None:
    """Write a file, from a text or its pieces, whole or not at all."""
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as stream:
            stream.writelines([text] if isinstance(text, str) else text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
