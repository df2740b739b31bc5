"""bubblewrap where the system does not have it: from Nix, conda or a folder of one's own."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import make_task, require, run_task

from mlebench.sandbox import bubblewrap, sandbox_named


@pytest.fixture
def own_bwrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of bwrap, the only program on the PATH."""
    require("bubblewrap")
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    try:
        folder.chmod(0o755)  # as root, sandboxes are started by another user
        (folder / "bin").mkdir()
        monkeypatch.setenv("PATH", str(folder / "bin"))
        shutil.copy("/usr/bin/bwrap", folder / "bin")
        bubblewrap._machine_fault.cache_clear()
        yield folder / "bin" / "bwrap"
    finally:
        bubblewrap._machine_fault.cache_clear()
        shutil.rmtree(folder)


@pytest.mark.skipif(not Path("/usr/bin/bwrap").is_file(), reason="copies the system's bwrap")
def test_a_bwrap_that_only_the_users_path_has_runs_agents(own_bwrap: Path, tmp_path: Path) -> None:
    real, own_bwrap = own_bwrap, own_bwrap.with_name("bwrap.real")
    real.rename(own_bwrap)
    started = own_bwrap.parent.parent / "started"
    started.touch()
    started.chmod(0o666)
    # Proof that it is this one that starts the sandbox, from wherever root has made it reachable.
    real.write_text('#!/bin/sh\nhere=${0%/*}\necho "$*" >> "$here/../started"\nexec "$here/bwrap.real" "$@"\n')
    real.chmod(0o755)
    assert sandbox_named("bubblewrap").fault() is None
    started.write_text("")
    outcome, log = run_task("bubblewrap", make_task(tmp_path, "echo hello"))
    assert (outcome.ended, log) == ("finished", "hello\n")
    assert "--args" in started.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts sandboxes as another user")
def test_a_bwrap_that_is_closed_to_others_is_refused_before_a_run(own_bwrap: Path) -> None:
    own_bwrap.parent.parent.chmod(0o700)
    fault = sandbox_named("bubblewrap").fault()
    assert (
        fault
        == f"{own_bwrap} is closed to other users, but root starts it as another: install your system's bubblewrap"
    )
