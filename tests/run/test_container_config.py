"""`--container-config`: files of existing setups mean the same here; what has no meaning here is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.run_fixtures import Mlebench
from support.sandboxes import make_task

from mlebench.core.errors import PrerequisiteError
from mlebench.registry import Competition
from mlebench.run.container_config import read_container_config
from mlebench.sandbox.docker import Docker


def written(folder: Path, **keys: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(keys))
    return path


def test_the_references_own_file(tmp_path: Path) -> None:
    path = written(tmp_path, mem_limit=None, shm_size="4G", nano_cpus=4e9, runtime="sysbox-runc")
    requested, gpus, runtime = read_container_config(path)
    assert (requested.memory, requested.shm, requested.cpus, requested.seconds) == (None, 4 << 30, 4.0, None)
    assert (gpus, runtime) == (None, "sysbox-runc")


@pytest.mark.parametrize(("value", "gpus"), [(-1, ["all"]), (0, []), (2, ["0", "1"]), (["1", 3], ["1", "3"])])
def test_gpus(tmp_path: Path, value: Any, gpus: list[str]) -> None:
    assert read_container_config(written(tmp_path, gpus=value)).gpus == gpus


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"volumes": {}, "cap_add": ["ALL"]}, "`cap_add`, `volumes` have no meaning here; known keys are mem_limit,"),
        ({"shm_size": "large"}, "`shm_size` is not a size"),
        ({"nano_cpus": "4"}, "`nano_cpus` must be a number above 0"),
        ({"cpus": 0}, "`cpus` must be a number above 0"),
        ({"gpus": True}, "`gpus` must be"),
        ({"runtime": 1}, "`runtime` must be the name"),
    ],
)
def test_refused_settings(tmp_path: Path, keys: dict[str, Any], fault: str) -> None:
    with pytest.raises(PrerequisiteError, match=fault):
        read_container_config(written(tmp_path, **keys))


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["cut off", "nested"])
def test_a_file_that_cannot_be_parsed_gets_one_line(tmp_path: Path, text: str) -> None:
    path = written(tmp_path)
    path.write_text(text)
    with pytest.raises(PrerequisiteError, match="is not JSON"):
        read_container_config(path)


def test_a_runtime_is_for_docker(mlebench: Mlebench, titanic: Competition, tmp_path: Path) -> None:
    config = str(written(tmp_path, runtime="sysbox-runc"))
    named = ["--agent", "dummy", "-c", titanic.id, "--sandbox", "process", "--container-config", config]
    done = mlebench("run", *named, code=1)
    assert "the runtime sysbox-runc of --container-config is for --sandbox docker only" in done.stderr
    argv = Docker().launch(make_task(tmp_path, "true", runtime="runsc")).argv
    assert argv[argv.index("--runtime") + 1] == "runsc"
    assert "--runtime" not in Docker().launch(make_task(tmp_path, "true")).argv
