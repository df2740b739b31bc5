"""Checks of a description against the data: what it shows is accepted, and what an agent finds is named."""

import csv
import io
import itertools
import re
from collections.abc import Iterator

from mlebench.config import FIRST_PROFILE
from mlebench.contract.case import CompetitionCase
from mlebench.contract.description import ParsedDescription, SubmissionExample
from mlebench.contract.public_files import parsed_json, public_files, tables_of
from mlebench.core.paths import CONFIG, DESCRIPTION
from mlebench.core.submission_columns import Kind, SubmissionColumns
from mlebench.description import SUBMISSION_HEADING
from mlebench.kit import public_sample_bytes
from mlebench.validate.format_check import CheckFailedError, check_format

ELLIPSES = ("...", "…")
WHOLE = re.compile(r"-?\d+")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")


def example(case: CompetitionCase) -> Iterator[str]:
    """The description shows one example of a submission, which is accepted."""
    wording = _wording(case)
    if len(wording.examples) != 1:
        yield (
            f"{DESCRIPTION} shows {len(wording.examples)} examples of a submission: let its section "
            f"`{SUBMISSION_HEADING}` show one, in a block of three backticks."
        )
        return
    (shown,) = wording.examples
    sample = list(csv.DictReader(io.StringIO(public_sample_bytes(case.competition).decode())))
    if len(shown.rows) > len(sample):
        yield f"the example in {DESCRIPTION} has more rows than the twin's sample submission: show fewer."
        return
    if shown.is_sketch:
        if "sketch" not in wording.text:
            yield f"the example in {DESCRIPTION} is not a `csv` block: say that it is a sketch, or make it one."
        filled = _filled_in(shown, list(sample[0]))
        if filled is None:
            yield f"the example in {DESCRIPTION} does not have the columns of the sample submission: fix its header."
            return
        shown = filled
    yield from _other_kinds(wording.examples[0], case)
    targets = case.competition.submission["targets"]
    if missing := [name for name in targets if name not in shown.header]:
        yield f"the example in {DESCRIPTION} lacks the column {missing[0]!r}: show it."
    elif shown.rows:
        try:
            valid, why = check_format(io.BytesIO(_on_all_ids(shown, sample, targets)), case.competition)
        except CheckFailedError as error:
            yield f"the format check fails on the values that {DESCRIPTION} shows ({error.__cause__})."
            return
        if not valid:
            yield f"the values that {DESCRIPTION} shows are not accepted: {why} Fix the example or the grader."


def _other_kinds(shown: SubmissionExample, case: CompetitionCase) -> Iterator[str]:
    """Whether the example shows values of another kind than config.yaml declares; v1 need not declare kinds."""
    if case.competition.profile == FIRST_PROFILE:
        return
    kinds = SubmissionColumns.of(case.competition).kinds
    for kind in dict.fromkeys(kinds.values()):
        names = [name for name in shown.header if kinds.get(name) == kind]
        cells = [cell for row in shown.rows for name, cell in zip(shown.header, row, strict=False) if name in names]
        if cells and (seen := _kind_of(cells)) != kind:
            yield (
                f"{CONFIG} declares {kind} for `{names[0]}`, but the example in {DESCRIPTION} shows {seen}: correct "
                "one of them, or show a value that only this kind has."
            )


def _kind_of(cells: list[str]) -> Kind:
    """The narrowest kind that all cells are of."""
    if {*cells} <= {"True", "False"}:
        return "booleans"
    if all(WHOLE.fullmatch(cell) for cell in cells):
        return "integers"
    return "numbers" if all(NUMBER.fullmatch(cell) for cell in cells) else "text"


def _on_all_ids(shown: SubmissionExample, sample: list[dict[str, str]], targets: list[str]) -> bytes:
    """A submission that repeats the values shown over all ids of the sample."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, shown.header, extrasaction="ignore")
    writer.writeheader()
    for row, cells in zip(sample, itertools.cycle(shown.rows), strict=False):
        values = dict(zip(shown.header, cells, strict=True))
        writer.writerow(row | {name: values[name] for name in targets})
    return text.getvalue().encode()


def _filled_in(sketch: SubmissionExample, columns: list[str]) -> SubmissionExample | None:
    """A sketch with its omitted columns filled in; keeps only rows whose values are all the same."""
    gap = next((index for index, name in enumerate(sketch.header) if name in ELLIPSES), len(sketch.header))
    after = sketch.header[gap + 1 :]
    if sketch.header[:gap] + after != columns[:gap] + columns[len(columns) - len(after) :]:
        return None
    even = [row for row in sketch.rows if gap < len(row) and len({*row[1:]} - {*ELLIPSES}) == 1]
    return SubmissionExample(True, columns, [[row[0], *[row[1]] * (len(columns) - 1)] for row in even])


def files_named(case: CompetitionCase) -> Iterator[str]:
    """The description names every public file."""
    wording = _wording(case)
    names = {name for name, _ in _files(case)}
    if unnamed := sorted(name for name in names if not wording.names_file(name)):
        more = f" and {len(unnamed) - 1} more" * (len(unnamed) > 1)
        yield f"{DESCRIPTION} does not name the public file `{unnamed[0]}`{more}, in backticks: say what is in it."


def files_placed(case: CompetitionCase) -> Iterator[str]:
    """Every file that the description promises is there."""
    names = [name for name, _ in public_files(case.competition.public_dir, nested=True)]
    expected = [promise for promise in _wording(case).promised_files() if promise.written not in case.config.absent]
    if broken := [promise.written for promise in expected if not promise.is_kept(names)]:
        more = f" and {len(broken) - 1} more" * (len(broken) > 1)
        yield (
            f"{DESCRIPTION} promises `{broken[0]}`{more}, but there is no such public file: let prepare place it, "
            f"correct the name, or say in {CONFIG} that agents do not find it (`contract: {{absent: [...]}}`)."
        )


def columns_named(case: CompetitionCase) -> Iterator[str]:
    """The description names every column of public tables."""
    wording = _wording(case)
    targets = case.competition.submission["targets"] if wording.has_a_column_for_each_class else []
    for name, content in _files(case):
        unnamed = [
            column for column in _columns(name, content) if column not in targets and not wording.names_column(column)
        ]
        if unnamed:
            more = f" and {len(unnamed) - 1} more" * (len(unnamed) > 1)
            yield f"{DESCRIPTION} does not name the column `{unnamed[0]}`{more} of {name}: say what it holds."


def _wording(case: CompetitionCase) -> ParsedDescription:
    return ParsedDescription(case.competition.obfuscated_description)


def _files(case: CompetitionCase) -> Iterator[tuple[str, bytes]]:
    return public_files(case.competition.public_dir, case.config.closed_archives)


def _columns(name: str, content: bytes) -> list[str]:
    """Names of columns, or of the fields of records."""
    if name.endswith(".csv"):
        return next(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    if name.endswith(".tsv"):
        return content.decode().partition("\n")[0].rstrip("\r").split("\t")
    if name.endswith(".json"):
        return _fields(content)
    return [column for _, table in tables_of(name, content) for column in table]


def _fields(content: bytes) -> list[str]:
    """Fields of an object and of the records in its lists; numbers are not names but codes, explained in the text."""
    document = parsed_json(content)
    parts = document.values() if isinstance(document, dict) else [document]
    records = [record for part in parts if isinstance(part, list) for record in part if isinstance(record, dict)]
    names = [*(document if isinstance(document, dict) else []), *(name for record in records for name in record)]
    return [name for name in dict.fromkeys(names) if not name.isdecimal()]
