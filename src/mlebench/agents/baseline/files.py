"""Finds the files that belong to the rows of a table: pictures, sounds, arrays, in folders or archives."""

import os
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tables import says

# From the easiest to learn from to the hardest; if a row has several kinds, the first is taken.
KINDS = {
    "image": (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp"),
    "sound": (".wav", ".aif", ".aiff"),
    "array": (".npy",),
    "scan": (".dcm", ".dicom"),
    "series": (".csv",),
    "other": (".xyz", ".bin", ".txt", ".json", ".parquet"),
}
KIND_OF = {suffix: kind for kind, suffixes in KINDS.items() for suffix in suffixes}
PER_ROW = 6


class File(NamedTuple):
    """A file of a folder, or a member of an archive."""

    archive: str  # empty for a plain file
    path: str
    kind: str

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.path).parts

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem


class Files:
    """All files of a competition. Folder names tell whether a file is for training, for testing, or for both."""

    def __init__(self, data: Path):
        self._data = data
        self._archives: dict[str, zipfile.ZipFile | tarfile.TarFile] = {}
        all_files = list(self._walk())
        sides = [_side(file) for file in all_files]
        self.test = [file for file, side in zip(all_files, sides, strict=True) if side != "train"]
        self.train = [file for file, side in zip(all_files, sides, strict=True) if side != "test"]

    def _walk(self) -> Iterator[File]:
        unpacked = set()
        for folder, folders, names in os.walk(self._data):
            folders.sort()
            folder_name = Path(folder).relative_to(self._data).as_posix()
            for name in sorted(names):
                path = name if folder_name == "." else f"{folder_name}/{name}"
                kind = KIND_OF.get(_suffix(name))
                if kind and folder_name != ".":
                    unpacked.add(path.split("/")[0])
                    yield File("", path, kind)
        for name in sorted(entry.name for entry in self._data.iterdir()):
            if name.split(".")[0] not in unpacked and name.endswith((".zip", ".tar", ".tar.gz", ".tgz")):
                yield from self._members(name)

    def _members(self, name: str) -> Iterator[File]:
        try:
            archive = self._open(name)
            names = archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames()
        except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError):
            return
        for member in names:
            kind = KIND_OF.get(_suffix(member))
            if kind and "__MACOSX" not in member:
                yield File(name, member, kind)

    def _open(self, name: str) -> "zipfile.ZipFile | tarfile.TarFile":
        if name not in self._archives:
            path = self._data / name
            self._archives[name] = zipfile.ZipFile(path) if name.endswith(".zip") else tarfile.open(path)  # noqa: SIM115
        return self._archives[name]

    def read(self, file: File) -> bytes:
        if not file.archive:
            return (self._data / file.path).read_bytes()
        archive = self._open(file.archive)
        if isinstance(archive, zipfile.ZipFile):
            return archive.read(file.path)
        member = archive.extractfile(file.path)
        return member.read() if member else b""

    def of(self, keys: Sequence[str], is_test: bool) -> list[list[File]]:
        """The files of each key: those it names, or those in a folder that it names."""
        by_key = _lookup(set(keys), self.test if is_test else self.train)
        return [by_key.get(key, []) for key in keys]

    def share(self, keys: Iterable[str], is_test: bool) -> float:
        """The share of keys that have files, estimated from a sample."""
        sample = {*list(dict.fromkeys(keys))[:300]} - {""}
        return len(_lookup(sample, self.test if is_test else self.train)) / len(sample) if sample else 0.0


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2].lower()}"


def _side(file: File) -> str:
    for part in reversed((file.archive, *file.parts)):
        for side in ("train", "test"):
            if says(part, side):
                return side
    return ""


def _lookup(keys: set[str], files: list[File]) -> dict[str, list[File]]:
    by_key: dict[str, list[File]] = defaultdict(list)
    for file in files:
        parts = file.parts
        stem = parts[-1].rpartition(".")[0]
        for name in dict.fromkeys((stem, parts[-1], *parts[:-1], file.path, "/".join(parts[1:]))):
            if name in keys:
                by_key[name].append(file)
                break
    return by_key


def of_best_kind(train: list[list[File]], test: list[list[File]]) -> tuple[list[list[File]], list[list[File]]]:
    """For each row, its files of the kind that most rows have, for training and for testing."""
    for kind in KINDS:
        of_kind = [[[f for f in files if f.kind == kind][:PER_ROW] for files in side] for side in (train, test)]
        if all(side and sum(map(bool, side)) * 2 >= len(side) for side in of_kind):
            return of_kind[0], of_kind[1]
    return [[] for _ in train], [[] for _ in test]
