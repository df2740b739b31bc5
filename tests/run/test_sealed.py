"""A hostile agent learns nothing, harms nothing outside its folders, and is graded as what it handed in."""

import os
from pathlib import Path

import pytest
from sandboxes import ISOLATING, leftovers, require
from traps import Caught, Trap, listening

from mlebench.registry import Competition

REFUSED = {"EPERM", "EACCES", "EROFS", "ENOSYS", "EXDEV", "ESRCH", "EINVAL", "ENOSPC", "ENXIO"}
HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts"}


@pytest.fixture
def trap(tmp_path: Path, titanic: Competition) -> Trap:
    return Trap.set(tmp_path, titanic)


@pytest.mark.parametrize("sandbox", ISOLATING)
def test_an_agent_that_searches_finds_nothing_and_changes_nothing(trap: Trap, sandbox: str) -> None:
    require(sandbox)
    before, left = trap.state(), set(leftovers())
    with listening(trap) as servers:
        caught = trap.run("search", sandbox=sandbox, **servers)
    assert caught.run.record.ended == "finished", caught.run.paths.log.read_text()
    findings = caught.findings
    import json; Path(f"/tmp/hostile-{sandbox}.json").write_text(json.dumps(findings, indent=1))
    assert findings["found"] == []
    assert findings["files"] > 10  # it did look
    assert [name for name in findings["names"] if not name.startswith("/run/mlebench")] == []
    _assert_no_way_out(findings)
    assert trap.state() == before
    assert set(leftovers()) == left


def _assert_no_way_out(findings: dict) -> None:
    network = findings["network"]
    assert network.pop("unix") == "/run/mlebench/validator.sock"
    assert "done" not in network.values(), network
    places = findings["places"]
    assert places.pop("written") == []
    assert {Path(name).name for name in places.pop("devices") if not name.startswith("/dev/pts/")} <= HARMLESS
    assert "done" not in places.values(), places
    powers = findings["powers"]
    assert powers.pop("uid") != 0
    assert powers.pop("capabilities") == [0]
    assert powers.pop("no new privileges") == "1"
    assert powers.pop("key") == ""
    assert powers.pop("session")
    assert powers.pop("processes") < 10
    assert set(powers.values()) <= REFUSED, powers
