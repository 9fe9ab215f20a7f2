"""A shallow parser of two taggers: parts of speech, then base phrases with parts of speech as features.

The packaged model `genia` is one; `recipes/genia.py` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document

POS, CHUNKS = "pos", "chunks"
# Parts of speech need no document features, and few features that occur in only one or two abstracts.
POS_CONFIG = Cascade(
    scheme="tokens", documents=False, calibrate=False, epochs=12, aggressiveness=0.03, dropout=0.05, floor=2, cutoff=2
)
CHUNK_CONFIG = Cascade(documents=False, layers=(POS,), epochs=6, floor=3, cutoff=3)
PARTS = 3  # folds, so that the chunker learns from predicted parts of speech; more folds take longer


def fit(documents: Sequence[Document], *, corpus: str = "", notes: str = "") -> Tagger:
    """Return a tagger of chunks, which first tags parts of speech; both are learnt from the layers "pos" and "chunks".

    Chunks are learnt with predicted parts of speech of unseen text as features: the documents are read
    in `PARTS` parts, each by a tagger trained on the others.
    """
    speech = train(documents, POS_CONFIG, layer=POS, name=POS)
    read: list[Document] = []
    for part in range(PARTS):
        others = [doc for number, doc in enumerate(documents) if number % PARTS != part]
        held_out = [doc for number, doc in enumerate(documents) if number % PARTS == part]
        tagger = train(others, POS_CONFIG, layer=POS, name=POS) if others else speech
        read += tagger.annotate(held_out, layer=POS)
    return train(read, CHUNK_CONFIG, layer=CHUNKS, name=CHUNKS, before=speech, corpus=corpus, notes=notes)
