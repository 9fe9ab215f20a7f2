"""Five protein interaction corpora (AIMed, BioInfer, HPRD50, IEPA, LLL) in the unified PPI XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats._shared.xml import Element, parse
from recipes.corpora._common import attribute, files, with_sentences
from recipes.corpora._mentions import Mention, Notation, fragments, mention, relation

_NOTATION = Notation(separator=",", inclusive=False)


def read(path: Path) -> Iterator[Document]:
    """One document per source document, with the corpus's sentences, proteins and interactions.

    Sentences stand where their `charOffset` says; what lies between two is a space. An entity's `charOffset`
    counts inside its sentence, its end is exclusive, and pieces ("10-15,20-25", BioInfer only) become the one
    span that covers them all; `meta["fragments"]` has the pieces. Every entity is labelled "protein", because the
    types differ from corpus to corpus and LLL's (agent, target) give the answer away: the layer "types" has them.
    HPRD50's types are protein identifiers and become the span's concept instead. A relation "PPI" has the roles e1
    and e2 in the order of the file; a pair of proteins of one sentence without a relation is a negative.
    `meta` has corpus, split and, where stated, the PubMed id.
    """
    for file in files(path, lambda entry: entry.suffix == ".xml", "PPI XML"):
        root = parse(file.content(), file.where)
        try:
            for node in root.iterfind("document"):
                yield _document(node, attribute(root, "source"))
        except DataError as error:
            raise error.at(file.where) from None


def _document(node: Element, corpus: str) -> Document:
    text, sentences, relations, types = "", [], [], []
    mentions: dict[str, Mention] = {}
    for sentence in node.iterfind("sentence"):
        words = attribute(sentence, "text")
        start, end = _NOTATION.pieces(attribute(sentence, "charOffset"))[0]
        if start < len(text) or end - start != len(words):
            raise DataError(f"the sentence at [{start}, {end}) does not fit behind {len(text)} characters")
        text = text.ljust(start) + words
        sentences.append((start, end))
        for entity in sentence.iterfind("entity"):
            placed = mention(entity, "protein", _NOTATION, sentence=words, begin=start)
            kind = entity.get("type", "")
            if corpus == "HPRD50":
                placed = replace(placed, span=replace(placed.span, concept=kind))
            elif kind:
                types.append(replace(placed.span, label=kind))
            mentions[attribute(entity, "id")] = placed
        relations += [relation(pair, attribute(pair, "type"), mentions) for pair in sentence.iterfind("interaction")]
    meta: dict[str, Any] = {"corpus": corpus, "split": node.get("set", ""), "pmid": node.get("origId", "")}
    if broken := fragments(mentions.values()):
        meta["fragments"] = broken
    gold = [m.span for m in mentions.values()]
    doc = with_sentences(text, sentences, id=attribute(node, "id"), gold=gold, relations=relations, meta=meta)
    return doc.with_layer("types", types) if types else doc
