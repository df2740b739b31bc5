"""The process of one run's index of packages: `python -m mlebench.packages.process`."""

from pathlib import Path
from typing import Any

import msgspec

from mlebench.core.service_process import run_service
from mlebench.packages.cache import FileCache
from mlebench.packages.folder import FolderFile
from mlebench.packages.index_pages import upload_time
from mlebench.packages.server import PackageIndex
from mlebench.packages.sources import FolderSource, IndexSource


def make_index(spec: dict[str, Any]) -> PackageIndex:
    if spec["files"] is None:
        source = IndexSource(spec["source"], FileCache(Path(spec["cache"])), upload_time(spec["before"]))
    else:
        source = FolderSource(Path(spec["source"]), msgspec.convert(spec["files"], list[FolderFile]))
    return PackageIndex(source, Path(spec["use"]), allow=spec["allow"], limit=spec["limit"])


if __name__ == "__main__":
    run_service("packages", make_index)
