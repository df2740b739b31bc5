"""Builds the site from the Markdown of this repository: `make docs`, or `python docs/site/build.py FOLDER`.

Pages keep the places that they have in the repository, so the same links work on GitHub and on the site. What is
generated is asked for by comments, which GitHub does not show: `<!-- options: run -->`, `<!-- types -->`.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import generated

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE_DOCS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
LINK = re.compile(r"\]\((?!\w+:)(?P<target>[^)\s#]+)")
OPTIONS = re.compile(r"^<!-- options: (\S+) -->$", re.MULTILINE)
TYPES = "\n<!-- types -->\n"
NAMED_FILE = re.compile(r"^<!-- file: (\S+) -->\n+(```+)(\w*)$", re.MULTILINE)
# GitHub wants `\|` for a bar in code in a table; the site's Markdown shows the backslash.
TABLE_ROW = re.compile(r"^ *\|.*\|$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
INLINE_CODE = re.compile(r"<code>[^<]+</code>")
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
# What a browser loads by itself; links to other hosts that a reader may follow are not among them.
LOADED = {"src", "srcset", "poster", "data"}
LOADED_IN_CSS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])(?:https?:)?//""")


def main(folder: Path) -> int:
    """Build the site in FOLDER/site; print what is wrong with it. 1 if anything is."""
    shutil.rmtree(folder, ignore_errors=True)
    stage(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / "zensical.toml")]
    if code := subprocess.run(command, check=False).returncode:
        return code
    keep_options_whole(folder / "site")
    problems = list(faults(folder / "site"))
    print(*problems, f"The site is {folder / 'site/index.html'}", sep="\n")
    return 1 if problems else 0


def stage(folder: Path) -> None:
    """Write the configuration, and the pages with their generated parts."""
    target = folder / "pages"
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for linked in _linked_files(page, text):
            _copy(linked, target / linked.relative_to(ROOT))
        path = target / page.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(expand(text), encoding="utf-8")
    for name in ("extra.css", "iframe-worker.js"):
        _copy(ROOT / "docs/site" / name, target / "docs/site" / name)
    packages = [f"docs/reference/packages/{name}.md" for name in generated.API]
    for name, path in zip(generated.API, packages, strict=True):
        (target / path).parent.mkdir(exist_ok=True)
        (target / path).write_text(generated.api(name), encoding="utf-8")
    decisions = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/decisions/0*.md"))
    config = (ROOT / "docs/site/zensical.toml").read_text(encoding="utf-8")
    for name, paths in {"packages": packages, "decisions": decisions}.items():
        config = config.replace(f"# {name}\n", "\n".join(f'"{path}",' for path in paths) + "\n")
    source = f'[project.plugins.mkdocstrings.handlers.python]\npaths = ["{ROOT / "src"}"]\n'
    (folder / "zensical.toml").write_text(f"{config}\n{source}", encoding="utf-8")


def pages() -> list[Path]:
    """The Markdown files that the site is made of."""
    return [*(ROOT / name for name in OUTSIDE_DOCS), *sorted((ROOT / "docs").rglob("*.md"))]


def expand(text: str) -> str:
    """A page with its generated parts, and with names above the files that it shows."""
    text = OPTIONS.sub(lambda match: generated.options(match[1]), text)
    if TYPES in text:
        text = text.replace(TYPES, f"\n{generated.types()}\n")
    text = TABLE_ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)
    return NAMED_FILE.sub(lambda match: f'{match[2]}{match[3] or "text"} title="{match[1]}"', text)


def keep_options_whole(site: Path) -> None:
    """Prevent line breaks inside options: browsers break after a hyphen, so `--twin` could end a line as `--`."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        whole = INLINE_CODE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), text)
        path.write_text(whole, encoding="utf-8")


def _linked_files(page: Path, text: str) -> Iterator[Path]:
    for match in LINK.finditer(text):
        path = (page.parent / match["target"]).resolve()
        if path.suffix != ".md" and path.is_file():
            yield path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


class _Page(HTMLParser):
    """The ids in a page, the links in it, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        self.loaded += [value for name, value in values.items() if name in LOADED]
        if "href" in values:
            (self.links if tag == "a" else self.loaded).append(values["href"])


def faults(site: Path) -> Iterator[str]:
    """Links that lead nowhere, and what is loaded from other hosts."""
    read = {path: _Page(path) for path in site.rglob("*.html")}
    for path, page in read.items():
        name = path.relative_to(site)
        for url in page.loaded:
            if urlsplit(url).netloc:
                yield f"{name} loads {url}"
        for url in {*page.links, *page.loaded}:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or name.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name} links to {url}, which does not exist"
            elif target in read and unquote(parts.fragment) not in read[target].ids:
                yield f"{name} links to {url}, which has no such heading"
    for path in site.rglob("*.css"):
        if LOADED_IN_CSS.search(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)} loads from another host"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
