"""The command line as a person or a script sees it, in a separate process where streams matter."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mlebench.cli.verbs import VERBS
from mlebench.registry import Competition, Registry


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlebench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize("module", ["mlebench", "mlebench.cli"])
def test_both_modules_run(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
    assert all(verb in done.stdout for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str) -> None:
    done = run(verb, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: mlebench {verb}")


def test_prepare_list_show_grade_and_validate_on_a_twin(tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = run("prepare", "-c", "spaceship-titanic", "--twin", "--data-dir", data)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    sample = data / "spaceship-titanic/prepared/public/sample_submission.csv"

    rows = json.loads(run("list", "--json", "--data-dir", data).stdout)
    assert {row["id"]: row["prepared"] for row in rows}["spaceship-titanic"] is True
    assert "spaceship-titanic" in run("list", "--split", "dev", "--data-dir", data).stdout

    facts = json.loads(run("show", "spaceship-titanic", "--json", "--data-dir", data).stdout)
    assert (facts["teams"], facts["prepared"]) == (2288, True)
    assert [(issue["id"], issue["kind"]) for issue in facts["known_issues"]] == [("S15", "split")]

    done = run("grade-sample", sample, "spaceship-titanic", "--data-dir", data)
    assert done.returncode == 0
    assert json.loads(done.stdout)["source"] == "twin"

    done = run("validate", sample, "spaceship-titanic", "--data-dir", data)
    assert (done.returncode, json.loads(done.stdout)["is_valid"]) == (0, True)
    done = run("validate", data / "spaceship-titanic/raw/train.csv", "spaceship-titanic", "--data-dir", data)
    assert (done.returncode, json.loads(done.stdout)["is_valid"]) == (1, False)


def test_grade_writes_a_summary_and_prints_its_counts(titanic: Competition, tmp_path: Path) -> None:
    entries = tmp_path / "submissions.jsonl"
    entries.write_text(json.dumps({"competition_id": titanic.id, "submission_path": str(titanic.gold_submission)}))
    done = run("grade", "--submission", entries, "--output-dir", tmp_path / "out", "--data-dir", titanic.paths.data_dir)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total_gold_medals"] == 1
    assert len(list((tmp_path / "out").iterdir())) == 1
    done = run("grade", "--submission", entries, "--output-dir", tmp_path / "out2", "--data-dir", tmp_path / "empty")
    assert done.returncode == 1
    assert json.loads(done.stdout)["total_runs"] == 1


def test_grade_says_when_there_is_nothing_to_grade(tmp_path: Path) -> None:
    entries = tmp_path / "submissions.jsonl"
    entries.write_text("# none yet\n\n")
    done = run("grade", "--submission", entries, "--output-dir", tmp_path / "out")
    assert done.returncode == 0  # as in the reference, which scripts may rely on
    assert "submissions.jsonl names no submission, so there is nothing to grade" in done.stderr
    assert json.loads(done.stdout)["total_runs"] == len(list((tmp_path / "out").iterdir())) - 1 == 0


def test_twin_makes_only_raw_data(tmp_path: Path) -> None:
    done = run("twin", "spaceship-titanic", "--seed", 4, "--size", 0.5, "--data-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    raw = Path(done.stdout.strip())
    assert raw == tmp_path / "spaceship-titanic" / "raw"
    assert (raw / "train.csv").is_file()
    assert not (raw.parent / "prepared").exists()


def test_prepare_continues_after_a_failure_and_says_what_failed(tmp_path: Path) -> None:
    listing = tmp_path / "ids.txt"
    listing.write_text("no-such-competition\nspaceship-titanic\n")
    done = run("prepare", "-l", listing, "--twin", "--data-dir", tmp_path / "d")
    assert done.returncode == 1
    assert "1 of 2 prepared" in done.stderr
    assert "no-such-competition: failed: there is no competition" in done.stderr
    assert "spaceship-titanic: prepared" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "spaceship-titanik"], 2, "did you mean spaceship-titanic?"),
        (["prepare", "-c", "spaceship-titanik"], 2, "did you mean spaceship-titanic"),
        (["grade-sample", "x.csv", "nope"], 2, "no competition"),
        (
            ["grade-sample", "x.csv", "spaceship-titanic", "--data-dir", "empty"],
            1,
            "mlebench prepare -c spaceship-titanic",
        ),
        (["validate", "x.csv", "spaceship-titanic", "--data-dir", "empty"], 1, "does not exist"),
        (["prepare"], 2, "-c ID"),
        (["prepare", "-c", "spaceship-titanic", "--data-dir", "empty"], 1, "--twin"),
        (["prepare", "--split", "tiny"], 2, "no split"),
        (["list", "--split", "tiny"], 2, "no split"),
        (["twin"], 2, "--split"),
        (["dev", "download-leaderboard"], 2, "--all"),
        (["grade", "--submission", "none.jsonl", "--output-dir", "out"], 1, "none.jsonl"),
        (["frobnicate"], 2, "no command"),
        (["report", "/gone/group"], 1, "there is no run group '/gone/group'"),
        (["report", "gone**"], 1, "there is no run group 'gone**'"),
        (["report", "."], 1, "the folder . is not a run group"),
        (["runs", "show", "/gone/run**"], 1, "there is no run '/gone/run**'"),
    ],
)
def test_bad_input_gets_one_clear_error(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("Error:")]) <= 1


def test_a_corrupt_archive_ends_with_one_line(tmp_path: Path) -> None:
    archive = tmp_path / "spaceship-titanic" / "spaceship-titanic.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("train.csv", "PassengerId,Transported\n" * 100)
    archive.write_bytes(archive.read_bytes()[:-30])
    done = run("prepare", "-c", "spaceship-titanic", "--skip-verification", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert "spaceship-titanic.zip" in done.stderr
    assert "Traceback" not in done.stderr


def test_dev_download_leaderboard_finds_the_packaged_one() -> None:
    done = run("dev", "download-leaderboard", "-c", "spaceship-titanic")
    assert done.returncode == 0
    assert done.stdout.strip().endswith("leaderboard.csv")


def test_doctor_has_a_line_for_each_concern(tmp_path: Path) -> None:
    done = run("doctor", "--data-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    for what in ("python", "data dir", "disk", "prepared", "kaggle login", "docker", "bubblewrap", "GPUs"):
        (line,) = re.findall(rf"^(?:ok|note|bad) +{what}  .*$", done.stdout, re.MULTILINE)
        assert line.startswith("ok") or len(re.split(r"  +", line)) == 4, f"{line!r} does not say what to do"


def test_a_sample_without_a_score_is_null_in_json() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    printed = run("show", "us-patent-phrase-to-phrase-matching", "--json").stdout
    assert json.loads(printed, parse_constant=refuse)["sample_score"] is None


def test_demo_runs_an_agent_on_twelve_twins_and_works_twice(tmp_path: Path) -> None:
    first = run("demo", "--data-dir", tmp_path / "twins")
    assert first.returncode == 0, first.stderr
    header, *rows = first.stdout.splitlines()
    assert header.split()[:4] == ["competition", "agent", "ended", "score"]
    assert len(rows) == 12
    assert all(row.split()[1:3] == ["dummy", "finished"] for row in rows)
    assert {row.split()[0] for row in rows} <= set(Registry().list_competition_ids())
    assert "The agent baseline is left out: not installed: run `mlebench agents install baseline`" in first.stderr
    assert not (tmp_path / "twins-runs").exists(), "the user's own runs are elsewhere"
    page = tmp_path / "twins-demo" / "pages" / "index.html"
    first_result, first_page = first.stderr.index("spaceship-titanic: dummy scored"), first.stderr.index(str(page))
    assert first_result < first_page < first.stderr.index("ventilator-pressure-prediction")
    assert "mlebench demo made synthetic data of 12 competitions, ran dummy on it" in page.read_text()
    for who in ("You have an agent", "You want real data", "You write competitions"):
        assert re.search(rf"{who}: +mlebench [a-z]", first.stderr)
    made = {folder.name for folder in (tmp_path / "twins-demo" / "runs").iterdir()}
    assert run("demo", "--data-dir", tmp_path / "twins").stdout == first.stdout
    made_again = {folder.name for folder in (tmp_path / "twins-demo" / "runs").iterdir()}
    assert len(made_again) == len(made)
    assert made_again.isdisjoint(made), "a second demo replaces the runs of the first"
