"""Every module, function and file that a README or a page names is there, so that a rename cannot leave it behind."""

from __future__ import annotations

import ast
import difflib
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "chaffinch"
MODELS = SOURCE / "models"
PAGES = [ROOT / "README.md", ROOT / "recipes" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
METHODS = sorted(
    path.parent
    for path in (*MODELS.glob("*/__init__.py"), *MODELS.glob("votes/*/__init__.py"))
    if path.parent.name != "votes"  # a folder of methods
)
LONGEST = 60  # lines of a README: one screen

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"[\w./-]+/|[\w./-]*\.(?:py|toml|txt|md|cfm|sh|gz)")
TOP = {path.name for path in (*ROOT.iterdir(), *SOURCE.iterdir()) if path.is_dir()}  # a path begins with one of these
PLACES = {"function", "where"}  # headings of columns whose every name must be there


class Missing(NamedTuple):
    """A name that leads nowhere, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"`{self.name}`: {self.reason}"


class Imported(NamedTuple):
    """A name that a module has from another one."""

    module: str
    name: str


@cache
def members(path: Path) -> dict[str, ast.stmt | Imported]:
    """The names at the top level of a module."""
    return dict(_bound(ast.parse(path.read_text(encoding="utf-8")).body))


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt | Imported]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, Imported(node.module or "", alias.name)) for alias in node.names)
        elif isinstance(node, ast.If):  # names for type checkers, which are loaded when they are asked for
            yield from _bound(node.body)


def module_of(parts: list[str], folder: Path) -> tuple[Path, list[str]]:
    """The module that the first parts of a dotted name lead to from a package's folder, and the parts that are left."""
    while parts and (folder / parts[0] / "__init__.py").exists():
        folder, parts = folder / parts[0], parts[1:]
    if parts and (folder / f"{parts[0]}.py").exists():
        return folder / f"{parts[0]}.py", parts[1:]
    return folder / "__init__.py", parts


def defined(module: Path, name: str) -> ast.stmt | None:
    """Where a name of a module, or of one that it imports from, is defined; None if it is not."""
    node = members(module).get(name)
    if isinstance(node, Imported):
        source, left = module_of(f"{node.module}.{node.name}".split("."), SOURCE.parent)
        return defined(source, left[0]) if len(left) == 1 else None
    return node


def resolve(name: str, folder: Path) -> str | None:
    """Return why a dotted name does not lead from a package's folder to a module, function, class or method.

    None if it does. A package has what it imports; any other module has only what it defines.
    """
    module, parts = module_of(name.split("."), folder)
    if not parts:
        return None
    known = members(module)
    if module.name != "__init__.py" and isinstance(known.get(parts[0]), Imported):
        return f"{module.relative_to(ROOT)} only imports {parts[0]}; name the module that defines it"
    for part in parts:
        if part not in known or (known is members(module) and defined(module, part) is None):
            near = difflib.get_close_matches(part, known.keys() - {part}, n=3)
            hint = f"; nearest are {', '.join(near)}" if near else ""
            return f"{module.relative_to(ROOT)} has no {part}{hint}"
        node = defined(module, part) if known is members(module) else known[part]
        known = dict(_bound(node.body)) if isinstance(node, ast.ClassDef) else {}
    return None


def find(name: str, folders: list[Path]) -> str | None:
    """Return why a dotted name leads nowhere from the first folder that has its first part; None if it does not."""
    name = re.sub(r"^(chaffinch|cf)\.", "", name)
    first = name.split(".")[0]
    for folder in folders:
        if module_of([first], folder)[1] == []:
            return resolve(name, folder)
    if first in members(SOURCE / "__init__.py"):  # a public name, such as Cascade.published
        return resolve(name, SOURCE)
    return f"no module {first} in {', '.join(str(folder.relative_to(ROOT)) for folder in folders)}"


def folders_of(page: Path) -> list[Path]:
    """Where the names of a page count from: its method's folder, then those around it, then the package."""
    if page.is_relative_to(SOURCE):
        inner = [page.parent, *page.parent.parents]
        return [folder for folder in inner if folder.is_relative_to(SOURCE)]
    method = MODELS / page.stem
    return [*([method] if method.is_dir() else []), MODELS, SOURCE]


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The heading and the rows of every table of a page."""
    lines = [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in text.splitlines()]
    start = 0
    for at, cells in enumerate(lines):
        if not cells:
            start = at + 1
        elif not at + 1 < len(lines) or not lines[at + 1]:
            rows = [[cell.strip() for cell in row] for row in lines[start : at + 1]]
            yield rows[0], rows[2:]


def missing_files(text: str, folders: list[Path], *, every: bool) -> Iterator[Missing]:
    """The files in backticks that are not there; unless `every`, only those whose path begins with a folder of ours."""
    for quoted in QUOTED.findall(text):
        if not FILE.fullmatch(quoted) or (not every and quoted.split("/")[0] not in TOP) or quoted.startswith("/"):
            continue
        if re.search(r"\b(?:NAME|CODE)\b", quoted):
            continue  # a place for the reader's file
        if not every and "/" not in quoted[:-1]:
            continue  # a folder of the reader's, such as `notes/`
        if not any((folder / quoted).exists() for folder in (*folders, ROOT)):
            yield Missing(quoted, "no such file or folder")


def missing_names(text: str, folders: list[Path], *, every: bool) -> Iterator[Missing]:
    """The dotted names in backticks that lead nowhere; unless `every`, only those that begin with our package."""
    for quoted in QUOTED.findall(text):
        name = quoted.removesuffix("()")
        if DOTTED.fullmatch(name) and not FILE.fullmatch(name) and (every or name.startswith("chaffinch.")):
            reason = find(name, folders)
            if reason is not None:
                yield Missing(quoted, reason)


def missing_in_tables(text: str, folders: list[Path]) -> Iterator[Missing]:
    """The names in columns headed "function" or "where" that lead nowhere; there, every name says its module."""
    for heading, rows in tables(text):
        for column in (n for n, cell in enumerate(heading) if cell in PLACES):
            for row in rows:
                cell = row[column]
                yield from missing_names(cell, folders, every=True)
                yield from missing_files(cell, folders, every=True)
                for quoted in QUOTED.findall(cell):
                    if not DOTTED.fullmatch(quoted.removesuffix("()")) and not FILE.fullmatch(quoted):
                        yield Missing(quoted, "name it with its module, as in `module.function`")


def missing(page: Path) -> list[str]:
    """What a page names that is not there, each with a reason."""
    text, folders = CODE.sub("", page.read_text(encoding="utf-8")), folders_of(page)
    ours = page.is_relative_to(SOURCE)
    found = [*missing_names(text, folders, every=ours), *missing_files(text, folders, every=ours)]
    found += missing_in_tables(text, folders)
    return sorted({str(one) for one in found})


@pytest.mark.parametrize("folder", METHODS, ids=lambda folder: str(folder.relative_to(MODELS)))
class TestReadmeOfAMethod:
    def test_it_fits_one_screen(self, folder: Path) -> None:
        assert len((folder / "README.md").read_text(encoding="utf-8").splitlines()) <= LONGEST

    def test_it_names_nothing_that_is_not_there(self, folder: Path) -> None:
        found = missing(folder / "README.md")
        assert not found, "\n".join(found)

    def test_it_names_every_module_in_reading_order(self, folder: Path) -> None:
        text = (folder / "README.md").read_text(encoding="utf-8")
        listed = re.findall(r"^\d+\. `([\w/]+?)(?:\.py|/)`", text, re.MULTILINE)
        modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
        packages = {path.parent.name for path in folder.glob("*/__init__.py")}
        if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in members(folder / "__init__.py").values()):
            modules.add("__init__")
        assert sorted(listed) == sorted(modules | packages)

    def test_it_has_a_table_from_steps_to_functions(self, folder: Path) -> None:
        text = (folder / "README.md").read_text(encoding="utf-8")
        functions = [len(rows) for heading, rows in tables(text) if heading[-1] in PLACES]
        assert functions
        assert min(functions) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_nothing_that_is_not_there(page: Path) -> None:
    found = missing(page)
    assert not found, "\n".join(found)


def test_pages_have_tables_of_functions() -> None:
    counts = {page.stem: len(list(_cells(page))) for page in PAGES}
    assert counts["hmmdp"] > 20
    assert counts["classhmm"] > 10
    assert counts["weak"] > 5
    assert counts["contributing"] > 20


def _cells(page: Path) -> Iterator[str]:
    for heading, rows in tables(page.read_text(encoding="utf-8")):
        for column in (n for n, cell in enumerate(heading) if cell in PLACES):
            yield from (row[column] for row in rows if QUOTED.search(row[column]))


def test_the_rows_of_rooms_are_those_of_the_import_contract() -> None:
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    (diagram,) = re.findall(r"^```text rooms\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    drawn = [re.findall(r"\w+", line.split("  ")[0]) for line in diagram.splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(one["layers"] for one in contracts if one["type"] == "layers" and one["containers"] == ["chaffinch"])
    assert drawn == [re.findall(r"\w+", row) for row in rows]


def test_contributing_says_what_is_in_every_folder() -> None:
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    told = {
        name
        for heading, rows in tables(text)
        if heading[0] == "folder"
        for row in rows
        for name in QUOTED.findall(row[0])
    }
    packages = {str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("*/__init__.py")}
    assert {name for name in told if not (SOURCE / name).is_dir()} == set()
    assert {name for name in packages if "_" not in (part[0] for part in name.split("/"))} - told == set()


MADE = {  # a small package: a room with a method, a public name that is imported twice over
    "__init__.py": "from chaffinch.room.fit import Method\n",
    "room/__init__.py": "from chaffinch.room.fit import learn, gone\n",
    "room/config.py": "class Method:\n    states: int = 2\n    def published(self): ...\n",
    "room/fit.py": "from chaffinch.room.config import Method\nLEAST = 1\ndef learn(): ...\n",
    "room/inner/__init__.py": "",
    "room/inner/deep.py": "def dive(): ...\n",
}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fit.learn", None),
        ("fit.LEAST", None),
        ("fit.lern", "fit.py has no lern; nearest are learn"),
        ("fit.learn.deeper", "fit.py has no deeper"),
        ("fit.Method", "fit.py only imports Method"),
        ("config.Method.published", None),
        ("config.Method.states", None),
        ("config.Method.publish", "config.py has no publish; nearest are published"),
        ("inner.deep", None),
        ("inner.deep.dive", None),
        ("inner.deeper.dive", "has no deeper"),
        ("room.learn", None),
        ("chaffinch.room.learn", None),
        ("room.gone", "has no gone"),
        ("Method.published", None),
        ("cf.Method.publish", "nearest are published"),
        ("portrait.use", "no module portrait"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(
    name: str, reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "chaffinch"
    for path, text in MADE.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", source)
    found = find(name, [source / "room", source])
    assert found is None if reason is None else found is not None and reason in found


def test_a_table_is_read_row_by_row() -> None:
    page = "text\n\n| step | function |\n|---|---|\n| a \\| b | `fit.fit` |\n| c | `gone` |\n\n| x |\n|---|\n| y |\n"
    (first, rows), (second, _) = tables(page)
    assert (first, second) == (["step", "function"], ["x"])
    assert [row[1] for row in rows] == ["`fit.fit`", "`gone`"]
    assert [one.name for one in missing_in_tables(page, [MODELS / "hmmdp"])] == ["gone"]
