"""The documents tell the truth: their commands are run, their output is compared, their links are followed.

What a reader sees is what counts, so a page is worked through from top to bottom in its own folder:

- ```console blocks: `$ ` begins a command and `> ` continues it; the lines after it are what it prints, on either
  stream. `...` matches anything, and a run of blanks counts as one. A command must succeed; one that is meant to fail
  is shown with `|| echo ...`. Exported variables and the working folder last until the end of the page.
- A block after `<!-- file: NAME -->` is written to that file, below the working folder of the page's start.
- A console block after `<!-- needs a sandbox -->` is skipped if no sandbox works.
- Other blocks (```sh, ```python without a name, ...) are only read.
"""

import doctest
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from mlebench.cli.verbs import VERBS
from mlebench.sandbox import sandbox_named

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL_PAGES = [*PAGES, ROOT / "examples/README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(
    r"^(?:<!-- (?:file: (?P<file>\S+)|(?P<sandbox>needs a sandbox)) -->\n+)?"
    r"(?P<fence>```+)(?P<kind>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s#]*)(?:#(?P<heading>[^)\s]*))?\)")
KEEPING_STATE = """
. "$STATE"
trap '{ export -p; printf "cd %q\\n" "$PWD"; } > "$STATE"' EXIT
eval "$1"
"""
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    line: int
    kind: str
    file: str | None
    text: str
    sandbox: bool = False


class Command(NamedTuple):
    line: int
    text: str
    output: str


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(
            text.count("\n", 0, match.start("text")) + 1,
            match["kind"],
            match["file"],
            match["text"],
            bool(match["sandbox"]),
        )


def _commands(block: Block) -> Iterator[Command]:
    command: list[str] = []
    output: list[str] = []
    start = 0
    for line, text in enumerate(block.text.splitlines(), block.line):
        if text.startswith("$ "):
            if command:
                yield Command(start, "\n".join(command), "\n".join(output))
            command, output, start = [text[2:]], [], line
        elif command and not output and text.startswith("> "):
            command.append(text[2:])
        else:
            assert command, f"line {line}: a console block begins with `$ `"
            output.append(text)
    yield Command(start, "\n".join(command), "\n".join(output))


@dataclass(frozen=True)
class Shell:
    """Runs commands one by one; exported variables and the working folder carry over."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> "Shell":
        programs = folder / "programs"
        programs.mkdir()
        for name, arguments in {"python": "", "mlebench": "-m mlebench"}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        (folder / "work").mkdir()
        (folder / "state").write_text("", encoding="utf-8")
        return cls(folder)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", KEEPING_STATE, "bash", command],
            cwd=self.work,
            env={
                "PATH": f"{self.folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.folder / "home"),
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                "XDG_CONFIG_HOME": str(self.folder / "config"),
                "LC_ALL": "C.UTF-8",
                "STATE": str(self.folder / "state"),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=600,
            check=False,
        )


def _difference(command: Command, got: str) -> str | None:
    example = doctest.Example(command.text, f"{command.output}\n")
    checker = doctest.OutputChecker()
    if checker.check_output(example.want, got, LOOSELY):
        return None
    return checker.output_difference(example, got, LOOSELY)


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [pytest.param(page, id=_name(page)) for page in PAGES if any(_blocks(page))])
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    shell = Shell.in_folder(tmp_path)
    no_sandbox = sandbox_named("bubblewrap").fault() is not None
    for block in _blocks(page):
        if block.sandbox and no_sandbox:
            continue
        if block.file:
            path = shell.work / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.kind == "console":
            for command in _commands(block):
                done = shell.run(command.text)
                where = f"{_name(page)}:{command.line}: {command.text}"
                assert done.returncode == 0, f"{where}\nended with {done.returncode}:\n{done.stdout}"
                difference = _difference(command, done.stdout)
                assert difference is None, f"{where}\n{difference}"


def test_wrong_output_is_noticed(tmp_path: Path) -> None:
    shell = Shell.in_folder(tmp_path)
    got = shell.run("printf 'two  words\\nand more\\n'; echo on stderr >&2").stdout
    for right in ("two words\nand more\non stderr", "two ...\non stderr", "..."):
        assert _difference(Command(1, "", right), got) is None
    for wrong in ("", "two words", "two ... less", "Two words\nand more\non stderr", "... on stdout"):
        assert _difference(Command(1, "", wrong), got) is not None


def test_exports_and_the_working_folder_carry_over(tmp_path: Path) -> None:
    shell = Shell.in_folder(tmp_path)
    shell.run("export COLOUR='dark blue'; mkdir inner; cd inner; false")
    assert shell.run('echo "$COLOUR"; basename "$PWD"; echo "$HOME"').stdout.splitlines() == [
        "dark blue",
        "inner",
        str(tmp_path / "home"),
    ]


COMMANDS = ROOT / "docs/reference/commands.md"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_shown_and_is_in_the_readme(verb: str) -> None:
    shown = [command.text for block in _blocks(COMMANDS) if block.kind == "console" for command in _commands(block)]
    assert any(re.match(rf"mlebench {verb}(?= |$)", text) for text in shown)
    assert f"| [`{verb}`](docs/reference/commands.md#{verb}) |" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", [pytest.param(page, id=_name(page)) for page in ALL_PAGES])
def test_local_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link["target"]):
            continue
        target = page.parent / link["target"] if link["target"] else page
        assert target.exists(), f"{_name(page)} links to {link['target']}"
        if link["heading"]:
            assert link["heading"] in _headings(target), f"{_name(page)} links to {link['target']}#{link['heading']}"


@pytest.mark.parametrize("page", [pytest.param(page, id=_name(page)) for page in ALL_PAGES])
def test_names_of_modules_and_functions_exist(page: Path) -> None:
    for match in re.finditer(r"`(mlebench(?:\.\w+)+)(?:\([^`]*)?`", page.read_text(encoding="utf-8")):
        pkgutil.resolve_name(match[1])


def _headings(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_dependency_has_a_documented_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(name for extra in project["optional-dependencies"].values() for name in extra)]
    told = (ROOT / "docs/decisions/0007-dependencies.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| ([^|]*) \|", told, re.MULTILINE) for name in row.split(", ")}
    assert {re.split(r"[^\w-]", name)[0] for name in asked} - {"mlebench"} <= named


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8")))
        found = [(page.parent / link["target"]).resolve() for link in links if not re.match(r"[a-z]+:", link["target"])]
        waiting += [path for path in found if path.is_file()]
    assert reached >= {page.resolve() for page in ALL_PAGES}
