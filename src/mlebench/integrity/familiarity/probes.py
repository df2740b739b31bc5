"""What a model is asked to continue: pieces of originals, each with a perturbed control.

A control has everything that helps to guess without knowing the original: the form, the values, the subject. It lacks
their order, which only a reader of the original knows.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from mlebench.integrity.familiarity.originals import Original

HEADER, ROW, PASSAGE, OURS = KINDS = ("header", "row", "passage", "ours")
SHOWN_ROWS, SHOWN_SENTENCES = 5, 3
FIRST_ROWS = 1000  # of a table; people usually print the beginning of a file
NEAR = 50  # rows before and after, from which a control takes its values
LONGEST_SHOWN, LONGEST = 4000, 300  # characters of what is shown, and of what is asked for
SHORTEST_SENTENCE = 30  # characters
FEWEST_SENTENCES, FEWEST_ROWS, FEWEST_UNITS = 12, 20, 4
_VARIABLE = re.compile(
    r"\d+|\b(?:jan|febr)uary|\bmarch|\bapril|\bmay|\bjune|\bjuly|\baugust|\b(?:sept|nov|dec)ember|\boctober"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True)
class Probe:
    kind: str
    file: str
    shown: str
    target: str
    control_shown: str
    control_target: str


def common_sentences(prose: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Sentences that occur in several competitions' texts, ignoring dates and figures."""
    sentences_of_each = [
        {_bare(sentence) for text in texts for sentence in sentences_of(text)} for texts in prose.values()
    ]
    counts = Counter(sentence for sentences in sentences_of_each for sentence in sentences)
    return frozenset(sentence for sentence, count in counts.items() if count > 1)


def _bare(sentence: str) -> str:
    return _VARIABLE.sub("#", sentence.lower())


def probes_of(
    originals: Sequence[Original], samples: int, seed: str, common: frozenset[str] = frozenset()
) -> list[Probe]:
    """At most `samples` of each kind; the same for every model, so that models can be compared."""
    rng = random.Random(seed)
    probes: list[Probe] = []
    tables = [TableHead.of(original) for original in originals if original.is_table]
    headers = [probe for table in tables for probe in header_probe(table, rng)]
    probes += headers[:samples]
    probes += _shared([row_probes(table, samples, rng) for table in tables], samples)
    probes += _shared(
        [passage_probes(original, PASSAGE, samples, rng, common) for original in originals if not original.is_table],
        samples,
    )
    return probes


def our_probes(description: str, samples: int, seed: str) -> list[Probe]:
    """Return probes of a text of ours: a control, of which no model can know anything."""
    return passage_probes(Original("description", description), OURS, samples, random.Random(seed))


def _shared(probes_of_files: list[list[Probe]], samples: int) -> list[Probe]:
    """Take one probe from each file in turn."""
    return list(
        islice(
            (probes[index] for index in range(samples) for probes in probes_of_files if index < len(probes)), samples
        )
    )


@dataclass(frozen=True)
class TableHead:
    """The first rows of a file, split into cells; cells keep their quotes, so that a row can be reassembled."""

    file: str
    delimiter: str
    header: list[str]
    rows: list[list[str]]

    @classmethod
    def of(cls, original: Original) -> "TableHead":
        """Leaves out rows that span several lines, as some quoted cells do."""
        lines = original.text.split("\n")[: FIRST_ROWS + 1]
        delimiter = max(",\t;", key=lines[0].count)
        header = cells(lines[0], delimiter) if _is_whole(lines[0]) else []
        rows = [cells(line, delimiter) for line in lines[1:] if _is_whole(line)]
        return cls(original.name, delimiter, header, [row for row in rows if len(row) == len(header)])

    def line(self, row: Sequence[str]) -> str:
        return self.delimiter.join(row)


def _is_whole(line: str) -> bool:
    return line.count('"') % 2 == 0


def cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line, verbatim."""
    piece = re.escape(delimiter)
    return [match[1] for match in re.finditer(rf'(?:^|{piece})((?:"(?:[^"]|"")*"|[^{piece}])*)', line)]


def header_probe(table: TableHead, rng: random.Random) -> Iterator[Probe]:
    """Half of the header. In the control the names are reordered; numbered ones stay together."""
    units: list[list[str]] = []
    for name in table.header:
        if units and re.search(r"\d", name) and _stem(name) == _stem(units[-1][-1]):
            units[-1].append(name)
        else:
            units.append([name])
    if len(units) < FEWEST_UNITS or len(set(table.header[1:])) < FEWEST_UNITS - 1:
        return
    shuffled = units[1:]  # an id comes first, as anyone can guess
    while shuffled == units[1:]:
        rng.shuffle(shuffled)
    perturbed = [name for unit in (units[0], *shuffled) for name in unit]
    half = len(table.header) // 2
    (shown, target), (control_shown, control_target) = (
        (table.line(names[:half]) + table.delimiter, table.line(names[half:])[:LONGEST])
        for names in (table.header, perturbed)
    )
    yield Probe(HEADER, table.file, shown[-LONGEST_SHOWN:], target, control_shown[-LONGEST_SHOWN:], control_target)


def _stem(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def row_probes(table: TableHead, samples: int, rng: random.Random) -> list[Probe]:
    """The row after a few others. In the control, values come from other rows nearby; columns that count stay."""
    if len(table.rows) < FEWEST_ROWS or len(table.header) < 2:
        return []
    size = SHOWN_ROWS + 1
    starts = list(range(0, len(table.rows) - size + 1, size))
    rng.shuffle(starts)
    made = (_row_probe(table, start, rng) for start in starts)
    differing = (probe for probe in made if probe.target != probe.control_target)  # few, in a sample submission
    return list(islice(differing, samples))


def _row_probe(table: TableHead, start: int, rng: random.Random) -> Probe:
    size = SHOWN_ROWS + 1
    window = table.rows[start : start + size]
    near = [*table.rows[max(0, start - NEAR) : start], *table.rows[start + size : start + size + NEAR]]
    other_rows = rng.sample(near, size)
    counting = {column for column, values in enumerate(zip(*window, strict=True)) if _counts(values)}
    control = [
        [own if column in counting else value for column, (own, value) in enumerate(zip(row, other, strict=True))]
        for row, other in zip(window, other_rows, strict=True)
    ]
    header = table.line(table.header)[:LONGEST_SHOWN]
    (shown, target), (control_shown, control_target) = (
        ("\n".join([header, *map(table.line, rows[:-1])]) + "\n", table.line(rows[-1])[:LONGEST])
        for rows in (window, control)
    )
    return Probe(ROW, table.file, shown[:LONGEST_SHOWN], target, control_shown[:LONGEST_SHOWN], control_target)


def _counts(values: Sequence[str]) -> bool:
    """Whether a column only rises or only falls, like an id or a time, so that anyone can continue it."""
    try:
        numbers: list[Any] = [float(value.strip('"')) for value in values]
    except ValueError:
        numbers = list(values)
    pairs = list(pairwise(numbers))
    return all(first <= second for first, second in pairs) or all(first >= second for first, second in pairs)


def passage_probes(
    original: Original, kind: str, samples: int, rng: random.Random, common: frozenset[str] = frozenset()
) -> list[Probe]:
    """The sentence after a few others. The control joins sentences of the same text that are not consecutive.

    Sentences that other competitions have too are left out: a model may know them from there.
    """
    sentences = sentences_of(original.text)
    own = [index for index, sentence in enumerate(sentences) if _bare(sentence) not in common]
    size = SHOWN_SENTENCES + 1
    if len(own) < FEWEST_SENTENCES:
        return []
    windows = [range(start, start + size) for start in range(0, len(sentences) - size + 1, size)]
    windows = [window for window in windows if set(window) <= set(own)]
    rng.shuffle(windows)
    probes = []
    for window in windows[:samples]:
        control = _apart([index for index in own if index not in window], rng)
        (shown, target), (control_shown, control_target) = (
            (
                f"{' '.join(sentences[index] for index in indexes[:-1])} "[-LONGEST_SHOWN:],
                sentences[indexes[-1]][:LONGEST],
            )
            for indexes in (window, control)
        )
        probes.append(Probe(kind, original.name, shown, target, control_shown, control_target))
    return probes


def _apart(indexes: list[int], rng: random.Random) -> list[int]:
    """Some of the places in random order, none right after its predecessor."""
    while True:
        drawn = rng.sample(indexes, SHOWN_SENTENCES + 1)
        if all(second != first + 1 for first, second in pairwise(drawn)):
            return drawn


def sentences_of(text: str) -> list[str]:
    pieces = (" ".join(piece.split()) for piece in _SENTENCE_END.split(text))
    return [piece for piece in pieces if len(piece) >= SHORTEST_SENTENCE]
