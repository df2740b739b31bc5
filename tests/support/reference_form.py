"""Run groups as the reference leaves them: metadata.json, and a folder for each run."""

import json
import uuid
from pathlib import Path
from typing import Any

SPEC = "version https://git-lfs.github.com/spec/v1"
POINTER = f"{SPEC}\noid sha256:{'5c' * 32}\nsize 48234\n"
GROUP = "2024-09-06T18-25-55-UTC_run-group_aide"


def write_reference_group(
    runs_dir: Path,
    runs: list[tuple[str, bytes | None]],
    name: str = GROUP,
    *,
    ids: list[str] | None = None,
    failed: tuple[int, ...] = (),
    **metadata: Any,
) -> Path:
    """A group with these runs, each a competition and its submission; older versions used shorter ids."""
    root = runs_dir / name
    root.mkdir(parents=True)
    outputs = {}
    for number, (competition, submission) in enumerate(runs):
        id = ids[number] if ids else str(uuid.UUID(int=number + 1, version=4))
        folder = root / f"{competition}_{id}"
        for inside in ("submission", "logs", "code"):
            (folder / inside).mkdir(parents=True)
        (folder / "run.log").write_text(
            f"[2024-09-06 18:25:55,123] [run_agent.py:50] [Worker 0] Running seed 0 for {competition} and agent aide\n"
        )
        if submission is not None:
            (folder / "submission" / "submission.csv").write_bytes(submission)
        outputs[folder.name] = {"success": number not in failed}
    about = {"run_group": name, "created_at": "2024-09-07T20-00-00-UTC", "runs": outputs}
    (root / "metadata.json").write_text(json.dumps(about | metadata, indent=4))
    return root
