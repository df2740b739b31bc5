"""`--packages`: what a run may install, from a folder of wheels or from an index. A condition of the run."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mlebench.core.errors import PrerequisiteError, RequestError
from mlebench.packages.folder import folder_files, identity
from mlebench.packages.project import canonical
from mlebench.packages.proxy import LAYER, PackageProxy, layered, pip_here, variables
from mlebench.records.group import GroupRecord, is_package_index
from mlebench.registry import Competition
from mlebench.run.shared_folders import SharedFolder
from mlebench.sandbox import Sandbox
from mlebench.sandbox.base import PROXIES, Bind, Task

LIMIT = 2 << 30  # bytes of files that a run may fetch from an index
PROXY = "packages"
PORT = 3141
VENV = ".packages"  # below /home
FOLDER = SharedFolder("packages", "packages that can be installed")


def normalized_source(source: str | Path) -> str:
    """The address of an index, or the whole path of a folder; RequestError for an address that cannot be used."""
    text = str(source)
    if not is_package_index(text):
        return str(Path(text).absolute())
    try:
        parts = urlsplit(text)
        is_usable = bool(parts.hostname) and parts.port != 0 and text.isascii() and text.isprintable()
    except ValueError:
        is_usable = False
        parts = urlsplit("")
    if not is_usable or parts.query or parts.fragment or " " in text:
        raise RequestError(f"--packages: {text!r} is not the address of an index, such as https://index.example/simple")
    if "@" in parts.netloc:
        raise RequestError("--packages: an index that needs a password is not supported: it would stand in records")
    return text.rstrip("/")


def normalized_names(names: Iterable[str]) -> list[str]:
    """The canonical forms of names that may be installed, each once."""
    canonical_names = set()
    for name in names:
        canonical_name = canonical(name)
        if canonical_name is None:
            raise RequestError(f"--packages-allow: {name!r} is not the name of a package; versions do not belong there")
        canonical_names.add(canonical_name)
    if not canonical_names:
        raise RequestError("--packages-allow names no package")
    return sorted(canonical_names)


def read_names(file: Path) -> list[str]:
    """The names in a file, one per line; what follows a # is a comment."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"--packages-allow: cannot read {file}: {error}") from None
    return normalized_names(name for line in lines if (name := line.partition("#")[0].strip()))


def require_time(text: str) -> None:
    """RequestError for what is no date, with or without a time."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(f"--packages-before: {text!r} is not a date such as 2024-06-01") from None


def fields(request: Any) -> dict[str, Any]:
    """What a group's record says about packages."""
    if request.packages is None:
        return {}
    source = normalized_source(request.packages)
    is_index = is_package_index(source)
    return {
        "packages": source,
        "packages_sha256": None if is_index else identity(folder_files(Path(source))),
        "packages_before": request.packages_before,
        "packages_allow": None if request.packages_allow is None else normalized_names(request.packages_allow),
        "packages_limit": request.packages_limit or (LIMIT if is_index else None),
    }


def refuse(source: str | Path, forbidden: Iterable[Path], competitions: Iterable[Competition]) -> None:
    """Say why a folder must not be offered to agents; an index is the user's own choice."""
    source = normalized_source(source)
    if not is_package_index(source):
        FOLDER.refuse_content(Path(source), forbidden, competitions)


def open_packages(record: GroupRecord, task: Task) -> AbstractContextManager[PackageProxy | None]:
    """The index of a run, if it should have one. Raises PrerequisiteError if the folder is not what was planned."""
    if record.packages is None:
        return nullcontext()
    files = None
    if not is_package_index(record.packages):
        files = folder_files(Path(record.packages))
        if identity(files) != record.packages_sha256:
            raise PrerequisiteError(
                f"--packages: {record.packages} has changed since these runs were planned: plan them again"
            )
    return PackageProxy(
        task.name,
        task.work,
        record.packages,
        files,
        before=record.packages_before,
        allow=record.packages_allow,
        limit=record.packages_limit,
    )


def with_packages(task: Task, sandbox: Sandbox, packages: PackageProxy | None, port: int) -> Task:
    """The task with its index, and with a venv of its own that pip can install into."""
    if packages is None:
        return task
    venv = f"{sandbox.home(task.work)}/{VENV}"
    layer = Bind(LAYER, f"{PROXIES}/{LAYER.name}")
    pip = pip_here()
    lent = None if pip is None else Bind(pip, f"{PROXIES}/{pip.name}")
    own = {"PATH": f"{venv}/bin:{task.env['PATH']}", "VIRTUAL_ENV": venv}
    return replace(
        task,
        command=layered(task.command, venv, sandbox.path_of(layer), lent and sandbox.path_of(lent)),
        binds=(*task.binds, layer, *([lent] if lent else [])),
        proxies=task.proxies | {PROXY: packages.socket},
        ports=task.ports | {port: PROXY},
        env=task.env | variables(port) | own,
    )


def packages_words(record: GroupRecord) -> str:
    """What agents are told about the packages that they can install."""
    parts = ["installs from an index of packages"]
    if record.packages_before:
        parts.append(f"as it was before {record.packages_before}")
    if record.packages_limit:
        parts.append(f"{record.packages_limit / (1 << 30):.3g} GiB at most")
    if not is_open(record):
        parts.append("$PIP_INDEX_URL lists the names")
    return "; ".join(parts)


def is_open(record: GroupRecord) -> bool:
    """Whether agents can install whatever an index has: that may hold a competition's data, and names go out."""
    return record.packages is not None and is_package_index(record.packages) and record.packages_allow is None


def changed_packages(named: str | None, earlier: GroupRecord) -> str | None:
    """What to say if a repetition will not have the packages that the earlier runs had."""
    source = named or earlier.packages
    if not source or not earlier.packages_sha256 or is_package_index(source) or not Path(source).is_dir():
        return None
    if identity(folder_files(Path(source))) == earlier.packages_sha256:
        return None
    return f"the packages in {source} are not those that the earlier runs were given as --packages."
