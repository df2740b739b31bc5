"""The rules for submissions that later profiles add to the description of a task."""

from typing import Any, NamedTuple, get_args

import pytest

from mlebench.core.errors import ConfigError
from mlebench.core.submission_columns import Kind
from mlebench.description import MOST_NAMED, submission_rules, with_submission_rules

TEXT = """# Seeds

---

## Evaluation

### Submission File

One row for each seed.

```text
id,grows
# a comment in an example is no heading
```

## Dataset Description

Seeds.
"""


class Seeds(NamedTuple):
    submission: dict[str, Any]
    profile: str = "v2"
    id: str = "seeds"


def _rows(values: Any, *targets: str, **facts: Any) -> list[str]:
    rules = submission_rules(Seeds({"id": "id", "targets": [*targets], "values": values, **facts}))
    return rules.partition("|---|---|\n")[2].splitlines()


EXAMPLES: dict[Kind, str] = {
    "numbers": "a finite number",
    "integers": "a whole number",
    "booleans": "`True` or `False`",
    "text": "text; `NA` and `nan` are words, and an empty cell is an empty text",
}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_each_kind_has_its_words(kind: Kind) -> None:
    assert _rows(kind, "grows") == ["| `id` | the row's id, as in the sample |", f"| `grows` | {EXAMPLES[kind]} |"]


def test_columns_of_one_kind_stand_together() -> None:
    values = {"height": "numbers", "name": "text", "width": "numbers"}
    assert _rows(values, *values)[1:] == [
        "| `height`, `width` | a finite number |",
        f"| `name` | {EXAMPLES['text']} |",
    ]


def test_a_key_of_several_columns_is_one_id() -> None:
    assert (
        _rows("text", "mask", key=["id", "class"])[0] == "| `id`, `class` | together the row's id, as in the sample |"
    )


def test_many_columns_are_counted_if_they_are_alike() -> None:
    names = [f"class {number}" for number in range(MOST_NAMED + 1)]
    assert _rows("numbers", *names)[1] == f"| the {len(names)} others | a finite number |"
    assert _rows("numbers", *names[1:])[1].count("`class ") == MOST_NAMED
    mixed = dict.fromkeys(names, "numbers") | {names[0]: "integers"}
    assert sum(row.count("`class ") for row in _rows(mixed, *names)) == len(names)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"id": "id", "targets": ["grows"]},
        {"id": "id", "targets": ["grows"], "values": "floats"},
        {"id": "id", "targets": ["grows"], "values": {"grew": "integers"}},
    ],
)
def test_a_form_that_is_not_declared_is_an_error(facts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="seeds: profile v2 needs `submission: "):
        submission_rules(Seeds(facts))


def test_rules_end_the_section_on_submissions() -> None:
    seeds = Seeds({"id": "id", "targets": ["grows"], "values": "integers"})
    before, data = TEXT.split("## Dataset Description")
    rules = submission_rules(seeds)
    assert with_submission_rules(TEXT, seeds) == f"{before}{rules}\n\n## Dataset Description{data}"
    assert with_submission_rules(before, seeds) == f"{before}{rules}\n"
    assert with_submission_rules("Guess.\n", seeds) == f"Guess.\n\n{rules}\n"


def test_v1_is_shown_as_it_was_written() -> None:
    assert with_submission_rules(TEXT, Seeds({}, profile="v1")) == TEXT
