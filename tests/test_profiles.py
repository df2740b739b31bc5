"""Profiles: what `v2.py` and the key `v2` of a config change, and that v1 never passes for v2."""

import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mlebench.core.errors import ConfigError, UnknownCompetitionError
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv, stand_in, validate_format
from mlebench.registry import Registry

LEAKY, SOUND, OLD = "leaky-seeds", "sound-seeds", "old-seeds"  # corrected by v2, already right, not reviewed yet

CONFIG = """
    id: ID
    name: Seeds
    grader: {name: accuracy}
    higher_is_better: true
    dataset:
      answers: private/answers.csv
      sample_submission: public/sample_submission.csv
    submission: {id: id, targets: [grows], values: integers}
    sample_score: 0.25
    known_issues:
      - {id: L1, kind: leak, text: The public test set tells which seeds grow., fixed_in: v2}
      - {id: T1, kind: threshold, text: Few seeds are scored.}
    """
LEAKY_V2 = """
    v2:
      version: 3
      known_issues: [{id: D1, kind: description, text: The text does not say that half the points are lost.}]
      description: description-v2.md
      dataset: {sample_submission: public/sample.csv}
    """
FILES = {
    "description.md": "# Seeds\n\n---\n\nAs it always was.\n",
    "description-v2.md": "# Seeds\n\n---\n\nCorrected.\n",
    "leaderboard.csv": "score\n1.0\n0.5\n",
    "prepare.py": """
        from mlebench.kit import Output, Raw


        def prepare(raw: Raw, public: Output, private: Output) -> None:
            seeds = raw.table("seeds.csv")
            public.write("test.csv", seeds)
            public.write("sample_submission.csv", seeds.select("id").assign(grows=0))
            private.write("answers.csv", seeds)
        """,
    "grade.py": """
        from pathlib import Path

        import pandas as pd

        from mlebench.kit import align
        from mlebench.metrics import accuracy


        def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
            y_pred, y_true = align(submission, answers, id="id", target="grows")
            return accuracy(y_true, y_pred)


        def stand_in(public: Path) -> pd.DataFrame:
            return pd.read_csv(public / "test.csv")[["id"]].assign(grows=0, made_by="v1")
        """,
    "twin.py": """
        from mlebench.kit.twins import TwinFolder


        def twin(raw: TwinFolder) -> None:
            count = raw.count(8)
            raw.write_csv("seeds.csv", {"id": list(range(count)), "grows": [number % 2 for number in range(count)]})
        """,
}
V2 = '''
    """The public test set no longer holds the target, and half the points are lost for a seed that does not grow."""

    import pandas as pd

    from mlebench.kit import Output, Raw, align


    def prepare(raw: Raw, public: Output, private: Output) -> None:
        seeds = raw.table("seeds.csv")
        public.write("test.csv", seeds.drop("grows"))
        public.write("sample.csv", seeds.select("id").assign(grows=0))
        private.write("answers.csv", seeds)


    def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        y_pred, y_true = align(submission, answers, id="id", target="grows")
        return 0.5 * float((y_pred == y_true).mean())
    '''


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three competitions outside the package."""
    shelf = tmp_path_factory.mktemp("shelf")
    for id, own in {LEAKY: LEAKY_V2, SOUND: "\n    v2: {}\n", OLD: ""}.items():
        config = textwrap.dedent(CONFIG).replace("ID", id) + textwrap.dedent(own)
        for name, text in {**FILES, "config.yaml": config}.items():
            (shelf / id).mkdir(exist_ok=True)
            (shelf / id / name).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    (shelf / LEAKY / "v2.py").write_text(textwrap.dedent(V2).lstrip("\n"), encoding="utf-8")
    return shelf


@pytest.fixture(autouse=True)
def _on_the_search_path(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(shelf))


def _cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlebench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_prepare_grade_and_description_are_those_of_the_profile(tmp_path: Path) -> None:
    reports = {}
    for profile in ("v1", "v2"):
        competition = Registry(tmp_path, profile).get_competition(LEAKY)
        prepare(competition, TwinSource())
        reports[profile] = grade_csv(competition.gold_submission, competition)
    root = tmp_path / LEAKY
    assert (root / "prepared/public/test.csv").read_text().startswith("id,grows\n")
    assert (root / "prepared-v2/public/test.csv").read_text().startswith("id\n")
    assert "always" in (root / "prepared/public/description.md").read_text()
    assert "Corrected" in (root / "prepared-v2/public/description.md").read_text()
    assert {name: (report.profile, report.score) for name, report in reports.items()} == {
        "v1": ("v1", 1.0),
        "v2": ("v2", 0.5),
    }
    assert json.loads((root / "prepared-v2/manifest.json").read_text())["profile"] == "v2"


def test_facts_are_those_of_the_profile() -> None:
    first, second = (Registry(profile=profile).get_competition(LEAKY) for profile in ("v1", "v2"))
    assert (first.version, first.sample_score) == (1, 0.25)
    assert (second.version, second.sample_score) == (3, None)
    assert [issue.id for issue in first.known_issues] == ["L1", "T1"]
    assert [issue.id for issue in second.known_issues] == ["T1", "D1"]
    assert first.sample_submission.name == "sample_submission.csv"
    assert second.sample_submission.name == "sample.csv"
    assert second.answers == second.paths.prepared / "private/answers.csv"  # what the key does not name is unchanged
    assert (first.checksums.name, second.checksums.name) == ("checksums.yaml", "checksums-v2.yaml")


def test_what_v2_does_not_define_comes_from_v1(tmp_path: Path) -> None:
    """Here the stand-in that `v2.grade` is called with."""
    competition = Registry(tmp_path, "v2").get_competition(LEAKY)
    prepare(competition, TwinSource())
    assert set(stand_in(competition)["made_by"]) == {"v1"}
    assert validate_format(competition.sample_submission, competition)[0]
    module = importlib.import_module(f"mlebench.competitions.{LEAKY}.v2")
    assert not hasattr(module, "twin")


def test_an_uncorrected_competition_has_the_same_bytes_in_a_separate_folder(tmp_path: Path) -> None:
    for profile in ("v1", "v2"):
        prepare(Registry(tmp_path, profile).get_competition(SOUND), TwinSource())
    first, second = (tmp_path / SOUND / name for name in ("prepared", "prepared-v2"))
    names = sorted(path.relative_to(first) for path in first.rglob("*.csv"))
    assert len(names) == 3
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_an_unreviewed_competition_has_no_v2() -> None:
    registry = Registry(profile="v2")
    assert {LEAKY, SOUND, OLD} & {*registry.list_competition_ids()} == {LEAKY, SOUND}
    with pytest.raises(UnknownCompetitionError, match=f"{OLD} has no profile v2 yet"):
        registry.get_competition(OLD)


def test_a_key_that_is_not_a_mapping_is_named(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bad-seeds"
    folder.mkdir()
    (folder / "config.yaml").write_text(textwrap.dedent(CONFIG).replace("ID", "bad-seeds") + "v2: same\n")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"config\.yaml: `v2` must be dict"):
        Registry(profile="v2").get_competition("bad-seeds")


def test_the_command_line_and_its_workers_keep_to_the_profile(tmp_path: Path) -> None:
    chosen = ["-c", LEAKY, "-c", SOUND, "--twin", "--jobs", 2]
    where = ["--data-dir", tmp_path, "--profile", "v2"]
    done = _cli("prepare", *chosen, *where)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / LEAKY).glob("prepared*")} == {"prepared-v2"}

    sample = tmp_path / LEAKY / "prepared-v2/public/sample.csv"
    report = json.loads(_cli("grade-sample", sample, LEAKY, *where).stdout)
    assert (report["profile"], report["score"]) == ("v2", 0.25)
    (tmp_path / "all.jsonl").write_text(json.dumps({"competition_id": LEAKY, "submission_path": str(sample)}))
    _cli("grade", "--submission", tmp_path / "all.jsonl", "--output-dir", tmp_path / "reports", *where)
    (summary,) = (tmp_path / "reports").iterdir()
    assert json.loads(summary.read_text())["competition_reports"][0]["profile"] == "v2"
    assert json.loads(_cli("validate", sample, LEAKY, *where).stdout)["is_valid"]
    assert f"{LEAKY}: ok" in _cli("verify", *where).stderr

    facts = json.loads(_cli("show", LEAKY, "--json", *where).stdout)
    assert (facts["profile"], facts["version"], facts["prepared"]) == ("v2", 3, True)
    assert facts["description"].endswith("description-v2.md")
    text = _cli("show", LEAKY, "--description", "obfuscated", *where).stdout
    assert text.startswith("Corrected.\n\nThe file must have exactly the columns of the sample submission")
    listed = json.loads(_cli("list", "--json", *where).stdout)
    assert [(row["id"], row["prepared"]) for row in listed if row["id"] in (LEAKY, SOUND)] == [
        (LEAKY, True),
        (SOUND, True),
    ]

    unprepared = _cli("grade-sample", sample, LEAKY, "--data-dir", tmp_path)  # profile v1
    assert unprepared.returncode == 1
    assert f"mlebench prepare -c {LEAKY} --twin --data-dir {tmp_path}`" in unprepared.stderr


def test_the_command_line_never_passes_v1_off_as_v2(tmp_path: Path) -> None:
    where = ["--data-dir", tmp_path, "--profile", "v2"]
    (tmp_path / "x.csv").touch()
    for arguments in (
        ["prepare", "-c", OLD, "--twin"],
        ["grade-sample", tmp_path / "x.csv", OLD],
        ["validate", tmp_path / "x.csv", OLD],
        ["show", OLD],
    ):
        done = _cli(*arguments, *where)
        assert (done.returncode != 0, done.stdout) == (True, ""), arguments
        assert f"{OLD} has no profile v2 yet" in done.stderr
    advice = _cli("grade-sample", tmp_path / "x.csv", LEAKY, *where)
    assert f"mlebench prepare -c {LEAKY} --profile v2" in advice.stderr
