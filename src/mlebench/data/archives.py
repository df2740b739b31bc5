"""Unpacks and packs whole archives, by file name, for existing clients. Our own `prepare` reads archives in place."""

import zipfile
from pathlib import Path

from mlebench.core.errors import PrerequisiteError

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".tar.gz", ".rar", ".7z")
UNDERSTOOD = (".zip", ".7z")


def is_empty(dir: Path) -> bool:
    return not any(Path(dir).iterdir())


def is_compressed(fpath: Path) -> bool:
    """Whether a file is named like an archive; not all of these kinds can be unpacked here."""
    return Path(fpath).suffix in ARCHIVES


def extract(compressed: Path, dst: Path, recursive: bool = False, already_extracted: set[Path] | None = None) -> None:
    """Unpack a zip or 7z archive into a folder and, when `recursive`, those directly inside it.

    Archives in `already_extracted` are skipped; those that are unpacked are added to it.
    """
    _require_understood(compressed)
    done = set[Path]() if already_extracted is None else already_extracted
    done.add(compressed)
    if compressed.suffix == ".7z":
        import py7zr

        with py7zr.SevenZipFile(compressed) as archive:
            archive.extractall(dst)
    else:
        with zipfile.ZipFile(compressed) as archive:
            archive.extractall(dst)
    while recursive:
        inner = sorted(path for path in dst.iterdir() if path.suffix in UNDERSTOOD and path not in done)
        if not inner:
            return
        for path in inner:
            extract(path, dst, already_extracted=done)


def compress(src: Path, compressed: Path, exist_ok: bool = False) -> None:
    """Pack the files below a folder into a zip or 7z archive."""
    _require_understood(compressed)
    if not src.is_dir():
        raise PrerequisiteError(f"{src} is not a folder: there is nothing to pack")
    files = {path: path.relative_to(src).as_posix() for path in sorted(src.rglob("*")) if path.is_file()}
    mode = "w" if exist_ok else "x"
    if compressed.suffix == ".7z":
        import py7zr

        with py7zr.SevenZipFile(compressed, mode) as archive:
            for path, name in files.items():
                archive.write(path, name)
    else:
        with zipfile.ZipFile(compressed, mode, zipfile.ZIP_DEFLATED) as archive:
            for path, name in files.items():
                archive.write(path, name)


def _require_understood(path: Path) -> None:
    if path.suffix not in UNDERSTOOD:
        raise PrerequisiteError(f"{path.name}: only zip and 7z archives can be packed and unpacked here")
