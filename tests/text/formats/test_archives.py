"""Packed files are bounded while they are unpacked, and whatever their bytes are, each item is read or reported."""

from __future__ import annotations

import gzip
import io
import os
import random
import resource
import tarfile
import zipfile
from pathlib import Path
from typing import IO, cast

import pytest

from chaffinch.deid.release.units import open_source, read_unit
from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, archives, read, write
from chaffinch.text.formats.temporary import remove_left_overs
from chaffinch.text.formats.walk import walk_input
from tests.attacks.sizes import sized

pytestmark = pytest.mark.drill


class Zeros(io.RawIOBase):
    """A file of so many zeros that is nowhere."""

    def __init__(self, size: int) -> None:
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        size = min(len(buffer), self._left)
        buffer[:size] = bytes(size)
        self._left -= size
        return size


def bomb(path: Path, size: int) -> Path:
    """A packed file that unpacks to so many zeros."""
    if path.name.endswith(".zip"):
        zipped = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        with zipped as archive, archive.open("a.txt", "w", force_zip64=True) as stream:
            for _ in range(size >> 20):
                stream.write(bytes(1 << 20))
    elif ".tar" in path.name:
        with tarfile.open(path, "w:gz") as packed:
            member = tarfile.TarInfo("a.txt")
            member.size = size
            packed.addfile(member, cast(IO[bytes], Zeros(size)))
    else:
        with gzip.open(path, "wb") as stream:
            for _ in range(size >> 20):
                stream.write(bytes(1 << 20))
    return path


@pytest.mark.parametrize("name", ["b.zip", "b.tar.gz", "b.txt.gz", "b.jsonl.gz"])
def test_a_bomb_is_withheld_within_bounds_and_keeps_nothing_else_from_being_read(name: str, tmp_path: Path) -> None:
    suffix = ".jsonl" if "jsonl" in name else ".txt"
    (tmp_path / f"a{suffix}").write_text('{"id": "a", "text": "x"}\n' if suffix == ".jsonl" else "x")
    size = sized(200, 4000) << 20
    packed = bomb(tmp_path / name, size).stat().st_size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = open_source(tmp_path, options=ReadOptions(max_chars=1000))
    failed = []
    for unit in source:
        try:
            read_unit(unit)
        except DataError as error:
            failed.append(error.message)
    assert source.seen == 2
    assert len(failed) == 1
    assert "unpacks to more than 100 times its size" in failed[0]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < 4 * max(archives.SMALLEST_BOUND, 100 * packed)


def test_a_large_file_of_usual_text_is_read(tmp_path: Path) -> None:
    text = random.Random(0).randbytes(20 << 20).hex()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text.encode(), 1))
    (doc,) = read(tmp_path / "a.txt.gz", how=ReadOptions(max_chars=1 << 30, split="lines"))
    assert len(doc.text) == len(text)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".txt.gz"])
def test_damaged_bytes_never_stop_the_walk(suffix: str, tmp_path: Path) -> None:
    notes = [(f"n{number}.txt", f"Note {number} of Dr. Penn. " * 5) for number in range(4)]
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in notes:
                archive.writestr(name, text)
    elif ".tar" in suffix:
        with tarfile.open(whole, "w:gz" if suffix.endswith("gz") else "w") as packed:
            for name, text in notes:
                member = tarfile.TarInfo(name)
                member.size = len(text)
                packed.addfile(member, io.BytesIO(text.encode()))
    else:
        whole.write_bytes(gzip.compress(notes[0][1].encode()))
    content = whole.read_bytes()
    whole.unlink()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.txt").write_text("x")
    rng = random.Random(suffix)
    for _ in range(sized(60, 1500)):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        (tmp_path / "in" / f"x{suffix}").write_bytes(damaged)
        source = open_source(tmp_path / "in")
        texts = []
        for unit in source:
            try:
                texts.append(read_unit(unit).text)
            except DataError:
                texts.append("")
        assert "x" in texts
        # Nothing is lost in silence: all notes are there, or something is reported. Content of a plain tar file has no
        # checksum, so there only the number of notes can tell.
        expected = [text for _, text in notes[: 1 if suffix == ".txt.gz" else 4]]
        complete = len(texts) > len(expected) if suffix == ".tar" else {*expected} <= {*texts}
        assert complete or "" in texts or source.excluded, bytes(damaged)


class Forward(io.RawIOBase):
    """A file that cannot go back, so that sizes follow a member's bytes."""

    def __init__(self) -> None:
        self.content = b""

    def writable(self) -> bool:
        return True

    def write(self, part: bytes) -> int:  # type: ignore[override]
        self.content += bytes(part)
        return len(part)


def zip_of_three(*, forward: bool, large: bool = False) -> bytes:
    """A zip file of a folder and three notes; its sizes before or after a member's bytes, in 4 or in 8 bytes."""
    target = Forward() if forward else io.BytesIO()
    with zipfile.ZipFile(cast(IO[bytes], target), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ward/", "")
        for number in range(3):
            with archive.open(f"ward/n{number}.txt", "w", force_zip64=large) as stream:
                stream.write(f"Note {number}.".encode())
    return target.content if isinstance(target, Forward) else target.getvalue()


def unread_of(path: Path, content: bytes) -> tuple[int, list[str]]:
    """How many files are read of an archive, and why others are not."""
    path.write_bytes(content)
    tree = archives.read_archive(str(path), path.name)
    return len(tree.files), [item.reason for item in tree.unread]


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_whole_zip_files_of_all_forms_are_read_without_a_report(forward: bool, large: bool, tmp_path: Path) -> None:
    assert unread_of(tmp_path / "a.zip", zip_of_three(forward=forward, large=large)) == (3, [])


@pytest.mark.parametrize("forward", [False, True])
def test_a_member_that_the_directory_of_a_zip_file_lost_is_reported(forward: bool, tmp_path: Path) -> None:
    content = bytearray(zip_of_three(forward=forward))
    entry = content.rindex(b"PK\x01\x02")  # the last entry of the directory becomes the comment of the one before it
    before = content.rindex(b"PK\x01\x02", 0, entry)
    content[before + 32 : before + 34] = (content.index(b"PK\x05\x06") - entry).to_bytes(2, "little")
    number, reasons = unread_of(tmp_path / "a.zip", bytes(content))
    assert number == 2
    assert len(reasons) == 1
    assert "belong to no member" in reasons[0]


def test_a_note_that_a_damaged_zip_file_calls_a_folder_is_reported(tmp_path: Path) -> None:
    content = zip_of_three(forward=False).replace(b"n1.txt", b"n1.tx/")
    number, reasons = unread_of(tmp_path / "a.zip", content)
    assert number == 2
    assert ["called a folder" in reason for reason in reasons] == [True]


def test_a_second_tar_file_behind_the_end_of_the_first_is_reported(tmp_path: Path) -> None:
    parts = []
    for number in range(2):
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w") as packed:
            member = tarfile.TarInfo(f"n{number}.txt")
            member.size = 4
            packed.addfile(member, io.BytesIO(b"Note"))
        parts.append(target.getvalue())
    assert unread_of(tmp_path / "a.tar", parts[0]) == (1, [])
    number, reasons = unread_of(tmp_path / "a.tar", b"".join(parts))
    assert number == 1
    assert ["after its last member" in reason for reason in reasons] == [True]


def test_a_file_that_was_emptied_meanwhile_is_reported(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"id": "a", "text": "x"}\n')
    tree = walk_input(tmp_path)
    (tmp_path / "b.jsonl").write_bytes(b"")
    assert tree.files[0].content()
    with pytest.raises(DataError, match="it was emptied while the run was reading"):
        tree.files[1].content()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path: Path) -> None:
    (tmp_path / ".chaffinch-old").mkdir()
    (tmp_path / ".chaffinch-old" / "x").touch()
    (tmp_path / ".chaffinch-file").touch()
    (tmp_path / ".chaffinch-young").mkdir()
    held = tmp_path / ".chaffinch-held"
    held.touch()
    for name in (".chaffinch-old", ".chaffinch-file", ".chaffinch-held"):
        os.utime(tmp_path / name, (0, 0))
    with held.open() as stream:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX)
        write(read_one(tmp_path), tmp_path / "out.jsonl")
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == [
            ".chaffinch-held", ".chaffinch-young"
        ]  # fmt: skip
    remove_left_overs(tmp_path)
    assert not held.exists()


def read_one(folder: Path) -> list[Document]:
    return [Document.make("x", id=folder.name)]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_output_that_is_a_link_is_written_where_it_leads(kind: str, tmp_path: Path) -> None:
    target = tmp_path / ("real" if kind == "folder" else "real.jsonl")
    link = tmp_path / ("link" if kind == "folder" else "link.jsonl")
    if kind == "folder":
        target.mkdir()
    link.symlink_to(target)
    write(read_one(tmp_path), link, format="txt" if kind == "folder" else "jsonl")
    assert link.is_symlink()
    assert target.exists()
    assert [doc.text for doc in read(target)] == ["x"]
