"""The items of an input: each file of a folder or archive is one to read, one that a rule excludes, or unreadable.

Rules of exclusion: hidden files and folders; links to files or folders outside the input, unless links are followed;
links to folders of the input, which are read at their own place, and to folders that hold it. No item stops the walk.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from chaffinch.errors import DataError
from chaffinch.text.formats.archives import (
    GZIP_SUFFIX,
    HIDDEN,
    NOT_UTF8,
    is_archive,
    is_other_packed,
    is_utf8,
    open_gzip,
    open_plain_file,
    printable_name,
    read_archive,
)
from chaffinch.text.formats.base import Entry, Excluded, InputTree, Unread, read_error

LINK_OUT = "is a link to a place outside the input; --follow reads it too"
LINK_IN = "is a link to a folder of the input, whose notes are read there"
LINK_AGAIN = "is a link to a folder that overlaps the folder of another link; release it apart"
LINK_UP = "is a link to a folder that holds the input; name that folder if it is to be read"
_OTHER_PACKED = "is packed in a way that is not read here; unpack it first"


def walk_input(path: Path, *, follow: bool = True) -> InputTree:
    """Return all items of a file, folder or archive, sorted by name; DataError if the path does not exist.

    Without `follow`, links that lead out of a folder are excluded; the path itself may always be a link.
    """
    if not path.exists():
        raise DataError("does not exist; check the path", path=path)
    if not path.is_dir():
        return _items_of_file(str(path), path.name)
    walk = _Walk(str(path), follow)
    walk.visit_all()
    tree = InputTree()
    for name, place in sorted(walk.files):
        tree.add(_items_of_file(place, name))
    tree.add(walk.others)
    tree.excluded.sort(key=lambda item: item.name)
    tree.unread.sort(key=lambda item: item.name)
    return tree


def entries(path: Path) -> list[Entry]:
    """Return the files at a path, links followed; raise DataError for the first item that cannot be read."""
    tree = walk_input(path)
    for item in tree.unread:
        raise item.error()
    return tree.files


class _Walk:
    """A walk through a folder: the names and paths of its files, and all other items."""

    def __init__(self, root: str, follow: bool) -> None:
        """Begin at the root folder; without `follow`, links that lead out of it are excluded."""
        self.files: list[tuple[str, str]] = []
        self.others = InputTree()
        self._follow = follow
        self._root = os.path.realpath(root)
        self._linked: set[str] = set()  # folders outside that links lead to
        self._folders = deque([(root, "")])  # to visit: path, and name in the input with a slash, or empty

    def visit_all(self) -> None:
        """Visit all folders, however deep they are."""
        while self._folders:
            self._visit_folder(*self._folders.popleft())

    def _visit_folder(self, folder: str, above: str) -> None:
        """Visit the items of a folder in order; list the folder as unread if it cannot be opened."""
        try:
            with os.scandir(folder) as found:
                items = sorted(found, key=lambda item: item.name)
        except OSError as error:
            name = printable_name(above.rstrip("/")) or "."
            reason = read_error(folder, error).message
            self.others.unread.append(Unread(name, printable_name(folder), reason, container=True))
            return
        for item in items:
            self._visit_item(item, above + item.name)

    def _visit_item(self, item: os.DirEntry[str], name: str) -> None:
        """List an item as file, unread (name not UTF-8) or excluded (hidden, or a link by rule), or queue a folder."""
        if item.name.startswith("."):
            self.others.excluded.append(Excluded(printable_name(name), HIDDEN))
            return
        rule = self._find_rule(item) if item.is_symlink() else ""
        if rule:
            self.others.excluded.append(Excluded(printable_name(name), rule))
        elif _is_folder(item):
            self._folders.append((item.path, name + "/"))
        elif is_utf8(name):
            self.files.append((name, item.path))
        else:
            self.others.unread.append(Unread(printable_name(name), printable_name(item.path), NOT_UTF8))

    def _find_rule(self, link: os.DirEntry[str]) -> str:
        """Return the rule that excludes a link; "" if it is followed (a folder is then noted as linked) or broken."""
        target = os.path.realpath(link.path)
        if not os.path.exists(target):  # noqa: PTH110  (it raises nothing)
            return ""
        inside = _is_below(target, self._root)
        if not inside and not self._follow:
            return LINK_OUT
        if not _is_folder(link):
            return ""
        if _is_below(self._root, target) and target != self._root:
            return LINK_UP
        if inside:
            return LINK_IN
        if any(_is_below(target, other) or _is_below(other, target) for other in self._linked):
            return LINK_AGAIN
        self._linked.add(target)
        return ""


def _is_below(path: str, folder: str) -> bool:
    """Tell whether a resolved path is this folder or inside it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_folder(item: os.DirEntry[str]) -> bool:
    """Tell whether an item is a folder or a link to one; False if that cannot be found out."""
    try:
        return item.is_dir()
    except OSError:
        return False


def _items_of_file(path: str, name: str) -> InputTree:
    """Return as a tree an archive's members, or the file, .gz decompressed; other packed files are unread."""
    if is_archive(name):
        return read_archive(path, name)
    if is_other_packed(name):
        return InputTree(unread=[Unread(name, path, _OTHER_PACKED, container=True)])
    try:
        size = os.stat(path).st_size  # noqa: PTH116  (a plain string is quicker)
    except OSError:
        size = 0  # opening it reports the fault
    if name.lower().endswith(GZIP_SUFFIX):
        return InputTree([Entry(name[: -len(GZIP_SUFFIX)], path, lambda: open_gzip(open_plain_file(path, size), size))])
    return InputTree([Entry(name, path, lambda: open_plain_file(path, size))])
