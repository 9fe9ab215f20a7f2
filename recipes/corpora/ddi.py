"""The DDI corpus 2013: drug names and drug-drug interactions, one XML file per document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats._shared.xml import Element, parse
from chaffinch.text.formats.base import Entry
from recipes.corpora._common import attribute, files, with_sentences
from recipes.corpora._mentions import Mention, Notation, fragments, mention, relation

_NOTATION = Notation(separator=";", inclusive=True)


def read(path: Path) -> Iterator[Document]:
    """One document per file, with its sentences, drugs and interactions.

    The corpus gives sentences without places, so they stand one below the other, joined by a line feed; empty
    ones are kept. `charOffset` counts inside the sentence and its end is inclusive. A name in several pieces
    ("10-15;20-25") becomes the one span that covers them all; `meta["fragments"]` has the pieces. Only pairs with
    ddi="true" are relations, labelled with their type (effect, mechanism, advise, int; "ddi" for the one without)
    and with the roles e1 and e2. All pairs of a sentence are given in the corpus, so the others are negatives.
    `meta` has split ("train", "test-ddi" or "test-ner": the NER test files have no positive pairs) and source
    ("DrugBank" or "MedLine").
    """
    for file in files(path, lambda entry: entry.suffix == ".xml", "DDI XML"):
        try:
            yield _document(parse(file.content(), file.where), _place(file))
        except DataError as error:
            raise error.at(file.where) from None


def _place(file: Entry) -> dict[str, Any]:
    """Split and source, from the folders of the archive."""
    folders = [folder.lower() for folder in PurePosixPath(file.name).parts[:-1]]
    split = "train" if "train" in folders else ""
    for folder in folders:
        if folder.startswith("test for"):
            split = "test-ner" if "ner" in folder else "test-ddi"
    source = next((name for name in ("DrugBank", "MedLine") if name.lower() in folders), "")
    return {"split": split, "source": source}


def _document(node: Element, meta: dict[str, Any]) -> Document:
    texts, sentences, relations, begin = [], [], [], 0
    mentions: dict[str, Mention] = {}
    for sentence in node.iterfind("sentence"):
        words = attribute(sentence, "text")
        texts.append(words)
        sentences.append((begin, begin + len(words)))
        for entity in sentence.iterfind("entity"):
            placed = mention(entity, attribute(entity, "type"), _NOTATION, sentence=words, begin=begin)
            mentions[attribute(entity, "id")] = placed
        positive = (pair for pair in sentence.iterfind("pair") if pair.get("ddi") == "true")
        relations += [relation(pair, pair.get("type", "ddi"), mentions) for pair in positive]
        begin += len(words) + 1
    if broken := fragments(mentions.values()):
        meta["fragments"] = broken
    gold = [m.span for m in mentions.values()]
    text = "\n".join(texts)
    return with_sentences(text, sentences, id=attribute(node, "id"), gold=gold, relations=relations, meta=meta)
