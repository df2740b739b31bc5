"""The registry: what exists, errors that name file and key, competitions from outside the package."""

import importlib
import itertools
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from mlebench.core.errors import ConfigError, PrerequisiteError, UnknownCompetitionError
from mlebench.data.pipeline import Options, prepare
from mlebench.grade import GradingLimits, grade_csv, validate_format, validate_submission
from mlebench.registry import Competition, Registry, registry
from mlebench.scoring import REFERENCE_PACKAGES

NUMBERS = itertools.count(1)
FILES = {
    "config.yaml": """
        id: ID
        name: Guess the sign
        competition_type: simple
        awards_medals: false
        prizes: null
        description: mlebench/competitions/ID/description.md
        dataset:
          answers: ID/prepared/private/answers.csv
          sample_submission: ID/prepared/public/sample.csv
        grader:
          name: accuracy
          grade_fn: mlebench.competitions.ID.grade:grade
        preparer: mlebench.competitions.ID.prepare:prepare
        """,
    "description.md": "Say whether a number is above zero.\n",
    "leaderboard.csv": """
        scoreNullable,teamId,hasTeamName,submissionDate,score,hasScore
        0.9,1,True,2020-01-01,0.9,True
        0.8,2,True,2020-01-01,0.8,True
        0.5,3,True,2020-01-01,0.5,True
        """,
    "prepare.py": """
        from pathlib import Path

        from mlebench.utils import extract, read_csv


        def prepare(raw: Path, public: Path, private: Path):
            extract(raw / "inner.zip", raw)
            rows = read_csv(raw / "rows.csv")
            rows.head(3).to_csv(public / "train.csv", index=False)
            held_out = rows.tail(4)
            held_out.to_csv(private / "answers.csv", index=False)
            held_out.assign(positive=0).to_csv(public / "sample.csv", index=False)
        """,
    "grade.py": """
        from mlebench.competitions.utils import prepare_for_accuracy_metric
        from mlebench.grade_helpers import InvalidSubmissionError
        from mlebench.utils import get_logger

        logger = get_logger(__name__)


        def grade(submission, answers):
            if "positive" not in submission.columns:
                raise InvalidSubmissionError("no column `positive`")
            pair = prepare_for_accuracy_metric(submission, answers, target_column="positive", id_column="id")
            return (pair["y_true"] == pair["y_pred"]).mean()
        """,
}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A competition in the reference's format, in its own folder; its id is new for each test."""
    id = f"guess-the-sign-{next(NUMBERS)}"  # not made of `tmp_path`: its names are used again
    folder = tmp_path / "mine" / id
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(textwrap.dedent(text).lstrip("\n").replace("ID", id), encoding="utf-8")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "mine"))
    return folder


def _raw_data(folder: Path) -> None:
    import zipfile

    folder.mkdir(parents=True)
    rows = "id,positive\n" + "".join(f"{number},{int(number > 0)}\n" for number in range(-3, 4))
    with zipfile.ZipFile(folder / "inner.zip", "w") as archive:
        archive.writestr("rows.csv", rows)


def test_a_folder_written_for_the_reference_loads_prepares_and_grades_unchanged(outside: Path, tmp_path: Path) -> None:
    competition = Registry(tmp_path / "data").get_competition(outside.name)
    _raw_data(competition.raw_dir)
    prepare(competition)
    report = grade_csv(competition.answers, competition)
    assert (report.score, report.gold_medal, report.is_lower_better) == (1.0, True, False)
    report = grade_csv(competition.sample_submission, competition)
    assert (report.score, report.any_medal) == (0.25, False)
    assert validate_format(competition.sample_submission, competition) == (True, "Submission is valid.")
    assert not validate_submission(competition.public_dir / "description.md", competition)[0]
    assert (competition.public_dir / "description.md").read_text() == FILES["description.md"]


def test_a_reference_folder_is_prepared_from_an_archive_and_raw_is_kept_only_on_request(
    outside: Path, tmp_path: Path
) -> None:
    import shutil

    _raw_data(tmp_path / "unzipped")
    for keep_raw in (True, False):
        competition = Registry(tmp_path / f"data-{keep_raw}").get_competition(outside.name)
        competition.paths.root.mkdir(parents=True)
        shutil.make_archive(str(competition.paths.archive.with_suffix("")), "zip", tmp_path / "unzipped")
        prepare(competition, options=Options(keep_raw=keep_raw))
        assert competition.answers.is_file()
        assert competition.raw_dir.exists() is keep_raw


def test_a_raw_folder_that_differs_from_the_archive_is_left_alone(outside: Path, tmp_path: Path) -> None:
    import shutil

    competition = Registry(tmp_path / "data").get_competition(outside.name)
    _raw_data(tmp_path / "unzipped")
    competition.raw_dir.mkdir(parents=True)
    (competition.raw_dir / "notes.txt").write_text("mine")
    shutil.make_archive(str(competition.paths.archive.with_suffix("")), "zip", tmp_path / "unzipped")
    prepare(competition)
    assert competition.answers.is_file()
    assert [path.name for path in competition.raw_dir.iterdir()] == ["notes.txt"]
    assert not competition.paths.raw_staging.exists()


def test_its_code_is_importable_by_the_name_that_clients_use(outside: Path) -> None:
    Registry().get_competition(outside.name)
    module = importlib.import_module(f"mlebench.competitions.{outside.name}.grade")
    frame = pd.DataFrame({"id": [1, 2], "positive": [1, 1]})
    assert module.grade(frame, frame) == 1.0


def test_the_search_path_can_come_from_the_settings_file(
    outside: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MLEBENCH_COMPETITION_PATH")
    assert outside.name not in registry.list_competition_ids()
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"competition_path: [{outside.parent}]\ndata_dir: {tmp_path / 'here'}\n")
    monkeypatch.setenv("MLEBENCH_CONFIG", str(settings))
    assert outside.name in registry.list_competition_ids()
    assert registry.get_data_dir() == tmp_path / "here"
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(tmp_path / "there"))
    assert registry.get_data_dir() == tmp_path / "there"


@pytest.mark.parametrize("content", ["competition_path: 3", "- a list", "data_dir: [1]", "{"])
def test_broken_settings_are_named(content: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(content)
    monkeypatch.setenv("MLEBENCH_CONFIG", str(settings))
    with pytest.raises(PrerequisiteError, match=r"settings\.yaml"):
        _ = registry.list_competition_ids(), registry.get_data_dir()


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("data-dir", "did you mean data_dir?"),
        ("competition_paths", "did you mean competition_path?"),
        ("colour", "choose from data_dir, competition_path, slurm"),
    ],
)
def test_a_setting_that_does_not_exist_is_named_with_the_one_that_was_meant(
    key: str, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"{key}: [x]\ndata_dir: here\n")
    monkeypatch.setenv("MLEBENCH_CONFIG", str(settings))
    with pytest.raises(PrerequisiteError) as error:
        registry.get_data_dir()
    assert str(error.value) == f"{settings}: there is no setting `{key}`; {advice}"


def test_an_unknown_key_is_refused_with_the_nearest_or_warned_about_in_the_references_form(
    outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = outside / "config.yaml"
    text = path.read_text()
    own = re.sub(r"^preparer: .*\n", "", text, flags=re.MULTILINE)
    path.write_text(f"{own}\nhigher_is_beter: true\n")
    with pytest.raises(ConfigError, match=r"`higher_is_beter` is not known; did you mean higher_is_better\?"):
        Registry().get_competition(outside.name)
    path.write_text(re.sub(r"  answers:", "  answrs: x\n  answers:", own))
    with pytest.raises(ConfigError, match=r"`dataset\.answrs` is not known; did you mean answers\?"):
        Registry().get_competition(outside.name)
    path.write_text(f"{own}\npreparer: x:y\nkernels: 3\n")
    assert Registry().get_competition(outside.name).id == outside.name
    assert "`kernels` is not known, and ignored; choose from" in caplog.text


def test_no_built_in_config_has_an_unknown_key(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    for id in registry.list_competition_ids():
        registry.get_competition(id)
    assert "is not known" not in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: Guess the sign", "", "name"),
        ("name: accuracy", "name: 3", "grader.name"),
        ("  answers:", "  answer:", "dataset.answers"),
        ("dataset:", "data:", "dataset"),
        ("competition_type: simple", "competition_type: [simple]", "competition_type"),
        ("awards_medals: false", "complexity: tiny", "complexity"),
        ("awards_medals: false", "higher_is_better: 1", "higher_is_better"),
        ("awards_medals: false", "sample_score: true", "sample_score"),
        ("awards_medals: false", "deadline: soon", "deadline"),
        ("awards_medals: false", "deadline: 2019-07-08 23:59:00", "deadline"),
    ],
)
def test_a_broken_config_names_file_and_key(outside: Path, old: str, new: str, key: str) -> None:
    path = outside / "config.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        Registry().get_competition(outside.name)
    assert str(path) in str(caught.value)
    assert f"`{key}`" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("content", ["[1, 2]", "a: [", "just words", ""])
def test_a_config_that_is_not_a_mapping_is_named(outside: Path, content: str) -> None:
    (outside / "config.yaml").write_text(content)
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        Registry().get_competition(outside.name)


def _edit_config(folder: Path, old: str, new: str) -> None:
    path = folder / "config.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_id_that_is_not_the_folders_name_is_warned_about_once(
    outside: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _edit_config(outside, f"id: {outside.name}\n", "id: another\n")
    competition, again = (Registry(tmp_path / "data").get_competition(outside.name) for _ in range(2))
    assert competition.id == again.id == outside.name
    (warning,) = caplog.messages
    assert warning.endswith(f"`id` is another, but the folder is named {outside.name}; that name is used")
    _raw_data(competition.raw_dir)
    prepare(competition)
    assert grade_csv(competition.answers, competition).score == 1.0


@pytest.mark.parametrize("prizes", ["20000", "[gold, silver]", "{first: 10}", "none at all"])
def test_prizes_may_be_anything(outside: Path, prizes: str) -> None:
    _edit_config(outside, "awards_medals: false", "awards_medals: perhaps")
    _edit_config(outside, "prizes: null", f"prizes: {prizes}")
    assert Registry().get_competition(outside.name).name == "Guess the sign"


@pytest.mark.parametrize("place", ["elsewhere/answers.csv", "ID/answers.csv", "ID/prepared/other/answers.csv"])
def test_answers_of_a_reference_folder_may_be_anywhere_below_the_data_directory(
    outside: Path, tmp_path: Path, place: str
) -> None:
    place = place.replace("ID", outside.name)
    _edit_config(outside, f"{outside.name}/prepared/private/answers.csv", place)
    competition = Registry(tmp_path / "data").get_competition(outside.name)
    assert competition.answers == competition.gold_submission == tmp_path / "data" / place
    _raw_data(competition.raw_dir)
    below_prepared = "prepared" in place
    written = "private.parent / 'other'" if below_prepared else f"Path({str(competition.answers.parent)!r})"
    code = (outside / "prepare.py").read_text().replace("private / ", "folder / ")
    folder = f"    folder = {written}\n    folder.mkdir(parents=True, exist_ok=True)\n    (private / 'note').touch()\n"
    (outside / "prepare.py").write_text(code.replace("    extract(", f"{folder}    extract(", 1))
    prepare(competition)
    assert grade_csv(competition.answers, competition).score == 1.0
    assert validate_format(competition.sample_submission, competition) == (True, "Submission is valid.")


def test_a_data_path_in_our_own_form_is_public_or_private(outside: Path) -> None:
    _edit_config(outside, f"preparer: mlebench.competitions.{outside.name}.prepare:prepare\n", "")
    _edit_config(outside, "prepared/private/answers.csv", "raw/answers.csv")
    with pytest.raises(ConfigError, match=r"`dataset\.answers` must be under public/ or private/"):
        Registry().get_competition(outside.name)


def test_a_description_may_be_anywhere_on_the_disk(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Guess.\n")
    text = (outside / "config.yaml").read_text()
    (outside / "config.yaml").write_text(re.sub(r"description: .*", f"description: {tmp_path / 'task.md'}", text))
    assert Registry().get_competition(outside.name).description == "Guess.\n"


class TestMissingPackage:
    """A folder written for the reference imports a package that the reference installs and we do not."""

    @pytest.fixture
    def competition(self, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Competition:
        monkeypatch.setitem(sys.modules, "pyquaternion", None)  # undone at the end
        competition = Registry(tmp_path / "data").get_competition(outside.name)
        _raw_data(competition.raw_dir)
        return competition

    @staticmethod
    def _needed_by(competition: Competition, file: str) -> str:
        path = competition.folder / file
        not_installed = "import sys\nsys.modules['pyquaternion'] = None\n"  # wherever this is imported
        path.write_text(f"{not_installed}from pyquaternion import Quaternion\n{path.read_text()}")
        module = f"mlebench.competitions.{competition.id}.{path.stem}"
        return f"{module} imports pyquaternion, which is not installed: run `pip install 'mlebench[reference]'`"

    def test_in_prepare(self, competition: Competition, tmp_path: Path) -> None:
        message = self._needed_by(competition, "prepare.py")
        with pytest.raises(ImportError, match=re.escape(message)) as error:
            prepare(competition)
        assert isinstance(error.value, PrerequisiteError)
        command = ["prepare", "-c", competition.id, "--data-dir", str(tmp_path / "data")]
        command = [sys.executable, "-m", "mlebench.cli", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"Error: {message}")
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize(
        "call",
        [
            grade_csv,
            partial(grade_csv, limits=GradingLimits()),
            validate_submission,
            validate_format,
            lambda path, competition: competition.grader(pd.read_csv(path), pd.DataFrame()),
        ],
        ids=["grade", "grade with limits", "validate", "format", "grader"],
    )
    def test_in_grade(self, competition: Competition, call: Callable[[Path, Competition], object]) -> None:
        prepare(competition)
        del sys.modules[f"mlebench.competitions.{competition.id}.grade"]
        message = self._needed_by(competition, "grade.py")
        fresh = Registry(competition.paths.data_dir).get_competition(competition.id)
        with pytest.raises(PrerequisiteError, match=re.escape(message)):
            call(fresh.sample_submission, fresh)

    @pytest.mark.parametrize("limits", [None, GradingLimits()], ids=["here", "in its own process"])
    def test_a_pyarrow_too_new_for_numpy(self, competition: Competition, limits: GradingLimits | None) -> None:
        """Clients pin NumPy 1.26; pip installs a pyarrow beside it that cannot be imported."""
        prepare(competition)
        del sys.modules[f"mlebench.competitions.{competition.id}.grade"]
        fault = "pyarrow requires NumPy 2.0 or newer, found 1.26.4"
        grade = competition.folder / "grade.py"
        grade.write_text(f"raise ImportError({fault!r})\n{grade.read_text()}")
        fresh = Registry(competition.paths.data_dir).get_competition(competition.id)
        advice = f"{fault}: run `pip install 'numpy>=2'` or `pip install 'pyarrow<26'`"
        with pytest.raises(PrerequisiteError, match=re.escape(advice)):
            grade_csv(fresh.sample_submission, fresh, limits=limits)

    def test_the_extra_has_every_package_that_is_named(self) -> None:
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extra = {re.split("[<>=]", line)[0] for line in project["optional-dependencies"]["reference"]}
        of_package = {"Levenshtein": "levenshtein", "bson": "pymongo", "sklearn": "scikit-learn"}
        assert {of_package.get(name, name) for name in REFERENCE_PACKAGES} == extra


def test_unknown_ids_get_near_names() -> None:
    with pytest.raises(UnknownCompetitionError, match="spaceship-titanic"):
        registry.get_competition("spaceship-titanik")
    for odd in ("", "..", "../competitions/spaceship-titanic", "no such thing at all"):
        with pytest.raises(UnknownCompetitionError):
            registry.get_competition(odd)


def test_splits_are_the_published_ones() -> None:
    sizes = {"low": 22, "lite": 22, "medium": 38, "high": 15, "all": 75, "split75": 75, "dev": 7, "systemcard": 30}
    assert {name: len(set(registry.get_split(name))) for name in sizes} == sizes
    assert set(registry.get_split("all")) == set().union(
        *(registry.get_split(name) for name in ("low", "medium", "high"))
    )
    assert not set(registry.get_split("all")) & set(registry.get_split("dev"))
    with pytest.raises(PrerequisiteError, match="systemcard"):
        registry.get_split("everything")


def test_declared_complexity_agrees_with_the_splits(competition_id: str) -> None:
    complexity = registry.get_competition(competition_id).complexity
    assert competition_id in registry.get_split(str(complexity))


def test_all_but_one_have_a_deadline_and_it_agrees_with_a_year_in_the_name() -> None:
    found = {id: registry.get_competition(id).deadline for id in registry.list_competition_ids()}
    assert [id for id, day in found.items() if day is None] == ["spaceship-titanic"]  # it was never closed
    years = {id: int(year[0]) for id in found if (year := re.search(r"20[12]\d", id))}
    assert len(years) == 20
    assert {id: day.year for id, day in found.items() if day and id in years} == years
    assert all(
        day and date(2012, 1, 1) < day < date(2024, 9, 1) for id, day in found.items() if id != "spaceship-titanic"
    )


def test_a_data_dir_may_be_a_string_and_gives_a_new_registry(tmp_path: Path) -> None:
    other = registry.set_data_dir(str(tmp_path))
    assert other.get_data_dir() == tmp_path.resolve()
    assert registry.get_data_dir() != tmp_path.resolve()
    assert other.get_competition("spaceship-titanic").public_dir == tmp_path / "spaceship-titanic/prepared/public"


def test_only_known_profiles_are_accepted() -> None:
    with pytest.raises(PrerequisiteError, match="v1"):
        Registry(profile="v3")


def test_reading_facts_does_not_change_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for id in registry.list_competition_ids():
        registry.get_competition(id)
    assert not any(tmp_path.iterdir())


OURS = """
    from mlebench.kit import Output, Raw


    def prepare(raw: Raw, public: Output, private: Output) -> None:
        rows = raw.archive("inner.zip").table("rows.csv")
        public.write("sample.csv", rows)
        private.write("answers.csv", rows)
    """


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("is_decorated", [True, False])
def test_a_prepare_for_the_engine_is_adapted_with_and_without_the_decorator(
    outside: Path, tmp_path: Path, is_named: bool, is_decorated: bool
) -> None:
    code = textwrap.dedent(OURS)
    if is_decorated:
        code = code.replace("Output, Raw", "Output, Raw, accepts_paths").replace("def prep", "@accepts_paths\ndef prep")
    (outside / "prepare.py").write_text(code)
    if not is_named:
        config = (outside / "config.yaml").read_text()
        (outside / "config.yaml").write_text(re.sub(r"^preparer:.*\n", "", config, flags=re.MULTILINE))
    competition = Registry(tmp_path / "data").get_competition(outside.name)
    _raw_data(competition.raw_dir)
    assert competition.kit_prepare_fn
    folders = competition.public_dir, competition.private_dir
    for folder in folders:
        folder.mkdir(parents=True)
    competition.prepare_fn(competition.raw_dir, *folders)
    assert competition.answers.read_text().startswith("id,positive\n-3,0\n")


def test_every_competition_of_the_package_lets_clients_call_its_prepare_with_paths() -> None:
    folders = [Registry().competition_dir(id) for id in Registry().list_competition_ids()]
    code = {folder.name: (folder / "prepare.py").read_text(encoding="utf-8") for folder in folders}
    assert not [id for id, text in code.items() if "\n@accepts_paths\ndef prepare(" not in text]
