"""What a node says about itself when `mlebench doctor --executor …` asks it."""

import json
import os
from pathlib import Path

import pytest
from support.run_fixtures import Mlebench

from mlebench.run import nodes


def test_a_node_reports_what_it_has(mlebench: Mlebench, tmp_path: Path) -> None:
    mlebench("doctor", "--look", str(tmp_path / "n1"))
    facts = json.loads((tmp_path / "n1").read_text())
    assert facts["host"] == os.uname().nodename
    assert set(facts["sandboxes"]) == {"docker", "podman", "bubblewrap"}
    assert facts["disk"] == [], "the disk of a test is a good one"
    assert abs(facts["ahead"]) < 60
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("mlebench-")] == []


def test_a_disk_that_overwrites_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda *_: None)
    nodes.look(tmp_path / "n1")
    assert json.loads((tmp_path / "n1").read_text())["disk"] == ["lets a link replace a file"]
