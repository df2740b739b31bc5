"""The drop-in contract: what existing clients import, call, parse and find on disk, row by row.

The parsers below do what the clients named next to them do with our output.
"""

import dataclasses
import hashlib
import importlib
import inspect
import json
import re
import shutil
import struct
import subprocess
import sys
import textwrap
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.client_names import missing_names
from support.published import REPORT_KEYS

import mlebench
from mlebench.registry import Competition, Registry, registry

COMPETITION_FIELDS = [
    "id",
    "name",
    "description",
    "grader",
    "answers",
    "gold_submission",
    "sample_submission",
    "competition_type",
    "prepare_fn",
    "raw_dir",
    "private_dir",
    "public_dir",
    "checksums",
    "leaderboard",
]


def _cli(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlebench.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class TestImports:
    def test_every_name_that_a_client_imports(self) -> None:
        assert not missing_names()

    def test_registry_calls(self, tmp_path: Path) -> None:
        for made in (Registry(tmp_path), Registry(data_dir=tmp_path), Registry().set_data_dir(tmp_path)):
            assert made.get_data_dir() == tmp_path.resolve()
        assert registry.list_competition_ids() == sorted(registry.list_competition_ids())
        assert len(registry.get_lite_competition_ids()) == 22
        assert (registry.get_splits_dir() / "split75.txt").is_file()
        assert (registry.get_competitions_dir() / "spaceship-titanic" / "config.yaml").is_file()

    def test_competition_is_built_by_keyword_with_the_14_fields(self, titanic: Competition) -> None:
        assert {field.name for field in dataclasses.fields(Competition)} >= set(COMPETITION_FIELDS)
        fields = {name: getattr(titanic, name) for name in COMPETITION_FIELDS}
        built = Competition(**fields)
        with pytest.raises(dataclasses.FrozenInstanceError):
            built.id = "x"  # pyright: ignore[reportAttributeAccessIssue] that it cannot be set is what is tested
        object.__setattr__(built, "id", "other")
        assert built.id == "other"
        from mlebench.grade import grade_csv

        assert grade_csv(titanic.sample_submission, Competition(**fields)).valid_submission

    def test_competition_attributes(self, titanic: Competition) -> None:
        assert isinstance(titanic.description, str)
        assert titanic.description
        assert titanic.grader.name == "accuracy"
        assert callable(titanic.grader.grade_fn)
        assert titanic.raw_dir.parent == titanic.public_dir.parent.parent
        for path in (titanic.answers, titanic.gold_submission, titanic.sample_submission, titanic.leaderboard):
            assert path.is_file()
        assert "score" in pd.read_csv(titanic.leaderboard).columns

    def test_prepare_fn_takes_plain_paths_by_keyword(self, titanic: Competition, tmp_path: Path) -> None:
        public, private = tmp_path / "public", tmp_path / "private"
        titanic.prepare_fn(raw=titanic.raw_dir, public=public, private=private)
        for name in ("train.csv", "test.csv", "sample_submission.csv"):
            assert (public / name).read_bytes() == (titanic.public_dir / name).read_bytes()
        assert (private / "test.csv").read_bytes() == titanic.answers.read_bytes()

    def test_prepare_fn_can_be_named_and_found(self, titanic: Competition) -> None:
        from mlebench.utils import get_path_to_callable

        assert titanic.prepare_fn.__name__ == "prepare"
        assert list(inspect.signature(titanic.prepare_fn).parameters) == ["raw", "public", "private"]
        assert get_path_to_callable(titanic.prepare_fn).resolve() == titanic.folder / "prepare.py"

    @pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
    def test_prepare_is_called_directly_with_plain_paths(
        self, titanic: Competition, tmp_path: Path, packed: bool
    ) -> None:
        """Kaggle's folder, or its archive."""
        from mlebench.utils import compress

        raw = titanic.raw_dir
        if packed:
            compress(raw, raw := tmp_path / "raw.zip")
        module = importlib.import_module("mlebench.competitions.spaceship-titanic.prepare")
        assert list(inspect.signature(module.prepare).parameters) == ["raw", "public", "private"]
        assert module.prepare(raw, tmp_path / "public", tmp_path / "private") is None
        written = {path.name: path.read_bytes() for path in (tmp_path / "public").iterdir()}
        assert written == {
            path.name: path.read_bytes() for path in titanic.public_dir.iterdir() if path.name != "description.md"
        }
        assert (tmp_path / "private" / "test.csv").read_bytes() == titanic.answers.read_bytes()

    def test_data_functions(self, titanic: Competition) -> None:
        from mlebench.data import download_and_prepare_dataset, get_leaderboard, is_dataset_prepared

        assert is_dataset_prepared(titanic, grading_only=False) is True
        assert is_dataset_prepared(titanic, grading_only=True) is True
        board = get_leaderboard(titanic)
        assert board["score"].is_monotonic_decreasing
        assert list(inspect.signature(download_and_prepare_dataset).parameters) == [
            "competition",
            "keep_raw",
            "overwrite_checksums",
            "overwrite_leaderboard",
            "skip_verification",
        ]

    def test_download_and_prepare_uses_existing_data(self, titanic: Competition, tmp_path: Path) -> None:
        from mlebench.data import download_and_prepare_dataset

        competition = Registry(tmp_path).get_competition(titanic.id)
        shutil.copytree(titanic.raw_dir, competition.raw_dir)
        assert download_and_prepare_dataset(competition, keep_raw=True, skip_verification=True) is None
        assert competition.answers.read_bytes() == titanic.answers.read_bytes()
        assert competition.raw_dir.is_dir()

    def test_download_and_prepare_leaves_a_prepared_twin_as_it_is(self, titanic: Competition) -> None:
        from mlebench.data import download_and_prepare_dataset

        before = titanic.answers.stat()
        assert download_and_prepare_dataset(titanic) is None
        assert titanic.answers.stat() == before

    def test_a_script_may_put_its_own_download_in_place_of_ours(
        self, titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import mlebench.data
        from mlebench.utils import compress

        asked = []

        def download(competition_id: str, download_dir: Path, quiet: bool = False, force: bool = False) -> Path:
            asked.append((competition_id, download_dir, force))
            compress(titanic.raw_dir, download_dir / f"{competition_id}.zip")
            return download_dir / f"{competition_id}.zip"

        monkeypatch.setattr(mlebench.data, "download_dataset", download)
        competition = Registry(tmp_path).get_competition(titanic.id)
        mlebench.data.download_and_prepare_dataset(competition, skip_verification=True)
        assert asked == [(titanic.id, tmp_path / titanic.id, False)]
        assert competition.answers.read_bytes() == titanic.answers.read_bytes()

    def test_downloads_keep_an_archive_that_is_there_and_need_a_login_for_others(self, tmp_path: Path) -> None:
        from mlebench.data import download_dataset

        (tmp_path / "spaceship-titanic.zip").write_bytes(b"kept")
        found = download_dataset(competition_id="spaceship-titanic", download_dir=tmp_path)
        assert found.read_bytes() == b"kept"
        with pytest.raises(ValueError, match="no login to Kaggle"):
            download_dataset("spaceship-titanic", tmp_path, quiet=True, force=True)

    def test_prepared_folders_and_checksums(self, titanic: Competition, tmp_path: Path) -> None:
        from mlebench.data import create_prepared_dir, extract, generate_checksums, get_checksum, is_empty

        competition = Registry(tmp_path).get_competition(titanic.id)
        for _ in range(2):  # it may already exist
            create_prepared_dir(competition)
        assert is_empty(competition.public_dir)
        assert is_empty(competition.private_dir)
        for name, text in {"a.csv": "a", "b.jsonl": "b", "c.txt": "c", "d.csv": "d"}.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "folder.csv").mkdir()
        md5 = {letter: hashlib.md5(letter.encode()).hexdigest() for letter in "abcd"}
        assert get_checksum(tmp_path / "a.csv") == md5["a"]
        assert generate_checksums(tmp_path) == {"a.csv": md5["a"], "b.jsonl": md5["b"], "d.csv": md5["d"]}
        assert generate_checksums(tmp_path, exts=["csv", "txt"], exclude=[tmp_path / "d.csv"]) == {
            "a.csv": md5["a"],
            "c.txt": md5["c"],
        }
        assert callable(extract)

    def test_the_default_data_dir_follows_the_settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from mlebench.registry import DEFAULT_DATA_DIR

        assert registry.get_data_dir() == DEFAULT_DATA_DIR
        assert DEFAULT_DATA_DIR.parts[-2:] == ("mle-bench", "data")
        monkeypatch.setenv("MLEBENCH_DATA_DIR", str(tmp_path))
        assert tmp_path == importlib.import_module("mlebench.registry").DEFAULT_DATA_DIR

    def test_grade_exports_is_dataset_prepared(self, titanic: Competition) -> None:
        import mlebench.grade

        assert mlebench.grade.is_dataset_prepared(titanic, grading_only=True)

    def test_answers_may_be_replaced(self, titanic: Competition, tmp_path: Path) -> None:
        """LoopLab grades with its own answers."""
        from mlebench.grade import grade_csv

        answers = pd.read_csv(titanic.answers)
        answers.head(10).to_csv(tmp_path / "ten.csv", index=False)
        competition = dataclasses.replace(titanic, answers=tmp_path / "ten.csv")
        assert grade_csv(tmp_path / "ten.csv", competition).score == 1.0
        assert grade_csv(titanic.answers, competition).score is None

    def test_a_grade_is_logged_in_a_data_directory_and_nowhere_else(self, titanic: Competition, tmp_path: Path) -> None:
        """aira-dojo and dslighting build competitions of folders of their own."""
        from mlebench.grade import grade_csv

        folder, log = tmp_path / "mine" / "folder", titanic.paths.data_dir / "grades.jsonl"
        shutil.copytree(titanic.paths.root, folder)
        fields = {name: getattr(titanic, name) for name in COMPETITION_FIELDS}
        for name, value in fields.items():
            if isinstance(value, Path) and value.is_relative_to(titanic.paths.root):
                fields[name] = folder / value.relative_to(titanic.paths.root)
        built = Competition(**fields)
        files = {*tmp_path.rglob("*")}
        assert grade_csv(titanic.sample_submission, titanic).valid_submission
        logged = log.read_bytes()
        assert grade_csv(built.sample_submission, built).valid_submission
        assert {*tmp_path.rglob("*")} == files
        assert log.read_bytes() == logged
        assert grade_csv(titanic.answers, dataclasses.replace(titanic, answers=built.answers)).score == 1.0
        assert len(log.read_bytes()) > len(logged)

    def test_grade_functions(self, titanic: Competition) -> None:
        from mlebench.grade import aggregate_reports, grade_csv, validate_submission
        from mlebench.grade_helpers import CompetitionReport

        report = grade_csv(titanic.sample_submission, titanic)
        assert isinstance(report, CompetitionReport)
        assert validate_submission(titanic.sample_submission, titanic) == (True, "Submission is valid.")
        assert aggregate_reports([report])["total_runs"] == 1
        assert grade_csv(Path("dummy.csv"), titanic).is_lower_better is False  # kapso asks this way

    def test_report_is_built_by_keyword_and_survives_a_round_trip(self) -> None:
        from mlebench.grade_helpers import CompetitionReport

        report = CompetitionReport(
            competition_id="x",
            score=0.5,
            gold_threshold=1.0,
            silver_threshold=0.9,
            bronze_threshold=0.8,
            median_threshold=0.7,
            created_at=datetime(2024, 1, 2),
            submission_path="s.csv",
            any_medal=True,
            gold_medal=True,
            silver_medal=True,
            bronze_medal=True,
            above_median=True,
            submission_exists=True,
            valid_submission=True,
            is_lower_better=True,
        )
        data = report.to_dict()
        assert list(data)[:16] == REPORT_KEYS
        assert data["created_at"] == "2024-01-02T00:00:00"
        assert all(isinstance(data[name], bool) for name in REPORT_KEYS[6:14])
        assert not any(isinstance(value, dict | list) for value in data.values())
        assert CompetitionReport.from_dict(json.loads(json.dumps(data))) == report
        assert CompetitionReport.from_dict({name: data[name] for name in REPORT_KEYS}) == report
        assert "CompetitionReport(" in str(report)

    @pytest.mark.parametrize(
        ("exists", "valid", "status"), [(True, True, "graded"), (True, False, "invalid"), (False, False, "missing")]
    )
    def test_the_status_of_a_report_follows_from_its_fields(self, exists: bool, valid: bool, status: str) -> None:
        from mlebench.grade_helpers import CompetitionReport

        values = dict.fromkeys(REPORT_KEYS) | {
            "submission_exists": exists,
            "valid_submission": valid,
            "created_at": "2024-01-02T00:00:00",
        }
        assert CompetitionReport.from_dict(values).status == status
        assert CompetitionReport.from_dict(values | {"status": "grader_error"}).status == "grader_error"

    def test_a_config_that_a_client_reads_itself_has_the_references_keys(self, competition_id: str) -> None:
        """mlea, hexo and scripts; paths are relative to the folder that holds the package, or to the data directory."""
        from mlebench.grade_helpers import Grader
        from mlebench.utils import get_path_to_callable, get_repo_dir, import_fn, load_yaml

        ours = registry.get_competition(competition_id)
        config = load_yaml(registry.get_competitions_dir() / competition_id / "config.yaml")
        grader = Grader.from_dict(config["grader"])
        assert grader.name == ours.grader.name
        assert get_path_to_callable(grader.grade_fn).resolve() == ours.folder / "grade.py"
        assert get_path_to_callable(import_fn(config["preparer"])).resolve() == ours.folder / "prepare.py"
        assert (get_repo_dir() / config["description"]).read_text(encoding="utf-8") == ours.description
        data = config["dataset"]
        assert registry.get_data_dir() / data["answers"] == ours.answers
        assert registry.get_data_dir() / data.get("gold_submission", data["answers"]) == ours.gold_submission
        assert registry.get_data_dir() / data["sample_submission"] == ours.sample_submission
        places = {name: getattr(ours, name) for name in COMPETITION_FIELDS if name not in config}
        built = Competition.from_dict({**config, **places, "description": ours.description})
        assert (built.id, built.name, built.competition_type) == (ours.id, ours.name, ours.competition_type)

    def test_grader(self, titanic: Competition) -> None:
        from mlebench.grade_helpers import Grader, InvalidSubmissionError

        grader = Grader(name="accuracy", grade_fn="mlebench.competitions.spaceship-titanic.grade:grade")
        same = Grader.from_dict({"name": "accuracy", "grade_fn": "mlebench.competitions.spaceship-titanic.grade:grade"})
        answers = pd.read_csv(titanic.answers)
        assert grader(answers, answers) == same(answers, answers) == 1.0
        assert grader(answers.head(3), answers) is None
        with pytest.raises(InvalidSubmissionError):
            grader.grade_fn(answers.head(3), answers)
        board = pd.DataFrame({"score": [3.0, 2.0, 1.0]})
        assert grader.is_lower_better(board) is False
        ranks = grader.rank_score(2.5, board)
        assert sorted(ranks) == sorted(
            [f"{kind}_medal" for kind in ("gold", "silver", "bronze")]
            + [f"{kind}_threshold" for kind in ("gold", "silver", "bronze", "median")]
            + ["above_median"]
        )
        assert grader.rank_score(None, board)["gold_medal"] is False

    def test_utils(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from mlebench import utils

        (tmp_path / "a.csv").write_text("x,y\n1,0.1234567890123456789\n,abc\n")
        assert utils.read_csv(tmp_path / "a.csv")["x"].tolist()[0] == 1.0
        assert utils.read_csv(tmp_path / "a.csv", dtype=str)["x"].tolist()[0] == "1"
        (tmp_path / "empty.csv").touch()
        assert utils.read_csv(tmp_path / "empty.csv").empty
        (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
        assert utils.read_jsonl(str(tmp_path / "a.jsonl")) == [{"a": 1}, {"a": 2}]
        assert utils.load_answers(tmp_path / "a.jsonl") == [{"a": 1}, {"a": 2}]
        assert len(utils.load_answers(tmp_path / "a.csv")) == 2
        (tmp_path / "a.yaml").write_text("k: [1]")
        assert utils.load_yaml(tmp_path / "a.yaml") == {"k": [1]}
        assert utils.import_fn("os.path:join") is importlib.import_module("os.path").join
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[A-Z]+", utils.get_timestamp())
        assert utils.get_module_dir() == Path(mlebench.__file__).parent
        assert utils.get_repo_dir() == utils.get_module_dir().parent
        assert "text" in utils.purple("text")
        monkeypatch.setenv("MLEBENCH_DATA_DIR", str(tmp_path / "data"))
        assert utils.get_runs_dir() == tmp_path / "runs", "where `mlebench run` puts them"
        assert utils.create_run_dir("comp", "agent", "group").parent == tmp_path / "runs" / "group"
        assert utils.create_run_dir().is_dir()

    def test_more_utils(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from mlebench import utils

        (tmp_path / "a.jsonl").write_text('{"a": 1}\n')
        assert utils.load_answers(path_to_answers=tmp_path / "a.jsonl") == [{"a": 1}]
        assert utils.read_jsonl(file_path=tmp_path / "a.jsonl", skip_commented_out_lines=True) == [{"a": 1}]
        assert utils.import_fn(fn_import_string="json:loads") is json.loads
        diff = utils.get_diff({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2}, fromfile="actual", tofile="expected")
        assert diff.splitlines()[:2] == ["--- actual", "+++ expected"]
        assert {"-  b: 1", "+  b: 3", " c: 2"} <= set(diff.splitlines())
        assert utils.get_diff({"a": 1}, {"a": 1}) == ""
        for value, answer in {"true": True, "false": False}.items():
            monkeypatch.setenv("GITHUB_ACTIONS", value)
            assert utils.in_ci() is answer
        assert re.fullmatch(r"comp_[0-9a-f-]{36}", utils.generate_run_id("comp", "agent", "group"))
        assert re.fullmatch(r"\d{4}-\S+_comp_agent_[0-9a-f]{8}", utils.generate_run_id("comp", "agent"))
        names = {"a.zip": True, "a.7z": True, "a.tar.gz": True, "a.csv": False}
        assert {name: utils.is_compressed(Path(name)) for name in names} == names
        monkeypatch.chdir(Path(json.__file__).parent)
        assert utils.get_path_to_callable(json.loads) == Path("__init__.py")

    @pytest.mark.parametrize("kind", ["zip", "7z"])
    def test_extract_and_compress(self, kind: str, tmp_path: Path) -> None:
        from mlebench.utils import compress, extract

        one, inner, outer = tmp_path / f"one.{kind}", tmp_path / "inner", tmp_path / "outer.zip"
        (tmp_path / "src" / "sub").mkdir(parents=True)
        (tmp_path / "src" / "sub" / "a.txt").write_text("a")
        compress(tmp_path / "src", one)
        inner.mkdir()
        shutil.copy(one, inner)
        compress(inner, outer)
        extract(outer, tmp_path / "flat")
        assert [path.name for path in (tmp_path / "flat").iterdir()] == [one.name]
        extract(outer, tmp_path / "deep", recursive=True)
        assert (tmp_path / "deep" / "sub" / "a.txt").read_text() == "a"
        skipped = {tmp_path / "known" / one.name}
        extract(outer, tmp_path / "known", recursive=True, already_extracted=skipped)
        assert not (tmp_path / "known" / "sub").exists()
        assert outer in skipped
        with pytest.raises(FileExistsError):
            compress(tmp_path / "src", one)
        compress(tmp_path / "src", one, exist_ok=True)
        for wrong in (lambda: compress(tmp_path / "none", tmp_path / "x.zip"), lambda: extract(Path("x.rar"), inner)):
            with pytest.raises(ValueError, match=r"not a folder|only zip and 7z"):
                wrong()

    def test_authentication_without_credentials_is_a_permission_error(self) -> None:
        from mlebench.utils import authenticate_kaggle_api

        with pytest.raises(PermissionError, match="Kaggle"):
            authenticate_kaggle_api()

    def test_competition_utils(self, tmp_path: Path) -> None:
        from mlebench.competitions import utils

        frame = pd.DataFrame({"id": [3, 1], "author": ["b", "a"]}, index=[7, 5])
        hot = utils.df_to_one_hot(frame, "id", "author", ["a", "b"])
        assert hot.to_dict("list") == {"id": [3, 1], "a": [0, 1], "b": [1, 0]}
        assert list(hot.index) == [7, 5]
        assert utils.is_one_hot_encoded(hot[["a", "b"]].to_numpy())
        soft = hot.assign(a=[0.5, 2.0], b=[0.5, 1.0]).iloc[::-1]
        inputs = utils.one_hot_dfs_to_log_loss_inputs(soft, hot)
        assert np.allclose(inputs["y_pred"].sum(axis=1), 1)
        assert np.array_equal(inputs["y_true"], [[1, 0], [0, 1]])
        mask = np.array([[0, 1], [1, 1]])
        assert utils.rle_encode(mask) == [2, 3]
        assert np.array_equal(utils.rle_decode("2 3", 2, 2), mask.astype(bool))
        assert len(utils.rles_to_masks(["2 3", ""], [2, 2], [2, 2])) == 2
        pair = utils.prepare_for_accuracy_metric(frame, frame, target_column="author", id_column="id")
        assert list(pair["y_true"]) == list(pair["y_pred"]) == ["a", "b"]
        scores = pd.DataFrame({"id": [1, 2], "p": [0.25, 1.0]})
        pair = utils.prepare_for_auroc_metric(scores, scores, id_col="id", target_col="p")
        assert list(pair["y_score"]) == [0.25, 1.0]
        (tmp_path / "a.tfrec").write_bytes(_tfrecord("image_name", b"ISIC_1") + _tfrecord("image_name", b"ISIC_2"))
        assert utils.get_ids_from_tf_records(tmp_path / "a.tfrec") == ["ISIC_1", "ISIC_2"]

    def test_metrics(self) -> None:
        from mlebench.metrics import average_precision_at_k, dice_coefficient, mean_average_precision_at_k

        assert average_precision_at_k({1, 2}, [1, 3, 2], 2) == 0.5
        assert mean_average_precision_at_k([{1}, {2}], [[1], [3]], 5) == 0.5
        assert dice_coefficient(np.array([1, 0]), np.array([1, 1])) == pytest.approx(2 / 3)
        assert np.isnan(dice_coefficient(np.zeros(3), np.zeros(3)))

    def test_files_beside_the_package(self, competition_id: str) -> None:
        folder = Path(mlebench.__file__).parent / "competitions" / competition_id
        for name in ("config.yaml", "grade.py", "prepare.py", "description.md", "leaderboard.csv", "checksums.yaml"):
            assert (folder / name).is_file(), name
        assert callable(importlib.import_module(f"mlebench.competitions.{competition_id}.grade").grade)
        assert (Path(mlebench.__file__).parent.parent / "environment" / "instructions.txt").is_file()


def _tfrecord(feature: str, value: bytes) -> bytes:
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    example = field(1, field(1, field(1, feature.encode()) + field(2, field(1, field(1, value)))))
    return struct.pack("<Q", len(example)) + bytes(4) + example + bytes(4)


class TestReportOnTheCommandLine:
    @pytest.mark.parametrize("kind", ["valid", "invalid", "missing", "RD-Agent's None", "braces in the path"])
    def test_every_known_parser_finds_the_one_object(self, kind: str, titanic: Competition, tmp_path: Path) -> None:
        (tmp_path / "bad.csv").write_text("{a},b}\n1,2\n")
        (tmp_path / "{braces}.csv").write_text("{}\n{}\n")
        path = {
            "valid": titanic.sample_submission,
            "invalid": tmp_path / "bad.csv",
            "missing": tmp_path / "none.csv",
            "RD-Agent's None": "None",
            "braces in the path": tmp_path / "{braces}.csv",
        }[kind]
        output = _cli("grade-sample", path, titanic.id, "--data-dir", titanic.paths.data_dir)
        assert output.returncode == 0
        report = json.loads(output.stdout)
        assert list(report)[:16] == REPORT_KEYS
        assert report["submission_path"] == str(path)
        assert output.stdout.count("{") == output.stdout.count("}") == 1
        assert "{" not in output.stderr
        assert "}" not in output.stderr
        combined = output.stderr + output.stdout
        greedy = re.search(r"\{.*\}", combined, re.DOTALL)  # RD-Agent
        lazy = re.search(r"\{.*?\}", output.stdout, re.DOTALL)  # FM-Agent
        assert greedy is not None
        assert lazy is not None
        assert json.loads(greedy.group()) == json.loads(lazy.group()) == report
        assert json.loads(combined[combined.index("{") : combined.rindex("}") + 1]) == report

    def test_invalid_submissions_are_reported_on_stderr(self, titanic: Competition, tmp_path: Path) -> None:
        (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
        done = _cli("grade-sample", tmp_path / "bad.csv", titanic.id, "--data-dir", titanic.paths.data_dir)
        assert "Invalid submission: Submission is missing the following columns" in done.stderr

    def test_unprepared_data_fails(self, tmp_path: Path) -> None:
        done = _cli("grade-sample", "x.csv", "spaceship-titanic", "--data-dir", tmp_path)
        assert done.returncode == 1
        assert done.stdout == ""


class TestLogging:
    """In processes of their own: pytest has handlers at the root."""

    @staticmethod
    def _run(program: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(program)]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    def test_a_runner_takes_the_format_of_the_root_loggers_first_handler(self, tmp_path: Path) -> None:
        """The reference's run_agent.py, and every fork of it, in each worker."""
        done = self._run(f"""
            import logging
            from mlebench.utils import get_logger

            logger = get_logger("runner")
            worker = get_logger("{tmp_path}/run")
            to_file = logging.FileHandler("{tmp_path}/run.log")
            to_file.setFormatter(logging.getLogger().handlers[0].formatter)
            worker.addHandler(to_file)
            worker.propagate = False
            worker.info("of the run")
            logger.info("of the runner")
            logger.debug("never")
        """)
        line = r"\[[\d-]+ [\d:,]+\] \[<string>:\d+\] of the "
        assert re.fullmatch(line + "runner\n", done.stderr)
        assert re.fullmatch(line + "run\n", (tmp_path / "run.log").read_text())
        assert done.stdout == ""

    def test_level_and_file_are_those_of_the_first_call(self, tmp_path: Path) -> None:
        done = self._run(f"""
            import logging
            from mlebench.utils import get_logger

            get_logger("a", level=logging.WARNING, filename="{tmp_path}/log").info("too low")
            get_logger("b", level=logging.DEBUG).warning("high enough")
        """)
        assert (tmp_path / "log").read_text().endswith("high enough\n")
        assert len((tmp_path / "log").read_text().splitlines()) == 1
        assert done.stderr == ""

    def test_importing_adds_no_handler(self) -> None:
        self._run("""
            import logging
            import mlebench.utils
            from mlebench.competitions.utils import get_logger

            assert get_logger is mlebench.utils.get_logger
            assert logging.getLogger().handlers == logging.getLogger("mlebench").handlers == []
        """)

    @pytest.mark.parametrize("limits", ["", ", limits=GradingLimits()"], ids=["here", "in its own process"])
    def test_our_lines_appear_once(self, titanic: Competition, tmp_path: Path, limits: str) -> None:
        (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
        done = self._run(f"""
            from pathlib import Path
            from mlebench.grade import GradingLimits, grade_csv
            from mlebench.registry import registry
            from mlebench.utils import get_logger

            get_logger("client")
            competition = registry.set_data_dir({str(titanic.paths.data_dir)!r}).get_competition({titanic.id!r})
            grade_csv(Path({str(tmp_path / "bad.csv")!r}), competition{limits})
        """)
        assert done.stderr.count("Invalid submission:") == 1

    def test_our_commands_say_things_once_whatever_a_folder_does_at_import(
        self, titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Folders written for the reference call `get_logger` when they are imported."""
        folder = tmp_path / "mine" / "calls-get-logger"
        shutil.copytree(titanic.folder, folder)
        for name in ("config.yaml", "description.md"):
            text = (folder / name).read_text(encoding="utf-8").replace(titanic.id, folder.name)
            (folder / name).write_text(text, encoding="utf-8")
        called = "from mlebench.competitions.utils import get_logger\n\nget_logger(__name__).warning('imported')\n"
        (folder / "grade.py").write_text(f"{(folder / 'grade.py').read_text(encoding='utf-8')}\n{called}")
        monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(folder.parent))
        shutil.copytree(titanic.paths.root, tmp_path / "data" / folder.name)
        (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
        done = _cli("grade-sample", tmp_path / "bad.csv", folder.name, "--data-dir", tmp_path / "data")
        assert json.loads(done.stdout)["valid_submission"] is False
        assert done.stderr.count("Invalid submission:") == 1
        assert "imported" in done.stderr


def test_unprepared_data_raises_a_value_error(tmp_path: Path) -> None:
    from mlebench.grade import grade_csv, validate_submission

    competition = Registry(tmp_path).get_competition("spaceship-titanic")
    competition.private_dir.mkdir(parents=True)
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="Private directory is empty"):
        grade_csv(tmp_path / "x.csv", competition)
    with pytest.raises(ValueError, match="Private directory is empty"):
        validate_submission(tmp_path / "x.csv", competition)


def test_a_script_that_prints_a_report_prints_nothing_else(titanic: Competition) -> None:
    program = f"""
import json
from pathlib import Path
from mlebench.grade import grade_csv
from mlebench.registry import registry
competition = registry.set_data_dir(Path({str(titanic.paths.data_dir)!r})).get_competition({titanic.id!r})
print(json.dumps(grade_csv(Path({str(titanic.sample_submission)!r}), competition).to_dict()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["competition_id"] == titanic.id


RUNNER = """
import asyncio, json, logging, shutil, sys
from pathlib import Path

import mlebench.utils
from mlebench.data import is_dataset_prepared
from mlebench.registry import registry

data_dir, runs_dir, *ids = sys.argv[1:]
mlebench.utils.get_runs_dir = lambda: Path(runs_dir)  # beside the package there is no room for a test
from mlebench.utils import create_run_dir, get_logger, get_runs_dir, get_timestamp, purple

logger = get_logger(__name__)


def run(competition, folder, log):
    log.info(purple(f"Run started: {folder}"))
    for name in ("submission", "logs", "code"):
        (folder / name).mkdir()
    shutil.copy(competition.public_dir.resolve() / "sample_submission.csv", folder / "submission" / "submission.csv")


async def worker(queue, outcomes):
    while True:
        competition, folder = await queue.get()
        log = get_logger(str(folder))
        to_file = logging.FileHandler(folder / "run.log")
        to_file.setFormatter(logging.getLogger().handlers[0].formatter)
        log.addHandler(to_file)
        log.propagate = False
        await asyncio.to_thread(run, competition, folder, log)
        outcomes[folder.stem] = {"success": True}
        queue.task_done()


async def main():
    competitions = [registry.set_data_dir(Path(data_dir)).get_competition(id) for id in ids]
    assert all(is_dataset_prepared(competition) for competition in competitions)
    group = f"{get_timestamp()}_run-group_dummy"
    queue, outcomes = asyncio.Queue(), {}
    for _ in range(2):
        for competition in competitions:
            queue.put_nowait((competition, create_run_dir(competition.id, "dummy", group)))
    workers = [asyncio.create_task(worker(queue, outcomes)) for _ in range(2)]
    await asyncio.wait_for(queue.join(), 60)
    for task in workers:
        task.cancel()
    metadata = {"run_group": group, "created_at": get_timestamp(), "runs": outcomes}
    (get_runs_dir() / group / "metadata.json").write_text(json.dumps(metadata))
    logger.info("done")


asyncio.run(main())
"""


def test_the_references_chain_from_runs_to_statistics(titanic: Competition, tmp_path: Path) -> None:
    """The calls and files of its run_agent, make_submission, grade and aggregate_grading_reports."""
    command = [sys.executable, "-c", RUNNER, titanic.paths.data_dir, tmp_path / "runs", titanic.id]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1].endswith("done")
    (metadata,) = (tmp_path / "runs").glob("*_run-group_dummy/metadata.json")
    group, lines = metadata.parent, []
    for run_id in json.loads(metadata.read_text())["runs"]:
        assert "Run started" in (group / run_id / "run.log").read_text()
        submission = group / run_id / "submission" / "submission.csv"
        lines.append(
            {
                "competition_id": run_id.split("_")[0],
                "submission_path": submission.as_posix() if submission.exists() else None,
                "logs_path": None,
                "code_path": None,
            }
        )
    (group / "submission.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    graded = _cli(
        "grade",
        *("--submission", group / "submission.jsonl", "--output-dir", group, "--data-dir", titanic.paths.data_dir),
    )
    assert graded.returncode == 0, graded.stderr
    (path,) = group.glob("*grading_report*.json")
    report = json.loads(path.read_text())
    assert report["total_runs"] == report["total_valid_submissions"] == 2
    by_competition = [str(row["competition_id"]) for row in report["competition_reports"]]
    assert by_competition == [titanic.id, titanic.id]
    for row in report["competition_reports"]:
        assert (row["submission_exists"], row["valid_submission"]) == (True, True)
        for name in ("gold_medal", "silver_medal", "bronze_medal", "above_median"):
            assert isinstance(row[name], bool)


def test_prepare_takes_the_references_flags(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("spaceship-titanic\n")
    for choice in (
        ["-c", "spaceship-titanic"],
        ["--competition-id", "spaceship-titanic"],
        ["-l", str(tmp_path / "ids.txt")],
    ):
        done = _cli(
            "prepare",
            *choice,
            "--data-dir",
            tmp_path / "d",
            "--keep-raw",
            "--skip-verification",
            "--overwrite-checksums",
        )
        assert done.returncode == 1  # there is no raw data; the flags were understood
        assert "no raw data of spaceship-titanic" in done.stderr
    for flag in ("--lite", "-a", "--all", "--list", "--overwrite-leaderboard"):
        assert flag in _cli("prepare", "--help").stdout


def test_a_list_and_the_lite_split_are_prepared_together(tmp_path: Path) -> None:
    lite = registry.get_lite_competition_ids()
    (tmp_path / "ids.txt").write_text(f"spaceship-titanic\n{lite[0]}\n")
    done = _cli("prepare", "--list", tmp_path / "ids.txt", "--lite", "--twin", "--check", "--data-dir", tmp_path / "d")
    assert done.returncode == 0, done.stderr
    _, *rows = done.stdout.splitlines()
    assert sorted(row.split()[0] for row in rows) == sorted([*lite, "spaceship-titanic"])


def test_descriptions_go_to_stdout_as_they_are(titanic: Competition) -> None:
    whole, body = (_cli("show", titanic.id, "--description", kind).stdout for kind in ("ours", "obfuscated"))
    assert whole == titanic.description
    assert body == titanic.obfuscated_description
    assert "Titanic" not in body


def test_a_plain_installation_prepares_and_downloads_all_and_older_install_lines_work() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"kaggle", "py7zr", "six"} <= {line.partition(">")[0] for line in project["dependencies"]}
    assert "kaggle" in project["dependencies"], "clients pin 1.6.3, 1.6.17 and 1.7.4.2: it must have no lower bound"
    assert {name: project["optional-dependencies"][name] for name in ("kaggle", "7z")} == {"kaggle": [], "7z": []}
