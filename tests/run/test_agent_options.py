"""`--agent-option`: agents get it, records and standings state it."""

from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Mlebench

from mlebench.bundles.make import make_bundle
from mlebench.bundles.reader import read_bundle
from mlebench.bundles.repeat import differences, repeatable_record
from mlebench.records.run_groups import Group
from mlebench.registry import Competition, Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.inputs import Inputs


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent that prints its arguments."""
    folder = tmp_path / "talker"
    folder.mkdir()
    (folder / "start.sh").write_text(f'{SUBMIT}; echo "arguments: $*"\n')
    config = "talker: {start: talker/start.sh, kwargs_type: argparse, kwargs: {steps: 5, depth: 1}, options: [model]}"
    (folder / "config.yaml").write_text(config)
    return folder


def run(mlebench: Mlebench, tmp_path: Path, *options: str) -> Group:
    runs = tmp_path / "runs"
    before = {*runs.iterdir()} if runs.exists() else set()
    mlebench("run", "--runs-dir", str(runs), *options)
    (folder,) = {*runs.iterdir()} - before
    return Group.read(folder)


def said(group: Group) -> list[str]:
    return [run.paths.log.read_text().strip() for run in group.runs()]


def test_an_option_is_passed_recorded_and_kept(
    mlebench: Mlebench, titanic: Competition, agent: Path, tmp_path: Path
) -> None:
    named = ["--agent", str(agent), "-c", titanic.id, "--sandbox", "process"]
    plain = run(mlebench, tmp_path, *named)
    assert plain.record.agent_options == {}
    tuned = run(mlebench, tmp_path, *named, "--agent-option", "steps=9", "--agent-option", "model=x=y")
    assert tuned.record.agent_options == {"steps": "9", "model": "x=y"}
    assert said(plain) == ["arguments: --steps 5 --depth 1"]
    assert said(tuned) == ["arguments: --steps 9 --depth 1 --model x=y"]
    again = run(mlebench, tmp_path, "--like", str(tuned.paths.root))
    assert (again.record.agent_options, said(again)) == (tuned.record.agent_options, said(tuned))
    other = run(mlebench, tmp_path, "--like", str(tuned.paths.root), "--agent", str(agent), "--agent-option", "depth=2")
    assert said(other) == ["arguments: --steps 5 --depth 2"]
    (one,) = tuned.runs()
    assert "options       steps=9, model=x=y" in mlebench("runs", "show", str(one.paths.root)).stdout

    inputs = Inputs(tmp_path / "runs")
    for group in (plain, tuned, again, other):
        inputs.add_group(Group.read(group.paths.root))
    assert [len(entry.outcomes) for entry in inputs.entries(CompetitionLookup(Registry(titanic.paths.data_dir)))] == [
        1,
        2,
        1,
    ], "equal options are pooled"

    make_bundle(tuned, tmp_path / "b.tar.gz")
    bundle = read_bundle(tmp_path / "b.tar.gz")
    repeated = repeatable_record(bundle, has_agent=False, folders=())
    assert repeated.agent_options == tuned.record.agent_options
    assert "default options, not model=x=y, steps=9" in differences(bundle, plain.record)


def test_a_resumed_group_keeps_its_options(
    mlebench: Mlebench, titanic: Competition, agent: Path, tmp_path: Path
) -> None:
    (agent / "start.sh").write_text(f'{SUBMIT}; echo "arguments: $*"; exit 1\n')
    options = ["--sandbox", "process", "--agent-option", "steps=9"]
    group = run(mlebench, tmp_path, "--agent", str(agent), "-c", titanic.id, *options)
    mlebench("run", "--resume", str(group.paths.root), "--retry", "failed")
    (one,) = Group.read(group.paths.root).runs()
    assert one.record.rerolls == 1
    assert said(group) == ["arguments: --steps 9 --depth 1"]
    changed = ["--agent-option", "steps=1", "--time-limit", "1h", "--workers", "2"]
    done = mlebench("run", "--resume", str(group.paths.root), "--retry", "failed", *changed, code=2)
    assert "leave out --agent-option, --time-limit with --resume" in done.stderr
    assert next(Group.read(group.paths.root).runs()).record.rerolls == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["steps"], "'steps' is not KEY=VALUE"),
        (["steps=1", "steps=2"], "steps is given twice"),
        (["speed=1"], "the agent talker has no option 'speed'; it has steps, depth, model"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_planned(
    mlebench: Mlebench, titanic: Competition, agent: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    given = [word for option in options for word in ("--agent-option", option)]
    runs = ["--runs-dir", str(tmp_path / "runs")]
    done = mlebench("run", "--agent", str(agent), "-c", titanic.id, "--sandbox", "process", *runs, *given, code=None)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert not (tmp_path / "runs").exists()
