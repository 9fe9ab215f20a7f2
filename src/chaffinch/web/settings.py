"""The settings of a server: its address, who is let in, and how much it takes on."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from chaffinch.checks import check_numbers, check_wholes
from chaffinch.errors import ConfigError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a server takes on before it refuses: sizes, waiting requests and seconds."""

    body_bytes: int = 8 << 20  # 1,000 notes of 8 kB
    head_seconds: float = 10.0  # for a client to send the headers of a request
    body_seconds: float = 30.0  # for a client to send a body; slower ones are cut off
    documents: int = 1000  # in a request
    characters: int = 1_000_000  # of a document; a longer one is withheld or refused
    waiting: int = 256  # requests that wait for the processor; more are answered with 429
    waiting_characters: int = 32_000_000  # of their documents together; 4 bytes each in memory at most
    seconds: float = 60.0  # from a request's arrival to its answer

    def __post_init__(self) -> None:
        """Raise ConfigError if a limit is not above 0."""
        check_wholes(self, "body_bytes", "documents", "characters", "waiting", "waiting_characters", least=1)
        check_numbers(self, "head_seconds", "body_seconds", "seconds", above=0)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificate chain of a server and its private key, in PEM."""

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        """Raise ConfigError if certificate or key is no file."""
        for option, path in (("--tls-cert", self.certificate), ("--tls-key", self.key)):
            if not path.is_file():
                raise ConfigError(f"{option} {path}: no such file; name a PEM file")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The address of a server, its token (None: everybody on this computer is let in), names and limits.

    `names` are the host names by which clients may call the server beside its address.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = field(default=None, repr=False)
    tls: TlsFiles | None = None
    names: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Raise ConfigError for a bad port, or if other computers can reach a server without TLS or a token."""
        check_wholes(self, "port")
        if self.port > 65535:  # the largest of TCP
            raise ConfigError(f"port must be at most 65535, got {self.port}")
        if self.is_local:
            return
        if self.tls is None:
            raise ConfigError(
                f"host {self.host} can be reached by other computers, and notes would travel in the clear; give "
                "--tls-cert and --tls-key, or serve on 127.0.0.1"
            )
        if self.token is None:
            raise ConfigError(
                f"host {self.host} can be reached by other computers, so a token is needed; leave out --no-token"
            )

    @property
    def is_local(self) -> bool:
        """Tell whether only this computer can reach the server."""
        if self.host in LOOPBACK_NAMES:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def host_names(self) -> frozenset[str]:
        """Return the names, in lower case and without a port, that a request's Host header may have."""
        local = LOOPBACK_NAMES if self.is_local else ()
        return frozenset(name.lower().strip("[]") for name in (self.host, *local, *self.names))
