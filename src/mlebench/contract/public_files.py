"""What an agent finds in the public folder, including inside archives."""

import io
import json
from collections.abc import Container, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from mlebench.contract.file_hashes import members_of
from mlebench.core.paths import DESCRIPTION
from mlebench.kit import open_raw


def public_files(public: Path, closed: Container[str] = (), *, nested: bool = False) -> Iterator[tuple[str, bytes]]:
    """Every file, including those in archives, by the path it has when each archive is unpacked in place.

    `closed` archives are not opened; those in archives only if `nested`.
    """
    for path in sorted(path for path in public.rglob("*") if path.is_file()):
        name, content = path.relative_to(public).as_posix(), path.read_bytes()
        if name == DESCRIPTION:
            continue
        yield name, content
        if name not in closed:
            yield from _members(content, nested=nested)


def _members(archive: bytes, *, nested: bool) -> Iterator[tuple[str, bytes]]:
    for name, content in (members_of(archive) or {}).items():
        if not name.endswith("/"):
            yield name, content
            if nested:
                yield from _members(content, nested=True)


def public_tables(public: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table, with cells as text where the format allows it. A list in a JSON object is `FILE/KEY`."""
    for name, content in public_files(public):
        for part, table in tables_of(name, content):
            yield (f"{name}/{part}" if part else name), table


def tables_of(name: str, content: bytes) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables in a file: one without a name, or those of a JSON object by their keys."""
    if name.endswith((".csv", ".tsv")):
        yield (
            "",
            pd.read_csv(
                io.BytesIO(content), sep="\t" if name.endswith(".tsv") else ",", dtype=str, keep_default_na=False
            ),
        )
    elif name.endswith(".parquet"):
        yield "", pd.read_parquet(io.BytesIO(content))
    elif name.endswith(".jsonl"):
        yield "", pd.DataFrame(map(json.loads, content.splitlines()))
    elif name.endswith(".json"):
        yield from _json_tables(content)
    elif name.endswith(".bson"):
        yield "", _bson_table(content)


def _json_tables(content: bytes) -> Iterator[tuple[str, pd.DataFrame]]:
    document = parsed_json(content)
    for key, value in document.items() if isinstance(document, dict) else [("", document)]:
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            yield key, pd.DataFrame(value)


def parsed_json(content: bytes) -> Any:
    """A JSON document; JSON lines under that name give a list."""
    try:
        return json.loads(content)
    except ValueError:
        return [json.loads(line) for line in content.splitlines()]


def _bson_table(content: bytes) -> pd.DataFrame:
    with TemporaryDirectory() as folder:
        (Path(folder) / "records.bson").write_bytes(content)
        with open_raw(Path(folder)) as raw:
            return raw.records("records.bson").to_pandas()
