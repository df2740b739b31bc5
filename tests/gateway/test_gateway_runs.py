"""Runs with a model, from planning to record: in real sandboxes, against an endpoint on loopback."""

import contextlib
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.endpoints import KEY, USAGE, Call, Endpoint, access_to, say_hello
from support.groups import plan_group
from support.records import model_of, report_of, usage_of
from support.run_fixtures import Mlebench, Start, reports_of
from support.sandboxes import ALL, ISOLATING, processes, require, sandbox_params, wait_until_gone
from support.waiting import wait_until

from mlebench.cli.live import print_runs
from mlebench.integrity.failures.categories import classify
from mlebench.integrity.subjects import of_run
from mlebench.records.run_groups import Group, Run
from mlebench.records.timeline import read_timeline
from mlebench.registry import Competition, Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.inputs import Inputs
from mlebench.report.standings import make_standings
from mlebench.run.execute import execute
from mlebench.run.regrade import grade_group
from mlebench.run.retry_rules import FINAL
from mlebench.sandbox import sandbox_named
from mlebench.web.history import KeptSubmission, timeline

CALL = """
import json, os, sys, urllib.error, urllib.request

def call(**body):
    body = {"model": os.environ["MLEBENCH_MODEL"], "messages": [{"role": "user", "content": "hi"}], **body}
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        return urllib.request.urlopen(request, timeout=200).read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
"""
SUBMIT = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"
TWO_CALLS = f"""env; cat > $LOGS_DIR/model-calls.jsonl <<< forged; {SUBMIT}
python3 - <<'END'
{CALL}
print(call(), call(stream=True), call(model="another"))
END
"""
KEEP_CALLING = f"python3 - <<'END'\n{CALL}\nfor _ in range(50): print(call(max_tokens=1000))\nEND\n"
ONE_CALL = f"{SUBMIT}; python3 - <<'END'\n{CALL}\nprint(call())\nEND\n"

Runner = Callable[..., Group]


@pytest.fixture
def go(mlebench: Mlebench, titanic: Competition, tmp_path: Path, server: Endpoint) -> Runner:
    """Run a program with a model; returns the group."""

    def call(
        program: str | Path, *options: str, sandbox: str = "process", code: int = 0, env: dict[str, str] | None = None
    ) -> Group:
        runs = tmp_path / "runs"
        before = set(runs.iterdir()) if runs.exists() else set()
        agent = ["--agent", str(program)] if isinstance(program, Path) else ["--agent-command", program]
        named = [*agent, "-c", titanic.id, "--sandbox", sandbox, "--runs-dir", str(runs), "--time-limit", "60"]
        model = ["--network", "model", "--model", "gpt-4o", "--endpoint", server.url, "--key-env", "A_KEY"]
        mlebench("run", *named, *model, *options, code=code, env={"A_KEY": KEY, **(env or {})})
        (folder,) = set(runs.iterdir()) - before
        return Group.read(folder)

    return call


def only(group: Group) -> Run:
    (run,) = group.runs()
    return run


def calls_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "logs" / "model-calls.jsonl").read_text().splitlines()]


def holding(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.parametrize("sandbox", sandbox_params(*ALL))
def test_an_agent_calls_a_model_and_never_sees_the_key(
    go: Runner, mlebench: Mlebench, server: Endpoint, sandbox: str, tmp_path: Path
) -> None:
    require(sandbox)
    seen_with_key: list[Any] = []

    def behave(call: Call) -> None:
        seen_with_key.extend(processes(KEY))  # on any command line of this machine
        for pid in processes("mlebench.gateway.process"):
            seen_with_key.extend([pid] if KEY.encode() in Path(f"/proc/{pid}/environ").read_bytes() else [])
        say_hello(call)

    server.behave = behave
    group = go(TWO_CALLS, "--budget", "1usd", sandbox=sandbox)
    run = only(group)
    assert run.record.ended == "finished"
    assert len(server.seen) == 2
    assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {KEY}"}
    use = usage_of(run)
    assert (use.calls, use.refused, use.input_tokens, use.output_tokens) == (2, 1, 200, 40)
    assert use.cost == pytest.approx(2 * (60 * 2.5 + 40 * 1.25 + 20 * 10) / 1e6)
    assert [call["status"] for call in calls_of(run.paths.root)] == [200, 200, 403], "not what the agent forged"
    log = run.paths.log.read_text()
    assert "hello" in log
    assert "gpt-4o" in log, "it is told what it may use"
    assert seen_with_key == []
    assert holding(group.paths.root, KEY) == []
    token = next(line for line in log.splitlines() if line.startswith("OPENAI_API_KEY=")).partition("=")[2]
    assert holding(group.paths.root, token) == [run.paths.log], "the token is in no record"
    assert run.record.conditions.sealed == (sandbox in ISOLATING)
    story = mlebench("runs", "--runs-dir", str(tmp_path / "runs"), "show", run.record.run_id).stdout
    assert "2, 1 refused" in story
    assert "200 input, 80 cached, 40 output" in story
    assert proxies_of(run) == []


def test_an_exhausted_budget_is_recorded(go: Runner, server: Endpoint) -> None:
    run = only(go(KEEP_CALLING, "--budget", "2000tokens"))
    use = usage_of(run)
    assert use.budget is not None
    assert use.budget.exceeded
    assert use.budget.used <= 2000
    assert use.calls == len(server.seen) == use.input_tokens / USAGE["prompt_tokens"]
    assert "budget_exceeded" in run.paths.log.read_text()


# A model that never answers


def test_a_run_whose_model_never_answered_says_why_and_can_be_repeated(
    go: Runner, mlebench: Mlebench, server: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the record to standings: it counts as missing, and repeating it is not a re-roll."""
    server.behave = lambda call: call.answer({"error": {"message": f"no such key {KEY}"}}, 401)
    group = go(f"{ONE_CALL}; python3 -c 'raise ValueError(1)'", code=1)
    run = only(group)
    assert (run.record.ended, run.record.submission, run.record.report) == ("model_unavailable", "present", None)
    assert run.record.detail == ("no call to the model succeeded (401): no such key [key]; check the key in A_KEY")
    outage = usage_of(run).unavailable
    assert outage is not None
    assert outage.cause == "401"
    assert run.paths.submission.is_file(), "it is kept, but not graded"
    (report,) = reports_of(group)
    assert (report["status"], report["reason"]) == ("model_unavailable", run.record.detail)
    root = str(group.paths.root)
    assert "--retry infra" in mlebench("runs", "show", str(run.paths.root)).stdout
    print_runs([run])
    assert "model_unavailable (401)" in capsys.readouterr().out
    failure = classify(of_run(run, group))
    assert (failure.category, failure.cause) == ("model_unavailable", "401")
    for named in (root, str(group.paths.root / str(group.record.report))):
        inputs = Inputs(tmp_path)
        inputs.add(named)
        (scope,) = make_standings(inputs).entries[0].scopes[:1]
        assert (scope.missing, scope.figures["submitted"]) == (1, None), named
    assert grade_group(group)["competition_reports"][0]["status"] == "model_unavailable"
    assert only(Group.read(group.paths.root)).record.report is None, "not by grading the group either"

    refused = mlebench("run", "--resume", root, "--retry", "infra", code=1)
    assert "set the variable A_KEY" in refused.stderr
    assert only(Group.read(group.paths.root)).record.ended == "model_unavailable", "nothing was set aside"
    server.behave = say_hello
    mlebench("run", "--resume", root, "--retry", "infra", env={"A_KEY": KEY})
    run = only(Group.read(group.paths.root))
    assert (run.record.ended, run.record.rerolls, run.record.starts) == ("agent_error", 0, 2)
    assert report_of(run).status == "graded"


def test_many_runs_are_refused_at_once_if_their_model_cannot_be_called(
    mlebench: Mlebench, server: Endpoint, titanic: Competition, tmp_path: Path
) -> None:
    server.behave = lambda call: call.answer({"error": {"message": "no such model"}}, 404)
    runs = tmp_path / "runs"
    named = [
        "--agent-command",
        "true",
        "-c",
        titanic.id,
        "--seeds",
        "2",
        "--sandbox",
        "process",
        "--runs-dir",
        str(runs),
    ]
    model = ["--network", "model", "--model", "m", "--endpoint", server.url, "--budget", "99tokens"]
    done = mlebench("run", *named, *model, code=1)
    assert done.stderr.splitlines() == [
        f"Error: m at {server.url} cannot be used (404): no such model; check --model and --endpoint"
    ]
    assert not runs.exists(), "nothing is planned"
    server.behave = say_hello
    server.seen.clear()
    mlebench("run", *named, *model)
    (folder,) = runs.iterdir()
    assert len(server.seen) == 1, "one probe, not one for each run"
    assert [(run.record.ended, usage_of(run).calls) for run in Group.read(folder).runs()] == [("finished", 0)] * 2


def test_a_group_is_not_resumed_without_its_key(
    go: Runner, mlebench: Mlebench, titanic: Competition, server: Endpoint, tmp_path: Path
) -> None:
    access = replace(access_to(server, ("m",)), key_env="A_KEY")
    group = plan_group(titanic, tmp_path / "runs", agent_command="true", seeds=3, model=access)
    done = mlebench("run", "--resume", str(group.paths.root), code=1)
    assert "set the variable A_KEY" in done.stderr
    assert [(run.record.state, run.record.attempts) for run in group.runs()] == [("planned", [])] * 3


def test_submissions_and_calls_in_a_story_share_one_clock(
    titanic: Competition, server: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox may take long to start: snapshots count from the agent's start, and calls from nobody's."""
    sandbox = sandbox_named("process")
    launch = type(sandbox).launch

    def slowly(*arguments: Any) -> Any:
        time.sleep(3)
        return launch(*arguments)

    monkeypatch.setattr(type(sandbox), "launch", slowly)
    program = f"python3 - <<'END'\n{CALL}\ncall()\nEND\nsleep 0.2; {SUBMIT}"
    group = plan_group(titanic, tmp_path / "runs", agent_command=program, model=access_to(server))
    assert execute(only(group).paths.root) == FINAL
    run = only(group)
    kinds = [event.kind for event in read_timeline(run).events]
    assert kinds == ["start", "call", "submission", "end"]
    view = timeline(run, [KeptSubmission(seconds=0.0, size=None)])
    assert [event.kind for event in view.events][1:4] == ["started", "started", "kept"], "the attempt, then the agent"
    assert view.kept[0] - datetime.fromisoformat(run.record.started_at or "").timestamp() > 2


def test_allowed_tools_are_recorded(go: Runner) -> None:
    run = only(go("true", "--allow-tool", "web_search"))
    assert run.record.conditions.provider_tools == ["web_search"]
    assert run.record.conditions.unsealed_by[-1] == "the provider may use web_search"


def test_opened_and_removed_fields_are_recorded(
    go: Runner, mlebench: Mlebench, server: Endpoint, tmp_path: Path
) -> None:
    program = f"python3 - <<'END'\n{CALL}\nprint(call(invented=1, novel=2, fallbacks=[]))\nEND\n"
    group = go(program, *(f"--allow-field={name}" for name in ("novel", "fallbacks", "temperature")))
    run = only(group)
    assert {"invented", "novel"} & server.seen[0].body.keys() == {"novel"}
    opened = ["novel", "fallbacks", "temperature"]
    assert model_of(group).fields == run.record.conditions.request_fields == opened
    words = [f"requests may have the field {name}" for name in ("novel", "fallbacks")]
    assert run.record.conditions.unsealed_by[-2:] == words, "not a field that passes anyway"
    assert usage_of(run).removed_fields == {"invented": 1}
    log = run.paths.runner_log.read_text()
    assert log.count("'invented' is not known") == 1
    story = mlebench("runs", "--runs-dir", str(tmp_path / "runs"), "show", run.record.run_id).stdout
    assert "without the unknown fields invented" in story
    mlebench("run", "--like", str(group.paths.root), "--runs-dir", str(tmp_path / "more"), env={"A_KEY": KEY})
    (folder,) = (tmp_path / "more").iterdir()
    assert model_of(Group.read(folder)).fields == opened


def test_a_budget_too_small_for_a_call_is_not_called_used_up(go: Runner, mlebench: Mlebench, tmp_path: Path) -> None:
    run = only(go(ONE_CALL, "--budget", "200tokens", code=1))
    assert run.record.ended == "model_unavailable", "that is no fault of the agent"
    use = usage_of(run)
    assert use.budget is not None
    assert (use.calls, use.budget.exceeded, use.budget.not_enough) == (0, False, 1)
    story = mlebench("runs", "--runs-dir", str(tmp_path / "runs"), "show", run.record.run_id).stdout
    assert "not enough of the budget was left for 1" in story
    assert "used up" not in story


def test_a_hanging_endpoint_does_not_delay_the_end_of_a_run(go: Runner, server: Endpoint) -> None:
    hung = threading.Event()

    def hang(_: Call) -> None:
        hung.wait(200)

    server.behave = hang
    try:
        run = only(go(ONE_CALL, "--time-limit", "12"))
    finally:
        hung.set()
    assert run.record.ended == "timeout"
    assert run.record.submission == "present"
    (call,) = calls_of(run.paths.root)
    assert call["error"]


def test_a_killed_runner_leaves_no_gateway_and_its_calls_are_kept(
    mlebench: Mlebench, start: Start, server: Endpoint, titanic: Competition, tmp_path: Path
) -> None:
    server.behave = lambda call: call.answer({"choices": [], "text": "wait", "usage": USAGE})
    runs, mark = tmp_path / "runs", uuid4().hex
    program = f"{SUBMIT}; python3 - {mark} <<'END'\n{CALL}\nif 'wait' in call(): __import__('time').sleep(300)\nEND\n"
    named = ["--agent-command", program, "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(runs)]
    runner = start("run", *named, "--network", "model", "--model", "m", "--endpoint", server.url)
    counts = "*/.work/*/model.json"
    (use,) = wait_until(
        lambda: [path for path in runs.glob(counts) if json.loads(path.read_text())["calls"]],
        "the call of the agent is on disk",
        process=runner,
    )
    assert json.loads(use.read_text())["input_tokens"] == 100, "to be read while the run goes on"
    (record,) = runs.glob("*/*/run.json")
    for pid in [runner.pid, *processes(str(record.parent))]:  # what started `run exec`, and `run exec` itself
        os.kill(pid, signal.SIGKILL)
    wait_until_gone(mark)
    wait_until(lambda: not _gateways(str(runs)), "the gateway has ended")
    server.behave = say_hello
    mlebench("run", "--resume", str(record.parent.parent))
    run = Run.read(record.parent)
    killed, finished = run.record.attempts
    assert (killed.ended, killed.model and killed.model.calls) == ("cancelled", 1)
    assert (killed.seconds or 0) > 0
    assert [call["answer"]["text"] for call in calls_of(run.paths.attempt(1))] == ["wait"]
    assert (finished.ended, usage_of(run).calls) == ("finished", 1)
    assert proxies_of(run) == []


def _gateways(mark: str) -> list[int]:
    """Gateways that a test has started: they hold the test's files open."""
    found = []
    for pid in processes("mlebench.gateway.process"):
        with contextlib.suppress(OSError):
            found += [pid for item in Path(f"/proc/{pid}/fd").iterdir() if mark in str(item.readlink())][:1]
    return found


def proxies_of(run: Run) -> list[Path]:
    """What is left of its proxies."""
    tokens = [attempt.token for attempt in run.record.attempts]
    return [path for token in tokens for path in Path(tempfile.gettempdir()).glob(f"mlebench-{token}-*")]


def test_a_gateway_that_dies_is_an_infrastructure_failure(go: Runner, server: Endpoint, tmp_path: Path) -> None:
    killed: list[int] = []

    def behave(call: Call) -> None:
        if not killed:
            killed.extend(_gateways(str(tmp_path / "runs")))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        say_hello(call)

    server.behave = behave
    run = only(go(ONE_CALL.replace("<<'END'", "<<'END' | grep hello || sleep 300")))  # without an answer, it waits
    first, second = run.record.attempts
    assert len(killed) == 1
    assert (first.ended, first.detail) == ("infra_error", "the gateway to the model died")
    assert (second.ended, run.record.ended) == ("finished", "finished")
    assert usage_of(run).calls == 1


def agent_with(tmp_path: Path, **variables: str) -> Path:
    folder = tmp_path / "clever"
    folder.mkdir()
    (folder / "start.sh").write_text(f"env; {SUBMIT}\n")
    config = {"clever": {"start": "clever/start.sh", "env_vars": variables, "model": "gpt-4o"}}
    (folder / "config.yaml").write_text(json.dumps(config))
    return folder


def variables_of(run: Run) -> dict[str, str]:
    return dict(line.split("=", 1) for line in run.paths.log.read_text().splitlines() if "=" in line)


def test_an_agents_secrets_become_the_runs_token_and_the_address_of_the_proxy(go: Runner, tmp_path: Path) -> None:
    agent = agent_with(
        tmp_path,
        GEMINI_API_KEY="${{ secrets.GEMINI_API_KEY }}",
        MY_KEY="${{ secrets.OPENROUTER_API_KEY }}",
        OPENAI_API_KEY="${{ secrets.OPENAI_API_KEY }}",
        OPENAI_BASE_URL="https://example.com/v1",
        ANTHROPIC_BASE_URL="${{ secrets.ANTHROPIC_BASE_URL }}",
        OTHER="plain",
    )
    secrets = dict.fromkeys(("GEMINI_API_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY"), "sk-very-secret-0123")
    found = variables_of(only(go(agent, env=secrets)))
    token = found["OPENAI_API_KEY"]
    assert {found["GEMINI_API_KEY"], found["MY_KEY"], found["ANTHROPIC_API_KEY"]} == {token}
    assert found["GOOGLE_GEMINI_BASE_URL"] == found["ANTHROPIC_BASE_URL"]
    assert "secret" not in token
    assert found["OPENAI_BASE_URL"] == f"{found['ANTHROPIC_BASE_URL']}/v1"
    assert found["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert (found["OTHER"], found["MLEBENCH_MODEL"]) == ("plain", "gpt-4o")


def test_other_secrets_are_refused_by_name(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, server: Endpoint
) -> None:
    agent = agent_with(tmp_path, HF_TOKEN="${{ secrets.HF_TOKEN }}")
    named = ["--agent", str(agent), "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    done = mlebench("run", *named, "--network", "model", "--endpoint", server.url, code=1)
    assert "HF_TOKEN" in done.stderr
    done = mlebench("run", *named, "--network", "full", code=1)
    assert "set the variable HF_TOKEN" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("sandbox", ["process", "docker"])
def test_real_secrets_enter_only_with_an_open_network_and_are_never_recorded(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, sandbox: str
) -> None:
    require(sandbox)
    secret = "a-very-secret-value"
    agent = agent_with(tmp_path, HF_TOKEN="${{ secrets.HF_TOKEN }}")
    script = "tr '\\0' ' ' < /proc/$PPID/cmdline; [ $HF_TOKEN = a-very-secret-value ] && echo it is there\n"
    (agent / "start.sh").write_text(f"{script}{SUBMIT}\n")
    named = ["--agent", str(agent), "-c", titanic.id, "--sandbox", sandbox, "--runs-dir", str(tmp_path / "runs")]
    mlebench("run", *named, "--network", "full", env={"HF_TOKEN": secret})
    (folder,) = (tmp_path / "runs").iterdir()
    run = only(Group.read(folder))
    assert "it is there" in run.paths.log.read_text()
    assert holding(folder, secret) == []
    assert not run.record.conditions.sealed


def test_a_run_like_another_has_the_same_model(
    go: Runner, mlebench: Mlebench, server: Endpoint, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {"gpt-4o": {"input": 1, "output": 1}}}))
    first = go("true", "--budget", "3usd", "--prices", str(prices))
    mlebench("run", "--like", str(first.paths.root), "--runs-dir", str(tmp_path / "more"), env={"A_KEY": KEY})
    (folder,) = (tmp_path / "more").iterdir()
    assert Group.read(folder).record.model == first.record.model
    assert model_of(first).prices == {"gpt-4o": {"input": 1, "output": 1}}


def test_runs_with_different_models_or_budgets_are_separate_entries(
    titanic: Competition, server: Endpoint, tmp_path: Path
) -> None:
    inputs = Inputs(tmp_path)
    for models, budget in ((("m",), None), (("m", "other"), None), (("m",), "5usd")):
        access = access_to(server, models, budget=budget)
        inputs.add_group(plan_group(titanic, tmp_path, agent="dummy", model=access))
    assert [entry.model for entry in inputs.entries(CompetitionLookup(Registry()))] == ["m", "m, other", "m"]


def test_model_options_require_the_model_network(mlebench: Mlebench, titanic: Competition) -> None:
    done = mlebench("run", "--agent", "dummy", "-c", titanic.id, "--model", "gpt-4o", code=2)
    assert "--network model" in done.stderr
