"""Conversion of tagged tokens (column files, token lists) to documents and back.

Such a format has no text: the text is the tokens joined by one space, the sentences by one line feed, and tokens and
sentences are given. What is lost of another text, or of spans that tags cannot express, is counted here.
T tokens, S sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from chaffinch.text.document import Document, Offsets
from chaffinch.text.formats.base import Losses, WriteOptions
from chaffinch.text.span import Span, resolve
from chaffinch.text.tags import Run, Scheme, runs, tags_of_runs

TAG = re.compile(r"O|[BIESLU]-.+", re.DOTALL)


def lay_out(words: Sequence[str], sizes: Sequence[int]) -> tuple[str, Offsets, Offsets]:
    """Join tokens to a text, one sentence per line; return it with offsets of tokens (T, 2) and sentences (S, 2).

    >>> text, tokens, sentences = lay_out(["IL-2", "gene", "Yes"], [2, 1])
    >>> text, tokens.tolist(), sentences.tolist()
    ('IL-2 gene\\nYes', [[0, 4], [5, 9], [10, 13]], [[0, 9], [10, 13]])
    """
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    starts = np.cumsum(lengths + 1) - lengths - 1
    tokens = np.stack([starts, starts + lengths], axis=1).astype(np.int32)
    bounds = np.cumsum([0, *sizes])
    sentences = np.stack([tokens[bounds[:-1], 0], tokens[bounds[1:] - 1, 1]], axis=1)
    text = "\n".join(" ".join(words[a:b]) for a, b in pairwise(bounds.tolist()))
    return text, tokens, sentences


def spans_of_tags(tags: Sequence[str], tokens: Offsets, sizes: Sequence[int]) -> Iterator[Span]:
    """Yield the spans of tags of any scheme, none over a sentence's end (`sizes` in tokens); DataError: bad tag."""
    starts, ends = tokens[:, 0].tolist(), tokens[:, 1].tolist()
    begin = 0
    for size in sizes:
        part = tags[begin : begin + size]
        if part.count("O") < size:
            for first, last, label in runs(part):
                yield Span(starts[begin + first], ends[begin + last - 1], label)
        begin += size


def sentence_sizes(doc: Document) -> list[int]:
    """Return the number of tokens in each sentence; a token outside all sentences goes with the sentence before it."""
    cuts = np.searchsorted(doc.tokens[:, 0], doc.sentences[:, 0], side="left")
    sizes: list[int] = np.diff(np.unique([0, *cuts.tolist(), len(doc.tokens)])).tolist()
    return sizes


def note_layout(doc: Document, words: Sequence[str], sizes: Sequence[int], losses: Losses) -> None:
    """Count as lost what `lay_out` does not restore: text and white space outside tokens, bounds, computed tokens."""
    text, tokens, sentences = lay_out(words, sizes)
    if text != doc.text:
        dense, kept = "".join(doc.text.split()), "".join("".join(words).split())
        losses.add("white space between tokens" if dense == kept else "text outside tokens")
    elif not (np.array_equal(tokens, doc.tokens) and np.array_equal(sentences, doc.sentences)):
        losses.add("sentence bounds")
    elif not doc.given:
        losses.add("that tokens were computed (they come back as given)")


def token_runs(doc: Document, spans: Iterable[Span], losses: Losses) -> list[Run]:
    """Return (first token, end, label) per span; count as lost those moved to token edges, or left out."""
    starts, ends, spans = doc.tokens[:, 0].tolist(), doc.tokens[:, 1].tolist(), list(spans)
    found = []
    for span, (first, last) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        if first >= last or not span.label:
            losses.add("spans that cover no token" if span.label else "spans without a label")
            continue
        losses.add("spans moved to token edges", starts[first] != span.start or ends[last - 1] != span.end)
        found.append((first, last, span.label))
    return found


def resolve_runs(found: Iterable[Run], losses: Losses) -> list[Run]:
    """Resolve overlaps, the longest run wins; return the kept runs, sorted, and count the others as lost."""
    kept: list[Run] = []
    cluster: list[Span] = []
    reach = 0
    ordered = sorted(Span(*run) for run in found)
    for span in [*ordered, None]:
        if span is None or span.start >= reach:
            best = resolve(cluster, "longest") if len(cluster) > 1 else cluster
            losses.add("overlapping spans (the longest is kept)", len(cluster) - len(best))
            kept.extend((s.start, s.end, s.label) for s in best)
            cluster = []
        if span is not None:
            cluster.append(span)
            reach = max(reach, span.end)
    return kept


def tags_of(
    doc: Document, spans: Iterable[Span], options: WriteOptions, scheme: Scheme, sizes: Sequence[int]
) -> list[str]:
    """Return a tag per token; of overlaps the longest stays, one over a sentence end is cut in two; count losses."""
    found = resolve_runs(token_runs(doc, spans, options.losses), options.losses)
    tags: list[str] = []
    waiting = 0
    for begin, end in pairwise(np.cumsum([0, *sizes]).tolist()):
        inside: list[Run] = []
        while waiting < len(found) and found[waiting][0] < end:
            first, last, label = found[waiting]
            inside.append((max(first, begin) - begin, min(last, end) - begin, label))
            if last > end:
                options.losses.add("spans cut at sentence ends")
                break
            waiting += 1
        tags.extend(tags_of_runs(inside, end - begin, scheme))
    return tags


def note_fields(doc: Document, spans: Sequence[Span], options: WriteOptions) -> None:
    """Count as lost what no format of tokens and tags can hold: soft labels, relations, details of spans."""
    options.drop(doc, "soft", "relations")
    options.drop_from_spans(spans, "score", "source", "concept")
