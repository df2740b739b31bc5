"""The runner's end of a run's index of packages, and what makes pip and uv use it."""

import importlib.util
import sys
import sysconfig
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec

from mlebench.core import paths
from mlebench.core.service import Service
from mlebench.packages.folder import FolderFile

LAYER = Path(__file__).with_name("layer.py")
PATIENCE = "900"  # seconds that pip and uv wait for the first byte: a file is fetched whole before it is passed on
# With its own copy of the arguments: the folder of the venv, the script that makes it, a pip to lend, the program.
WITH_LAYER = (
    'python3 -I "$2" "$1" "$3" || echo "mlebench: this run has no venv of its own: pip cannot install into it" >&2; '
    'shift 3; exec "$@"'
)


class PackageProxy(Service):
    """A context manager: the index runs inside it, and leaves nothing but its record."""

    def __init__(
        self,
        token: str,
        work: Path,
        source: str,
        files: Sequence[FolderFile] | None,
        *,
        before: str | None = None,
        allow: Sequence[str] | None = None,
        limit: int | None = None,
    ):
        spec = {
            "source": source,
            "files": None if files is None else msgspec.to_builtins(files),
            "before": before,
            "allow": allow,
            "limit": limit,
            "cache": str(paths.packages_dir()),
            "use": str(paths.package_usage_file(work)),
        }
        super().__init__("the index of packages", "mlebench.packages.process", token, spec)


def variables(port: int) -> dict[str, str]:
    """What leads pip and uv to the index, and nowhere else."""
    url = f"http://127.0.0.1:{port}/simple/"
    return {
        "PIP_INDEX_URL": url,
        "PIP_CONFIG_FILE": "/dev/null",  # an image's may name other indexes
        "PIP_DEFAULT_TIMEOUT": PATIENCE,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_PROGRESS_BAR": "off",
        "UV_INDEX_URL": url,
        "UV_DEFAULT_INDEX": url,
        "UV_HTTP_TIMEOUT": PATIENCE,
        "UV_PYTHON_DOWNLOADS": "never",
    }


def layered(command: Sequence[str], venv: str, layer: str, pip: str | None) -> tuple[str, ...]:
    """The command behind one that first makes the run's own venv."""
    return ("sh", "-c", WITH_LAYER, "sh", venv, layer, pip or "", *command)


def pip_here() -> Path | None:
    """This machine's pip, for agents whose Python has none: a folder, or the wheel that comes with Python."""
    spec = importlib.util.find_spec("pip")
    if spec and spec.origin:
        return Path(spec.origin).parent
    bundled = Path(sys.base_prefix).glob("lib/python3*/ensurepip/_bundled/pip-*.whl")
    elsewhere = sysconfig.get_config_var("WHEEL_PKG_DIR")  # as on Debian
    return next(chain(bundled, Path(elsewhere).glob("pip-*.whl") if elsewhere else ()), None)
