"""The suite tries the same examples in every process, whatever ran there before."""

import json
import subprocess
import sys
from pathlib import Path

from hypothesis.internal.conjecture.providers import HypothesisProvider
from support.property_examples import FIND_LOCAL_CONSTANTS

TESTS = Path(__file__).parent
FILE = TESTS / "test_scoring.py"  # with our modules' constants, its examples did depend on
FILE_BEFORE = TESTS / "kit" / "test_tokens.py"


def test_hypothesis_takes_no_constants_from_our_modules() -> None:
    assert callable(FIND_LOCAL_CONSTANTS), "hypothesis has renamed it: mend `ignore_local_constants`"
    constants = HypothesisProvider(None)._local_constants
    assert not any(constants.set_for_type(kind) for kind in ("integer", "float", "bytes", "string"))


def example_hashes(folder: Path, *tests: object) -> dict[str, str]:
    hashes = folder / "hashes.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", f"--example-hashes={hashes}", *map(str, tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout
    lines = [json.loads(line) for line in hashes.read_text(encoding="utf-8").splitlines()]
    hashes.unlink()
    assert all(line["examples"] for line in lines)
    return {line["test"]: line["hash"] for line in lines}


def test_examples_do_not_depend_on_what_ran_before(tmp_path: Path) -> None:
    alone = example_hashes(tmp_path, FILE)
    afterwards = example_hashes(tmp_path, FILE_BEFORE, FILE)
    assert alone
    assert alone.items() <= afterwards.items()


def test_examples_do_not_depend_on_which_parameter_comes_first(tmp_path: Path) -> None:
    test = f"{TESTS / 'engine' / 'test_large_csv.py'}::test_few_rows_are_picked_out_as_pandas_reads_them"
    second = f"{test}[dictionaries]"
    assert example_hashes(tmp_path, second).items() <= example_hashes(tmp_path, test).items()
