"""The token that clients of a server show: made once, kept in a file that only its owner can read."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from chaffinch.errors import ConfigError

_BYTES = 32  # of randomness in a token
_LEAST = 32  # characters of a token that somebody else made; shorter ones can be guessed
_BEARER = "bearer "


def default_file(port: int) -> Path:
    """Return the path of the token of a server on a port, in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "chaffinch" / f"token-{port}"


def read_or_make(path: Path) -> str:
    """Return the token in a file, made (mode 0600) if there is none; ConfigError if others can read it or it is bad.

    Raise ConfigError if others can read the file, or if it holds no token.
    """
    with suppress(FileExistsError):
        return _make(path)
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(4096)
    except OSError as error:
        raise ConfigError(f"token file {path} cannot be read ({error.strerror}); name another") from None
    if not stat.S_ISREG(mode) or stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"token file {path} can be read by others; run: chmod 600 {path}")
    token = content.decode("ascii", "replace").strip()
    if len(token) < _LEAST or not token.isprintable() or not token.isascii() or " " in token:
        raise ConfigError(
            f"token file {path} holds no token of at least {_LEAST} characters; remove it to make a new one"
        )
    return token


def _make(path: Path) -> str:
    """Write a new token to a new file, mode 0600, and return it; FileExistsError, or ConfigError if it cannot."""
    token = secrets.token_urlsafe(_BYTES)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(token + "\n")
    except FileExistsError:
        raise
    except OSError as error:
        raise ConfigError(f"token file {path} cannot be written ({error.strerror}); name another") from None
    return token


def is_shown(authorization: str, token: str) -> bool:
    """Tell whether an Authorization header has the bearer token, compared in constant time.

    >>> is_shown("Bearer abc", "abc"), is_shown("Bearer abd", "abc"), is_shown("abc", "abc")
    (True, False, False)
    """
    if authorization[: len(_BEARER)].lower() != _BEARER:
        return False
    return hmac.compare_digest(authorization[len(_BEARER) :].strip().encode("latin-1"), token.encode())
