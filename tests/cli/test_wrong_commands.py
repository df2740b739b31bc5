"""A wrong command line gets one line that says what to do, never a traceback."""

import re
import sys
from pathlib import Path

import pytest

from mlebench.cli import main

SUBMIT = "grade-sample s.csv spaceship-titanic"
RUN = "run --agent dummy -c spaceship-titanic"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (
            "prepare -c spaceship-titanic --jobs 0",
            2,
            "'--jobs': 0 is not in the range x>=1. See `mlebench prepare --help`",
        ),
        ("prepare -c spaceship-titanic --twin --size nan", 2, "'--size': 'nan' is not a number"),
        ("prepare -c spaceship-titanic --twin --size inf", 2, "'--size': 'inf' is not a number"),
        ("prepare -c spaceship-titanic --twin --seed -1", 2, "'--seed': -1 is not in the range"),
        ("prepare --list bytes --twin", 2, "bytes is not UTF-8 text"),
        ("twin spaceship-titanic --seed 4294967296", 2, "'--seed': 4294967296 is not in the range"),
        (f"{SUBMIT} --max-bytes 5X", 2, "'5X' is not a size; write 440g, 512m or a number of bytes"),
        (f"{SUBMIT} --data-dir bytes", 2, "'bytes' is a file"),
        ("grade group --time-limit 0", 2, "a time must be greater than 0"),
        ("grade group --memory 0", 2, "a size must be greater than 0"),
        ("grade folder", 1, "the folder folder is not a run group"),
        ("grade group --submission s.jsonl", 2, "cannot be combined with a run group"),
        (f"{RUN} --cpus nan", 2, "'--cpus': 'nan' is not a number"),
        (f"{RUN} --seeds -1", 2, "-1 is not in the range x>=1"),
        (f"{RUN} --list bytes", 2, "bytes is not UTF-8 text"),
        (f"{RUN} --list nowhere", 2, "'nowhere' does not exist"),
        (
            "run --agent dumy -c spaceship-titanic",
            1,
            "there is no agent 'dumy', neither as a folder nor built in; did you mean dummy?",
        ),
        ("agents new work/mine", 1, "--folder says where to create it"),
        ("run --agent dummy spaceship-titanic", 2, "name competitions with -c, --split or --list"),
        (f"{RUN} --data-dir folder", 1, "try a twin: `mlebench prepare -c spaceship-titanic --twin`"),
        ("report bytes", 1, "bytes is not JSON"),
        ("report bytes --power nan", 2, "'--power': 'nan' is not a number"),
        ("report --experiment e", 1, "run_group_experiments.csv: No such file or directory; name another with --table"),
        ("report --experiment e --table bytes", 1, "bytes needs the columns experiment_id and run_group"),
        ("runs --json list x", 2, "--json belongs after `list`"),
        ("agents --json show dummy", 2, "--json belongs after `show`"),
        ("inspect failures bytes", 1, "bytes, line 1: there is no JSON object with a `competition_id`"),
        ("inspect failures lines -o nowhere/x", 1, "cannot write nowhere/x: No such file or directory"),
        ("view folder --runs-dir folder", 2, "give DIR or --runs-dir, not both"),
        ("view --host 192.0.2.1", 1, "cannot listen on 192.0.2.1:8765: "),
        ("agents install baseline --python nopython", 1, "there is no nopython: name another with --python"),
    ],
)
def test_one_line_says_what_to_do(
    line: str,
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    (tmp_path / "lines").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SystemExit) as end:
        main(line.split())
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (code, ""), err
    assert re.fullmatch(r"Error: .*\n", err), err
    assert words in err


def test_without_ray_nothing_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    folders = ["--data-dir", str(tmp_path / "twins"), "--runs-dir", str(tmp_path / "runs")]
    with pytest.raises(SystemExit) as end:
        main([*RUN.split(), "--twin", "--executor", "ray", "--ray-address", "HOST:6379", *folders])
    assert (end.value.code, "needs Ray" in capsys.readouterr().err) == (1, True)
    assert not (tmp_path / "runs").exists()
