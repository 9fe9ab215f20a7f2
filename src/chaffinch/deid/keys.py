"""The secret from which surrogates and date shifts are drawn, and keyed numbers drawn from it.

Numbers come from HMAC-SHA256 over the secret and the parts that name their purpose. The same secret and parts give the
same numbers on every machine; without the secret they cannot be distinguished from random ones.
"""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path

from chaffinch.deid.secret_strength import guessing_bits
from chaffinch.errors import ConfigError

VARIABLE = "CHAFFINCH_SECRET"

_LEAST_BYTES = 32  # shorter keys are refused
_MOST_BYTES = 4096  # a longer file is hardly a secret
_LEAST_BITS = 128  # that a guesser must try; secrets that we generate have 256
_DOMAIN = b"chaffinch deid 1"
_FINGERPRINT = b"chaffinch fingerprint 2"  # a constant salt, so that fingerprints are the same everywhere
COST = 15  # of scrypt: 2 to this power steps, 32 MB, a tenth of a second
_WORD = 64  # bits of one number of a stream
_FOUR_NUMBERS = struct.Struct(">4Q")


@dataclass(frozen=True, slots=True)
class Secret:
    """The key of surrogates and date shifts: `Secret.new()` or `Secret.read(path)`; its repr does not show it."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Raise ConfigError if the key is too short or weak."""
        _check(self.key, "the secret")

    @classmethod
    def new(cls) -> Secret:
        """Return a new secret of 256 random bits."""
        return cls(secrets.token_hex(32).encode())

    @classmethod
    def read(cls, path: str | Path | None = None, *, variable: str = VARIABLE) -> Secret:
        """Read the secret from a file only its owner may read, else from an environment variable; ConfigError if unfit.

        White space around it is ignored. Raise ConfigError if it is missing, too short, easy to guess, or readable by
        others.
        """
        if path is not None:
            return cls._from_bytes(_read_private_file(Path(path)), f"secret file {path}")
        value = os.environ.get(variable)
        if not value:
            raise ConfigError(
                f"no secret: give --secret-file PATH or set {variable}; make one with: chaffinch deid secret new PATH"
            )
        return cls._from_bytes(os.fsencode(value), f"the secret in {variable}")

    @classmethod
    def _from_bytes(cls, content: bytes, name: str) -> Secret:
        """Return the secret in some bytes, stripped; ConfigError, which calls it `name`, if it is easy to guess."""
        key = content.strip()
        _check(key, name)
        return cls(key)

    def write(self, path: str | Path) -> None:
        """Write the secret to a new file of mode 0600; raise ConfigError if it exists or cannot be written."""
        path = Path(path)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise ConfigError(
                f"{path} exists and is not overwritten; choose another name, or: chaffinch deid secret rotate {path}"
            ) from None
        except OSError as error:
            raise ConfigError(f"secret file {path} cannot be written ({error.strerror})") from None
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(self.key + b"\n")
                file.flush()
                os.fsync(file.fileno())
            _sync_folder(path.parent)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise ConfigError(f"secret file {path} cannot be written ({error.strerror})") from None

    def stream(self, *parts: str) -> Iterator[int]:
        """Yield 64-bit numbers without end, fixed by key and parts; ("ab", "c") and ("a", "bc") differ.

        >>> secret = Secret(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f")
        >>> next(secret.stream("ab", "c")) == next(secret.stream("a", "bc"))
        False
        """
        message = _message(parts)
        for block in count():
            yield from _block_numbers(self.key, message, block)

    def number(self, bound: int, *parts: str) -> int:
        """Return a number in 0 … bound - 1, fixed by key and parts, all equally likely; ConfigError if bound < 1.

        >>> Secret(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f").number(1, "any")
        0
        """
        if bound < 1:
            raise ConfigError(f"bound must be at least 1, got {bound}")
        if bound <= 1 << _WORD:  # nearly always the first number is enough
            first = _block_numbers(self.key, _message(parts), 0)[0]
            if first < (1 << _WORD) - (1 << _WORD) % bound:
                return first % bound
        words = max(1, -(-(bound - 1).bit_length() // _WORD))
        total = 1 << (_WORD * words)
        stream = self.stream(*parts)
        while True:
            value = 0
            for _ in range(words):
                value = value << _WORD | next(stream)
            if value < total - total % bound:
                return value % bound

    def fingerprint(self) -> str:
        """Return 16 hex digits that tell secrets apart and reveal nothing about them.

        Manifests show it, so it is slow to compute (once per process): checking guesses of the secret is expensive.
        """
        return _fingerprint(self.key)


def check_keys_differ(secret: Secret | None, key: Secret | None) -> None:
    """Raise ConfigError if one key is both the secret and the key of a vault."""
    if secret is not None and key is not None and hmac.compare_digest(secret.key, key.key):
        raise ConfigError(
            "the secret and the key of the vault are the same, so whoever draws surrogates could open the vault; "
            "make another key with: chaffinch deid secret new FILE"
        )


def stretch(key: bytes, salt: bytes, *, length: int, cost: int = COST) -> bytes:
    """Derive `length` bytes from a key and a salt by scrypt, at a cost of two to the power of `cost` steps."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=length, n=1 << cost, r=8, p=1).derive(key)


@lru_cache(maxsize=64)
def _fingerprint(key: bytes) -> str:
    """Return 16 hex digits of a slow hash of the key, cached."""
    return stretch(key, _FINGERPRINT, length=8).hex()


def _message(parts: tuple[str, ...]) -> bytes:
    """Return the HMAC message of some parts: the domain and the length-prefixed parts."""
    return _DOMAIN + b"".join(map(_prefix_length, parts))


@lru_cache(maxsize=1024)  # most parts name a purpose or the patient, and recur soon
def _prefix_length(part: str) -> bytes:
    """Return a part as UTF-8 with its length in front."""
    encoded = part.encode("utf-8", "surrogatepass")  # file names may hold lone surrogates
    return len(encoded).to_bytes(8, "big") + encoded


def _block_numbers(key: bytes, message: bytes, block: int) -> tuple[int, ...]:
    """Return four 64-bit numbers: the HMAC of the message and the number of the block."""
    return _FOUR_NUMBERS.unpack(hmac.digest(key, message + block.to_bytes(8, "big"), "sha256"))


def rotate(path: str | Path) -> tuple[Secret, Path]:
    """Replace a file's secret by a new one; return it and the file that keeps the old one; ConfigError if it fails.

    Until the last step, a rename, the file has the old secret: a crash loses neither.
    """
    target = Path(path).resolve()
    old, new = Secret.read(target), Secret.new()
    fresh = target.with_name(f".chaffinch-{secrets.token_hex(8)}")
    new.write(fresh)
    try:
        kept = _write_old(old, target)
        fresh.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise ConfigError(f"secret file {path} cannot be replaced ({error.strerror})") from None
    finally:
        fresh.unlink(missing_ok=True)
    return new, kept


def _write_old(old: Secret, target: Path) -> Path:
    """Write the old secret to the first free name FILE.old-1, FILE.old-2, …, and return its path."""
    for number in count(1):
        kept = target.with_name(f"{target.name}.old-{number}")
        if not kept.exists():
            old.write(kept)
            return kept
    raise AssertionError  # count() has no end


@lru_cache(maxsize=64)
def _check(key: bytes, name: str) -> None:
    """Raise ConfigError unless a key is long and hard to guess; the message calls it `name`."""
    fault = _fault(key)
    if fault:
        raise ConfigError(f"{name} {fault}; let a machine make one: chaffinch deid secret new FILE")


def _fault(key: bytes) -> str:
    """Return what is wrong with a secret, without showing it; empty if nothing is."""
    if len(key) < _LEAST_BYTES:
        return f"has {len(key)} bytes, at least {_LEAST_BYTES} are needed"
    if len(key) > _MOST_BYTES:
        return f"has over {_MOST_BYTES} bytes, so it is hardly a secret"
    bits = guessing_bits(key)
    if bits < _LEAST_BITS:
        return f"is easy to guess (about {bits:.0f} bits, at least {_LEAST_BITS} are needed)"
    return ""


def _read_private_file(path: Path) -> bytes:
    """Return a plain file's content; ConfigError if it cannot be read, is no plain file or open to others."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe must not hang us
    except OSError as error:
        remedy = f"; make one with: chaffinch deid secret new {path}" if error.errno == errno.ENOENT else ""
        raise ConfigError(f"secret file {path} cannot be read ({error.strerror}){remedy}") from None
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"secret file {path} is not a plain file; give a file, or set {VARIABLE}")
        if os.name == "posix" and mode & 0o077:
            raise ConfigError(
                f"secret file {path} is open to others (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}"
            )
        return os.read(handle, 2 * _MOST_BYTES)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Flush a folder, so that a new or changed name in it survives a crash, where the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
