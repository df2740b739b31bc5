"""The folders that `prepare` fills. What goes where is recorded first; the bytes are moved once everything is known.

So every table that comes from one large file is written in one pass over it, and every raw file goes straight to its
place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import currentframe
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, get_args

import numpy as np

from mlebench.core.authors import checked, require_parameters
from mlebench.core.errors import CompetitionError, RawDataError
from mlebench.core.paths import PRIVATE, PUBLIC
from mlebench.engine.archives.write_archive import Pack, PackFormat, pack_format_of
from mlebench.engine.byte_chunks import ByteChunks
from mlebench.engine.output.execute_plan import execute_plan, format_of
from mlebench.engine.output.folder_plan import FolderPlan, WrittenFiles
from mlebench.engine.progress import SILENT, SILENT_STAGE, Progress, Stage
from mlebench.engine.raw_streams import reporting_pieces
from mlebench.engine.records.jsonlines import RecordFormat
from mlebench.engine.records.jsontext import json_pieces
from mlebench.engine.tables import Quoting, Table
from mlebench.engine.trees import check_name, missing
from mlebench.kit.raw import Raw, RawFile, open_raw

LAST_READ = "The last raw files that were read: "


class Output:
    """A folder to fill: tables, JSON, raw files and archives of them, each under its name."""

    def __init__(
        self,
        folder: Path,
        recorded: WrittenFiles | None = None,
        progress: Progress = SILENT,
        planning: Stage = SILENT_STAGE,
    ):
        self.plan = FolderPlan(folder, recorded, planning)
        self._progress = progress
        self._placing: dict[tuple[CodeType, int], None] = {}  # lines that place files

    @checked
    def write(self, name: str, table: Table, *, quoting: Quoting = "minimal", float_format: str | None = None) -> None:
        """A table, as CSV or, depending on its name, with tabs or as parquet."""
        self.plan.claim(name)
        self.plan.tables[name] = table, format_of(name, quoting, float_format)

    @checked
    def write_records(self, name: str, records: Table) -> None:
        """Records in the format of the file they come from: BSON, or JSON lines as pandas prints them."""
        self.plan.claim(name)
        self.plan.tables[name] = records, RecordFormat()

    @checked
    def write_json(self, name: str, value: Any, *, indent: int | None = None, sort_keys: bool = False) -> None:
        self.plan.claim(name)
        try:
            pieces = [*reporting_pieces(json_pieces(value, indent=indent, sort_keys=sort_keys), self._progress)]
        except TypeError as error:
            raise CompetitionError(f"{name} cannot be written: {error}") from error
        self.plan.contents[name] = pieces

    @checked
    def write_pieces(self, name: str, pieces: ByteChunks) -> None:
        """A file that is too large for memory and is not a table of rows from another file."""
        self.plan.claim(name)
        self.plan.contents[name] = pieces

    @checked
    def write_lines(self, name: str, lines: Iterable[str]) -> None:
        """A text of these lines, each with its line end."""
        self.plan.claim(name)
        self.plan.contents[name] = ["".join(f"{line}\n" for line in lines).encode("utf-8")]

    @checked
    def write_array(self, name: str, array: np.ndarray, rows: np.ndarray | None = None) -> None:
        """An array, or these rows of it in this order, as an npy file. It may be larger than memory (`raw.array`)."""
        from mlebench.engine.arrays import npy_pieces

        self.write_pieces(name, npy_pieces(array, rows))

    def place(self, file: RawFile, name: str) -> None:
        """A raw file, unchanged, under this name."""
        self._note_place(currentframe())
        self._place(file, name)

    def _place(self, file: RawFile, name: str) -> None:
        if not isinstance(file, RawFile) or not isinstance(name, str):
            kinds = f"{type(file).__name__} and {type(name).__name__}"
            raise CompetitionError(f"`place` takes a file, as `raw.file(name)` is one, and its new name, not {kinds}")
        self.plan.claim(name)
        self.plan.placed.add(name, file)

    def _note_place(self, frame: FrameType | None) -> None:
        if frame and (caller := frame.f_back):
            self._placing[caller.f_code, caller.f_lineno] = None

    @property
    def placing(self) -> str | None:
        """Which lines place files."""
        lines = [f"{Path(code.co_filename).name}, line {line}" for code, line in self._placing]
        return " or ".join(lines) or None

    def place_each(self, files: Iterable[tuple[RawFile, str]]) -> None:
        self._note_place(currentframe())
        for pair in files:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise CompetitionError("`place_each` takes pairs of a file and its new name")
            self._place(*pair)

    @checked
    def place_tree(self, raw: Raw, folder: str, name: str, *, exclude: Sequence[str] = ()) -> None:
        """All files below a raw folder, unchanged, below another folder.

        Patterns in `exclude` are like those of `raw.files` but relative to the folder; matching files are left out.
        """
        files = raw.files(f"{folder}/**")
        if not files:
            raise missing(raw.file(folder).tree, f"{folder}/")
        excluded = {file.name for pattern in exclude for file in raw.files(f"{folder}/{pattern}")}
        self.place_each((file, name + file.name[len(folder) :]) for file in files if file.name not in excluded)

    @checked
    def pack(
        self,
        name: str,
        members: Mapping[str, Table | RawFile | ByteChunks | bytes | Mapping[str, RawFile | ByteChunks | bytes]],
        *,
        format: PackFormat | None = None,
        deflate: bool = False,
        quoting: Quoting = "minimal",
    ) -> None:
        """An archive of tables, raw files, pieces and bytes, in the format its name implies unless another is given.

        A mapping is an archive inside, of raw files, pieces and bytes. In a zip or 7z members are stored uncompressed
        unless `deflate`: images are compressed already. A name that ends with a slash is an empty folder.
        """
        packed: dict[str, Any] = {}
        for member, content in members.items():
            if isinstance(content, Mapping):
                _require_kinds(f"{name}: {member}", content, RawFile | ByteChunks | bytes)
                packed[member] = Pack(dict(content), pack_format_of(member), deflate, quoting)
            else:
                _require_kinds(name, {member: content}, Table | RawFile | ByteChunks | bytes)
                packed[member] = content
        self.plan.claim(name)
        self.plan.packs[name] = Pack(packed, format or pack_format_of(name), deflate, quoting)

    @checked
    def mkdir(self, name: str) -> None:
        check_name(name)
        (self.plan.folder / name).mkdir(parents=True, exist_ok=True)


def _require_kinds(archive: str, members: Mapping[str, Any], kinds: Any) -> None:
    for member, content in members.items():
        if not isinstance(content, kinds):
            names = ", ".join(kind.__name__ for kind in get_args(kinds))
            raise CompetitionError(f"{member} in {archive} must be one of {names}, not a {type(content).__name__}")


class PreparedFiles:
    """What is known about each file below `public/` and `private/`, sorted by name; there may be millions."""

    def __init__(self, outputs: Mapping[str, Output], progress: Progress):
        self._outputs = outputs
        self._progress = progress

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for side, output in sorted(self._outputs.items()):
            yield from ((f"{side}/{name}", facts) for name, facts in output.plan.facts(self._progress))


def run_prepare(
    prepare: Callable[[Raw, Output, Output], Any],
    raw: Path,
    public: Path,
    private: Path,
    progress: Progress = SILENT,
    unpacked: Path | None = None,
    record_path: Path | None = None,
) -> PreparedFiles:
    """Call a competition's `prepare` on plain paths.

    `progress` is told about each large file that is read, and then about what is written and placed. What an earlier
    attempt left in the folder `unpacked`, or recorded in `record_path`, is not unpacked or written again.
    """
    recorded = WrittenFiles(record_path) if record_path else None
    planning = progress.stage("planning", None)
    outputs = {
        side: Output(folder, recorded, progress, planning) for side, folder in ((PUBLIC, public), (PRIVATE, private))
    }
    with open_raw(raw, private.parent, progress, unpacked) as source:
        try:
            require_parameters(prepare, "raw", PUBLIC, PRIVATE)
            prepare(source, *outputs.values())
            finish(list(outputs.values()), private.parent, progress)
        except Exception as error:
            if source.opened:
                error.add_note(f"{LAST_READ}{', '.join([*source.opened][-3:])}")
            raise
    progress.tell("checking")
    return PreparedFiles(outputs, progress)


def accepts_paths(prepare: Callable[[Raw, Output, Output], None]) -> Callable[..., None]:
    """Decorate a competition's `prepare` so that it takes plain paths as well, as existing clients pass them."""

    @wraps(prepare)
    def either(raw: Any, public: Any, private: Any) -> None:
        if isinstance(raw, str | Path):
            run_prepare(prepare, Path(raw), Path(public), Path(private))
        else:
            prepare(raw, public, private)

    vars(either)["for_engine"] = prepare
    return either


def finish(outputs: Sequence[Output], scratch: Path, progress: Progress = SILENT) -> None:
    """Write and place everything that was recorded."""
    for output in outputs:
        try:
            output.plan.check()
        except RawDataError as error:
            error.location = output.placing
            raise
    execute_plan([output.plan for output in outputs], scratch, progress)
