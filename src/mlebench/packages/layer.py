"""Makes a venv of a run's own, over the packages that the agent's Python already has.

Usage: python3 -I layer.py FOLDER [PIP]

The agent's own packages are read-only, and pip refuses to install elsewhere. A venv in a writable folder, first on the
path and with the others behind its own, makes plain `pip install` work. PIP is a copy of pip, a folder or a wheel, for
a Python that has none. Runs inside the sandbox, with the agent's Python. Standard library only.
"""

import importlib.util
import shutil
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

PIP = '#!/bin/sh\nexec "{python}" -m pip "$@"\n'


def sees_system_packages() -> bool:
    """Whether this Python's packages include those of the installation behind it."""
    if sys.prefix == sys.base_prefix:
        return True
    lines = Path(sys.prefix, "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    settings = {name.strip(): value.strip().lower() for name, _, value in (line.partition("=") for line in lines)}
    return settings.get("include-system-site-packages") == "true"


def make(folder: Path, pip: str) -> None:
    builder = venv.EnvBuilder(system_site_packages=sees_system_packages(), symlinks=True, with_pip=False)
    builder.create(folder)
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    packages = Path(sysconfig.get_path("purelib", scheme, {"base": str(folder), "platbase": str(folder)}))
    if sys.prefix != sys.base_prefix:
        below = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
        lines = "".join(f"import site; site.addsitedir({path!r})\n" for path in below)
        (packages / "below.pth").write_text(lines, encoding="utf-8")
    if importlib.util.find_spec("pip") is None and pip:
        lend(Path(pip), packages)
    for name in ("pip", "pip3"):
        script = folder / "bin" / name
        script.write_text(PIP.format(python=folder / "bin" / "python"), encoding="utf-8")
        script.chmod(0o755)


def lend(pip: Path, packages: Path) -> None:
    """A copy, so that pip can replace itself."""
    if pip.is_dir():
        shutil.copytree(pip, packages / "pip", ignore=shutil.ignore_patterns("__pycache__"))
        return
    with zipfile.ZipFile(pip) as archive:
        archive.extractall(packages, [name for name in archive.namelist() if name.startswith("pip/")])


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
