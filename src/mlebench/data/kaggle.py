"""Data from Kaggle: a competition's archive, leaderboard and pages. `kaggle_api` does the talking.

We read the archive's bytes from the response of the official client instead of using its own download. That writes
under the final name, so half an archive looks complete, does not wait as long as Kaggle asks, and does not retry after
a server error.
"""

import contextlib
import errno
import json
import math
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.paths import CompetitionPaths
from mlebench.data.kaggle_api import (
    NoLoginError,
    RulesNotAcceptedError,
    Sleep,
    ask,
    client,
    competition_page,
    connect,
    rules_page,
    with_retries,
)
from mlebench.data.sources import LocalSource, describe_raw, missing_beside_archive, record_download
from mlebench.engine.progress import SILENT, Progress
from mlebench.records.data import DataSource
from mlebench.registry import Competition

Download = Callable[[CompetitionPaths, Progress, Sleep], Path]
CHUNK = 1 << 18
PAGE_SIZE = 200


@dataclass
class KaggleSource:
    """Raw data that is already in the data directory; otherwise Kaggle's archive, downloaded to it."""

    sleep: Sleep = time.sleep
    download: "Download" = field(default_factory=lambda: download)
    twin = False

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:
        try:
            return LocalSource().fetch(competition)
        except PrerequisiteError as none_there:
            folders = competition.paths
            if fault := missing_beside_archive(
                competition, folders.root, folders.raw
            ):  # before everything else is downloaded
                raise PrerequisiteError(fault) from none_there
            try:
                return self.download(folders, progress, self.sleep)
            except NoLoginError as error:
                raise PrerequisiteError(f"{none_there}\nIt cannot be downloaded either: {error}") from error

    def describe(self, raw: Path) -> DataSource:
        return describe_raw(raw)


class Preflight(NamedTuple):
    """What stands between the user and a competition's raw data."""

    present: str | None  # `raw` or `archive`: it is on disk, nothing will be downloaded
    rules: str  # `accepted`, `not accepted`, `unknown`
    page: str  # the page where the rules can be accepted
    size: int | None  # bytes of the archive, on disk or to download
    reason: str | None = None  # why the rules are unknown
    unpacked: int | None = None  # bytes of the files in the archive, if Kaggle says


def preflight(competition: Competition, *, api: Any = None, sleep: Sleep = time.sleep) -> Preflight:
    """Ask Kaggle whether a download would succeed and how large it is, unless the data is on disk.

    We download one byte to find out: listing files also works for users who have not accepted the rules.
    """
    page = rules_page(competition.id)
    if raw := raw_data_present(competition):
        size = competition.paths.archive.stat().st_size if raw == "archive" else None
        return Preflight(raw, "unknown", page, size, "not asked: the data is on disk")
    try:
        size = ask(competition.id, _archive_size, api=api, headers={"Range": "bytes=0-0"}, sleep=sleep, tries=2)
    except RulesNotAcceptedError:
        return Preflight(None, "not accepted", page, None)
    except PrerequisiteError as error:
        return Preflight(None, "unknown", page, None, str(error))
    try:
        unpacked = ask(competition.id, _unpacked_size, api=api, sleep=sleep, tries=1)
    except PrerequisiteError:
        unpacked = None
    return Preflight(None, "accepted", page, size, unpacked=unpacked or None)


def raw_data_present(competition: Competition) -> str | None:
    """Which raw data is on disk: `raw`, `archive` or none."""
    folders = competition.paths
    if folders.raw.is_dir() and any(folders.raw.iterdir()):
        return "raw"
    return "archive" if folders.archive.is_file() else None


def download(folders: CompetitionPaths, progress: Progress = SILENT, sleep: Sleep = time.sleep) -> Path:
    """Download a competition's archive, from where an earlier attempt stopped; the caller holds the lock."""
    folders.root.mkdir(parents=True, exist_ok=True)
    part = _PartialArchive(folders)
    best = part.size()

    def attempt(api: Any) -> None:
        try:
            _continue(api, folders.id, part, progress)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise _disk_full(part) from error
            raise

    def advanced() -> bool:
        """Whether this attempt brought new bytes; if so, the count of attempts starts over."""
        nonlocal best
        before, best = best, max(best, part.size())
        return best > before

    with_retries(folders.id, attempt, advanced=advanced, sleep=sleep)
    if not zipfile.is_zipfile(part.path):
        part.discard()
        raise PrerequisiteError(f"{folders.id}: what Kaggle sent is not a zip archive; try again later")
    record_download(folders, competition_page(folders.id))  # first, so that an archive of ours never exists without it
    part.path.replace(folders.archive)
    part.record.unlink(missing_ok=True)
    return folders.archive


class _PartialArchive:
    """An incomplete archive, and beside it a record of which archive the bytes belong to."""

    def __init__(self, folders: CompetitionPaths):
        self.path = folders.archive_part
        self.record = folders.archive_part_record

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def recorded(self) -> dict[str, Any]:
        try:
            return json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def start(self, of: dict[str, Any]) -> None:
        """Start over. Old bytes are removed first: they must never exist beside the record of another archive."""
        self.discard()
        self.record.write_text(json.dumps(of), encoding="utf-8")

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.record.unlink(missing_ok=True)


def _continue(api: Any, id: str, part: _PartialArchive, progress: Progress) -> None:
    """One attempt: request the missing bytes and append them."""
    import requests

    if not part.recorded():
        part.discard()
    done = part.size()
    if done and done == part.recorded().get("size"):
        return
    # If they were compressed in transit, we could neither count the bytes nor resume.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        with client(api, headers) as kaggle, _archive(kaggle, id) as response:
            identity = _identity(response)
            if response.status_code != 206:
                done = 0
                part.start(identity)
            elif identity != part.recorded() or not response.headers.get("Content-Range", "").startswith(
                f"bytes {done}-"
            ):
                part.discard()
                raise requests.ConnectionError("the archive has changed since the download began")
            _require_space(part, (identity["size"] or 0) - done)
            _append(response, part, done, identity["size"], progress)
    except requests.HTTPError as error:
        if error.response is not None and error.response.status_code == 416:
            part.discard()
        raise


def _append(response: Any, part: _PartialArchive, done: int, total: int | None, progress: Progress) -> None:
    import requests

    progress.tell("downloading", done, total)
    with part.path.open("ab") as stream:
        for chunk in response.iter_content(CHUNK):
            stream.write(chunk)
            done += len(chunk)
            progress.tell("downloading", done, total)
    if total is not None and done != total:
        raise requests.ConnectionError(f"{done} of {total} bytes arrived")


@contextlib.contextmanager
def _archive(kaggle: Any, id: str) -> Iterator[Any]:
    from kagglesdk.competitions.types.competition_api_service import ApiDownloadDataFilesRequest

    request = ApiDownloadDataFilesRequest()
    request.competition_name = id
    with contextlib.closing(kaggle.competitions.competition_api_client.download_data_files(request)) as response:
        yield response


def _identity(response: Any) -> dict[str, Any]:
    """Which archive a response belongs to."""
    headers = response.headers
    size = (
        headers.get("Content-Range", "").rpartition("/")[2]
        if response.status_code == 206
        else headers.get("Content-Length")
    )
    return {
        "tag": headers.get("ETag") or headers.get("Last-Modified"),
        "size": int(size) if size and size.isdigit() else None,
    }


def _archive_size(kaggle: Any, id: str) -> int | None:
    with _archive(kaggle, id) as response:
        return _identity(response)["size"]


def _unpacked_size(kaggle: Any, id: str) -> int:
    from kagglesdk.competitions.types.competition_api_service import ApiGetCompetitionDataFilesSummaryRequest

    request = ApiGetCompetitionDataFilesSummaryRequest()
    request.competition_name = id
    summary = kaggle.competitions.competition_api_client.get_competition_data_files_summary(request)
    kinds = summary.file_summary_info.file_types if summary.file_summary_info else []
    return sum(int(kind.total_size) for kind in kinds or [])


def _require_space(part: _PartialArchive, missing: int) -> None:
    if shutil.disk_usage(part.path.parent).free < missing:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _disk_full(part: _PartialArchive) -> PrerequisiteError:
    missing = ((part.recorded().get("size") or 0) - part.size()) / 1e9
    return PrerequisiteError(
        f"the disk is full: {part.path} lacks {missing:.1f} GB. "
        f"Make room or name another --data-dir, and run this again; it continues where it stopped."
    )


def download_leaderboard(competition: Competition, *, sleep: Sleep = time.sleep) -> Path:
    """Rewrite the competition's leaderboard.csv atomically: the private leaderboard, best score first."""
    api = connect(sleep=sleep)
    scores: list[str] = []
    token, seen = "", {""}
    while True:
        # One request per page, so that an error costs one page and not those before it.
        page = ask(competition.id, partial(_leaderboard_page, token=token), api=api, sleep=sleep)
        scores += [row.score for row in page.submissions or [] if row.score]
        token = page.next_page_token or ""
        if token in seen:
            break
        seen.add(token)
    if not scores or not all(_is_number(score) for score in scores):
        raise PrerequisiteError(f"{competition.id}: Kaggle has no leaderboard of numbers; the present one stays")
    if competition.higher_is_better is not None:
        scores.sort(key=float, reverse=competition.higher_is_better)
    try:
        write_whole(competition.leaderboard, "\n".join(["score", *scores, ""]))
    except OSError as error:
        raise PrerequisiteError(f"cannot write {competition.leaderboard}: {error.strerror}") from error
    return competition.leaderboard


def _leaderboard_page(kaggle: Any, id: str, token: str) -> Any:
    from kagglesdk.competitions.types.competition_api_service import ApiGetLeaderboardRequest

    request = ApiGetLeaderboardRequest()
    request.competition_name, request.page_size, request.page_token = id, PAGE_SIZE, token
    return kaggle.competitions.competition_api_client.get_leaderboard(request)


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def original_description(competition: Competition, *, sleep: Sleep = time.sleep) -> str:
    """Kaggle's own pages about a competition, without its rules, as one text."""
    pages = {page.name: (page.content or "").strip() for page in ask(competition.id, _pages, sleep=sleep) or []}
    first = [name for name in ("description", "Description", "evaluation", "Evaluation") if name in pages]
    names = first + [name for name in pages if name not in first and name.lower() != "rules"]
    parts = [f"## {name.replace('-', ' ').capitalize()}\n\n{pages[name]}\n" for name in names if pages[name]]
    if not parts:
        raise PrerequisiteError(f"{competition.id}: Kaggle has no description; prepare with --description ours instead")
    return "\n".join([f"# {competition.name}\n", *parts])


def _pages(kaggle: Any, id: str) -> Any:
    from kagglesdk.competitions.types.competition_api_service import ApiListCompetitionPagesRequest

    request = ApiListCompetitionPagesRequest()
    request.competition_name = id
    return kaggle.competitions.competition_api_client.list_competition_pages(request).pages
