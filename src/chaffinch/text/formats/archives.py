"""Packed files: .gz files, and the members of zip and tar archives, unpacked within bounds and never to disk.

A member that cannot be read (damaged, encrypted, a link, too large once it is unpacked) is reported and keeps no other
from being read. The order of members is that of their names.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from chaffinch.text.formats.base import READ_ERRORS, Entry, Excluded, InputTree, Unread, read_error

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
ZIP_SUFFIX, GZIP_SUFFIX = ".zip", ".gz"
# Packed in a way that is not read here: notes may be inside, so these are withheld, not excluded.
OTHER_PACKED = (".7z", ".rar", ".bz2", ".xz", ".zst", ".z", ".lz4", ".cab", ".lha")
HIDDEN = "is hidden: its name, or that of a folder above it, begins with a dot"
NOT_UTF8 = "has a name that is not UTF-8, or is in a folder with such a name; rename it"

# A packed file may unpack to this many times its size, or to this many bytes if that is more. Text shrinks to a tenth
# or a twentieth; deflate can reach 1,000, and files made to exhaust the memory do.
LARGEST_RATIO = 100
SMALLEST_BOUND = 1 << 25
LARGEST_ARCHIVE = 1 << 32  # bytes: members are kept in memory; a larger archive has to be unpacked by its owner
_TOO_LARGE = (
    f"it unpacks to more than {LARGEST_RATIO} times its size, as no text does, or to more than "
    f"{LARGEST_ARCHIVE >> 30} GB; unpack it yourself if it is right"
)
_LINK = "is a link inside an archive; unpack the archive and name the folder"
_NO_FILE = "is no plain file of the archive; unpack the archive and name the folder"
_ENCRYPTED = "is encrypted; unpack the archive first"
_NESTED = "is an archive inside an archive; unpack it first"
_UNLISTED = "has bytes that belong to no member of its directory, so one may be lost; unpack it yourself and compare"
_DAMAGED_END = "has bytes after its last member, so members may be lost; unpack it yourself and compare"
_FOLDER_WITH_CONTENT = "is called a folder and has content: the directory of the archive is damaged"
_CHUNK = 1 << 20
# Of a zip file: the fixed part of the header before a member, and the record that may follow its bytes, which repeats
# checksum and sizes with a mark or without it, the sizes in 4 bytes or in 8.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LOCAL_MARK = b"PK\x03\x04"
_DESCRIPTOR_MARK = b"PK\x07\x08"
_DESCRIPTORS = tuple((mark, struct.Struct(sizes)) for mark in (_DESCRIPTOR_MARK, b"") for sizes in ("<LLL", "<LQQ"))
_HAS_DESCRIPTOR = 1 << 3  # the flag that such a record follows
_MEMBER_ERRORS = (
    *READ_ERRORS, RuntimeError, NotImplementedError, ValueError, struct.error, OverflowError, KeyError, IndexError
)  # fmt: skip
_OPENERS: tuple[tuple[bytes, Callable[[BinaryIO], Any]], ...] = (
    (b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open)
)  # fmt: skip


class _Bounded(io.RawIOBase):
    """A stream of unpacked bytes that fails once more than `limit` of them are read; `packed` is closed with it."""

    def __init__(self, stream: BinaryIO, limit: int, packed: BinaryIO | None = None) -> None:
        """Wrap the stream; `packed` is the compressed stream to close with it."""
        super().__init__()
        self._stream, self._left, self._packed = stream, limit, packed

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return the number of bytes; raise OSError once the limit is passed."""
        content = self._stream.read(len(buffer))
        self._left -= len(content)
        if self._left < 0:
            raise OSError(errno.EFBIG, _TOO_LARGE)
        buffer[: len(content)] = content
        return len(content)

    def readall(self) -> bytes:
        """Return all bytes that are left; raise OSError once the limit is passed."""
        parts = []
        while part := self.read(_CHUNK):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the stream and the compressed one below it."""
        self._stream.close()
        if self._packed is not None:
            self._packed.close()
        super().close()


def open_gzip(stream: BinaryIO, packed: int) -> BinaryIO:
    """Return a stream that unpacks a gzip stream of `packed` bytes; OSError beyond 100 times that, or 32 MB if more."""
    return _limit_stream(cast(BinaryIO, gzip.open(stream, "rb")), max(SMALLEST_BOUND, LARGEST_RATIO * packed), stream)


def open_plain_file(path: str, size: int | None = None) -> BinaryIO:
    """Open a file to read; OSError unless it is a plain file, or if `size` was above 0 and it is empty now.

    Reading a pipe or a device could block for ever.
    """
    status = os.stat(path)  # noqa: PTH116  (a plain string is quicker)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no plain file")
    if size and not status.st_size:
        raise OSError(errno.EIO, "it was emptied while the run was reading")
    return open(path, "rb")  # noqa: PTH123  (as above)


def is_archive(name: str) -> bool:
    """Tell whether a file of that name is an archive that `read_archive` reads."""
    return name.lower().endswith((*TAR_SUFFIXES, ZIP_SUFFIX))


def is_other_packed(name: str) -> bool:
    """Tell whether a file name has the suffix of a compression or archive that is not supported."""
    return name.lower().endswith(OTHER_PACKED)


def is_utf8(name: str) -> bool:
    """Tell whether a file name is valid text, without surrogates for bytes that are not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def printable_name(name: str) -> str:
    r"""Return a name as text that can be written: bytes that are not UTF-8 as \xNN."""
    return name if is_utf8(name) else name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_archive(path: str, name: str) -> InputTree:
    """Return a zip or tar file's members: files, excluded, unreadable, itself among the last if it is damaged."""
    members = _Members(path, name)
    try:
        with open_plain_file(path) as stream:
            members.left = min(max(SMALLEST_BOUND, LARGEST_RATIO * os.fstat(stream.fileno()).st_size), LARGEST_ARCHIVE)
            (_add_zip if name.lower().endswith(ZIP_SUFFIX) else _add_tar)(stream, members)
    except _MEMBER_ERRORS as error:
        members.tree.unread.append(Unread(name, path, _reason(error, path), container=True))
    members.tree.files.sort(key=lambda entry: entry.name)
    return members.tree


class _Members:
    """The members of an archive that were met so far, and how many bytes the others may unpack to."""

    def __init__(self, path: str, name: str) -> None:
        """Begin without members; `name` is the archive's name in the input."""
        self.path, self.name, self.left, self.tree = path, name, 0, InputTree()

    def leave_out(self, member: str, fault: str) -> bool:
        """List a member as excluded if it is hidden, or as unread if it has a fault; return whether it is either."""
        listed = f"{self.name}!{printable_name(member)}"
        parts = [part for part in PurePosixPath(member).parts if part not in (".", "..")]
        packed = is_archive(member) or is_other_packed(member)
        if any(part.startswith(".") for part in parts):
            self.tree.excluded.append(Excluded(listed, HIDDEN))
            return True
        fault = fault or ("" if is_utf8(member) else NOT_UTF8) or (_NESTED if packed else "")
        if fault:
            self.tree.unread.append(Unread(listed, f"{self.path}!{printable_name(member)}", fault, container=packed))
        return bool(fault)

    def read(self, member: str, unpack: Callable[[], Any]) -> None:
        """Unpack a member into memory, within the limit, and list it as a file; errors of unpacking are raised."""
        with _limit_stream(unpack(), self.left) as stream:
            content = stream.read()
        self.left -= len(content)
        self.tree.files.append(entry_of_bytes(member, f"{self.path}!{member}", content))


def _add_zip(stream: BinaryIO, members: _Members) -> None:
    """Add all members of a zip file, failures one by one as unread, and the file itself if its list omits bytes."""
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            if info.is_dir() and not info.file_size:
                continue
            if members.leave_out(info.filename, _fault_of(info)):
                continue
            try:
                members.read(info.filename, partial(archive.open, info))
            except _MEMBER_ERRORS as error:
                where = f"{members.path}!{info.filename}"
                members.tree.unread.append(Unread(f"{members.name}!{info.filename}", where, _reason(error, where)))
        if not _covers_file(stream, archive.infolist(), archive.start_dir):
            members.tree.unread.append(Unread(members.name, members.path, _UNLISTED, container=True))


def _fault_of(info: zipfile.ZipInfo) -> str:
    """Return why a zip member is not read (encrypted, link, folder with content, no file); "" if it is."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & 1:
        return _ENCRYPTED
    if info.is_dir():
        return _FOLDER_WITH_CONTENT
    return "" if kind in (0, stat.S_IFREG) else _LINK if kind == stat.S_IFLNK else _NO_FILE


def _covers_file(stream: BinaryIO, infos: Sequence[zipfile.ZipInfo], directory: int) -> bool:
    """Tell whether the listed members fill a zip file from its first byte to its directory, without gap or overlap.

    A damaged directory can leave out members whose bytes are still there; zipfile then reads the others and is content.
    """
    place = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        stream.seek(info.header_offset)
        header = stream.read(_LOCAL_HEADER.size)
        if info.header_offset != place or len(header) < _LOCAL_HEADER.size:
            return False
        mark, name, extra = _LOCAL_HEADER.unpack(header)
        if mark != _LOCAL_MARK:
            return False
        place += _LOCAL_HEADER.size + name + extra + info.compress_size
        if info.flag_bits & _HAS_DESCRIPTOR:
            stream.seek(place)
            place += _descriptor_size(stream.read(24), info)
    return place == directory


def _descriptor_size(content: bytes, info: zipfile.ZipInfo) -> int:
    """Return the size of the record after a member that repeats its checksum and sizes; 0 if there is none."""
    for mark, form in _DESCRIPTORS:
        record = content[len(mark) : len(mark) + form.size]
        expected = (info.CRC, info.compress_size, info.file_size)
        if content.startswith(mark) and len(record) == form.size and form.unpack(record) == expected:
            return len(mark) + form.size
    return 0


def _add_tar(stream: BinaryIO, members: _Members) -> None:
    """Add the members of a tar file, read from front to end; raise ReadError or OSError if its end is damaged."""
    ends: list[str] = []
    start = stream.read(6)
    stream.seek(0)
    opener = next((opener for magic, opener in _OPENERS if start.startswith(magic)), None)
    unpacked = stream if opener is None else _limit_stream(cast(BinaryIO, opener(stream)), members.left)
    with tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_record_header_errors(ends)) as archive:
        for member in archive:
            fault = "" if member.isfile() else _LINK if member.issym() or member.islnk() else _NO_FILE
            if not member.isdir() and not members.leave_out(member.name, fault):
                members.read(member.name, partial(archive.extractfile, member))
        if ends[-1:] != ["EOFHeaderError"]:
            raise tarfile.ReadError
        # Zeros end a tar file. Reading on to the end also checks what a compressed stream says of its content.
        while rest := cast(BinaryIO, archive.fileobj).read(_CHUNK):
            if rest.strip(b"\0"):
                raise OSError(errno.EIO, _DAMAGED_END)


def _record_header_errors(ends: list[str]) -> type[tarfile.TarInfo]:
    """Return a TarInfo class that appends the class name of each header error to `ends`: tarfile hides them."""

    class Member(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: Any, encoding: Any, errors: Any) -> Any:
            """Parse a tar header; note the kind of error in `ends` before raising it."""
            try:
                return super().frombuf(buf, encoding, errors)
            except tarfile.HeaderError as error:
                ends.append(type(error).__name__)
                raise

    return Member


def entry_of_bytes(name: str, where: str, content: bytes) -> Entry:
    """Return an entry for content in memory; of a name in .gz the suffix is cut, and opening it unpacks."""
    if name.lower().endswith(GZIP_SUFFIX):
        stem = name[: -len(GZIP_SUFFIX)]
        return Entry(stem, where, lambda: open_gzip(io.BytesIO(content), len(content)))
    return Entry(name, where, lambda: io.BytesIO(content))


def _limit_stream(stream: BinaryIO, limit: int, packed: BinaryIO | None = None) -> BinaryIO:
    """Return a stream that raises OSError once more than `limit` bytes are read; closing it closes `packed` too."""
    return cast(BinaryIO, io.BufferedReader(_Bounded(stream, limit, packed), _CHUNK))


def _reason(error: Exception, where: str) -> str:
    """Return the message of a read error at a path, without the path."""
    return read_error(where, error).message
