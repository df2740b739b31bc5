"""npm packages of agents: checked, unpacked once, shared by runs, and seen read-only in a sandbox."""

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.records import report_of
from support.sandboxes import require

from mlebench.agents import install_fault, load_agent, npm, npm_dir
from mlebench.core import paths
from mlebench.core.errors import ConfigError, PrerequisiteError
from mlebench.records.run_groups import Group

START = """
test -x "$NPM_DIR/@acme/tool/bin/tool" && ! touch "$NPM_DIR/new" 2>/dev/null || exit 7
"$NPM_DIR/@acme/tool/bin/tool" > "$LOGS_DIR/said"
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
"""


def pack(folder: Path, name: str, version: str, files: dict[str, str]) -> str:
    """Write a package as `npm pack` names it; returns its hash as npm writes it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text), 0o700 if path.endswith("tool") else 0o600
            tar.addfile(member, io.BytesIO(text.encode()))
    folder.mkdir(exist_ok=True)
    (folder / f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz").write_bytes(content.getvalue())
    return f"sha512-{base64.b64encode(hashlib.sha512(content.getvalue()).digest()).decode()}"


TOOL = {"package/bin/tool": "#!/bin/sh\necho version 1\n", "package/package.json": "{}"}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    pack(tmp_path / "packed", "@acme/tool", f"1.0-{npm.this_platform()}", TOOL)
    pack(
        tmp_path / "packed",
        "@acme/tool",
        f"2.0-{npm.this_platform()}",
        {"package/bin/tool": "#!/bin/sh\necho version 2\n"},
    )
    return tmp_path / "packed"


@pytest.fixture
def folder(tmp_path: Path, packed: Path) -> Path:
    """An agent with a program of its own from npm, and a package for another platform."""
    archive = packed / f"acme-tool-1.0-{npm.this_platform()}.tgz"
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()}"
    platforms = {npm.this_platform(): f"{{version}}-{{platform}} {integrity}", "plan9-vax": f"{{version}} {integrity}"}
    return write_agent(tmp_path / "needy", {"version": "1.0", "packages": {"@acme/tool": platforms}})


def write_agent(folder: Path, npm_key: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "start.sh").write_text(START)
    entry = {
        "start": "needy/start.sh",
        "npm": npm_key,
        "scaffold": "Acme",
        "kwargs_type": "argparse",
        "options": ["version"],
    }
    (folder / "config.yaml").write_text(json.dumps({"needy": entry}))
    return folder


def mlebench(*arguments: object, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "mlebench", "agents", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env})


def test_packages_are_installed_once_from_a_folder(folder: Path, packed: Path) -> None:
    agent = load_agent(str(folder))
    assert install_fault(agent) == f"not installed: run `mlebench agents install {folder}`"
    assert "not installed" in mlebench("show", folder).stdout
    done = mlebench("install", folder, "--from", packed)
    assert done.returncode == 0, done.stderr
    programs = npm_dir(agent)
    assert programs is not None
    assert done.stdout == f"{programs}\n"
    assert install_fault(agent) is None
    assert {path.stat().st_mode & 0o777 for path in programs.rglob("*") if path.is_dir()} == {0o755}
    assert (programs / "@acme/tool/bin/tool").stat().st_mode & 0o777 == 0o755
    assert (programs / "@acme/tool/package.json").stat().st_mode & 0o777 == 0o644
    assert [*npm.installed()] == [programs]
    assert agent.scaffold == "Acme 1.0"
    assert agent.facts().npm == [f"@acme/tool@1.0-{npm.this_platform()}", "@acme/tool@1.0"]

    before = paths.venv_record(programs).stat().st_mtime_ns
    done = mlebench("install", folder)  # without a folder and without npm
    assert (done.returncode, done.stderr) == (0, "already installed\n")
    assert paths.venv_record(programs).stat().st_mtime_ns == before


def test_another_version_has_a_folder_of_its_own(folder: Path, packed: Path) -> None:
    done = mlebench("install", folder, "--version", "2.0", "--from", packed)
    assert done.returncode == 0, done.stderr
    other = load_agent(str(folder), options={"version": "2.0"})
    programs = npm_dir(other)
    assert programs is not None
    assert "version 2" in (programs / "@acme/tool/bin/tool").read_text()
    assert other.scaffold == "Acme 2.0"
    assert install_fault(load_agent(str(folder))), "the locked one is not installed by that"
    third = load_agent(str(folder), options={"version": "3.0"})
    assert str(install_fault(third)).endswith("--version 3.0`")


def test_a_package_with_other_bytes_is_refused(folder: Path, packed: Path) -> None:
    pack(packed, "@acme/tool", f"1.0-{npm.this_platform()}", {**TOOL, "package/more": "x"})
    done = mlebench("install", folder, "--from", packed)
    assert "is not the @acme/tool@1.0" in done.stderr
    assert [path.name for path in paths.npm_dir().iterdir() if path.is_dir() and not path.name.endswith(".lock")] == []
    assert install_fault(load_agent(str(folder)))


def test_a_package_cannot_write_elsewhere(folder: Path, packed: Path) -> None:
    pack(packed, "@acme/tool", f"9-{npm.this_platform()}", {"package/../../../../../evil": "x"})
    done = mlebench("install", folder, "--version", "9", "--from", packed)
    assert done.returncode != 0
    assert "cannot be unpacked" in done.stderr
    assert not list(paths.npm_dir().rglob("evil"))


def test_a_package_that_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = mlebench("install", folder, "--from", tmp_path / "empty")
    assert f"acme-tool-1.0-{npm.this_platform()}.tgz" in done.stderr
    assert "npm pack" in done.stderr


def test_npm_downloads_what_is_not_in_a_folder(folder: Path, packed: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/npm"
    program.write_text(f'#!/bin/sh\n[ "$1" = pack ] && cp {packed}/*.tgz "$5" && echo "$2" > {tmp_path}/asked\n')
    program.chmod(0o755)
    done = mlebench("install", folder, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text() == f"@acme/tool@1.0-{npm.this_platform()}\n"
    program.write_text("#!/bin/sh\necho 'npm error 404 Not Found' >&2; exit 1\n")
    done = mlebench("install", folder, "--version", "7", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert "cannot download @acme/tool@7" in done.stderr
    assert "404 Not Found" in done.stderr
    done = mlebench("install", folder, "--version", "7", PATH="/nowhere")
    assert "there is no npm" in done.stderr


def test_options_are_refused_for_agents_without_npm_packages() -> None:
    assert "--version and --from are for npm packages" in mlebench("install", "mlab", "--version", "1").stderr


@pytest.mark.parametrize(
    "key",
    [
        {"version": 1.0, "packages": {}},
        {"version": "1.0"},
        {"version": "1.0", "packages": {"Bad Name": {"any": "1.0 sha512-x"}}},
        {"version": "1.0", "packages": {"tool": "1.0"}},
        {"version": "1.0", "packages": {"tool": {"any": "1.0"}}},
        {"version": "1.0", "packages": {"tool": {"any": "1.0 sha512-short"}}},
    ],
)
def test_a_wrong_list_is_refused(key: object, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="npm"):
        load_agent(str(write_agent(tmp_path / "needy", key)))


def test_there_is_nothing_for_another_platform(folder: Path, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "this_platform", lambda: "linux-riscv64")
    with pytest.raises(PrerequisiteError, match="no program for linux-riscv64"):
        npm.install(load_agent(str(folder)), packed)


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
def test_runs_find_the_programs(folder: Path, packed: Path, run: Callable[..., Group], sandbox: str) -> None:
    require(sandbox)
    assert mlebench("install", folder, "--from", packed).returncode == 0
    if sandbox == "process":  # nothing is read-only there
        (folder / "start.sh").write_text(START.replace('! touch "$NPM_DIR/new" 2>/dev/null', "true"))
    group = run("", "--agent", str(folder), sandbox=sandbox)
    (made,) = group.runs()
    assert report_of(made).status == "graded", made.paths.log.read_text()
    assert (made.paths.logs / "said").read_text() == "version 1\n"
