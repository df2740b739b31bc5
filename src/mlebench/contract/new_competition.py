"""A new competition's folder: it satisfies the contract unchanged, and its files are meant to be replaced."""

import re
from pathlib import Path

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import make_new_folder
from mlebench.registry import Registry

_ID, _NAME = "COMPETITION-ID", "COMPETITION-NAME"


def new_competition(folder: Path) -> Path:
    """Make the folder, whose name is the competition's id; it must not exist yet."""
    id = folder.absolute().name
    if not re.fullmatch(r"[A-Za-z0-9]\w*(-\w+)*", id, re.ASCII):
        raise PrerequisiteError(f"{id!r} cannot be a competition's id: use letters, digits, - and _")
    if id in Registry().list_competition_ids():
        raise PrerequisiteError(f"there is already a competition {id}: choose another name")
    template = Path(__file__).parent / "template"
    words = (template / paths.DESCRIPTION).read_text(encoding="utf-8").partition("\n---\n")[2].lower()
    if id.lower() in words:
        raise PrerequisiteError(
            f"{id!r} is a word of the description, which must not name the competition: choose a longer name"
        )
    make_new_folder(folder)
    name = re.sub(r"[-_]+", " ", id).capitalize()
    for file in sorted(path for path in template.iterdir() if path.is_file()):
        text = file.read_text(encoding="utf-8").replace(_ID, id).replace(_NAME, name)
        (folder / file.name).write_text(text, encoding="utf-8")
    return folder
