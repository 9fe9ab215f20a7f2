"""`chaffinch verify`: whether a release is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.frame.results import VerifyResult, facts_of
from chaffinch.deid.release.verify import verify
from chaffinch.errors import ConfigError


def verify_command(
    release: Annotated[
        Path, typer.Argument(metavar="OUT|PROJECT", help="What deid run wrote, with its manifest; or a review project.")
    ],
    key_file: Annotated[
        Path | None, typer.Option(help="Key of a project; else that of project.toml or CHAFFINCH_PROJECT_KEY.")
    ] = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch verify clean

    Check that a release is as deid run wrote it: its files by their hash in the manifest and, where OUT.private is
    there, the chain of the account, every text by its hash, and the figures of the manifest. Exit code 3 if anything
    differs. Of a review project: the audit trail, every decision by its hash there, and every note.
    """
    if (release / "project.toml").is_file():
        from chaffinch.cli.project import check_extra

        check_extra()
        from chaffinch.cli.project.verbs import verify_project

        verify_project(release, key_file, json=json, quiet=quiet)
        return
    if key_file is not None:
        raise ConfigError("--key-file is the key of a project, and this is none; leave it out")
    found = verify(release)
    if found.lines is None:
        frame.note(f"{release}.private is not there: only files and manifest were compared", quiet=quiet)
    result = VerifyResult(
        output=str(release), documents=dict(found.documents), files=found.files, lines=found.lines, texts=found.texts
    )
    facts = {f"documents {name}": number for name, number in result.documents.items()}
    frame.emit(result, as_json=json, tables=[] if quiet else [frame.facts_table(facts | facts_of(result, "documents"))])
