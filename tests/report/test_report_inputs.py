"""What counts as a run of which agent and seed, and what is never mixed."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.grading_reports import report, write_group, write_reports

from mlebench.core.errors import PrerequisiteError
from mlebench.grade.leaderboard import BEYOND_BEST, Position
from mlebench.records.conditions import CONDITIONS
from mlebench.records.grading_reports import read_grading_report
from mlebench.records.report import Report
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.formats import notes
from mlebench.report.inputs import Inputs
from mlebench.report.standings import make_standings
from mlebench.report.types import Entry
from mlebench.run.group_operations import finish
from mlebench.scoring import read_leaderboard

MODEL = {"provider": "openai", "endpoint": "http://x/v1", "models": ["gpt"]}
BIRDS, PIZZA, SPOOKY = "mlsp-2013-birds", "random-acts-of-pizza", "spooky-author-identification"


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return Inputs(tmp_path / "runs")


def entries(inputs: Inputs) -> list[Entry]:
    return inputs.entries(CompetitionLookup(Registry()))


def seeds(entry: Entry) -> dict[str, list[int]]:
    return {id: [one.seed for one in entry.outcomes if one.competition == id] for id in entry.competitions}


def test_the_kth_report_of_a_competition_is_seed_k_over_all_files(inputs: Inputs, tmp_path: Path) -> None:
    first = write_reports(tmp_path / "a.json", [report(BIRDS, "gold"), report(PIZZA), report(BIRDS)])
    second = write_reports(tmp_path / "b.json", [report(PIZZA, "bronze")])
    inputs.add(str(first))
    inputs.add(str(second))
    (entry,) = entries(inputs)
    assert seeds(entry) == {BIRDS: [0, 1], PIZZA: [0, 1]}
    assert [entry.outcome_of[BIRDS, seed].gold for seed in (0, 1)] == [True, False]
    assert entry.inputs == (str(first), str(second))


def test_files_are_distinguished_by_the_given_name_or_the_agent_in_them(inputs: Inputs, tmp_path: Path) -> None:
    plain = write_reports(tmp_path / "plain.json", [report(BIRDS)])
    ours = write_reports(tmp_path / "ours.json", [report(BIRDS, agent="mine", seed=4), report(PIZZA, agent="other")])
    more = [write_reports(tmp_path / f"{name}.json", [report(BIRDS)]) for name in "ab"]
    for named in (plain, f"aide={more[0]}", ours, f"aide={more[1]}"):
        inputs.add(str(named))
    found = {entry.agent: seeds(entry) for entry in entries(inputs)}
    assert found == {"reports": {BIRDS: [0]}, "aide": {BIRDS: [0, 1]}, "mine": {BIRDS: [0]}, "other": {PIZZA: [0]}}


def test_groups_that_divide_a_seeds_competitions_are_joined(inputs: Inputs, tmp_path: Path) -> None:
    for name, ids in (("g1", [BIRDS]), ("g2", [PIZZA]), ("g3", [BIRDS])):
        write_group(
            tmp_path / "runs",
            name,
            [{"competition": id, "seed": seed, "report": report(id)} for id in ids for seed in (0, 1)],
        )
        inputs.add(name)
    (entry,) = entries(inputs)
    assert seeds(entry) == {BIRDS: [0, 1, 2, 3], PIZZA: [0, 1]}


def test_a_folder_of_groups_does_not_count_as_one(inputs: Inputs, tmp_path: Path) -> None:
    for name in ("g1", "g2"):
        write_group(tmp_path / "runs", name, [{"competition": BIRDS, "seed": 0, "report": report(BIRDS)}])
    with pytest.raises(PrerequisiteError, match="runs is not a run group: it holds 2, name one of them"):
        inputs.add(str(tmp_path / "runs"))
    with pytest.raises(PrerequisiteError, match="'g' is the beginning of 2 run groups"):
        inputs.add("g")


def test_nothing_is_counted_twice(inputs: Inputs, tmp_path: Path) -> None:
    given = report(BIRDS, agent="mine", seed=0, run_id="g-run0")
    path = write_reports(tmp_path / "a.json", [given])
    write_group(tmp_path / "runs", "g", [{"competition": BIRDS, "seed": 0, "report": given}])
    inputs.add(str(path))
    with pytest.raises(PrerequisiteError, match=r"a.json is given twice"):
        inputs.add(f"other={path}")
    with pytest.raises(PrerequisiteError, match=r"run g-run0 is given twice: in .*a.json and in g"):
        inputs.add("g")


@pytest.mark.parametrize(
    ("other", "labels", "differing"),
    [
        ({"limits": {"seconds": 3600}}, ["24 h", "1 h"], ["time limit"]),
        ({"limits": {"seconds": 90}}, ["24 h", "1.5 min"], ["time limit"]),
        ({"limits": {"seconds": 5}}, ["24 h", "5 s"], ["time limit"]),
        ({"limits": {"seconds": 86400, "cpus": 2.0}}, ["CPUs not stated", "2 CPUs"], ["CPUs"]),
        ({"gpus_per_run": 1}, ["no GPU", "1 GPU"], ["GPUs"]),
        ({"runs_per_gpu": 2}, ["1 run per GPU", "2 runs per GPU"], ["runs per GPU"]),
        (
            {"runs_per_gpu": 2, "limits": {"seconds": 3600}},
            ["24 h", "1 h, 2 runs per GPU"],
            ["time limit", "runs per GPU"],
        ),
        ({"agent": {"name": "mine", "identity": "2" * 64}}, ["agent files 1", f"agent files {'2' * 12}"], []),
        (
            {"model": {**MODEL, "budget": "5usd", "tools": ["web_search"]}},
            ["no model", "gpt, budget 5usd, tools web_search"],
            ["budget", "tools"],
        ),
        (
            {"network": "full", "obfuscate": True},
            ["no network, description named", "network full, description obfuscated"],
            ["network", "description"],
        ),
        (
            {"knowledge": "/a/b", "knowledge_sha256": "0" * 64},
            ["no knowledge", f"knowledge b ({'0' * 12})"],
            ["knowledge"],
        ),
        (
            {"environment": "/a/torch", "environment_sha256": "1" * 64},
            ["no environment", f"environment torch ({'1' * 12})"],
            ["environment"],
        ),
        ({"sandbox": "docker", "image": "x"}, ["sandbox bubblewrap", "sandbox docker, image x"], None),
    ],
)
def test_different_agent_files_or_conditions_are_a_separate_entry_and_named(
    inputs: Inputs, tmp_path: Path, other: dict[str, Any], labels: list[str], differing: list[str] | None
) -> None:
    run = {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    write_group(tmp_path / "runs", "g1", [run])
    write_group(tmp_path / "runs", "g2", [run], **other)
    inputs.add("g1")
    inputs.add("g2")
    assert [entry.agent for entry in entries(inputs)] == [f"mine, {label}" for label in labels]
    made = make_standings(inputs)
    said = [line for line in notes(made) if "not like with like" in line]
    unlike = ["sandbox", "image"] if differing is None else differing
    assert [f"they differ in {', '.join(unlike)}." in line for line in said] == [True] * bool(unlike)
    assert list(made.comparisons[0].unlike) == unlike
    if not unlike:
        return
    with pytest.raises(PrerequisiteError, match="unlike conditions") as refused:
        make_standings(inputs, strict=True)
    texts = [entry.conditions.texts for entry in entries(inputs)]
    pairs = {condition.title: [text[condition.name] for text in texts] for condition in CONDITIONS}
    assert all(" against ".join(pairs[title]) in str(refused.value) for title in unlike)


def test_labels_of_many_entries_leave_out_what_is_usual_and_are_all_different(inputs: Inputs, tmp_path: Path) -> None:
    run = {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    conditions: list[dict[str, Any]] = [
        {"limits": {"seconds": hours * 3600}} | other
        for hours in (1, 24)
        for other in (
            {},
            {"agent_options": {"steps": "9"}},
            {"model": MODEL},
            {"model": {**MODEL, "budget": "5usd"}},
            {"knowledge": "/a/notes"},
            {"runs_per_gpu": 2, "image": "x"},
        )
    ]
    for number, values in enumerate(conditions):
        inputs.add(str(write_group(tmp_path / "runs", f"g{number}", [run], **values)))
    assert [entry.agent for entry in entries(inputs)] == [
        f"mine, {text}"
        for hours in ("1 h", "24 h")
        for text in (
            hours,
            f"steps=9, {hours}",
            f"gpt, {hours}",
            f"gpt, {hours}, budget 5usd",
            f"{hours}, knowledge notes",
            f"{hours}, 2 runs per GPU, image x",
        )
    ]


def test_labels_leave_out_what_is_usual_of_a_condition_in_which_entries_differ(inputs: Inputs, tmp_path: Path) -> None:
    run = {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    for name, shm in (("g1", 2 << 30), ("g2", 4 << 30), ("g3", 8 << 30)):
        for hours in (1, 2):
            limits = {"seconds": hours * 3600, "shm": shm}
            inputs.add(str(write_group(tmp_path / "runs", f"{name}-{hours}", [run], limits=limits)))
    assert [entry.agent for entry in entries(inputs)] == [
        f"mine, {hours}{text}"
        for text in (", 2 GiB of shared memory", "", ", 8 GiB of shared memory")
        for hours in ("1 h", "2 h")
    ]


def limits(cpus: float, memory: int = 16 * 10**9) -> dict[str, Any]:
    return {"seconds": 3600, "cpus": cpus, "memory": memory}


@pytest.mark.parametrize(
    ("requests", "pools"),
    [
        ([(2, {}), (1, {})], ["mine: 2 and 1 CPUs"]),
        ([(2, {}), (1, {}), (2, {})], ["mine: 2 and 1 CPUs"]),
        ([(2, {"cpus": 2}), (1, {"cpus": 1})], ["mine, 2 CPUs: 2 CPUs", "mine, 1 CPU: 1 CPU"]),
        ([(2, {"cpus": 2}), (2, {})], ["mine: 2 CPUs"]),  # whether it was requested or not
        ([(2, {"cpus": 2}), (2, {}), (1, {})], ["mine, 2 CPUs: 2 CPUs", "mine, 2 and 1 CPUs: 2 and 1 CPUs"]),
        ([(2, None), (1, None)], ["mine, 2 CPUs: 2 CPUs", "mine, 1 CPU: 1 CPU"]),  # nobody knows what was requested
        ([(2, None), (2, {})], ["mine: 2 CPUs"]),
    ],
)
def test_what_was_requested_is_pooled_not_what_a_machine_s_share_happened_to_be(
    inputs: Inputs, tmp_path: Path, requests: list[tuple[float, dict[str, Any] | None]], pools: list[str]
) -> None:
    run = {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    for number, (cpus, requested) in enumerate(requests):
        write_group(tmp_path / "runs", f"g{number}", [run], limits=limits(cpus), requested=requested)
        inputs.add(f"g{number}")
    made = entries(inputs)
    assert [f"{entry.agent}: {entry.conditions.texts['cpus']}" for entry in made] == pools
    assert sum(len(entry.outcomes) for entry in made) == len(requests)
    pooled = [line for line in notes(make_standings(inputs)) if "pooled over 2 and 1 CPUs" in line]
    assert len(pooled) == sum("and" in pool for pool in pools)


def test_entries_of_other_agents_and_files_without_conditions_are_unlike_too(inputs: Inputs, tmp_path: Path) -> None:
    run = {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    write_group(tmp_path / "runs", "g1", [run], limits=limits(2), requested={})
    write_group(
        tmp_path / "runs", "g2", [run], limits=limits(1), requested={}, agent={"name": "other", "identity": "2"}
    )
    inputs.add("g1")
    inputs.add("g2")
    with pytest.raises(
        PrerequisiteError, match="mine and other were run under unlike conditions: 2 CPUs against 1 CPU"
    ):
        make_standings(inputs, strict=True)
    inputs.add(f"third={write_reports(tmp_path / 'a.json', [report(BIRDS)])}")
    last = make_standings(inputs).comparisons[-1]
    assert last.unlike == {"conditions": ("conditions stated", "conditions not stated")}
    assert any("Conditions of third are not stated" in line for line in notes(make_standings(inputs)))


def test_pooled_runs_are_not_strict(inputs: Inputs, tmp_path: Path) -> None:
    run = {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    for name, memory in (("g1", 32_100_000_000), ("g2", 32_200_000_000), ("g3", 16 * 10**9)):
        write_group(tmp_path / "runs", name, [run], limits=limits(2, memory), requested={})
    inputs.add("g1")
    inputs.add("g2")
    assert [len(entry.outcomes) for entry in entries(inputs)] == [2]
    make_standings(inputs, strict=True)  # machines of one kind
    inputs.add("g3")
    with pytest.raises(PrerequisiteError, match="the runs of mine are pooled over 32 and 16 GB RAM"):
        make_standings(inputs, strict=True)


def test_unjudged_runs_are_missing(inputs: Inputs, tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = [
        {"competition": BIRDS, "seed": 0, "ended": "infra_error", "rerolls": 1},
        {"competition": BIRDS, "seed": 1, "state": "running", "ended": None},
        {"competition": BIRDS, "seed": 2, "report": report(BIRDS, status="grader_error")},
        {"competition": BIRDS, "seed": 3, "ended": "timeout", "report": report(BIRDS, "silver"), "seconds": 7200.0},
    ]
    write_group(tmp_path / "runs", "g", runs)
    inputs.add("g")
    (entry,) = entries(inputs)
    assert [one.missing for one in entry.outcomes] == ["infra_error", "planned", "grader_error", None]
    last = entry.outcomes[-1]
    assert (last.silver, last.any_medal, last.hours, last.ended) == (True, True, 2.0, "timeout")


def test_a_group_s_report_alone_shows_infrastructure_errors(inputs: Inputs, tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = [
        {"competition": BIRDS, "seed": 0, "report": report(BIRDS, "gold", agent="mine", seed=0, run_id="g-run0")},
        {"competition": BIRDS, "seed": 1, "ended": "infra_error", "detail": "the disk is on fire"},
    ]
    path = finish(Group.read(write_group(tmp_path / "runs", "g", runs)))
    assert path is not None
    failed = read_grading_report(path)[1]
    assert (failed.status, failed.reason) == ("infra_error", "the disk is on fire")
    assert (failed.submission_exists, failed.valid_submission) == (False, False)
    inputs.add_report(path)
    (entry,) = entries(inputs)
    assert [(one.seed, one.run_id, one.missing) for one in entry.outcomes] == [
        (0, "g-run0", None),
        (1, "g-run1", "infra_error"),
    ]


def experiments(tmp_path: Path, *lines: str) -> Path:
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["experiment_id,run_group", *lines]))
    return table


def test_experiments_name_run_groups_of_ours_and_of_the_reference(inputs: Inputs, tmp_path: Path) -> None:
    runs_dir = tmp_path / "runs"
    table = experiments(tmp_path, "aide,a", "aide,b", "else,gone", "old,theirs", "old,more")
    for name in "ab":
        write_group(runs_dir, name, [{"competition": BIRDS, "seed": 0, "report": report(BIRDS)}])
    for name in ("theirs", "more"):
        write_reports(runs_dir / name / "2024-10-08T00-00-00-GMT_grading_report.json", [report(BIRDS)])
    inputs.add_experiment("aide", table)
    inputs.add_experiment("old", table)
    found = {entry.agent: seeds(entry) for entry in entries(inputs)}
    assert found == {"aide": {BIRDS: [0, 1]}, "old": {BIRDS: [0, 1]}}
    with pytest.raises(PrerequisiteError, match=r"there is no experiment 'x' in .*; it has aide, else"):
        inputs.add_experiment("x", table)
    with pytest.raises(PrerequisiteError, match="gone is not a run group and holds no grading report"):
        inputs.add_experiment("else", table)


def test_an_experiment_does_not_pool_conditions_either(inputs: Inputs, tmp_path: Path) -> None:
    runs_dir, run = tmp_path / "runs", {"competition": BIRDS, "seed": 0, "report": report(BIRDS)}
    write_group(runs_dir, "plain", [run], limits={"seconds": 86400, "cpus": 2})
    write_group(runs_dir, "large", [run], limits={"seconds": 86400, "cpus": 2}, gpus_per_run=1)
    write_group(runs_dir, "again", [run], limits={"seconds": 86400, "cpus": 2.0})
    write_group(runs_dir, "other", [run], agent={"name": "other", "identity": "1"})
    write_reports(runs_dir / "theirs/2024-10-08T00-00-00-GMT_grading_report.json", [report(BIRDS)])
    names = ("plain", "large", "again", "other", "theirs")
    inputs.add_experiment("e", experiments(tmp_path, *(f"e,{name}" for name in names)))
    found = {entry.agent: entry.inputs for entry in entries(inputs)}
    labels = ["e, mine, 2 CPUs, no GPU", "e, mine, 2 CPUs, 1 GPU", "e, other, CPUs not stated, no GPU"]
    assert list(found) == [*labels, "e, conditions not stated"]
    assert found[labels[0]] == ("plain", "again")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"profile": "v2"}, "never mix profiles v1 in .*a.json, v2 in .*b.json"),
        ({"source": "twin"}, "never mix twins and real data: real data in .*a.json, twins in .*b.json"),
    ],
)
def test_profiles_and_kinds_of_data_are_never_mixed(
    inputs: Inputs, tmp_path: Path, values: dict[str, str], why: str
) -> None:
    inputs.add(f"A={write_reports(tmp_path / 'a.json', [report(BIRDS)])}")
    inputs.add(f"B={write_reports(tmp_path / 'b.json', [report(BIRDS, **values)])}")
    with pytest.raises(PrerequisiteError, match=why):
        make_standings(inputs)


def test_a_group_of_twins_is_not_mixed_with_reports_of_the_reference(inputs: Inputs, tmp_path: Path) -> None:
    write_group(tmp_path / "runs", "g", [{"competition": BIRDS, "seed": 0, "ended": "infra_error"}], twin=True)
    inputs.add("g")
    assert make_standings(inputs).data == "twin"
    inputs.add(str(write_reports(tmp_path / "a.json", [report(BIRDS)])))
    with pytest.raises(PrerequisiteError, match="never mix twins"):
        make_standings(inputs)


def test_ungraded_reports_need_not_name_their_data(inputs: Inputs, tmp_path: Path) -> None:
    failed = report(PIZZA, score=None, source="unknown", status="missing", submission_exists=False)
    inputs.add(str(write_reports(tmp_path / "a.json", [report(BIRDS, source="twin"), failed])))
    assert make_standings(inputs).data == "twin"


@pytest.mark.parametrize("values", [{"profile": "v2"}, {"source": "twin"}])
def test_published_figures_appear_only_beside_real_data_of_v1(
    inputs: Inputs, tmp_path: Path, values: dict[str, str]
) -> None:
    inputs.add(str(write_reports(tmp_path / "a.json", [report(BIRDS, **values)])))
    with pytest.raises(PrerequisiteError, match="published figures are of real data and profile v1"):
        make_standings(inputs, published=True)


def test_a_copy_of_a_report_does_not_count_as_another_seed(inputs: Inputs, tmp_path: Path) -> None:
    path = write_reports(tmp_path / "a.json", [report(BIRDS), report(PIZZA)])
    (tmp_path / "copy.json").write_bytes(path.read_bytes())
    inputs.add(str(path))
    with pytest.raises(PrerequisiteError, match=r"the report on .* is given twice: in .*a.json and in .*copy.json"):
        inputs.add(str(tmp_path / "copy.json"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a grading report"),
        ('{"competition_reports": [{}]}', "report 1 names no competition"),
        (
            '{"competition_reports": [{"competition_id": "x", "score": "1"}]}',
            "`score` must be a number or null, not text",
        ),
        (
            '{"competition_reports": [{"competition_id": "x", "score": 1%s}]}' % ("0" * 400),
            "`score` number out of range",
        ),
        (
            '{"competition_reports": [{"competition_id": "x", "gold_medal": "False"}]}',
            "`gold_medal` must be true or false",
        ),
        ('{"competition_reports": [{"competition_id": "x", "agent": {"name": "y"}}]}', "`agent` must be text"),
        ('{"competition_reports": [{"competition_id": "x", "run_id": [1]}]}', "`run_id` must be text"),
        ('{"competition_reports": [{"competition_id": "\\ud800"}]}', "report 1 names no competition"),
        ('{"competition_reports": [{"competition_id": "%s"}]}' % ("x" * 5000), "report 1 names no competition"),
    ],
)
def test_broken_files_are_reported_in_one_line(inputs: Inputs, tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(PrerequisiteError, match=why) as error:
        inputs.add(str(path))
    assert "\n" not in str(error.value)


def made(id: str, **values: Any) -> Report:
    return msgspec.convert(report(id, **values), Report)


@pytest.mark.parametrize("id", [BIRDS, SPOOKY])
def test_percentile_is_the_share_of_teams_beaten(id: str) -> None:
    competition = Registry().get_competition(id)
    board = read_leaderboard(competition.leaderboard)
    boards = CompetitionLookup(Registry())
    for score in (board[0], board[len(board) // 3], board[-1], sum(board) / len(board)):
        worse = sum(other > score if competition.lower_is_better else other < score for other in board)
        assert boards.percentile(made(id, score=score)) == worse / len(board)
    assert boards.percentile(made(id, score=None)) == 0
    assert boards.percentile(made("of-our-own", score=0.5)) is None
    assert boards.percentile(made(id, score=board[0], percentile=0.25)) == 0.25  # as it was graded


def test_an_infinite_score_counts_the_same_in_our_reports_and_the_references() -> None:
    """champs takes a logarithm: the truth itself scores minus infinity, which JSON cannot hold."""
    boards, id = CompetitionLookup(Registry()), "champs-scalar-coupling"
    competition = Registry().get_competition(id)
    board = read_leaderboard(competition.leaderboard)
    ours = Position.of(-math.inf, competition, board, board[0])
    assert BEYOND_BEST in str(ours.suspicious)
    assert ours.normalised_score is None
    for given in (made(id, score=-math.inf), made(id, score=None, percentile=ours.percentile)):
        assert boards.percentile(given) == 1


def test_normalised_score_is_0_for_the_sample_and_1_for_gold() -> None:
    boards, sample = CompetitionLookup(Registry()), Registry().get_competition(SPOOKY).sample_score
    assert sample is not None
    scores = {sample: 0.0, 0.2: 1.0, (sample + 0.2) / 2: 0.5, None: 0.0}
    for score, expected in scores.items():
        given = made(SPOOKY, score=score, gold_threshold=0.2)
        assert boards.normalised(given) == pytest.approx(expected)
    assert boards.normalised(made("of-our-own")) is None
    assert boards.normalised(made(SPOOKY, gold_threshold=sample)) is None
    assert boards.normalised(made("us-patent-phrase-to-phrase-matching")) is None  # its sample's score is not a number


def test_a_label_leaves_out_what_an_earlier_version_did_not_record_as_requested(tmp_path: Path) -> None:
    limits = {"seconds": 3600.0, "cpus": 4.0, "memory": 16_000_000_000}
    runs = [{"competition": "spaceship-titanic", "seed": 0}]
    inputs = Inputs(tmp_path)
    inputs.add(str(write_group(tmp_path, "earlier", runs, limits=limits, requested=None)))
    inputs.add(
        str(write_group(tmp_path, "later", runs, limits=limits | {"seconds": 7200.0}, requested={"seconds": 7200.0}))
    )
    labels = [entry.agent.partition(", ")[2] for entry in inputs.entries(CompetitionLookup(Registry()))]
    assert labels == ["1 h", "2 h"]
