"""A project of an index and its files, as the simple repository API shows them."""

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from packaging.utils import (
    InvalidName,
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
PLAIN_HTML = "text/html"
METADATA = ".metadata"  # after a file's name: its metadata alone
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,254}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class PackageFile:
    """A wheel or source archive, or the metadata of one."""

    name: str
    project: str  # in canonical form
    version: str
    url: str  # of the file, or its path on this machine
    sha256: str
    size: int | None = None
    requires_python: str | None = None
    yanked: bool | str = False  # a text says why
    upload_time: str | None = None
    metadata_sha256: str | None = None  # of the file that has its metadata alone


@dataclass(frozen=True)
class Project:
    name: str  # in canonical form
    files: tuple[PackageFile, ...]
    note: str | None = None  # why there are none

    def file(self, name: str) -> PackageFile | None:
        """A file that the project lists, or the metadata of one."""
        for file in self.files:
            if file.name == name:
                return file
            if file.metadata_sha256 and file.name + METADATA == name:
                return PackageFile(name, file.project, file.version, file.url + METADATA, file.metadata_sha256)
        return None


def canonical(name: str) -> str | None:
    """The canonical form of a project's name; None if it is none."""
    if len(name) > _LONGEST_NAME:
        return None
    try:
        return canonicalize_name(name, validate=True)
    except InvalidName:
        return None


def named_in(file_name: str) -> tuple[str, str] | None:
    """The project and version that the name of a wheel or source archive states; None for any other file."""
    if not _FILE_NAME.fullmatch(file_name):
        return None
    try:
        if file_name.endswith(".whl"):
            name, version, *_ = parse_wheel_filename(file_name)
        else:
            name, version = parse_sdist_filename(file_name)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return (str(name), str(version)) if canonical(name) else None


def is_sha256(text: object) -> bool:
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def is_json_wanted(accept: str) -> bool:
    """Whether a client prefers JSON to HTML, by the header that it sent."""
    weights: dict[str, float] = {}
    for part in accept.lower().split(",")[:50]:
        kind, *parameters = (word.strip() for word in part.split(";"))
        texts = [word[2:] for word in parameters if word.startswith("q=")]
        try:
            weights[kind] = float(texts[0]) if texts else 1.0
        except ValueError:
            continue
    as_json = max(weights.get(kind, 0.0) for kind in (JSON, "application/vnd.pypi.simple.latest+json"))
    as_html = max(weights.get(kind, 0.0) for kind in (HTML, PLAIN_HTML, "application/vnd.pypi.simple.latest+html"))
    return as_json > 0 and as_json >= as_html


def list_page(names: Iterable[str], *, as_json: bool) -> bytes:
    """The page with the names of all projects."""
    if as_json:
        return json.dumps({"meta": {"api-version": "1.1"}, "projects": [{"name": name} for name in names]}).encode()
    return _html_page("Simple index", [f'<a href="{name}/">{name}</a>' for name in names])


def project_page(project: Project, *, as_json: bool) -> bytes:
    """The page with the files of a project; addresses are relative to /simple/NAME/."""
    return _json_page(project) if as_json else _html_page(project.name, [_anchor(file) for file in project.files])


def _location(file: PackageFile) -> str:
    return f"../../files/{file.project}/{file.name}"


def _json_page(project: Project) -> bytes:
    has_sizes = all(file.size is not None for file in project.files)  # version 1.1 demands them
    page = {
        "meta": {"api-version": "1.1" if has_sizes else "1.0"},
        "name": project.name,
        "versions": list(dict.fromkeys(file.version for file in project.files)),
        "files": [_json_file(file) for file in project.files],
    }
    return json.dumps(page).encode()


def _json_file(file: PackageFile) -> dict[str, Any]:
    optional = {"size": file.size, "requires-python": file.requires_python, "upload-time": file.upload_time}
    metadata = {"sha256": file.metadata_sha256} if file.metadata_sha256 else False
    return {
        "filename": file.name,
        "url": _location(file),
        "hashes": {"sha256": file.sha256},
        "yanked": file.yanked,
        "core-metadata": metadata,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _anchor(file: PackageFile) -> str:
    attributes = {"href": f"{_location(file)}#sha256={file.sha256}"}
    if file.requires_python is not None:
        attributes["data-requires-python"] = file.requires_python
    if file.yanked is not False:
        attributes["data-yanked"] = file.yanked if isinstance(file.yanked, str) else ""
    if file.metadata_sha256:
        attributes["data-core-metadata"] = f"sha256={file.metadata_sha256}"
    text = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<a {text}>{html.escape(file.name)}</a>"


def _html_page(title: str, lines: list[str]) -> bytes:
    head = f'<meta charset="utf-8"><meta name="pypi:repository-version" content="1.0"><title>{title}</title>'
    body = "".join(f"{line}<br>\n" for line in lines)
    return f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{body}</body></html>\n".encode()
