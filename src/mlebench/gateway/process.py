"""The process of one run's gateway: `python -m mlebench.gateway.process`."""

from pathlib import Path
from typing import Any

import msgspec

from mlebench.core.service_process import run_service
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.server import Gateway
from mlebench.records.group import ModelFacts


def make_gateway(spec: dict[str, Any]) -> Gateway:
    return Gateway(
        ModelAccess.from_facts(msgspec.convert(spec["access"], ModelFacts)),
        token=spec["token"],
        key=spec["key"],
        use=Path(spec["use"]),
        trace=Path(spec["trace"]),
        seconds=spec["seconds"],
    )


if __name__ == "__main__":
    run_service("gateway", make_gateway)
