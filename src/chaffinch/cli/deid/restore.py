"""`chaffinch deid restore` and `rekey`: the originals of a release, from its vault; and a vault under a new key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.deid.results import RekeyResult, RestoreResult
from chaffinch.cli.frame.results import facts_of
from chaffinch.deid import vault as vaults
from chaffinch.deid.keys import VARIABLE, Secret, check_keys_differ
from chaffinch.errors import ChaffinchError, ConfigError
from chaffinch.text import Document
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.formats import ReadOptions, WriteOptions, by_name, output_variant, read
from chaffinch.text.formats._shared.single_file import has_one_file
from chaffinch.text.formats.base import atomic_output

VaultFile = Annotated[Path, typer.Option("--vault", metavar="FILE", help="The vault that deid run --vault wrote.")]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", metavar="FILE", help=f"File of the vault's key; else it is in ${vaults.VARIABLE}."),
]

_NO_LIMIT = (1 << 31) - 1


def restore_command(
    source: Annotated[Path, typer.Argument(metavar="RELEASED", help="Documents that deid run wrote; all or some.")],
    output: frame.Out,
    vault: VaultFile,
    key_file: KeyFile = None,
    text_column: frame.TextColumns = [],  # noqa: B006  (typer copies it)
    id_column: frame.IdColumn = None,
    patient_column: frame.PatientColumn = None,
    from_: frame.From = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid restore clean/ -o again/ --vault notes.vault --key-file vault.key

    Restore the originals of released documents, byte for byte, in the format of the released ones. A document that was
    changed since, a wrong key or a damaged vault is refused. Only your user can read the output.
    """
    vault_content = vaults.Vault.open(vault, key_of(key_file))
    columns = ColumnChoice(tuple(text_column), id_column, patient_column)
    corpus = read(source, format=from_, how=ReadOptions(max_chars=_NO_LIMIT, columns=columns))
    form = output_variant(by_name(corpus.format), output, single=source.is_file())
    count = 0
    # A note that was released to one file has the name of that file, not its id.
    alone = source.is_file() and len(vault_content) == 1 and has_one_file(by_name(corpus.format))
    released = corpus.map(partial(_rename, next(iter(vault_content)).id)) if alone else corpus

    def restore_documents() -> Iterator[Document]:
        """Yield each released document restored from the vault, and count it."""
        nonlocal count
        for doc in vaults.restore(frame.progress(released, "documents", quiet=quiet), vault_content):
            count += 1
            yield doc

    before = os.umask(0o077)
    try:
        with frame.name_unwritable(output), atomic_output(output) as beside:
            form.write(restore_documents(), beside, WriteOptions(keep_columns=True))
    finally:
        os.umask(before)
    result = RestoreResult(restored=count, in_vault=len(vault_content), format=form.name)
    frame.emit(result, as_json=json, tables=[] if quiet else [frame.facts_table(facts_of(result))])


def _rename(name: str, doc: Document) -> Document:
    """Return the document with the id `name`."""
    return replace(doc, id=name)


def rekey_command(
    vault: Annotated[Path, typer.Argument(metavar="VAULT", help="The vault; it changes whole or not at all.")],
    new_key_file: Annotated[Path, typer.Option("--new-key-file", metavar="FILE", help="File of the new key.")],
    key_file: KeyFile = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid rekey notes.vault --key-file old.key --new-key-file new.key

    Encrypt a vault under a new key. The old key no longer opens it, but still opens every copy made before. A secret of
    surrogates in CHAFFINCH_SECRET cannot be the new key.
    """
    new = Secret.read(new_key_file)
    check_keys_differ(Secret.read() if os.environ.get(VARIABLE) else None, new)
    try:
        documents = vaults.rekey(vault, key_of(key_file), new)
    except OSError as error:
        raise ChaffinchError(f"{vault}: could not be written ({error.strerror}); it is as it was") from None
    result = RekeyResult(vault=str(vault), documents=documents)
    frame.emit(result, as_json=json, tables=[] if quiet else [frame.facts_table(facts_of(result))])


def key_of(path: Path | None) -> Secret:
    """Return a vault's key from a file, else from the environment variable; ConfigError if there is neither."""
    if path is None and not os.environ.get(vaults.VARIABLE):
        raise ConfigError(
            f"a vault needs a key: give --key-file FILE or set {vaults.VARIABLE}; "
            "make one with: chaffinch deid secret new FILE"
        )
    return Secret.read(path, variable=vaults.VARIABLE)
