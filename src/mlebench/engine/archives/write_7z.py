"""7z archives that are the same whenever they are made: members in the order given, one time and mode for all."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from mlebench.engine.trees import COPY_BYTES

_TIME = 315_532_800  # the first of January 1980, as in our zips
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


def write_seven_zip(
    archive: Path, members: Iterable[tuple[str, Callable[[], BinaryIO]]], scratch: Path, *, deflate: bool
) -> None:
    """An archive of members, each with how to open it. A name that ends with a slash is an empty folder.

    py7zr takes times and modes from files on disk, so each member is in the scratch folder while it is packed.
    """
    import py7zr

    # Deflate: py7zr's default takes fifty times as long to save another fifth.
    method = py7zr.FILTER_DEFLATE if deflate else py7zr.FILTER_COPY
    with py7zr.SevenZipFile(archive, "w", filters=[{"id": method}]) as opened:
        opened.set_encoded_header_mode(False)  # packing the list of members takes longer than packing small members
        for name, open_member in members:
            member = scratch / "member"
            if name.endswith("/"):
                member.mkdir(_FOLDER_MODE)
            else:
                with open_member() as source, member.open("xb") as target:
                    shutil.copyfileobj(source, target, COPY_BYTES)
            member.chmod(_FOLDER_MODE if name.endswith("/") else _FILE_MODE)
            os.utime(member, (_TIME, _TIME))
            opened.write(member, name.rstrip("/"))
            member.rmdir() if name.endswith("/") else member.unlink()
