"""Claims are checked: submissions are graded again with data of the same identity, and reports say which were."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.forged_bundles import repack, unpack, write_group
from support.records import model_of, report_of
from support.run_fixtures import Mlebench

from mlebench.agents import load_agent
from mlebench.bundles.make import make_bundle
from mlebench.core.errors import PrerequisiteError
from mlebench.data.open_runs import mark_open, unmark_open
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import TwinSource
from mlebench.data.verification import verify
from mlebench.records.findings import Findings
from mlebench.records.run_groups import Group, limits_of
from mlebench.registry import Competition, Registry
from mlebench.run.group_operations import finish

Rows = list[dict[str, Any]]


@pytest.fixture
def verified(mlebench: Mlebench, tmp_path: Path) -> Callable[..., Rows]:
    """The verdicts on the runs of a bundle."""

    def call(bundle: Path, *options: str, code: int = 0) -> Rows:
        verify = ["bundle", "verify", str(bundle), "--json", "--runs-dir", str(tmp_path / "kept")]
        done = mlebench(*verify, *options, code=code)
        return json.loads(done.stdout)["runs"]

    return call


def verdicts(rows: Rows) -> list[str]:
    return [row["verdict"] for row in rows]


def test_true_claims_agree(bundle: Path, group: Group, verified: Callable[..., Rows]) -> None:
    rows = verified(bundle)
    assert verdicts(rows) == ["agrees", "agrees", "agrees"]
    scores = [report_of(run).score for run in group.runs()]
    assert [row["claimed"] for row in rows] == scores
    assert [row["regraded"] for row in rows] == scores
    assert scores[0] is not None


def test_the_table_says_so_too(bundle: Path, mlebench: Mlebench, tmp_path: Path) -> None:
    done = mlebench("bundle", "verify", str(bundle), "--runs-dir", str(tmp_path / "kept"))
    header, first, second, _ = done.stdout.splitlines()
    assert header.split() == ["competition", "seed", "claimed", "regraded", "verdict"]
    assert first.split()[-1] == "agrees"
    assert second.endswith("agrees: no score is claimed")
    assert "signature: none" in done.stderr
    assert "The scores of mine are regraded." in done.stderr


LIES: list[tuple[dict[str, Any], str]] = [
    ({"score": 0.99}, "the score differs"),
    ({"score": None}, "the score differs"),
    ({"status": "invalid"}, "it is graded, not invalid"),
    ({"gold_medal": True, "any_medal": True}, "the medal differs"),
    ({"above_median": True}, "the medal differs"),
    ({"gold_threshold": 0.1}, "the thresholds differ"),
    ({"percentile": 1.0}, "the percentile or the normalised score differs"),
    ({"normalised_score": 2.0}, "the percentile or the normalised score differs"),
    ({"source": "kaggle"}, "the data is twin, not kaggle"),
    ({"submission_sha256": "0" * 64}, "the report is for another submission"),
    ({"score": 0.99, "mlebench": "1.0"}, "graded by mlebench 1.0"),
]


def test_false_claims_differ(titanic: Competition, tmp_path: Path, verified: Callable[..., Rows]) -> None:
    """A run for each lie; then one with a better submission, one with none, and one that tells the truth."""
    sample = titanic.sample_submission.read_bytes()
    group = write_group(tmp_path / "runs", titanic, [sample] * (len(LIES) + 3))
    runs = list(group.runs())
    for run, (lie, _) in zip(runs, LIES, strict=False):
        run.write(report=msgspec.structs.replace(report_of(run), **lie))
    better, without, honest = (run.paths.submission for run in runs[len(LIES) :])
    better.write_bytes(titanic.gold_submission.read_bytes())
    without.unlink()
    assert honest.exists()
    finish(group)
    make_bundle(Group.read(group.paths.root), tmp_path / "forged.tar.gz")
    contents = unpack(tmp_path / "forged.tar.gz")
    rows = verified(repack(tmp_path / "forged.tar.gz", contents, left_out=[]), code=1)
    assert verdicts(rows) == ["differs"] * (len(LIES) + 2) + ["agrees"]
    for row, (_, why) in zip(rows, LIES, strict=False):
        assert why in row["why"]
    assert [row["why"] for row in rows[len(LIES) :]] == [
        "the report is for another submission",
        "a score is claimed without a submission",
        None,
    ]


def test_a_run_without_a_model_claims_nothing_though_it_has_a_submission(
    titanic: Competition, tmp_path: Path, verified: Callable[..., Rows]
) -> None:
    group = write_group(tmp_path / "runs", titanic, [titanic.sample_submission.read_bytes()])
    (run,) = group.runs()
    run.write(ended="model_unavailable", report=None, detail="no call to the model succeeded (401): no; check the key")
    finish(group)
    make_bundle(Group.read(group.paths.root), tmp_path / "bundle.tar.gz")
    assert verdicts(verified(tmp_path / "bundle.tar.gz")) == ["agrees"]


def test_a_submission_that_was_left_out_is_still_a_claim(
    group: Group, tmp_path: Path, verified: Callable[..., Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "PassengerId")
    make_bundle(group, tmp_path / "bundle.tar.gz", redact=True)
    rows = verified(tmp_path / "bundle.tar.gz")
    assert (rows[0]["verdict"], rows[0]["why"]) == ("not regraded", "the submission is not in the bundle")


def test_without_the_same_data_nothing_is_regraded(
    bundle: Path, titanic: Competition, tmp_path: Path, verified: Callable[..., Rows]
) -> None:
    rows = verified(bundle, "--data-dir", str(tmp_path / "empty"))
    assert verdicts(rows) == ["not regraded", "agrees", "not regraded"]
    assert "not prepared" in rows[0]["why"]
    other = Registry(tmp_path / "other").get_competition(titanic.id)
    prepare(other, TwinSource(seed=5))
    rows = verified(bundle, "--data-dir", str(other.paths.data_dir))
    assert (rows[0]["verdict"], rows[0]["why"]) == ("not regraded", "the data here is not the same")
    other.paths.manifest.unlink()
    assert "--adopt" in verified(bundle, "--data-dir", str(other.paths.data_dir))[0]["why"]


def test_a_competition_that_is_not_here(titanic: Competition, tmp_path: Path, verified: Callable[..., Rows]) -> None:
    group = write_group(tmp_path / "runs", titanic, [titanic.sample_submission.read_bytes()])
    make_bundle(group, tmp_path / "bundle.tar.gz")
    contents = {name.replace(titanic.id, "x"): data for name, data in unpack(tmp_path / "bundle.tar.gz").items()}
    contents = {name: data.replace(titanic.id.encode(), b"x") for name, data in contents.items()}
    rows = verified(repack(tmp_path / "forged.tar.gz", contents))
    assert (rows[0]["verdict"], rows[0]["why"]) == ("not regraded", "there is no competition x here")


def entries(mlebench: Mlebench, *inputs: object, runs_dir: Path) -> dict[str, int]:
    """Agents of the standings, and how many runs each has."""
    done = mlebench("report", *map(str, inputs), "--runs-dir", str(runs_dir), "--format", "json")
    return {entry["agent"]: len(entry["runs"]) for entry in json.loads(done.stdout)["entries"]}


def test_reports_separate_own_claimed_and_regraded_runs(
    bundle: Path, titanic: Competition, mlebench: Mlebench, tmp_path: Path, verified: Callable[..., Rows]
) -> None:
    own = write_group(tmp_path / "kept", titanic, [titanic.sample_submission.read_bytes()], id="own_run-group_mine")
    (run,) = own.runs()
    moved = own.paths.run(titanic.id, "own0")
    run.write(run_id="own0", report=msgspec.structs.replace(report_of(run), run_id="own0"))
    run.paths.root.rename(moved.root)
    kept = tmp_path / "kept"
    assert entries(mlebench, own.paths.root, bundle, runs_dir=kept) == {"mine": 1, "mine [claimed]": 3}
    verified(bundle)
    assert entries(mlebench, own.paths.root, bundle, runs_dir=kept) == {"mine": 1, "mine [regraded]": 3}
    assert "given twice" in mlebench("report", str(bundle), str(bundle), "--runs-dir", str(kept), code=1).stderr


def test_findings_in_a_bundle_are_claims_even_where_scores_were_regraded(
    group: Group, mlebench: Mlebench, tmp_path: Path, verified: Callable[..., Rows]
) -> None:
    first, second, _ = group.runs()
    Findings.of("failures", [], category="crashed").write_for(first.paths)
    second.paths.findings.mkdir()
    (second.paths.findings / "failures.json").write_text('{"tool": "failures", "facts": []}')
    make_bundle(group, tmp_path / "bundle.tar.gz")
    verified(tmp_path / "bundle.tar.gz")
    done = mlebench("report", str(tmp_path / "bundle.tar.gz"), "--runs-dir", str(tmp_path / "kept"), "--format", "json")
    (entry,) = json.loads(done.stdout)["entries"]
    assert entry["agent"] == "mine [regraded]"
    (row,) = entry["findings"]
    assert (row["finding"], row["trust"]) == ("crashed", "claimed")
    assert (row["runs"], row["of"], row["not_inspected"]) == (1, 1, 2)


def test_a_verdict_that_came_with_the_bundle_counts_for_nothing(
    bundle: Path, mlebench: Mlebench, tmp_path: Path, verified: Callable[..., Rows]
) -> None:
    verified(bundle)
    (verdict,) = (tmp_path / "kept" / "verified-bundles").iterdir()
    sent = tmp_path / "sent"
    sent.mkdir()
    copy = sent / "bundle.tar.gz"
    copy.write_bytes(bundle.read_bytes())
    (sent / "verified-bundles").mkdir()
    (sent / "verified-bundles" / verdict.name).write_bytes(verdict.read_bytes())
    assert entries(mlebench, copy, runs_dir=tmp_path / "own") == {"mine [claimed]": 3}


def test_a_bundle_that_lies_is_not_reported(
    bundle: Path, record: str, mlebench: Mlebench, tmp_path: Path, verified: Callable[..., Rows]
) -> None:
    contents = {name: data for name, data in unpack(bundle).items() if not name.endswith("_grading_report.json")}
    run = json.loads(contents[record])
    run["report"]["score"] = 0.99
    forged = repack(tmp_path / "forged.tar.gz", contents | {record: json.dumps(run).encode()})
    kept = tmp_path / "kept"
    assert entries(mlebench, forged, runs_dir=kept) == {"mine [claimed]": 3}
    verified(forged, code=1)
    assert "makes false claims" in mlebench("report", str(forged), "--runs-dir", str(kept), code=1).stderr


@pytest.fixture
def dummies(titanic: Competition, tmp_path: Path) -> Callable[..., Path]:
    """A bundle of the built-in agent `dummy`, with whatever else its group says."""

    def call(**values: Any) -> Path:
        agent = load_agent("dummy")
        facts = {"name": agent.name, "identity": agent.identity, "model": None}
        sample = titanic.sample_submission.read_bytes()
        asked = {"agent": facts, "agent_source": agent.spec, "sandbox": "process", "image": "theirs"}
        group = write_group(tmp_path / "runs", titanic, [sample, sample], **(asked | values))
        make_bundle(group, tmp_path / "bundle.tar.gz")
        return tmp_path / "bundle.tar.gz"

    return call


def like(mlebench: Mlebench, bundle: Path, *options: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    runs = str(bundle.parent / "again")
    return mlebench("run", "--like", str(bundle), "--runs-dir", runs, "--sandbox", "process", *options, code=code)


def test_runs_like_those_of_a_bundle(
    dummies: Callable[..., Path], mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    bundle = dummies()
    like(mlebench, bundle, "--cpus", "0.5")
    (folder,) = (tmp_path / "again").iterdir()
    record = Group.read(folder).record
    assert (record.agent.name, record.competitions, record.seeds) == ("dummy", [titanic.id], 2)
    limits = limits_of(Group.read(folder))
    assert (limits.seconds, limits.memory, limits.cpus) == (60, 1 << 30, 0.5)
    assert (record.image, record.data_dir) == (None, str(titanic.paths.data_dir))
    assert record.like is not None
    assert "2026-01-02T03-04-05-GMT_run-group_mine (bundle " in record.like
    assert [run.record.ended for run in Group.read(folder).runs()] == ["finished", "finished"]


def test_model_and_budget_are_the_bundle_s_unless_others_are_given(
    dummies: Callable[..., Path], mlebench: Mlebench, tmp_path: Path
) -> None:
    theirs = {"models": ["small-1"], "budget": "7000tokens", "endpoint": "http://evil.example/v1", "key_env": "HOME"}
    bundle = dummies(network="model", model=theirs | {"tools": ["web_search"], "provider": "anthropic", "prices": {}})
    ours = ("--endpoint", "http://127.0.0.1:9/v1", "--provider", "openai", "--seeds", "1")
    said = like(mlebench, bundle, *ours).stderr
    other = like(mlebench, bundle, *ours, "--budget", "5tokens", "--model", "large-2").stderr
    first, second = (model_of(Group.read(folder)) for folder in sorted((tmp_path / "again").iterdir()))
    assert (first.models, first.budget, first.tools) == (["small-1"], "7000tokens", [])
    assert (first.endpoint, first.key_env) == ("http://127.0.0.1:9/v1", None)
    assert (second.models, second.budget) == (["large-2"], "5tokens")
    assert "Model: small-1 at http://127.0.0.1:9/v1, budget of a run: 7000tokens" in said
    assert "Differs from the bundle: endpoint http://127.0.0.1:9/v1, not http://evil.example/v1" in said
    assert "Differs from the bundle: no tools, not tools web_search" in said
    assert "Differs from the bundle: seeds 1, not 2" in said
    assert "bundle: budget" not in said
    assert "Differs from the bundle: budget 5tokens, not budget 7000tokens" in other


MODEL = {"provider": "openai", "endpoint": "http://x/v1", "models": ["a"]}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"network": "model", "model": MODEL | {"models": ["a\x1b[2J"]}}, "names that no model has"),
        ({"network": "model", "model": MODEL | {"budget": "much"}}, "is not a budget"),
        ({"agent": {"name": "dummy", "identity": "other", "model": None}}, "has different files from the one in"),
        ({"agent_source": "/nowhere/agent#x"}, "is not here: name one with --agent"),
        ({"agent_source": "command#command", "agent_command": "touch /tmp/x"}, "give --agent-command yourself"),
        ({"knowledge": "/etc"}, "name yours with --knowledge"),
        ({"environment": "/usr"}, "name yours with --environment"),
        ({"network": "unknown"}, "make no sense"),
        ({"limits": {"seconds": 0}}, "make no sense"),
    ],
)
def test_a_strangers_requests_are_not_followed_blindly(
    dummies: Callable[..., Path], mlebench: Mlebench, tmp_path: Path, values: dict[str, Any], why: str
) -> None:
    assert why in like(mlebench, dummies(**values), code=1).stderr
    assert not (tmp_path / "again").exists()


def test_another_agent_may_be_named(dummies: Callable[..., Path], mlebench: Mlebench, tmp_path: Path) -> None:
    bundle = dummies(agent={"name": "dummy", "identity": "other", "model": None})
    like(mlebench, bundle, "--agent", "dummy", "--seeds", "1")
    (folder,) = (tmp_path / "again").iterdir()
    assert Group.read(folder).record.seeds == 1


def test_data_that_a_run_uses_is_neither_replaced_nor_adopted(titanic: Competition, tmp_path: Path) -> None:
    competition = Registry(tmp_path / "data").get_competition(titanic.id)
    prepare(competition, TwinSource())
    before = competition.paths.manifest.read_bytes()
    mark_open(competition, tmp_path, "token")
    competition.answers.rename(tmp_path / "answers")  # so that it has to be prepared again
    with pytest.raises(PrerequisiteError, match="a run uses this data, so preparing it again has to wait"):
        prepare(competition, TwinSource(), Options())
    (tmp_path / "answers").rename(competition.answers)
    with pytest.raises(PrerequisiteError, match="a run uses this data, so --adopt has to wait"):
        verify(competition, adopt=True)
    assert verify(competition) == []
    assert competition.paths.manifest.read_bytes() == before
    unmark_open(competition, "token")
    assert verify(competition, adopt=True) == []
