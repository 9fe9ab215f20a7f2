"""`chaffinch deid secret`: make and rotate the secret of surrogates and date shifts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.deid.results import SecretResult
from chaffinch.cli.frame.results import facts_of
from chaffinch.deid.keys import Secret, rotate

SecretFile = Annotated[Path, typer.Argument(metavar="PATH", help="The file of the secret.", show_default=False)]


def new_command(path: SecretFile, json: frame.Json = False, quiet: frame.Quiet = False) -> None:
    """chaffinch deid secret new hospital.key

    Write a fresh secret to a new file that only you may read (mode 0600). An existing file is never overwritten.
    Keep the file: the same secret gives the same surrogates and date shifts on every run.
    """
    secret = Secret.new()
    secret.write(path)
    _emit(SecretResult(secret=str(path), fingerprint=secret.fingerprint()), as_json=json, quiet=quiet)


def rotate_command(path: SecretFile, json: frame.Json = False, quiet: frame.Quiet = False) -> None:
    """chaffinch deid secret rotate hospital.key

    Write a fresh secret to the file and keep the old one beside it (hospital.key.old-1). Later outputs cannot be linked
    to earlier ones by their surrogates.
    """
    secret, kept = rotate(path)
    result = SecretResult(secret=str(path), fingerprint=secret.fingerprint(), old=str(kept))
    _emit(result, as_json=json, quiet=quiet)


def _emit(result: SecretResult, *, as_json: bool, quiet: bool) -> None:
    """Print the result of a secret command as JSON, or as a table unless quiet."""
    frame.emit(result, as_json=as_json, tables=[] if quiet else [frame.facts_table(facts_of(result))])
