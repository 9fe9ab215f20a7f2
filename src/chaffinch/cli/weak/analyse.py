"""`chaffinch weak analyse`: votes in, an account of their sources out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.weak.analyse_page import html
from chaffinch.cli.weak.votes import Only, Votes, choose_by_name, read_votes
from chaffinch.text.formats import ReadOptions
from chaffinch.text.formats.base import atomic_output, write_text
from chaffinch.weak.analysis import analyse


def analyse_command(
    votes: Votes,
    only: Only = None,
    layer: frame.Layer = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Count tokens in the table, not spans.")] = False,
    most: Annotated[int, typer.Option(min=0, help="How many documents with disagreement to list.")] = 10,
    page: Annotated[Path | None, typer.Option("--html", help="Write a report, one HTML file.")] = None,
    from_: frame.From = None,
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch weak analyse votes.jsonl --html sources.html

    Show for every source how much it votes, how often others agree or disagree, and how accurate it seems to be:
    estimated from the votes by an HMM of many sources, and measured where documents have gold. Show also which sources
    depend on one another, where they disagree, and how good the aggregated spans seem to be. No text is shown.
    """
    frame.check_page(page, votes)
    docs = read_votes(votes, from_, ReadOptions(max_chars=max_chars), quiet=quiet)
    found = analyse(docs, sources=choose_by_name(only, docs), gold=layer, most=most)
    if page is not None:
        with atomic_output(page) as beside:
            write_text(beside, html(found, title=f"Sources of {votes.name}"))
        frame.note(f"wrote {page}", quiet=quiet)
    frame.emit(found.to_json(), as_json=json, tables=[found.text(level="tokens" if tokens else "spans")])
