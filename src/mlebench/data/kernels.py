"""Published notebooks of a competition: their names ship with it, the notebooks come from Kaggle.

Kaggle calls notebooks kernels. Files are named as our list names them, never as the server does.
"""

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import KERNELS, kernels_dir
from mlebench.data.kaggle_api import Sleep, ask, connect
from mlebench.registry import Competition

DOWNLOADED, PRESENT, GONE, NOT_PYTHON, BAD_NAME = STATES = (
    "downloaded",
    "present",
    "gone or private",
    "not Python",
    "not a name",
)
MOST_LISTED = 100
_NAME = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9_-]+", re.ASCII)
_ENDINGS = {"notebook": ".ipynb", "script": ".py"}


class Kernel(NamedTuple):
    """A notebook and the outcome of downloading it."""

    name: str  # owner/name
    state: str


def kernel_list(competition: Competition) -> Path:
    return competition.folder / KERNELS


def read_kernel_list(competition: Competition) -> list[str]:
    """The names of notebooks, as `owner/name`; some competitions have none."""
    try:
        lines = kernel_list(competition).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise PrerequisiteError(f"cannot read {kernel_list(competition)}: {error}") from error
    return [line.strip() for line in lines if line.strip()]


def download_kernels(competition: Competition, *, sleep: Sleep = time.sleep) -> Iterator[Kernel]:
    """Download those on the list that are not here yet; each appears complete or not at all."""
    api = None
    for name in read_kernel_list(competition):
        target = kernels_dir(competition.id) / name
        if not _NAME.fullmatch(name):
            yield Kernel(name, BAD_NAME)
        elif any(_file(target, ending).is_file() for ending in _ENDINGS.values()):
            yield Kernel(name, PRESENT)
        else:
            api = api or connect(sleep=sleep)
            blob = ask(f"{competition.id}, {name}", partial(_blob, name=name), api=api, sleep=sleep)
            yield Kernel(name, _store(target, blob))


def _file(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}{ending}")


def _store(stem: Path, blob: Any) -> str:
    if blob is None:
        return GONE
    ending = _ENDINGS.get((blob.kernel_type or "").lower())
    if ending is None or (blob.language or "").lower() != "python":
        return NOT_PYTHON
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        write_whole(_file(stem, ending), blob.source)
    except OSError as error:
        raise PrerequisiteError(f"cannot write to {stem.parent}: {reason_of(error)}") from error
    return DOWNLOADED


def _blob(kaggle: Any, id: str, name: str) -> Any:
    """A notebook's code and kind; None if Kaggle does not, or no longer, show it."""
    from kagglesdk.kernels.types.kernels_api_service import ApiGetKernelRequest
    from requests import HTTPError

    del id
    request = ApiGetKernelRequest()
    request.user_name, _, request.kernel_slug = name.partition("/")
    try:
        return kaggle.kernels.kernels_api_client.get_kernel(request).blob
    except HTTPError as error:
        if error.response is None or error.response.status_code not in (403, 404):
            raise
        error.response.close()
        return None


def refresh_kernel_list(competition: Competition, *, sleep: Sleep = time.sleep) -> Path:
    """Rewrite the competition's list of notebooks from Kaggle's, most votes first."""
    listed = ask(competition.id, _listed, api=connect(sleep=sleep), sleep=sleep)
    names = [name for name in dict.fromkeys(listed) if _NAME.fullmatch(name)]
    if not names:
        raise PrerequisiteError(f"{competition.id}: Kaggle lists no notebooks; the present list stays")
    path = kernel_list(competition)
    try:
        write_whole(path, "".join(f"{name}\n" for name in names))
    except OSError as error:
        raise PrerequisiteError(f"cannot write {path}: {reason_of(error)}") from error
    return path


def _listed(kaggle: Any, id: str) -> list[str]:
    from kagglesdk.kernels.types.kernels_api_service import ApiListKernelsRequest
    from kagglesdk.kernels.types.kernels_enums import KernelsListSortType, KernelsListViewType

    request = ApiListKernelsRequest()
    request.competition, request.language, request.kernel_type = id, "python", "all"
    request.group, request.sort_by = KernelsListViewType.EVERYONE, KernelsListSortType.VOTE_COUNT
    request.page, request.page_size = 1, MOST_LISTED
    return [kernel.ref for kernel in kaggle.kernels.kernels_api_client.list_kernels(request).kernels or []]
