"""Record what a release of a profile is: for each competition its version, its twin and the scores of its grader.

    python tests/golden/record_release.py [ID...]

writes `src/mlebench/profiles/RELEASE.json`, of the competitions named or of all. `test_releases.py` compares it with
the code, and fails when data or scores of a competition change while its `version` does not. Raise the version in the
competition's config.yaml first: a record under the same version is replaced only with --replace.

Whoever has a competition's real data states the md5 of its tables too, and then records it as above:

    mlebench prepare -c ID --profile v2 --from RAW --overwrite-checksums

writes `checksums-v2.yaml` in the competition's folder, with which `prepare` and `verify` compare everybody's data. The
release has a hash of it. Prepare the data twice, and the same data under v1 with its published checksums, before.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from mlebench.config import RELEASES
from mlebench.contract import CompetitionCase
from mlebench.core.paths import profiles_dir
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.data.verification import published
from mlebench.registry import Registry

PROFILE = "v2"


def entry_of(case: CompetitionCase) -> dict[str, Any]:
    """A competition in a release: its version, the content of its default twin, what submissions get, and its tables
    as prepared from real data, once they have been.
    """
    return {
        "version": case.competition.version,
        "twin": _hash(case.file_hashes),
        "scores": _hash(case.verdicts),
        "real": _hash(tables) if (tables := published(case.competition)) else None,
    }


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID")
    parser.add_argument("--replace", action="store_true", help="before a release is published")
    arguments = parser.parse_args()
    path = profiles_dir() / f"{RELEASES[PROFILE]}.json"
    release = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"competitions": {}}
    with tempfile.TemporaryDirectory() as folder:
        registry = Registry(Path(folder), PROFILE)
        for id in arguments.ids or registry.list_competition_ids():
            competition = registry.get_competition(id)
            prepare(competition, TwinSource())
            before, entry = release["competitions"].get(id), entry_of(CompetitionCase(competition))
            if before and entry != before and entry["version"] == before["version"] and not arguments.replace:
                sys.exit(f"{id} changed, but not its version {entry['version']}: raise it in config.yaml")
            release["competitions"][id] = entry
            print(id, file=sys.stderr)
    release = {
        "profile": PROFILE,
        "release": RELEASES[PROFILE],
        "competitions": dict(sorted(release["competitions"].items())),
    }
    path.write_text(json.dumps(release, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
