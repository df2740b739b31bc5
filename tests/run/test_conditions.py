"""What was requested and what runs got are both recorded, and standings go by the request."""

import json
from collections.abc import Callable

from support.run_fixtures import SUBMIT, Mlebench

from mlebench.records.group import RequestedLimits
from mlebench.records.run_groups import Group, limits_of


def test_another_number_of_workers_is_another_seed_not_another_entry(
    run: Callable[..., Group], mlebench: Mlebench
) -> None:
    groups = [run(SUBMIT, "--workers", "1"), run(SUBMIT, "--workers", "2")]
    requests = [group.record.requested for group in groups]
    assert requests == [RequestedLimits(seconds=60.0, sandbox="process")] * 2
    more, less = (limits_of(group).memory or 0 for group in groups)
    assert more > less
    named = [str(group.paths.root) for group in groups]
    (entry,) = json.loads(mlebench("report", *named, "--format", "json").stdout)["entries"]
    assert [one["seed"] for one in entry["runs"]] == [0, 1]
    assert entry["pooled"]["memory"] == [more, less]
    assert "GB RAM: machines decided, as nothing was requested" in mlebench("report", *named).stderr
    assert "the runs of command are pooled over" in mlebench("report", *named, "--strict", code=1).stderr
    groups.append(run(SUBMIT, "--workers", "2", "--cpus", "0.5", "--memory", "1g"))
    assert groups[-1].record.requested == RequestedLimits(seconds=60.0, memory=1 << 30, cpus=0.5, sandbox="process")
    named.append(str(groups[-1].paths.root))
    table = mlebench("report", *named)
    assert [line.split("  ")[0] for line in table.stdout.splitlines()[1:3]][1] == "command, 0.5 CPUs, 1.1 GB RAM"
    assert "they differ in CPUs, memory" in table.stderr
