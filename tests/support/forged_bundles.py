"""Run groups and bundles as files, genuine ones and forged ones."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlebench.bundles.archive import ArchiveWriter
from mlebench.core.paths import GroupPaths
from mlebench.grade import grade_csv
from mlebench.records import write
from mlebench.records.group import GroupRecord
from mlebench.records.run import RunRecord
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run.group_operations import finish
from mlebench.scoring import RunInfo
from support.records import TIME, make_record, write_record

Contents = dict[str, bytes]


def write_group(runs_dir: Path, competition: Competition, submissions: list[bytes | None], **values: Any) -> Group:
    """A group that has ended, with a graded run for each submission."""
    asked: dict[str, Any] = {
        "id": "2026-01-02T03-04-05-GMT_run-group_mine",
        "created_at": "2026-01-02T03:04:05.000+00:00",
        "agent": {"name": "mine", "identity": "1", "model": None},
        "agent_source": "mine",
        "competitions": [competition.id],
        "seeds": len(submissions),
        "data_dir": str(competition.paths.data_dir),
        "profile": "v1",
        "twin": True,
        "sandbox": "bubblewrap",
        "limits": {"seconds": 60, "memory": 1 << 30, "cpus": 1, "shm": 1 << 20},
    }
    record = make_record(GroupRecord, **(asked | values))
    where = GroupPaths(runs_dir / record.id)
    where.root.mkdir(parents=True)
    for seed, submission in enumerate(submissions):
        run = where.run(competition.id, f"run{seed}")
        for folder in (run.submission.parent, run.logs, run.code):
            folder.mkdir(parents=True)
        if submission is not None:
            run.submission.write_bytes(submission)
        (run.logs / "agent.log").write_text("first line\nsecond line\n")
        (run.code / "train.py").write_text("print('hello')\n")
        run.log.write_text("hello\n")
        report = grade_csv(run.submission, competition, RunInfo(f"run{seed}", "mine", seed)).to_dict()
        write_record(
            run.record,
            RunRecord,
            run_id=f"run{seed}",
            competition=competition.id,
            seed=seed,
            state="ended",
            ended="finished",
            submission="none" if submission is None else "present",
            report=report,
            planned_at=TIME,
            seconds=1.0,
        )
    write(where.record, record)
    group = Group(where, record)
    finish(group)
    return Group.read(where.root)


def unpack(bundle: Path) -> Contents:
    """What is in a bundle, in order, by tarfile."""
    with tarfile.open(bundle, "r:gz") as archive:
        found = {}
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            found[member.name] = stream.read()
    return found


def repack(target: Path, contents: Contents, **manifest: Any) -> Path:
    """A perfectly formed bundle with any contents; its manifest is made to match."""
    contents = dict(contents)
    head = json.loads(contents.pop("manifest.json"))
    members = [
        {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in contents.items()
    ]
    head |= {"members": members} | manifest
    return pack(target, {"manifest.json": json.dumps(head).encode(), **contents})


def pack(target: Path, contents: Contents) -> Path:
    """A bundle in our form; the manifest is given."""
    with target.open("wb") as file:
        writer = ArchiveWriter(file)
        for name, data in contents.items():
            writer.add(name, len(data), [data])
        writer.close()
    return target


def changed(bundle: Path, target: Path, name: str, change: Callable[[Any], Any]) -> Path:
    """A bundle with another record in it, and a matching manifest."""
    contents = unpack(bundle)
    contents[name] = json.dumps(change(json.loads(contents[name]))).encode()
    return repack(target, contents)


def tar(target: Path, members: list[tuple[tarfile.TarInfo, bytes]], trailing: bytes = b"") -> Path:
    """Any tar file, in a gzip stream that looks like ours."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for info, data in members:
            if info.isreg():
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    plain = buffer.getvalue()
    end = len(plain.rstrip(b"\0"))
    plain = plain[: end + -end % 512] + bytes(1024) + trailing
    packed = bytearray(gzip.compress(plain, mtime=0))
    packed[:10] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    target.write_bytes(packed)
    return target
