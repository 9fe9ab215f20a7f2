"""Readers for public corpora in formats of their own; every one gives documents.

`READERS` maps the name of a corpus to its reader, which takes the corpus's folder, its archive or one file of it.
Corpora in formats that `chaffinch.read` knows (CoNLL, PubTator, brat, i2b2 …) need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from chaffinch.text import Document
from recipes.corpora import (
    asq_phi,
    ddi,
    gene_disease,
    genia_treebank,
    grascco_phi,
    ieer,
    loctext,
    ppi,
    presidio_synth,
    semeval,
)

Reader = Callable[[Path], Iterator[Document]]

READERS: dict[str, Reader] = {
    "asq-phi": asq_phi.read,
    "ddi2013": ddi.read,
    "eu-adr": gene_disease.read_eu_adr,
    "gad": gene_disease.read_gad,
    "genia-treebank": genia_treebank.read,
    "grascco-phi": grascco_phi.read,
    "ieer": ieer.read,
    "loctext": loctext.read,
    "ppi-5corpora": ppi.read,
    "presidio-synth": presidio_synth.read,
    "semeval2010-task8": semeval.read,
}

__all__ = ["READERS", "Reader"]
