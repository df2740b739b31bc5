"""Large programs of an agent's folder: shared by runs, read-only, and safe from the agents that use them."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from support.run_fixtures import Mlebench
from support.sandboxes import ISOLATING, require, sandbox_params
from support.traps import AGENT, run_as

from mlebench.agents import load_agent
from mlebench.agents.folders import LARGEST_COPY
from mlebench.records.run_groups import Group
from mlebench.registry import Competition

START = """
cd "$AGENT_DIR"
bin/tool
echo more >> notes.db && tail -n 1 notes.db
echo state > state.txt && cat state.txt
[ "$(cat frozen.bin | wc -c)" -gt 1000000 ] && echo frozen
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv"
python3 change_file.py "$AGENT_DIR/bin/tool" > "$LOGS_DIR/done.json"
mv bin elsewhere 2>/dev/null; elsewhere/tool
true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "heavy"
    (folder / "bin").mkdir(parents=True)
    padding = "#" * LARGEST_COPY
    files = {"bin/tool": f"#!/bin/sh\necho tool\nexit\n{padding}", "notes.db": f"{padding}\n", "frozen.bin": padding}
    files |= {"start.sh": START, "config.yaml": "heavy: {start: heavy/start.sh}\n"}
    for name, text in files.items():
        (folder / name).write_text(text + "\n")
    shutil.copy(AGENT / "change_file.py", folder)
    (folder / "bin" / "tool").chmod(0o755)
    (folder / "frozen.bin").chmod(0o444)
    return folder


def _state(folder: Path) -> dict[str, tuple[object, ...]]:
    seen = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {
        str(path): (status.st_mode, status.st_uid, status.st_nlink, status.st_ino, path.read_bytes())
        for path, status in seen.items()
    }


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_an_agent_cannot_change_its_programs_for_the_next_run(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, folder: Path, sandbox: str
) -> None:
    require(sandbox)
    before = _state(folder)
    runs = tmp_path / "runs"
    options = ["--sandbox", sandbox, "--runs-dir", str(runs), "--time-limit", "120", "--seeds", "2", "--retain"]
    mlebench("run", "--agent", str(folder), "-c", titanic.id, *options)
    assert _state(folder) == before
    (root,) = runs.iterdir()
    for ended in Group.read(root).runs():
        # The large program and the large file that nobody may write are there; the rest may be written.
        assert ended.paths.log.read_text().splitlines() == ["tool", "more", "state", "frozen", "tool"]
        assert json.loads((ended.paths.logs / "done.json").read_text()) == []
        assert ended.record.report is not None
        assert ended.record.report.status == "graded"


@pytest.mark.parametrize("user", [None, 65534] if os.geteuid() == 0 else [None])
def test_not_even_the_owner_of_a_program_can_change_it_in_a_run(tmp_path: Path, user: int | None) -> None:
    """Root's sandboxes belong to nobody else; an ordinary user's belong to the user who owns the agent's folder."""
    require("bubblewrap")
    with tempfile.TemporaryDirectory(prefix="programs-") as name:
        tool, attack = Path(name, "tool"), Path(name, "change_file.py")
        tool.write_text("#!/bin/sh\necho tool\n")
        tool.chmod(0o755)
        shutil.copyfile(AGENT / attack.name, attack)
        for path in (Path(name), tool, attack):
            os.chown(path, os.geteuid() if user is None else user, -1)
        shown = {tool: "/home/agent/bin/tool", attack: "/home/attack.py"}
        program = "/home/agent/bin/tool; python3 /home/attack.py /home/agent/bin/tool"
        before = _state(Path(name))
        assert run_as(user, tmp_path, program, shown=shown) == ("finished", "tool\n[]\n")
        assert _state(Path(name)) == before


def test_only_large_files_that_no_agent_is_meant_to_change_are_shared(tmp_path: Path, folder: Path) -> None:
    agent = load_agent(str(folder))
    (tmp_path / "copy").mkdir()
    assert agent.copy_to(tmp_path / "copy", without_programs=True) == ("bin/tool", "frozen.bin")
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert sizes["tool"] == sizes["frozen.bin"] == 0
    assert sizes["notes.db"] == (folder / "notes.db").stat().st_size
    for name, mode in {"bin/tool": 0o700, "frozen.bin": 0o400}.items():  # closed to the user that runs belong to
        (folder / name).chmod(mode)
    (tmp_path / "again").mkdir()
    assert load_agent(str(folder)).copy_to(tmp_path / "again", without_programs=True) == ()


def test_a_plain_process_gets_copies(mlebench: Mlebench, titanic: Competition, tmp_path: Path, folder: Path) -> None:
    """It could write to the folder of the agent through a link, by mistake."""
    before = _state(folder)
    (folder / "change_file.py").write_text('open("bin/tool", "a").write("# changed")')
    before |= {str(folder / "change_file.py"): _state(folder)[str(folder / "change_file.py")]}
    runs = tmp_path / "runs"
    mlebench("run", "--agent", str(folder), "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(runs))
    assert _state(folder) == before
    (root,) = runs.iterdir()
    (ended,) = Group.read(root).runs()
    assert ended.paths.log.read_text().splitlines()[0] == "tool"


def test_a_program_that_changed_is_refused(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, folder: Path
) -> None:
    (folder / "start.sh").write_text("exit 1\n")
    options = ["--sandbox", "bubblewrap", "--runs-dir", str(tmp_path / "runs")]
    require("bubblewrap")
    mlebench("run", "--agent", str(folder), "-c", titanic.id, *options)
    (root,) = (tmp_path / "runs").iterdir()
    with (folder / "bin" / "tool").open("a") as tool:
        tool.write("# other")
    os.utime(folder / "bin" / "tool", (0, 0))
    said = mlebench("run", "--resume", str(root), "--retry", "failed", code=1).stderr
    assert "has changed since these runs were planned" in said
