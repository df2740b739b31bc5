"""Agent folders: the reference's load unchanged; broken ones are refused, naming file and key."""

import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from mlebench.agents import built_in, folders, load_agent
from mlebench.agents.spec import Agent
from mlebench.core.errors import ConfigError, NotPreparedError, PrerequisiteError
from mlebench.grade import grade_csv
from mlebench.registry import Competition, Registry

MANY = """
vars:
  limit: &limit 86400

defaults: &defaults
  start: scout/start.sh
  dockerfile: scout/Dockerfile
  kwargs_type: omegaconf
  env_vars: &env
    TIME_LIMIT_SECS: *limit
    DEBUG: false

scout:
  <<: *defaults
  kwargs:
    agent.steps: 500
    copy_data: False
    search.prob: 0.5
  env_vars:
    <<: *env
    MODEL_KEY: ${{ secrets.SOME_KEY }}
    OTHER: ${{secrets.OTHER_KEY}}

scout/plain:
  start: scout/bin/go.sh
  kwargs_type: argparse
  kwargs: {model: small one, steps: 3, verbose: true}
  privileged: true
  model: small
  scaffold: loop
  knowledge: [papers, notes]
  python: "3.12"
  requirements: scout/requirements.txt
"""


def folder_with(tmp_path: Path, config: str, name: str = "scout") -> Path:
    folder = tmp_path / name
    (folder / "bin").mkdir(parents=True)
    for file in ("start.sh", "bin/go.sh", "Dockerfile", "requirements.txt"):
        (folder / file).write_text(f"# {file}\n")
    (folder / "config.yaml").write_text(config)
    return folder


def agent_with(tmp_path: Path, entry: str) -> Agent:
    return load_agent(str(folder_with(tmp_path, f"scout: {{start: scout/start.sh, {entry}}}")))


def test_an_entry_of_a_reference_folder(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, MANY)
    agent = load_agent(str(folder))  # the entry with the folder's name
    assert (agent.name, agent.folder, agent.start, agent.dockerfile) == ("scout", folder, "start.sh", "Dockerfile")
    assert agent.command("/home/agent") == (
        *("bash", "/home/agent/start.sh"),
        *("agent.steps=500", "copy_data=False", "search.prob=0.5"),
    )
    assert agent.env == {"TIME_LIMIT_SECS": "86400", "DEBUG": "False"}
    assert agent.secrets == {"MODEL_KEY": "SOME_KEY", "OTHER": "OTHER_KEY"}
    assert (agent.needs_network, agent.privileged) == (True, False)


def test_another_entry_with_our_own_keys(tmp_path: Path) -> None:
    agent = load_agent(f"{folder_with(tmp_path, MANY)}#scout/plain")
    assert agent.name == "scout/plain"
    assert agent.command("/a") == (
        *("bash", "/a/bin/go.sh"),
        *("--model", "small one", "--steps", "3", "--verbose", "True"),
    )
    assert (agent.model, agent.scaffold, agent.knowledge) == ("small", "loop", ("papers", "notes"))
    assert (agent.python, agent.requirements, agent.privileged) == ("3.12", "requirements.txt", True)
    assert agent.needs_network, "it has a model"


def test_facts_survive_and_identify_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path, MANY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_KEY", "hunter2")
    for agent in (load_agent("./scout#scout/plain"), load_agent("scout"), load_agent("command", "true")):
        facts = msgspec.to_builtins(agent.facts())
        assert "hunter2" not in str(facts)
        monkeypatch.chdir("/")
        assert load_agent(facts["spec"], facts["shell_command"]) == agent
        monkeypatch.chdir(tmp_path)


def test_secrets_are_filled_in_and_a_missing_one_is_named(tmp_path: Path) -> None:
    agent = load_agent(str(folder_with(tmp_path, MANY)))
    given = {"SOME_KEY": "s", "OTHER_KEY": "o", "UNASKED": "u"}
    assert agent.environment(given) == {"TIME_LIMIT_SECS": "86400", "DEBUG": "False", "MODEL_KEY": "s", "OTHER": "o"}
    with pytest.raises(PrerequisiteError, match="set the variable OTHER_KEY"):
        agent.environment(given | {"OTHER_KEY": ""})


def test_only_agents_with_a_model_or_secrets_need_a_network(tmp_path: Path) -> None:
    assert not load_agent("dummy").needs_network
    assert not agent_with(tmp_path, "env_vars: {A: 1}").needs_network
    assert agent_with(tmp_path / "2", "needs_model: true").needs_network


def test_obfuscate_is_a_request_not_a_variable(tmp_path: Path) -> None:
    agent = agent_with(tmp_path, 'env_vars: {OBFUSCATE: "true", A: 1}')
    assert (agent.obfuscate, agent.env) == (True, {"A": "1"})
    plain = agent_with(tmp_path / "2", "env_vars: {OBFUSCATE: false}")
    assert (plain.obfuscate, plain.env) == (False, {})


def test_which_entry_is_meant(tmp_path: Path) -> None:
    one = folder_with(tmp_path / "one", "shared: {x: 1}\nonly: {start: scout/start.sh}")
    assert load_agent(str(one)).name == "only"
    two = folder_with(tmp_path / "two", "a: {start: scout/start.sh}\nb: {start: scout/start.sh}")
    with pytest.raises(ConfigError, match="has the agents a, b: say which, as scout#ID"):
        load_agent(str(two))
    assert load_agent(f"{two}#b").name == "b"
    with pytest.raises(ConfigError, match="has no agent 'c'; it has a, b"):
        load_agent(f"{two}#c")
    with pytest.raises(ConfigError, match="has no agent"):
        load_agent(str(folder_with(tmp_path / "none", "shared: {x: 1}")))


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("colour: red", "`scout.colour` is not known"),
        ("start: other/start.sh", "`scout.start` must begin with the folder's name, scout/"),
        ("start: scout/../other/start.sh", "`scout.start` must .* stay in it"),
        ("start: /etc/passwd", "`scout.start` must begin with"),
        ("start: scout", "`scout.start` must begin with"),
        ("start: scout/missing.sh", "`scout.start` names scout/missing.sh, but there is no such file"),
        ("start: null", "`scout.start` is missing"),
        ("dockerfile: scout/Missing", "`scout.dockerfile` names scout/Missing"),
        ("kwargs: {a: 1}", "`scout.kwargs_type` is missing"),
        ("kwargs_type: click", "`scout.kwargs_type` must be one of argparse, omegaconf"),
        ("kwargs: [1]", "`scout.kwargs` must be dict"),
        ('kwargs_type: argparse, kwargs: {key: "${{ secrets.KEY }}"}', "`scout.kwargs.key` must not be a secret"),
        ('env_vars: {KEY: "Bearer ${{ secrets.KEY }}"}', "`scout.env_vars.KEY` must be .* and nothing else"),
        ("env_vars: {KEY: [1]}", "`scout.env_vars.KEY` must be text"),
        ("env_vars: {A=B: 1}", "`scout.env_vars.A=B` is not a name"),
        ("env_vars: {OBFUSCATE: 1}", "`scout.env_vars.OBFUSCATE` must be true or false"),
        ('privileged: "yes"', "`scout.privileged` must be bool"),
        ("environment: envs/torch", "`scout.environment` must be an absolute path"),
        ("knowledge: [1]", "`scout.knowledge` must be a list of strings"),
        ("python: 3.10", "`scout.python` must be a version in quotes"),
        ("host_only: true", "`scout.host_only` is for built-in agents"),
    ],
)
def test_broken_entries_are_refused_with_file_and_key(tmp_path: Path, entry: str, fault: str) -> None:
    text = f"scout: {{start: scout/start.sh, {entry}}}" if "start:" not in entry else f"scout: {{{entry}}}"
    folder = folder_with(tmp_path, text)
    with pytest.raises(ConfigError, match=fault) as refused:
        load_agent(f"{folder}#scout")
    assert str(refused.value).startswith(f"{folder / 'config.yaml'}: ")


@pytest.mark.parametrize("config", ["- a\n", "{", ""])
def test_a_config_that_is_not_a_mapping_is_refused(tmp_path: Path, config: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load_agent(str(folder_with(tmp_path, config)))


def test_anything_but_an_agent_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for text in ("nobody", "", "#dummy", "../nobody"):
        with pytest.raises(PrerequisiteError, match=f"the built-in agents are {', '.join(built_in())}"):
            load_agent(text)
    with pytest.raises(ConfigError, match=r"there is no .*empty/config\.yaml"):
        load_agent("empty")


def test_a_built_in_agent_takes_precedence_over_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(tmp_path, "dummy: {start: dummy/start.sh}", "dummy")
    monkeypatch.chdir(tmp_path)
    assert load_agent("dummy").folder != folder
    assert load_agent("./dummy").folder == folder


@pytest.mark.parametrize("place", ["config.yaml", "start.sh", "bin/inner", "data"])
def test_links_and_pipes_in_a_folder_are_refused(tmp_path: Path, place: str) -> None:
    folder = folder_with(tmp_path, MANY)
    outside = tmp_path / "outside"
    outside.write_text(MANY)
    (folder / place).unlink(missing_ok=True)
    (folder / place).symlink_to(tmp_path if place == "data" else outside)
    with pytest.raises(PrerequisiteError, match=f"{place} is a symbolic link"):
        load_agent(str(folder))
    (folder / place).unlink()
    os.mkfifo(folder / place)
    with pytest.raises(PrerequisiteError, match=f"{place} is a named pipe"):
        load_agent(str(folder))


def test_too_large_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with(tmp_path, MANY)
    for number in range(3):
        (folder / f"weights{number}").write_bytes(b"w" * 600)
    load_agent(str(folder))
    monkeypatch.setattr(folders, "LARGEST_FOLDER", 2000)
    with pytest.raises(PrerequisiteError, match="too much to copy"):
        load_agent(str(folder))


def test_the_identity_depends_on_the_files(tmp_path: Path) -> None:
    first = folder_with(tmp_path / "1", MANY)
    second = folder_with(tmp_path / "2", MANY)
    same = load_agent(str(first)).identity
    assert load_agent(f"{second}#scout/plain").identity == same
    for cache in ("__pycache__", ".git", "bin/__pycache__"):
        (second / cache).mkdir()
        (second / cache / "x").write_text("changes all the time")
    assert load_agent(str(second)).identity == same

    def changed() -> bool:
        return load_agent(str(second)).identity != same

    (second / "bin/new").write_text("")
    assert changed()
    (second / "bin/new").rename(second / "new")
    assert changed()
    (second / "new").unlink()
    assert not changed()
    (second / "start.sh").chmod(0o755)
    assert changed()


def test_the_command_is_part_of_the_identity_of_command() -> None:
    one, two = load_agent("command", "echo one"), load_agent("command", "echo two")
    assert one.identity != two.identity
    assert load_agent("command", "echo one") == one


def test_copies_are_complete_and_writable_and_refused_if_the_folder_changed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, MANY)
    (folder / "start.sh").chmod(0o555)
    (folder / "__pycache__").mkdir()
    agent = load_agent(str(folder))
    (tmp_path / "first").mkdir()
    agent.copy_to(tmp_path / "first")
    copied = {path.relative_to(tmp_path / "first").as_posix(): path for path in (tmp_path / "first").rglob("*")}
    assert set(copied) == {"bin", "bin/go.sh", "config.yaml", "start.sh", "Dockerfile", "requirements.txt"}
    assert copied["start.sh"].stat().st_mode & 0o777 == 0o755
    assert copied["bin/go.sh"].read_text() == "# bin/go.sh\n"

    (folder / "bin/go.sh").write_text("# other\n")
    (tmp_path / "second").mkdir()
    with pytest.raises(PrerequisiteError, match="has changed since the run was planned"):
        agent.copy_to(tmp_path / "second")


def test_command_needs_a_command_and_others_take_none() -> None:
    assert load_agent("command", "echo 'a b' | tee x").command("/home/agent")[-1] == "echo 'a b' | tee x"
    for text, command in (("command", None), ("dummy", "ls")):
        with pytest.raises(PrerequisiteError, match="go together"):
            load_agent(text, command)


def test_the_oracle_submits_gold_and_never_enters_a_sandbox(titanic: Competition, tmp_path: Path) -> None:
    oracle = load_agent("oracle")
    assert oracle.host_only
    with pytest.raises(PrerequisiteError, match="runs on the host only"):
        oracle.command("/home/agent")
    oracle.submit(titanic, tmp_path / "submission/submission.csv")
    assert grade_csv(tmp_path / "submission/submission.csv", titanic).gold_medal
    with pytest.raises(NotPreparedError, match="mlebench prepare -c spaceship-titanic"):
        oracle.submit(Registry(tmp_path).get_competition(titanic.id), tmp_path / "other.csv")
    with pytest.raises(PrerequisiteError, match="not on the host"):
        load_agent("dummy").submit(titanic, tmp_path / "other.csv")


def test_what_enters_a_sandbox_never_imports_mlebench() -> None:
    for name in {*built_in()} - {"oracle"}:
        for file in load_agent(name, "true" if name == "command" else None).folder.iterdir():
            assert not file.is_file() or "mlebench." not in file.read_text()
            assert not file.is_file() or "import mlebench" not in file.read_text()


def test_a_built_in_agent_may_share_files_of_another(tmp_path: Path) -> None:
    agent = load_agent("openhands#openhands")
    (tmp_path / "run").mkdir()
    agent.copy_to(tmp_path / "run")
    assert (tmp_path / "run/bench.py").read_bytes() == (agent.folder.parent / "aide/bench.py").read_bytes()
    assert agent.identity != folders.identity(agent.folder), "it is part of what the agent is"
    assert agent.identity == folders.identity(tmp_path / "run"), "as if it lay in its folder"
    for file in ("dummy/no.py", "../spec.py", "spec.py"):
        with pytest.raises(ConfigError, match="is not a file of a built-in agent"):
            agent_with(tmp_path / file.replace("/", "-"), f"shares: [{file}]")


@pytest.mark.parametrize("has_file", [False, True])
def test_a_copied_agent_has_the_files_it_shares(tmp_path: Path, has_file: bool) -> None:
    agent = load_agent("openhands#openhands")
    shutil.copytree(agent.folder, tmp_path / "openhands")
    if has_file:
        shutil.copy(agent.folder.parent / "aide/bench.py", tmp_path / "openhands")
    copy = load_agent(f"{tmp_path}/openhands#openhands")
    assert copy.identity == agent.identity
    (tmp_path / "run").mkdir()
    copy.copy_to(tmp_path / "run")
    assert (tmp_path / "run/bench.py").is_file()


def test_options_replace_and_add_to_its_arguments(tmp_path: Path) -> None:
    folder = str(folder_with(tmp_path, MANY))
    agent = load_agent(folder, options={"agent.steps": "8", "agent.new": "a b=c"})
    assert agent.arguments == ("agent.steps=8", "copy_data=False", "search.prob=0.5", "agent.new=a b=c")
    assert agent.options == {"agent.steps": "8", "agent.new": "a b=c"}
    assert agent.identity == load_agent(folder).identity, "its files are the same"
    assert not hasattr(agent.facts(), "options")
    assert load_agent("aide", options={"steps": "3", "feedback-model": "large"}).arguments[-2:] == (
        "--feedback-model",
        "large",
    )


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("aide", {"step": "3"}, "the agent aide has no option 'step'; it has steps, drafts,"),
        ("aide", {"steps": "many"}, "the option steps must be a number, not 'many'"),
        ("aide", {"steps": "nan"}, "the option steps must be a number, not 'nan'"),
        ("aide", {"--steps": "3"}, "has no option '--steps'"),
        ("scout", {"copy_data": "maybe"}, "the option copy_data must be True or False, not 'maybe'"),
        ("scout", {"key": "${{ secrets.KEY }}"}, "must not be a secret"),
        ("scout", {"two words": "1"}, "has no option 'two words'"),
        ("dummy", {"steps": "3"}, "the agent dummy takes no options: its config.yaml has no kwargs_type"),
    ],
)
def test_options_that_an_agent_does_not_take(tmp_path: Path, name: str, options: dict[str, str], words: str) -> None:
    text = str(folder_with(tmp_path, MANY)) if name == "scout" else name
    with pytest.raises(PrerequisiteError, match=re.escape(words)):
        load_agent(text, options=options)


def test_a_command_has_its_options_in_it() -> None:
    with pytest.raises(PrerequisiteError, match="write it into --agent-command"):
        load_agent("command", "true", {"steps": "3"})


def test_files_that_options_name_come_along_and_count(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path, "scout: {start: scout/start.sh, kwargs_type: argparse, options: [prompt], file_options: [prompt]}"
    )
    prompt = tmp_path / "mine.txt"
    prompt.write_text("Win.")
    options = {"prompt": str(prompt)}
    agent = load_agent(str(folder), options=options)
    assert agent.arguments == ("--prompt", "mine.txt")
    assert agent.facts().arguments == ["--prompt", "mine.txt"]
    (tmp_path / "copy").mkdir()
    agent.copy_to(tmp_path / "copy")
    assert (tmp_path / "copy/mine.txt").read_text() == "Win."

    prompt.write_text("Lose.")
    assert load_agent(str(folder), options=options).identity != agent.identity
    (tmp_path / "again").mkdir()
    with pytest.raises(PrerequisiteError, match="has changed"):
        agent.copy_to(tmp_path / "again")
    for text in ("mine.txt", str(tmp_path / "none.txt")):
        with pytest.raises(PrerequisiteError, match="absolute path of a file"):
            load_agent(str(folder), options={"prompt": text})
    with pytest.raises(PrerequisiteError, match="the agent's own files"):
        load_agent(str(folder), options={"prompt": str(folder / "start.sh")})
