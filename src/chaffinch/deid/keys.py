"""The secret from which surrogates and date shifts are drawn, and numbers drawn from it.

Numbers come from HMAC-SHA256 over the secret and the parts that name what they are for. The same secret and parts
give the same numbers on every machine; without the secret they cannot be told from chance.
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

_LEAST_BYTES = 32
_MOST_BYTES = 4096
_LEAST_BITS = 128  # that a guesser must lack; of ours he lacks 256
_DOMAIN = b"chaffinch deid 1"
_FINGERPRINT = b"chaffinch fingerprint 2"  # a salt that is the same everywhere, so that fingerprints are
COST = 15  # of scrypt: 2 to this many steps, 32 MB, a tenth of a second
_WORD = 64  # bits of one number of a stream
_FOUR = struct.Struct(">4Q")


@dataclass(frozen=True, slots=True)
class Secret:
    """The key of surrogates and date shifts: `Secret.new()` or `Secret.read(path)`; its repr shows nothing of it."""

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check(self.key, "the secret")

    @classmethod
    def new(cls) -> Secret:
        """A fresh secret of 256 random bits."""
        return cls(secrets.token_hex(32).encode())

    @classmethod
    def read(cls, path: str | Path | None = None, *, variable: str = VARIABLE) -> Secret:
        """The secret of a file that only its owner may read; without a path, of an environment variable.

        White space around it is not part of it. ConfigError if it is missing, too short, easy to guess, or open to
        others.
        """
        if path is not None:
            return cls._checked(_owners_bytes(Path(path)), f"secret file {path}")
        held = os.environ.get(variable)
        if not held:
            raise ConfigError(
                f"no secret: give --secret-file PATH or set {variable}; make one with: chaffinch deid secret new PATH"
            )
        return cls._checked(os.fsencode(held), f"the secret in {variable}")

    @classmethod
    def _checked(cls, content: bytes, name: str) -> Secret:
        key = content.strip()
        _check(key, name)
        return cls(key)

    def write(self, path: str | Path) -> None:
        """Writes the secret to a new file of mode 0600; a file that exists is never overwritten."""
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
            _keep_name(path.parent)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise ConfigError(f"secret file {path} cannot be written ({error.strerror})") from None

    def stream(self, *parts: str) -> Iterator[int]:
        """Numbers of 64 bits without end; each part is length-prefixed, so ("ab", "c") and ("a", "bc") differ.

        >>> secret = Secret(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f")
        >>> next(secret.stream("ab", "c")) == next(secret.stream("a", "bc"))
        False
        """
        message = _message(parts)
        for block in count():
            yield from _words(self.key, message, block)

    def number(self, bound: int, *parts: str) -> int:
        """A number from 0 to bound - 1, all equally likely: draws beyond the last full multiple are drawn again.

        >>> Secret(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f").number(1, "any")
        0
        """
        if bound < 1:
            raise ConfigError(f"bound must be at least 1, got {bound}")
        if bound <= 1 << _WORD:  # nearly always the first word will do
            first = _words(self.key, _message(parts), 0)[0]
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
        """Sixteen characters that tell one secret from another and give nothing of it away.

        Manifests show it, so it is slow to compute (once per process): nobody checks guesses of the secret by it.
        """
        return _fingerprint(self.key)


def check_apart(secret: Secret | None, key: Secret | None) -> None:
    """Raise ConfigError if one key is both the secret and the key of a vault."""
    if secret is not None and key is not None and hmac.compare_digest(secret.key, key.key):
        raise ConfigError(
            "the secret and the key of the vault are the same, so that who draws surrogates could open the vault; "
            "make another key with: chaffinch deid secret new FILE"
        )


def stretch(key: bytes, salt: bytes, *, length: int, cost: int = COST) -> bytes:
    """Return bytes made from a key by scrypt, at a cost of two to the power of `cost` steps."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=length, n=1 << cost, r=8, p=1).derive(key)


@lru_cache(maxsize=64)
def _fingerprint(key: bytes) -> str:
    return stretch(key, _FINGERPRINT, length=8).hex()


def _message(parts: tuple[str, ...]) -> bytes:
    return _DOMAIN + b"".join(map(_framed, parts))


@lru_cache(maxsize=1024)  # most parts name what a number is for, or the patient, and come again at once
def _framed(part: str) -> bytes:
    encoded = part.encode("utf-8", "surrogatepass")  # file names may hold lone surrogates
    return len(encoded).to_bytes(8, "big") + encoded


def _words(key: bytes, message: bytes, block: int) -> tuple[int, ...]:
    """Four numbers of 64 bits: HMAC of the message and the number of the block."""
    return _FOUR.unpack(hmac.digest(key, message + block.to_bytes(8, "big"), "sha256"))


def rotate(path: str | Path) -> tuple[Secret, Path]:
    """The new secret that now stands in the file, and the file beside it that keeps the old one.

    Until the last step, a rename, the file holds the old secret: a crash loses neither.
    """
    place = Path(path).resolve()
    old, new = Secret.read(place), Secret.new()
    fresh = place.with_name(f".chaffinch-{secrets.token_hex(8)}")
    new.write(fresh)
    try:
        kept = _keep(old, place)
        fresh.replace(place)
        _keep_name(place.parent)
    except OSError as error:
        raise ConfigError(f"secret file {path} cannot be replaced ({error.strerror})") from None
    finally:
        fresh.unlink(missing_ok=True)
    return new, kept


def _keep(old: Secret, place: Path) -> Path:
    for number in count(1):
        kept = place.with_name(f"{place.name}.old-{number}")
        if not kept.exists():
            old.write(kept)
            return kept
    raise AssertionError  # count() has no end


@lru_cache(maxsize=64)
def _check(key: bytes, name: str) -> None:
    """Raise ConfigError if a key is no secret; the message calls it by the name."""
    fault = _fault(key)
    if fault:
        raise ConfigError(f"{name} {fault}; let a machine make one: chaffinch deid secret new FILE")


def _fault(key: bytes) -> str:
    """What is wrong with a secret, in words without it; empty if nothing is."""
    if len(key) < _LEAST_BYTES:
        return f"has {len(key)} bytes, at least {_LEAST_BYTES} are needed"
    if len(key) > _MOST_BYTES:
        return f"has over {_MOST_BYTES} bytes, so it is hardly a secret"
    bits = guessing_bits(key)
    if bits < _LEAST_BITS:
        return f"is easy to guess (about {bits:.0f} bits, at least {_LEAST_BITS} are needed)"
    return ""


def _owners_bytes(path: Path) -> bytes:
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


def _keep_name(folder: Path) -> None:
    """Makes a new or changed name in a folder survive a crash, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
