"""What two programs share: tokens, fingerprints, figures and passages, each against an independent method."""

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tree_sitter
import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import notebook, program, renamed

from mlebench.integrity.plagiarism.corpus import COMMON_LEAST, LEAST_FAMILIES, Corpus, Index, containments
from mlebench.integrity.plagiarism.matching import equal_runs, shared_by
from mlebench.integrity.plagiarism.programs import NoCodeError, of_notebook, read_program, without_magics
from mlebench.integrity.plagiarism.syntax_tokens import tokenize
from mlebench.integrity.plagiarism.winnowing import SURELY_FOUND, K, W, fingerprint
from mlebench.integrity.subjects import AgentFile

NOTHING = np.empty(0, np.uint64)


def hashes(code: str) -> np.ndarray:
    return fingerprint(tokenize(code).values).hashes


def similarity(one: str, two: str) -> float:
    return float(Index([hashes(one)]).similarities(hashes(two))[0])


def held(one: str, two: str) -> float:
    """The share of the first one's fingerprints that the second also has."""
    return float(containments(Index([hashes(two)]), hashes(one))[0])


# Tokens


def test_tree_sitter_has_what_we_use() -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    root = parser.parse(b"f(x)  # why").root_node
    assert str(root) == (
        "(module (expression_statement (call function: (identifier) arguments: (argument_list (identifier))))"
        " (comment))"
    )
    cursor = root.walk()

    def here() -> tree_sitter.Node:
        assert cursor.node
        return cursor.node

    assert (cursor.goto_first_child(), here().type) == (True, "expression_statement")
    assert (cursor.goto_next_sibling(), here().type, here().start_point) == (True, "comment", (0, 6))
    assert (cursor.goto_next_sibling(), cursor.goto_first_child(), cursor.goto_parent()) == (False, False, True)
    assert (cursor.goto_parent(), here().is_named) == (False, True)


@given(st.integers(0, 10**6), st.text(max_size=40))
@settings(max_examples=40)
def test_tokens_are_those_of_the_written_tree(seed: int, anything: str) -> None:
    """The library can print a tree; that way shares nothing with ours."""
    code = program(seed, 5) + anything
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    nodes = [parser.parse(code.encode("utf-8", "replace")).root_node]
    depths, kinds = Counter(), []
    while nodes:
        node = nodes.pop()
        if node.type != "comment":
            kinds.append(node.type)
            depths[node.type] += 1
            nodes += node.named_children[::-1]
    tokens = tokenize(code)
    assert len(tokens.values) == 3 * len(kinds)
    different = len(set(tokens.values.tolist()))
    assert different == len(depths) + 2
    assert (np.diff(tokens.rows) >= 0).all()


def test_names_literals_comments_and_layout_do_not_count() -> None:
    one = "def f(a, b=1):\n    # why\n    return g(a, 'text')\n"
    two = "def some_name( x,\n  y = 22 ):\n\n\n    return other(x, 'something else')  # because\n"
    assert (tokenize(one).values == tokenize(two).values).all()
    assert len(tokenize(one).values) != len(tokenize(one.replace("g(a", "g(a, b")).values)


# Winnowing


def _naive(values: list[int], k: int, w: int) -> set[int]:
    """As in the paper, window by window, with our hashes."""
    found: list[int] = []
    single = [int(fingerprint(np.array(values[at : at + k], np.uint64), k, 1).hashes[0]) for at in _range(values, k)]
    for end in range(1, len(single) + 1):
        window = range(max(0, end - w), end)
        found.append(min(window, key=lambda at: (single[at], -at)))
    return set(found)


def _range(values: list[int], k: int) -> range:
    return range(len(values) - k + 1)


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 6), st.integers(1, 6))
def test_the_least_hash_of_each_window_is_kept(values: list[int], k: int, w: int) -> None:
    assert set(fingerprint(np.array(values, np.uint64), k, w).starts.tolist()) == _naive(values, k, w)


@given(st.integers(0, 2**32), st.integers(0, 80), st.integers(0, 80), st.integers(0, 60))
def test_enough_tokens_in_a_row_are_always_found(seed: int, before: int, other: int, more: int) -> None:
    random = np.random.default_rng(seed)
    shared, *rest = (random.integers(0, 30, n).astype(np.uint64) for n in (SURELY_FOUND + more, before, other, 20, 20))
    one, two = np.concatenate([rest[0], shared, rest[2]]), np.concatenate([rest[1], shared, rest[3]])
    assert set(fingerprint(one).hashes.tolist()) & set(fingerprint(two).hashes.tolist())
    runs = equal_runs(one, two, NOTHING)
    assert any(
        run.left <= before and run.right <= other and run.left + run.length >= before + len(shared) for run in runs
    )


def test_the_sizes_are_those_of_dolos() -> None:
    assert (K, W) == (23, 17)


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_longest_run_is_that_of_a_slow_search(seed: int) -> None:
    random = np.random.default_rng(seed)
    part = random.integers(0, 3, 90)
    sides = [np.concatenate([random.integers(0, 3, 60), part[:cut], random.integers(0, 3, 40)]) for cut in (90, 70)]
    left, right = (side.astype(np.uint64) for side in sides)
    best, row = 0, np.zeros(len(right) + 1, int)
    for value in left:
        row[1:] = np.where(right == value, row[:-1] + 1, 0)
        best = max(best, int(row.max()))
    assert best >= SURELY_FOUND
    assert max(run.length for run in equal_runs(left, right, NOTHING)) == best


# Figures


def test_equal_code_is_the_same_and_names_change_nothing() -> None:
    code = program(1)
    assert similarity(code, code) == held(code, code) == 1
    assert renamed(code) != code
    assert similarity(code, renamed(code)) == 1


def test_unrelated_code_shares_little() -> None:
    assert max(similarity(program(0), program(other)) for other in range(1, 9)) < 0.3
    assert max(held(program(0), program(other)) for other in range(1, 9)) < 0.3


def test_reordered_and_partial_copies_are_found() -> None:
    parts = [program(seed, 12) for seed in range(8)]
    whole = "".join(parts)
    assert similarity("".join(reversed(parts)), whole) > 0.8
    short = renamed(parts[3] + parts[4])
    assert held(short, whole) > 0.8
    assert similarity(short, whole) < 0.6


def test_figures_are_those_of_plain_counting() -> None:
    """Dolos's similarity: occurrences of shared fingerprints in both, of all in both."""
    codes = [program(seed, 20) + program("shared", 15) * (seed % 3) for seed in range(6)]
    index = Index([hashes(code) for code in codes])
    for one in codes:
        ours = Counter(hashes(one).tolist())
        for place, two in enumerate(codes):
            theirs = Counter(hashes(two).tolist())
            both = ours.keys() & theirs.keys()
            expected = sum(ours[h] + theirs[h] for h in both) / (ours.total() + theirs.total())
            assert index.similarities(hashes(one))[place] == pytest.approx(expected)
            share = len(both) / len(ours) if len(both) >= 20 else 0
            assert containments(index, hashes(one))[place] == pytest.approx(share)


def test_a_long_list_does_not_drown_the_rest() -> None:
    table = "values = [" + "1, " * 3000 + "]\n"
    one, two = table + program(1), table + program(2)
    assert similarity(one, two) > 0.5
    assert held(one, two) < 0.2


# A corpus


def corpus(codes: list[str]) -> Corpus:
    return Corpus([hashes(code) for code in codes])


def test_what_many_notebooks_have_is_boilerplate() -> None:
    start = program("everybody begins like this", 20)
    learned = corpus([start + program(seed) for seed in range(30)])
    assert len(learned.without_common(hashes(start))) < 0.1 * len(hashes(start))
    assert len(learned.without_common(hashes(program(99)))) > 0.8 * len(hashes(program(99)))
    few = corpus([start + program(seed) for seed in range(COMMON_LEAST)])
    assert len(few.common) == 0


def test_a_notebook_with_many_copies_is_not_boilerplate() -> None:
    popular = program("popular", 80)
    copies = [popular + program(f"own part {seed}", 15) for seed in range(15)]
    learned = corpus([program(seed) for seed in range(30)] + copies)
    assert learned.family_count == 31
    assert len(learned.without_common(hashes(popular))) > 0.8 * len(hashes(popular))
    assert learned.threshold.value is not None
    assert containments(learned.index, hashes(renamed(popular))).max() > 0.8 > learned.threshold.value


def test_a_threshold_needs_enough_notebooks_that_are_not_copies() -> None:
    some = [program(seed) for seed in range(LEAST_FAMILIES)]
    assert corpus(some).threshold.value is not None
    few = corpus([*some[1:], some[1], some[2]]).threshold
    assert few.value is None
    assert f"there are {LEAST_FAMILIES - 1} notebooks" in few.says
    assert corpus([]).threshold.value is None


def test_unrelated_code_seldom_passes_the_threshold() -> None:
    """Notebooks that share idioms with some others; so does new code."""
    idioms = [program(f"idiom {number}", 4) for number in range(60)]

    def written(seed: int) -> np.ndarray:
        some = np.random.default_rng(seed).choice(len(idioms), 4, replace=False)
        return hashes("".join(idioms[at] for at in some) + program(seed, 10))

    code = [written(seed) for seed in range(200)]
    passed = []
    for begin in range(0, 160, 40):
        learned = Corpus(code[begin : begin + 40])
        threshold = learned.threshold
        assert threshold.value is not None
        assert threshold.as_much(threshold.value) in (1, 2)
        closest = [containments(learned.index, learned.without_common(one)).max() for one in code[160:]]
        passed += [value > threshold.value for value in closest]
        copied = learned.without_common(code[begin])
        assert containments(learned.index, copied).max() == 1
    assert 0 < np.mean(passed) < 0.12


# Files


def source(folder: Path, name: str, content: str | bytes) -> AgentFile:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return AgentFile(name, folder, (name,))


def test_a_notebook_is_its_code(tmp_path: Path) -> None:
    cells = [program(1, 10), program(2, 10)]
    made = read_program(source(tmp_path, "a.ipynb", notebook(cells)))
    assert similarity(made.text, "".join(cells)) == 1
    assert made.place(0) == (2, 1)
    assert made.place(len(cells[0].split("\n"))) == (3, 1)
    old = '{"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\\n", "y = 2"]}]}]}'
    assert of_notebook(old.encode()).text == "x = 1\ny = 2"


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%matplotlib inline\nx = 1", "\nx = 1"),
        ("!pip install a \\\n  b\nx = 1", "\n\nx = 1"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%bash\nls *.py\n", "\n\n"),
        ("%%writefile a.py\nx = 1", "\nx = 1"),
        ("%%writefile a.txt\nx = 1", "\n"),
        ("%time fit(x)\n%timeit -n 3 fit(y)", "fit(x)\nfit(y)"),
        ("files = !ls\nif x:\n    !rm y", "files = None\nif x:\n"),
        ("pd.read_csv?\n?pd\n??pd", "\n\n"),
        ("x = (a\n  % b)\ny = a != b\nz = 'why?'", "x = (a\n  % b)\ny = a != b\nz = 'why?'"),
    ],
)
def test_magics_and_shell_commands_are_left_out(cell: str, code: str) -> None:
    assert without_magics(cell) == code.split("\n")
    if "if x" not in code:
        ast.parse(code)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.ipynb", "{", "is a broken notebook"),
        ("a.ipynb", "[" * 100_000, "is a broken notebook"),
        ("a.ipynb", '{"cells": 5}', "is a broken notebook"),
        ("a.ipynb", '{"cells": [{"cell_type": "code"}]}', "is a broken notebook"),
        (
            "a.ipynb",
            notebook(["x <- 1"], metadata={"kernelspec": {"language": "R"}}),
            "in a language other than Python",
        ),
        ("a.py", b"\x7fELF\0\0", "is not text"),
        ("a.py", b"", "is empty"),
    ],
)
def test_files_without_code(name: str, content: str | bytes, fault: str, tmp_path: Path) -> None:
    with pytest.raises(NoCodeError, match=fault):
        read_program(source(tmp_path, name, content))


# Passages


def test_a_passage_stands_in_both_files_where_it_says(tmp_path: Path) -> None:
    copied = program("copied", 15)
    before, after = program(1, 10), program(2, 10)
    left = source(tmp_path, "main.py", before + copied + after)
    right = source(tmp_path, "notebook.ipynb", notebook([program(3, 10), renamed(copied), program(4, 10)]))
    shared = shared_by(left, right, NOTHING)
    assert shared.longest >= 3 * 60
    (passage, *_) = shared.passages
    lines = copied.splitlines()
    assert passage["left"]["line"] == pytest.approx(before.count("\n") + 1, abs=2)
    assert (passage["right"]["cell"], passage["right"]["line"]) == (3, 1) or passage["right"]["cell"] == 2
    assert set(lines[2:-2]) <= set(passage["left"]["text"].split("\n"))
    assert set(renamed(copied).splitlines()[2:-2]) <= set(passage["right"]["text"].split("\n"))
    assert passage["tokens"] >= shared.longest


def test_a_change_in_the_middle_leaves_one_passage(tmp_path: Path) -> None:
    one = [program(f"part {seed}", 6) for seed in range(2)]
    left = source(tmp_path, "a.py", one[0] + "x = 1\n" + one[1])
    right = source(tmp_path, "b.py", one[0] + "print(1, 2)\n" + one[1])
    (passage,) = shared_by(left, right, NOTHING).passages
    assert passage["left"]["line"] == passage["right"]["line"] == 1
    assert "x = 1" in passage["left"]["text"]
    assert "print(1, 2)" in passage["right"]["text"]


def test_boilerplate_begins_no_passage(tmp_path: Path) -> None:
    code = program(1, 20)
    left, right = source(tmp_path, "a.py", code), source(tmp_path, "b.py", code)
    assert shared_by(left, right, hashes(code)).passages == []


def test_escape_codes_and_long_lines_are_not_shown(tmp_path: Path) -> None:
    code = program(1, 20) + "text = '\x1b[31mred\x1b[0m" + "x" * 5000 + "'\n"
    left, right = source(tmp_path, "a.py", code), source(tmp_path, "b.py", code)
    (passage,) = shared_by(left, right, NOTHING).passages
    assert "\x1b" not in passage["left"]["text"]
    assert max(map(len, passage["left"]["text"].split("\n"))) <= 160
