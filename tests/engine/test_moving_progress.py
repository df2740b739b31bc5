"""Progress of long work: it moves during the work, never goes back, and ends at its total."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Literal

import numpy as np
import pandas as pd
import py7zr
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.progress import RecordingProgress

from mlebench.data.manifest import with_checksums
from mlebench.engine import parquet, progress, raw_streams, row_order, tables
from mlebench.engine.archives import read_7z, zip_tree
from mlebench.engine.csv import blocks
from mlebench.engine.output import placements
from mlebench.engine.output.folder_plan import SAMPLED, Sizes
from mlebench.engine.records import jsonlines
from mlebench.engine.trees import COPY_BYTES, FolderTree, TreeFile
from mlebench.kit import Output, Raw, Table, open_raw
from mlebench.kit.outputs import run_prepare

FILES = {f"word{number % 3}/{number}.wav": bytes([number]) * (100 + 37 * number) for number in range(60)}


@pytest.fixture(autouse=True)
def every_byte_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TOLD_BYTES", 1)


def _moves(recorder: RecordingProgress, stage: str, least: int = 10) -> int:
    """Check what was reported about a stage; returns its total."""
    events = [(done, total) for name, done, total in recorder.events if name == stage]
    amounts, totals = [done for done, _ in events], {total for _, total in events}
    assert len(totals) == 1, totals
    (total,) = totals
    assert total
    assert amounts[0] == 0
    assert amounts == sorted(amounts)
    assert amounts[-1] == total
    assert len(set(amounts)) > least, "it moves all the time, not once at the end"
    steps = np.diff(amounts)
    assert steps.max() < total / 2, "and not in one great leap"
    return total


def _seven_zip(path: Path) -> None:
    for number in range(3):  # each call adds files that are packed as one stream
        with py7zr.SevenZipFile(path, "a" if number else "w", filters=[{"id": py7zr.FILTER_DEFLATE}]) as archive:
            for name, content in FILES.items():
                if name.startswith(f"word{number}"):
                    archive.writestr(content, name)


def _tar(mode: Literal["w", "w:gz"]) -> Callable[[Path], None]:
    def pack(path: Path) -> None:
        chance = np.random.default_rng(0)
        with tarfile.open(path, mode) as archive:
            for name, content in FILES.items():
                info = tarfile.TarInfo(name)
                info.size = len(content) * 40
                archive.addfile(info, io.BytesIO(chance.bytes(info.size)))

    return pack


@pytest.mark.parametrize(
    ("name", "pack", "total"),
    [
        ("a.7z", _seven_zip, sum(map(len, FILES.values()))),
        ("a.tar", _tar("w"), None),
        ("a.tar.gz", _tar("w:gz"), None),
    ],
)
def test_unpacking_an_archive_reports_progress(
    tmp_path: Path, name: str, pack: Callable[[Path], None], total: int | None
) -> None:
    pack(tmp_path / name)
    recorder = RecordingProgress()
    with open_raw(tmp_path, tmp_path, recorder) as raw:
        assert len(raw.archive(name).files("**")) == len(FILES)
    assert _moves(recorder, "unpacking") == (total or (tmp_path / name).stat().st_size)
    if name.endswith("tar.gz"):
        recorder.events.clear()
        with open_raw(tmp_path, tmp_path, recorder) as raw:
            assert raw.member_names(name) == sorted(FILES)
        _moves(recorder, "reading")


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A raw folder with 3,000 rows as parquet, CSV and JSON lines, all worked on in small pieces."""
    frame = pd.DataFrame({"id": range(3000), "text": [f"text number {row}" for row in range(3000)]})
    (tmp_path / "raw").mkdir()
    frame.to_parquet(tmp_path / "raw/t.parquet", row_group_size=500)
    frame.to_csv(tmp_path / "raw/t.csv", index=False)
    frame.to_json(tmp_path / "raw/t.jsonl", orient="records", lines=True)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 100)
    monkeypatch.setattr(parquet, "WATCHED_BYTES", 0)
    monkeypatch.setattr("mlebench.engine.csv.csv_source.STREAM_BYTES", 0)
    monkeypatch.setattr(tables, "STREAM_BYTES", 0)
    monkeypatch.setattr(jsonlines, "STREAM_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2000)
    monkeypatch.setattr(row_order, "BUCKET_BYTES", 2000)
    return tmp_path / "raw"


def test_reading_a_parquet_column_reports_progress(rows: Path) -> None:
    recorder = RecordingProgress()
    with open_raw(rows, rows.parent, recorder) as raw:
        table = raw.table("t.parquet")
        assert table["text"][2999] == "text number 2999"
        _moves(recorder, "reading")
        recorder.events.clear()
        assert table.take(np.arange(0, 3000, 7))["text"][1] == "text number 7"
        _moves(recorder, "reading")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_writing_tables_reports_progress(rows: Path, name: str, shuffled: bool) -> None:
    order = np.random.default_rng(0).permutation(3000) if shuffled else np.arange(3000)

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        table = raw.table(name)
        public.write(name, table.take(order[:2500]))
        private.write(name, table.take(order[2500:]).assign(fold=1))

    recorder = RecordingProgress()
    run_prepare(prepare, rows, rows.parent / "public", rows.parent / "private", recorder)
    assert _moves(recorder, "preparing", least=20) == (rows / name).stat().st_size
    assert recorder.stages[-1] == "checking"
    read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    assert read(rows.parent / "private" / name)["id"].tolist() == order[2500:].tolist()


def test_writing_columns_from_memory_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PRINTED_ROWS", 100)
    (tmp_path / "raw").mkdir()
    table = Table.from_columns({"id": np.arange(3000), "text": [f"text number {row}" for row in range(3000)]})

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.write("a.csv", table)
        private.write("b.csv", table.select("id"))

    recorder = RecordingProgress()
    run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private", recorder)
    assert _moves(recorder, "preparing", least=50) == 3000 * 2 * 8


@pytest.mark.parametrize("placed", [False, True])
def test_checking_results_reports_progress(rows: Path, placed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet that was written, and tables that were placed."""
    monkeypatch.setattr(raw_streams, "WATCHED_BYTES", 1)
    monkeypatch.setattr(parquet, "HASHED_ROWS", 100)
    monkeypatch.setattr(raw_streams, "COPY_BYTES", 1000)

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        if placed:
            public.place(raw.file("t.csv"), "t.csv")
        else:
            public.write("t.parquet", raw.table("t.parquet"))

    recorder = RecordingProgress()
    made = run_prepare(prepare, rows, rows.parent / "public", rows.parent / "private", recorder)
    assert recorder.events.pop() == ("checking", 0, None)
    ((name, facts),) = with_checksums(rows.parent, made, recorder)
    assert _moves(recorder, "checking") == facts["size"]
    events = len(recorder.events)
    assert dict(made)[name]["size"] == facts["size"]
    assert len(recorder.events) == events, "what is known is not read again"


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_sorting_rows_reports_progress_after_reading(rows: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much of the work comes after the last row has been read; it must not be reported as done."""
    recorder, at_the_end = RecordingProgress(), []
    finish = row_order.BucketWriter.finish

    def spy(writer: row_order.BucketWriter, advance: Callable[[float], None]) -> None:
        at_the_end.append(recorder.events[-1][1])
        finish(writer, advance)

    monkeypatch.setattr(row_order.BucketWriter, "finish", spy)
    order = np.random.default_rng(0).permutation(3000)

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        if name == "t.csv":
            public.write(name, raw.table(name).take(order))
        else:
            public.write_records(name, raw.records(name, chunk_lines=100).take(order))

    run_prepare(prepare, rows, rows.parent / "public", rows.parent / "private", recorder)
    assert 0.55 < at_the_end[0] / _moves(recorder, "preparing") < 0.65


def test_writing_arrays_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlebench.engine.arrays.BLOCK_BYTES", 4000)
    (tmp_path / "raw").mkdir()
    frames = np.arange(120_000.0).reshape(3000, 40)
    np.save(tmp_path / "raw/frames.npy", frames)
    kept = np.arange(0, 3000, 2)
    recorder = RecordingProgress()
    run_prepare(
        lambda raw, public, _: public.write_array("frames.npy", raw.array("frames.npy"), kept),
        tmp_path / "raw",
        tmp_path / "public",
        tmp_path / "private",
        recorder,
    )
    assert (np.load(tmp_path / "public/frames.npy") == frames[kept]).all()
    assert _moves(recorder, "preparing") == (tmp_path / "public/frames.npy").stat().st_size


@pytest.mark.parametrize("format", ["zip", "tar", "tar.gz", "7z"])
def test_packing_files_reports_bytes_read(tmp_path: Path, format: str) -> None:
    (tmp_path / "raw").mkdir()
    for name, content in FILES.items():  # which shrink a lot when they are packed
        (tmp_path / "raw" / name.replace("/", "-")).write_bytes(content)

    def prepare(raw: Raw, public: Output, private: Output) -> None:
        public.pack(f"all.{format}", {file.name: file for file in raw.files("*")}, deflate=True)

    recorder = RecordingProgress()
    run_prepare(prepare, tmp_path / "raw", tmp_path / "public", tmp_path / "private", recorder)
    assert _moves(recorder, "preparing") == sum(map(len, FILES.values()))


def test_placing_one_large_file_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_tree, "WHOLE_BYTES", 0)
    size = 20 * COPY_BYTES
    with zipfile.ZipFile(tmp_path / "raw.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("movie.bin", bytes(size))
    recorder = RecordingProgress()
    run_prepare(
        lambda raw, public, _: public.place(raw.file("movie.bin"), "movie.bin"),
        tmp_path / "raw.zip",
        tmp_path / "public",
        tmp_path / "private",
        recorder,
    )
    assert _moves(recorder, "preparing") == size


def test_planning_many_files_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placements, "RUN", 10)
    (tmp_path / "raw").mkdir()
    for number in range(95):
        (tmp_path / "raw" / f"{number}.png").touch()

    recorder = RecordingProgress()
    run_prepare(
        lambda raw, public, _: public.place_each((file, file.name) for file in raw.files("*")),
        tmp_path / "raw",
        tmp_path / "public",
        tmp_path / "private",
        recorder,
    )
    planned = [done for stage, done, _ in recorder.events if stage == "planning"]
    assert planned == sorted(set(planned))
    assert len(planned) == 1 + 9


@pytest.mark.parametrize("table", ["000.csv", "500.csv", "500.jpg"])
def test_one_large_file_among_many_counts_once(tmp_path: Path, table: str) -> None:
    for number in range(4 * SAMPLED):
        (tmp_path / f"{number:03}.jpg").write_bytes(bytes(100 + number % 10))
    large = 5_000_000
    (tmp_path / table).write_bytes(bytes(large))
    tree = FolderTree(tmp_path)
    files = [TreeFile(tree, name) for name in tree.glob("*")]
    sizes = Sizes(files)
    assert sum(map(sizes.of, files)) == sizes.total
    true = sum(file.size for file in files)
    assert true - large - 2000 < sizes.total < true + 2000, "of its own kind it may be missed, but is never multiplied"
    if table.endswith("csv"):
        assert sizes.of(TreeFile(tree, table)) == large


@given(st.lists(st.integers(0, 500)), st.integers(1, 1000), st.floats(0.5, 2))
def test_a_part_of_a_stage_fills_its_share_exactly(works: list[int], size: int, guess: float) -> None:
    """However work is divided, and even if there is more or less of it than expected."""
    recorder = RecordingProgress()
    stage = recorder.stage("s", size + 7)
    part = stage.part(size, guess * sum(works))
    for work in works:
        part.advance(work)
    part.finish()
    stage.advance(7)
    amounts = [done for _, done, _ in recorder.events]
    assert amounts == sorted(amounts)
    assert amounts[-1] == size + 7


def test_threads_may_share_a_stage() -> None:
    recorder, begin = RecordingProgress(), Barrier(4)
    stage = recorder.stage("s", 4000)

    def work() -> None:
        begin.wait()
        for _ in range(1000):
            stage.advance(1)

    workers = [Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [done for _, done, _ in recorder.events] == list(range(4001))


def test_small_blocks_of_a_7z_are_reported_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a single large file: progress does not wait until it is complete."""
    monkeypatch.setattr(read_7z, "BLOCK_BYTES", 1000)
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w") as archive:
        archive.writestr(np.random.default_rng(0).bytes(50_000), "large.bin")
    recorder = RecordingProgress()
    with open_raw(tmp_path, tmp_path, recorder) as raw:
        assert raw.archive("a.7z").file("large.bin").size == 50_000
    assert _moves(recorder, "unpacking", least=40) == 50_000
