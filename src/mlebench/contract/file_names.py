"""Does the name of a public file give away the truth of the test row that it belongs to?"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

LEAST_ROWS = 6  # with fewer, names and truth may agree by accident
LONGEST_ID = 8  # words of a file's name
WORD = re.compile(r"[^\W_]+")


def telling_name(names: Iterable[str], truth: Mapping[str, str]) -> tuple[str, str] | None:
    """A public file whose name gives away the truth of a row, and the row's id.

    Names do so if they contain the truth of their own row and of no other, or if rows whose names agree, apart from
    the id, always have one truth.
    """
    rests = _rests(names, truth)
    known = {_words(value): value for value in truth.values()}
    said = {
        id: {value for words, value in known.items() if _holds_any(words_of_name, words)}
        for id, words_of_name in rests.items()
    }
    spoken = [id for id, values in said.items() if len(values) == 1]
    if _is_systematic(spoken, truth) and all(said[id] == {truth[id]} for id in spoken):
        return _example(spoken, rests)
    alike: defaultdict[frozenset[str], list[str]] = defaultdict(list)
    for id, rest in rests.items():
        alike[frozenset(rest.values())].append(id)
    groups = alike.values()
    is_pure = all(len(ids) > 1 and len({truth[id] for id in ids}) == 1 for ids in groups)
    if is_pure and len(groups) <= 2 * len({*truth.values()}) and _is_systematic([*rests], truth):
        return _example([*rests], rests)
    return None


def _is_systematic(ids: Sequence[str], truth: Mapping[str, str]) -> bool:
    return len(ids) >= LEAST_ROWS and len({truth[id] for id in ids}) > 1


def _example(ids: Iterable[str], rests: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    id = min(ids)
    return min(rests[id]), id


def _rests(names: Iterable[str], ids: Iterable[str]) -> dict[str, dict[str, str]]:
    """For each id the files whose names contain it, and what else these names say."""
    known = {_words(id.rpartition(".")[0] if re.search(r"\.\w{2,4}$", id) else id): id for id in ids}
    rests: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for name in names:
        words = [*WORD.finditer(name)]
        for start in range(len(words)):
            for end in range(start + 1, min(start + LONGEST_ID, len(words)) + 1):
                if id := known.get(tuple(word[0].lower() for word in words[start:end])):
                    rests[id][name] = name[: words[start].start()] + name[words[end - 1].end() :]
    return dict(rests)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in WORD.findall(text))


def _holds_any(rest: Mapping[str, str], words: tuple[str, ...]) -> bool:
    return any(_holds(_words(name), words) for name in rest.values())


def _holds(name: tuple[str, ...], words: tuple[str, ...]) -> bool:
    return any(name[start : start + len(words)] == words for start in range(len(name) - len(words) + 1))


def truth_of_rows(answers: pd.DataFrame, id: str, truth: list[str]) -> dict[str, str]:
    """The truth of each row as a text; of several columns of 0 and 1, the name of the one with the 1."""
    if id not in answers or not {*truth} <= {*answers.columns}:
        return {}
    if len(truth) == 1:
        values = map(_text, answers[truth[0]].tolist())
    else:
        values = map(_of_columns, answers.loc[:, truth].to_dict("records"))
    rows = zip(map(str, answers[id]), values, strict=True)
    return {row: value for row, value in rows if value is not None}


def _of_columns(row: dict[Hashable, Any]) -> str:
    """The name of the column that alone is 1, if there is one; otherwise all values."""
    ones = [str(name) for name, value in row.items() if value == 1]
    is_class = len(ones) == 1 and all(value in (0, 1) for value in row.values())
    return ones[0] if is_class else " ".join(map(str, row.values()))


def _text(value: object) -> str | None:
    """A whole number without its point, as it stands in a name."""
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else str(value)
    return str(value) if WORD.search(str(value)) else None
