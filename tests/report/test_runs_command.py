"""`mlebench runs` on a terminal: what agents chose or wrote cannot act there."""

import re
from pathlib import Path

from click.testing import CliRunner
from support.grading_reports import write_group

from mlebench.cli.runs import command

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\0red\u202egnp\nsecond line"
ACTING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_codes_in_names_and_records_do_not_reach_the_terminal(tmp_path: Path) -> None:
    agent = {"name": EVIL, "identity": "1", "model": EVIL}
    run = {"competition": "mlsp-2013-birds", "seed": 0, "ended": "infra_error", "detail": f"the sandbox failed: {EVIL}"}
    group = write_group(tmp_path, "g", [run], agent=agent)
    for arguments in ([], ["list", str(group)], ["show", "g-run0"]):
        done = CliRunner().invoke(command, ["--runs-dir", str(tmp_path), *arguments], color=True)
        assert done.exit_code == 0, done.output
        assert not ACTING.search(done.output), arguments
        assert "\nsecond line" not in done.output
    assert "the sandbox failed: 31mred" in done.output
