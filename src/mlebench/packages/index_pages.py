"""Reads the page of a project as an index serves it, in JSON (PEP 691, 700) or HTML (PEP 503)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec

from mlebench.packages.project import HTML, JSON, PLAIN_HTML, PackageFile, Project, is_sha256, named_in

MOST_FILES = 100_000  # of a project
LONGEST_TEXT = 500  # characters, of what is passed on about a file
Hashes = bool | dict[str, str]


class MalformedPageError(ValueError):
    """What an index answers is no page of a project."""


class _ListedFile(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, str] = {}
    requires_python: str | None = None
    size: int | None = None
    upload_time: str | None = None
    yanked: bool | str = False
    core_metadata: Hashes | None = None
    data_dist_info_metadata: Hashes | None = None  # its earlier name


class _JsonPage(msgspec.Struct):
    files: list[_ListedFile]


def read_page(name: str, url: str, kind: str, content: bytes, before: datetime | None) -> Project:
    """The project's files that can be offered: those with a hash, of this project, and uploaded before that time."""
    kind = kind.partition(";")[0].strip().lower()
    if kind == JSON:
        listed = _listed_in_json(content)
    elif kind in (HTML, PLAIN_HTML):
        listed = _listed_in_html(content)
    else:
        raise MalformedPageError(f"it is of the type {kind[:60] or 'unknown'!r}")
    if len(listed) > MOST_FILES:
        raise MalformedPageError(f"it lists more than {MOST_FILES} files")
    files = tuple(_offered(name, url, listed, before))
    note = None
    if before and listed and not any(file.upload_time for file in listed):
        note = "the index states no upload times, so --packages-before hides all of its files"
    return Project(name, files, note)


def upload_time(text: str | None) -> datetime | None:
    """When a file was uploaded; None if that is not stated, or not as a time."""
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return time and (time if time.tzinfo else time.replace(tzinfo=UTC))


def _listed_in_json(content: bytes) -> list[_ListedFile]:
    try:
        return msgspec.json.decode(content, type=_JsonPage).files
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedPageError(f"its JSON cannot be read ({str(error)[:100]})") from None


def _listed_in_html(content: bytes) -> list[_ListedFile]:
    parser = _Anchors()
    parser.feed(content.decode("utf-8", "replace"))
    return parser.files


class _Anchors(HTMLParser):
    """Collects the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[_ListedFile] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        if tag != "a" or not (href := facts.get("href")):
            return
        url, fragment = urldefrag(href)
        self.files.append(
            _ListedFile(
                filename=unquote(url.rpartition("/")[2]),
                url=url,
                hashes=_hash_in(fragment),
                requires_python=facts.get("data-requires-python"),
                upload_time=facts.get("data-upload-time"),  # in no specification, but some mirrors state it
                yanked=(facts["data-yanked"] or "") if "data-yanked" in facts else False,
                core_metadata=_hash_in(facts.get("data-core-metadata") or facts.get("data-dist-info-metadata") or ""),
            )
        )


def _hash_in(text: str) -> dict[str, str]:
    kind, _, digest = text.partition("=")
    return {kind: digest}


def _offered(name: str, page: str, listed: list[_ListedFile], before: datetime | None) -> Iterator[PackageFile]:
    for file in listed:
        named, sha256 = named_in(file.filename), file.hashes.get("sha256", "").lower()
        if named is None or named[0] != name or not is_sha256(sha256) or not _is_in_time(file, before):
            continue
        url = _address(page, file.url)
        if url is None or (file.size or 0) < 0:
            continue
        texts = (file.requires_python, file.yanked, file.upload_time)
        if any(isinstance(text, str) and len(text) > LONGEST_TEXT for text in texts):
            continue
        yield PackageFile(
            name=file.filename,
            project=name,
            version=named[1],
            url=url,
            sha256=sha256,
            size=file.size,
            requires_python=file.requires_python,
            yanked=file.yanked,
            upload_time=file.upload_time if upload_time(file.upload_time) else None,
            metadata_sha256=_metadata_hash(file),
        )


def _is_in_time(file: _ListedFile, before: datetime | None) -> bool:
    if before is None:
        return True
    time = upload_time(file.upload_time)
    return time is not None and time < before


def _address(page: str, url: str) -> str | None:
    """The whole address of a file; None if it cannot be fetched, or not as safely as its page."""
    try:
        address = urldefrag(urljoin(page, url))[0]
        parts = urlsplit(address)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    is_weaker = parts.scheme == "http" and urlsplit(page).scheme == "https"
    is_plain = address.isascii() and address.isprintable() and " " not in address and "@" not in parts.netloc
    return address if is_usable and is_plain and not is_weaker else None


def _metadata_hash(file: _ListedFile) -> str | None:
    for stated in (file.core_metadata, file.data_dist_info_metadata):
        if isinstance(stated, dict) and is_sha256(stated.get("sha256")):
            return stated["sha256"]
    return None
