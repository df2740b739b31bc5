"""What is reported about long work, and what is shown."""

import io
import json
import logging
import re
import shutil
import zipfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from support.progress import RecordingProgress

from mlebench.cli import console as console_module
from mlebench.cli.console import watching
from mlebench.cli.progress_bars import Bars
from mlebench.core import paths
from mlebench.data.pipeline import Options, prepare
from mlebench.data.sources import PathSource, TwinSource
from mlebench.engine import progress as engine_progress
from mlebench.engine import raw_streams
from mlebench.engine.records import jsonlines
from mlebench.kit import Output, Raw, md5_of
from mlebench.kit.outputs import run_prepare
from mlebench.registry import Registry

MB = 1_000_000
MD5_OF_ZEROS = "8649ae5a732bc808f228677b27a1e9b6"  # head -c 5000000 /dev/zero | md5sum
NAME = "nomad2018-predict-transparent-conductors"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(console_module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def _terminal(clock: SimpleNamespace, width: int = 80) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=None,
        width=width,
        get_time=lambda: clock.now,
        _environ={"TERM": "xterm"},
    )


def _lines(console: Console) -> list[str]:
    """All lines that were ever shown, with runs of blanks collapsed."""
    assert isinstance(console.file, io.StringIO)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", console.file.getvalue())
    return [" ".join(line.split()) for line in re.split(r"[\r\n]+", text) if line.strip()]


def test_the_total_adds_up_running_and_ended_items(clock: SimpleNamespace) -> None:
    console = _terminal(clock)
    with Bars(["a", "b"], console, redirect_stdout=False) as bars:
        watch = bars.items
        watch["a"].tell("getting the data", 0, None)
        watch["a"].tell("downloading", 0, 100 * MB)
        assert _lines(console)[-2:] == ["0 of 2 done 0.0 of 100.0+ MB", "a downloading 0.0 of 100.0 MB"]
        watch["a"].tell("downloading", 100 * MB, 100 * MB)
        clock.now = 10
        watch["b"].tell("preparing", 0, 300 * MB)
        assert _lines(console)[-3] == "0 of 2 done 100.0 of 400.0 MB 10 MB/s 0:00:30"
        watch["a"].tell("checking the archive", 0, 100 * MB)
        assert _lines(console)[-3] == "0 of 2 done 100.0 of 500.0 MB 10 MB/s 0:00:40"
        watch["b"].tell("preparing", 150 * MB, 300 * MB)
        clock.now = 20
        watch["a"].end()
        assert _lines(console)[-2:] == [
            "1 of 2 done 250.0 of 400.0 MB 12.5 MB/s 0:00:12",
            "b preparing 150.0 of 300.0 MB 15 MB/s 0:00:10",
        ]


def test_a_second_pass_keeps_the_pace_of_the_first(clock: SimpleNamespace) -> None:
    console = _terminal(clock)
    with Bars(["a"], console, redirect_stdout=False) as bars:
        for total in (1000 * MB, 500 * MB):
            for done in range(0, total + 1, 10 * MB):
                bars.items["a"].tell("reading", done, total)
                bars.refresh()
                clock.now += 1
    shown = [re.search(r" (\S+) MB/s (\S+)$", line) for line in _lines(console)]
    rates = [float(match[1]) for match in shown if match]
    assert len(rates) >= 150
    assert 9 < min(rates) <= max(rates) == 10
    assert not [match[2] for match in shown if match and match[2].startswith("-")]


def test_the_rate_falls_during_a_stall_and_starts_anew_with_each_stage(clock: SimpleNamespace) -> None:
    console = _terminal(clock)
    with Bars(["a"], console, redirect_stdout=False) as bars:
        bars.items["a"].tell("downloading", 40 * MB, 90 * MB)  # of which 40 were there
        bars.items["a"].tell("downloading", 60 * MB, 90 * MB)
        clock.now = 10
        bars.refresh()
        assert _lines(console)[-1] == "a downloading 60.0 of 90.0 MB 2 MB/s 0:00:15"
        clock.now = 20
        bars.refresh()
        assert _lines(console)[-1] == "a downloading 60.0 of 90.0 MB 1 MB/s 0:00:30"
        clock.now = 60
        bars.refresh()
        assert _lines(console)[-1] == "a downloading 60.0 of 90.0 MB"
        bars.items["a"].tell("unpacking", 5 * MB)
        assert _lines(console)[-1] == "a unpacking 5 MB", "no total any more"


def test_progress_needs_no_stdout(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    with Bars(["a"], _terminal(clock), redirect_stdout=False) as bars:
        bars.items["a"].tell("preparing", 0, MB)
    monkeypatch.setattr("sys.stderr", None)
    with watching(["a"]) as watch:
        watch["a"].tell("preparing", 0, MB)


def test_the_total_never_goes_back(clock: SimpleNamespace) -> None:
    console = _terminal(clock)
    events = [
        ("downloading", 40 * MB, 90 * MB),  # continues with what is there, which is not work done now
        ("downloading", 70 * MB, 90 * MB),
        ("downloading", 0, 90 * MB),  # Kaggle has another archive
        ("downloading", 90 * MB, 90 * MB),
        ("unpacking", 0, None),
        ("reading", 0, 50 * MB),
        ("reading", 50 * MB, 50 * MB),
        ("reading", 0, 50 * MB),
        ("preparing", 0, 60 * MB),
        ("preparing", 30 * MB, 60 * MB),
        ("reading", 20 * MB, 50 * MB),
        ("preparing", 60 * MB, 60 * MB),
    ]
    with Bars(["a", "b"], console, redirect_stdout=False) as bars:
        for event in events:
            bars.items["a"].tell(*event)
        bars.items["a"].end()
    shown = [re.search(r"done ([\d.]+)", line) for line in _lines(console)]
    figures = [float(match[1]) for match in shown if match]
    assert figures == sorted(figures)
    assert figures[-1] == 30 + 90 + 50 + 20 + 60


@pytest.mark.parametrize(
    ("width", "seen"),
    [
        (40, rf"{NAME[:18]}\S*… 20\.0 of 80\.0 MB"),
        (60, rf"{NAME[:20]}\S*… preparing 20\.0 of 80\.0 MB"),
        (80, rf"{NAME[:20]}\S*… preparing 20\.0 of 80\.0 MB 2 MB/s 0:00:30"),
        (120, rf"{NAME} preparing ━\S+ 20\.0 of 80\.0 MB 2 MB/s 0:00:30"),
    ],
)
def test_a_narrow_terminal_keeps_names_and_bytes(clock: SimpleNamespace, width: int, seen: str) -> None:
    console = _terminal(clock, width)
    with Bars([NAME, "b"], console, redirect_stdout=False) as bars:
        bars.items[NAME].tell("preparing", 0, 80 * MB)
        bars.items[NAME].tell("preparing", 20 * MB, 80 * MB)
        clock.now = 10
        bars.items["b"].end()
        assert re.fullmatch(seen, _lines(console)[-1])


def test_without_a_terminal_a_line_comes_at_most_every_half_minute(
    clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), watching(["a", "b"]) as watch:
        for now, stage, done in [(0, "downloading", 0), (29, "downloading", 1), (30, "preparing", 1200), (59, "x", 1)]:
            clock.now = now
            watch["a"].tell(stage, done * MB, 5700 * MB)
        watch["b"].tell("unpacking", 0, None)
        clock.now = 99
        watch["b"].tell("unpacking", 0, None)
        watch["a"].end()
    assert caplog.messages == ["a: downloading", "a: preparing, 1.2 of 5.7 GB", "b: unpacking", "b: unpacking"]


def _look(raw: Raw, public: Output, private: Output) -> None:
    """Reads files of all kinds before it says what to write."""
    table, records = raw.table("train.csv"), raw.records("train.jsonl", chunk_lines=5)
    public.write("train.csv", table.take([row for row, value in enumerate(table["a"]) if value % 2]))
    private.write_records("train.jsonl", records.take([len(list(records["a"])) - 1]))
    public.write_json("count.json", sum(block.count(b"\n") for block in raw.line_blocks("text.txt")))


@pytest.mark.parametrize("archived", [False, True])
def test_reading_a_large_file_reports_progress_before_anything_is_written(
    tmp_path: Path, archived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_streams, "WATCHED_BYTES", 0)
    monkeypatch.setattr(jsonlines, "STREAM_BYTES", 0)
    files = {
        "train.csv": b"a,b\n" + b"".join(b"%d,x\n" % row for row in range(50)),
        "train.jsonl": b"".join(b"%s\n" % json.dumps({"a": row}).encode() for row in range(30)),
        "text.txt": b"one\ntwo\n",
    }
    (tmp_path / "raw").mkdir()
    for name, content in files.items():
        (tmp_path / "raw" / name).write_bytes(content)
    source = tmp_path / "raw"
    if archived:
        source = tmp_path / "raw.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    recorder = RecordingProgress()
    run_prepare(_look, source, tmp_path / "public", tmp_path / "private", recorder)
    events = recorder.events
    order = ["planning", "reading", "printing", "preparing", "checking"]
    assert [stage for stage, _ in groupby(recorder.stages)] == order
    read = {total for stage, done, total in events if stage == "reading" and done == total}
    assert read == set(map(len, files.values()))
    prepared = [event for event in events if event[0] == "preparing"]
    total = len(files["train.csv"]) + len(files["train.jsonl"])
    assert (prepared[0], prepared[-1]) == (("preparing", 0, total), ("preparing", total, total))


def test_small_files_report_progress_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_progress, "TOLD_BYTES", 1)
    (tmp_path / "raw").mkdir()
    for number in range(50):
        (tmp_path / "raw" / f"{number}.json").write_text('"%s"' % ("x" * 98))

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.write_json("all.json", [raw.json(file.name) for file in raw.files("*.json")])

    recorder = RecordingProgress()
    run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private", recorder)
    assert [event for event in recorder.events if event[0] == "reading"] == [
        ("reading", 100 * number, None) for number in range(51)
    ]


def test_packing_files_reports_progress(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for number in range(4):
        (tmp_path / "raw" / f"{number}.png").write_bytes(bytes(MB * 2))

    def pack(raw: Raw, public: Output, private: Output) -> None:
        public.pack("all.zip", {file.name: file for file in raw.files("*.png")})

    recorder = RecordingProgress()
    run_prepare(pack, tmp_path / "raw", tmp_path / "public", tmp_path / "private", recorder)
    events = [(done, total) for stage, done, total in recorder.events if stage == "preparing"]
    assert len(events) > 4
    assert events == sorted(events)
    assert (events[0], events[-1]) == ((0, 8 * MB), (8 * MB, 8 * MB))


def test_reading_and_printing_json_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_streams, "WATCHED_BYTES", MB)
    (tmp_path / "raw").mkdir()
    images = [{"id": number, "name": "x" * 500} for number in range(20_000)]
    (tmp_path / "raw" / "all.json").write_text(json.dumps({"images": images, "licences": images[:9000]}))

    def copy(raw: Raw, public: Output, private: Output) -> None:
        public.write_json("all.json", raw.json_with_records("all.json", "images"), indent=4)
        private.write_json("all.json", raw.json("all.json"))

    recorder = RecordingProgress()
    run_prepare(copy, tmp_path / "raw", tmp_path / "public", tmp_path / "private", recorder)
    assert list(dict.fromkeys(recorder.stages))[:5] == ["planning", "reading", "parsing", "printing", "preparing"]
    size = (tmp_path / "raw" / "all.json").stat().st_size
    assert recorder.events.count(("reading", size, size)) == 2
    assert recorder.events.count(("parsing", 0, size)) == 2
    parsed = [done for stage, done, _ in recorder.events if stage == "parsing"]
    assert any(0 < done < size for done in parsed), "list by list"
    assert told_at_ends(parsed) == [size, size]
    printed = [done for stage, done, _ in recorder.events if stage == "printing"]
    assert len(printed) > 6, "several steps for each file"
    written = [tmp_path / side / "all.json" for side in ("public", "private")]
    assert sum(path.stat().st_size for path in written) - sum(told_at_ends(printed)) < 2 * MB


def told_at_ends(done: list[int]) -> list[int]:
    """The last of each run of growing figures."""
    return [here for here, after in zip(done, [*done[1:], 0], strict=True) if after < here]


def test_computing_an_md5_reports_progress(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(5 * MB))
    recorder = RecordingProgress()
    assert md5_of(tmp_path / "file", recorder.stage("md5", 5 * MB)) == md5_of(tmp_path / "file") == MD5_OF_ZEROS
    assert len(recorder.events) > 2
    assert recorder.events[-1] == ("md5", 5 * MB, 5 * MB)


def test_stages_of_a_prepare_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_streams, "WATCHED_BYTES", 1)
    monkeypatch.setattr(engine_progress, "TOLD_BYTES", 1)
    raw = TwinSource().fetch(Registry(tmp_path / "twin").get_competition(NAME))
    archive = Path(shutil.make_archive(str(tmp_path / NAME), "zip", raw))
    checksums = tmp_path / "checksums.yaml"
    checksums.write_text(f"zip: {md5_of(archive)}")
    competition = Registry(tmp_path / "data").get_competition(NAME)
    competition = replace(competition, checksums=checksums, sample_score=None)
    recorder = RecordingProgress()
    prepare(competition, PathSource(archive), Options(keep_raw=True), recorder)
    events, stages = recorder.events, list(dict.fromkeys(recorder.stages))
    work = ["checking the archive", "unpacking", "planning", "reading", "preparing", "checking", "grading gold"]
    assert stages[-9:] == [*work, "sharing files", "tidying up"]
    for stage in ("checking the archive", "unpacking", "reading", "preparing"):
        assert any(done == total and total for name, done, total in events if name == stage), stage
    assert ("checking the archive", archive.stat().st_size, archive.stat().st_size) in events
    listed = competition.paths.prepared / paths.MANIFEST_FILES
    assert ("checking", listed.stat().st_size, None) in events, "the list of files may be long"
