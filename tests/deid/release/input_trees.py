"""Generated inputs: folders of notes, links, archives, hidden, unreadable, empty and oddly named items.

Each item says, when it is made, what has to become of it; nothing here reads the folder again.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LOCKED = "locked"  # in the name of what must be made unreadable by the test: a test that runs as root may read all
MAX_CHARS = 2000
_ODD = (
    "with blank", "new\nline", "quo\"te'", "=cmd|' C calc'!A0", "+1", "-rf", "@x", "\U0001f600", "a.b.c", "x" * 200,
    "tab\there", "semi;colon", "back\\slash", "ünïcode", "A!B", "100%", "$(id)", "\u202ereversed", "\x7f\x01",
)  # fmt: skip


@dataclass
class Tree:
    """A folder under construction, and the names of items that must be released, withheld or excluded."""

    root: Path
    outside: Path
    rng: random.Random
    follow: bool = False
    released: int = 0
    withheld: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    _number: int = 0

    def name(self) -> str:
        """A new name; now and then an odd one."""
        self._number += 1
        odd = self.rng.choice(_ODD) if self.rng.random() < 0.3 else "n"
        return f"{odd}{self._number}"

    def folder(self) -> Path:
        """A folder of the tree, now and then a new one."""
        folder = self.root
        while self.rng.random() < 0.4:
            folder = folder / self.rng.choice(["a", "b", "deep.txt", "zip"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def inside(self, path: Path) -> str:
        """The name of an item in the input."""
        return str(path.relative_to(self.root))

    @property
    def seen(self) -> int:
        """How many items there are."""
        return self.released + len(self.withheld) + len(self.excluded)


def note(tree: Tree) -> str:
    """The text of a note; empty ones and duplicates among them."""
    return tree.rng.choice(["", "Seen by Dr. Penn.\n", "Seen by Dr. Penn.\n", f"Note {tree.rng.random()} of Lowe.\r\n"])


def _plain(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}{tree.rng.choice(['.txt', '.TXT', '.txt'])}"
    path.write_bytes(note(tree).encode())
    tree.released += 1


def _packed(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}.txt.gz"
    path.write_bytes(gzip.compress(b"Seen by Dr. Penn.\n" * 5))
    tree.released += 1


def _hidden_file(tree: Tree) -> None:
    path = tree.folder() / f".{tree.name()}.txt"
    path.write_text("Penn")
    tree.excluded.append(tree.inside(path))


def _hidden_folder(tree: Tree) -> None:
    path = tree.folder() / f".{tree.name()}"
    path.mkdir()
    (path / "a.txt").write_text("Penn")
    tree.excluded.append(tree.inside(path))


def _no_note(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}{tree.rng.choice(['.pdf', '', '.md', '.txt~'])}"
    path.write_bytes(b"%PDF-1.7 Penn")
    tree.excluded.append(tree.inside(path))


def _link_out(tree: Tree) -> None:
    target = tree.outside / f"{tree.rng.getrandbits(60)}.txt"
    target.write_text("Penn")
    path = tree.folder() / f"{tree.name()}.txt"
    path.symlink_to(target)
    if tree.follow:
        tree.released += 1
    else:
        tree.excluded.append(tree.inside(path))


def _folder_link_out(tree: Tree) -> None:
    target = tree.outside / str(tree.rng.getrandbits(60))
    target.mkdir()
    (target / "a.txt").write_text("Penn")
    (target / "b.txt").write_text("Penn")
    path = tree.folder() / tree.name()
    path.symlink_to(target)
    if tree.follow:
        tree.released += 2
    else:
        tree.excluded.append(tree.inside(path))


def _link_in(tree: Tree) -> None:
    folder = tree.folder()
    target = folder / f"{tree.name()}.txt"
    target.write_text("Penn")
    (folder / f"{tree.name()}.txt").symlink_to(target.name)
    tree.released += 2


def _folder_link_in(tree: Tree) -> None:
    path = tree.folder() / tree.name()
    path.symlink_to(tree.root)
    tree.excluded.append(tree.inside(path))


def _broken_link(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}.txt"
    path.symlink_to(tree.rng.choice(["nowhere", path.name]))
    tree.withheld.append(tree.inside(path))


def _pipe(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}{tree.rng.choice(['.txt', '.zip', '.tar.gz', '.txt.gz', '.tar'])}"
    os.mkfifo(path)
    tree.withheld.append(tree.inside(path).removesuffix(".gz") if path.name.endswith(".txt.gz") else tree.inside(path))


def _unreadable(tree: Tree) -> None:
    path = tree.folder() / f"{LOCKED}{tree.name()}.txt"
    path.write_text("Penn")
    tree.withheld.append(tree.inside(path))


def _unreadable_folder(tree: Tree) -> None:
    path = tree.folder() / f"{LOCKED}{tree.name()}"
    path.mkdir()
    (path / "a.txt").write_text("Penn")
    tree.withheld.append(tree.inside(path))


def _bad_name(tree: Tree) -> None:
    folder = os.fsencode(tree.folder())
    number = tree.name().encode()[-3:].replace(b"/", b"")
    name = b"\xff\xfe" + number + str(tree._number).encode() + b".txt"
    Path(os.fsdecode(folder + b"/" + name)).write_text("Penn")
    tree.withheld.append(_escaped(tree, folder + b"/" + name))


def _bad_folder_name(tree: Tree) -> None:
    tree.name()
    folder = os.fsencode(tree.folder()) + b"/M\xfcller" + str(tree._number).encode()
    Path(os.fsdecode(folder)).mkdir()
    for name in (b"a.txt", b"b.txt"):
        Path(os.fsdecode(folder + b"/" + name)).write_text("Penn")
        tree.withheld.append(_escaped(tree, folder + b"/" + name))


def _escaped(tree: Tree, path: bytes) -> str:
    return os.path.relpath(path, os.fsencode(tree.root)).decode("utf-8", "backslashreplace")


def _bad_bytes(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}.txt"
    path.write_bytes(b"Dr. Penn\xff")
    tree.withheld.append(tree.inside(path))


def _too_long(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}.txt"
    path.write_bytes(b"x" * (MAX_CHARS + 1))
    tree.withheld.append(tree.inside(path))


def _zip(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}{tree.rng.choice(['.zip', '.ZIP'])}"
    held = tree.inside(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(tree.rng.randrange(3)):
            archive.writestr(f"{tree._number}/{number}.txt", note(tree))
            tree.released += 1
        archive.writestr("folder/", "")
        archive.writestr("__MACOSX/._a.txt", "Penn")
        tree.excluded.append(f"{held}!__MACOSX/._a.txt")
        archive.writestr("read.me", "Penn")
        tree.excluded.append("read.me")
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("inner.zip", b"PK")
        tree.withheld += [f"{held}!link.txt", f"{held}!inner.zip"]
        if tree.rng.random() < 0.5:
            archive.writestr(zipfile.ZipInfo("hurt.txt"), "Dr. Penn was here")
            tree.withheld.append(f"{held}!hurt.txt")
    path.write_bytes(path.read_bytes().replace(b"Dr. Penn was here", b"Dr. Xenn was here"))


def _tar(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}{tree.rng.choice(['.tar', '.tar.gz', '.tgz', '.tar.xz'])}"
    held = tree.inside(path)
    mode = {".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for number in range(tree.rng.randrange(3)):
            _add(archive, f"./{tree._number}/{number}.txt", note(tree).encode())
            tree.released += 1
        kinds = {"soft.txt": tarfile.SYMTYPE, "hard.txt": tarfile.LNKTYPE, "pipe.txt": tarfile.FIFOTYPE}
        for name, kind in kinds.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
            tree.withheld.append(f"{held}!{name}")
        _add(archive, ".hidden.txt", b"Penn")
        tree.excluded.append(f"{held}!.hidden.txt")


def _damaged_archive(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}{tree.rng.choice(['.zip', '.tar', '.tar.gz', '.7z'])}"
    path.write_bytes(tree.rng.choice([b"", b"PK\x03\x04 Penn", bytes(range(256)) * 4]))
    tree.withheld.append(tree.inside(path))


def _half_tar(tree: Tree) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        _add(archive, f"{tree._number}-first.txt", b"Penn")
        _add(archive, "second.txt", b"Penn")
    content = bytearray(whole.getvalue())
    if tree.rng.random() < 0.5:
        content[1024 + 10] ^= 0xFF  # the header of the second member
    else:
        del content[1024:]
    path = tree.folder() / f"{tree.name()}.tar"
    path.write_bytes(content)
    tree.released += 1
    tree.withheld.append(tree.inside(path))


def _half_gzip(tree: Tree) -> None:
    path = tree.folder() / f"{tree.name()}.txt.gz"
    path.write_bytes(gzip.compress(random.Random(1).randbytes(600).hex().encode())[:-20])
    tree.withheld.append(tree.inside(path).removesuffix(".gz"))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


KINDS: tuple[Callable[[Tree], None], ...] = (
    _plain, _packed, _hidden_file, _hidden_folder, _no_note, _link_out, _folder_link_out, _link_in, _folder_link_in,
    _broken_link, _pipe, _unreadable, _unreadable_folder, _bad_name, _bad_folder_name, _bad_bytes, _too_long, _zip,
    _tar, _damaged_archive, _half_tar, _half_gzip,
)  # fmt: skip


def new_tree(root: Path, outside: Path, seed: int, *, follow: bool) -> Tree:
    """A tree with two notes, so that its format is known."""
    root.mkdir()
    outside.mkdir()
    tree = Tree(root, outside, random.Random(seed), follow)
    _plain(tree)
    _plain(tree)
    return tree


def make_tree(root: Path, outside: Path, seed: int) -> Tree:
    """A tree of that seed, with up to a dozen more items."""
    tree = new_tree(root, outside, seed, follow=seed % 2 == 1)
    for _ in range(tree.rng.randrange(12)):
        tree.rng.choice(KINDS)(tree)
    return tree
