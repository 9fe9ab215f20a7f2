"""Makes the packaged model `genia`: parts of speech and base phrases of biomedical English.

    python -m recipes.genia --data DIR

Trained on the GENIA treebank alone (CC BY 3.0), less the abstracts held out to measure it: those whose PMID ends in 7.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import chaffinch
from chaffinch.models.phrasehmm import chunker
from recipes.genia_chunks import corpus, held_out

NOTES = (
    "Trained on the GENIA treebank (GENIA Project, Tsujii Laboratory, University of Tokyo; CC BY 3.0), abstracts whose "
    "PMID ends in 7 left out; chunks derived from its trees after the manner of CoNLL-2000."
)


def main() -> None:
    """Reads the treebank, trains, writes the file into the package."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    place = Path(chaffinch.__file__).parent / "packaged" / "genia.cfm"
    arguments.add_argument("--output", type=Path, default=place)
    chosen = arguments.parse_args()
    if not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    chosen.output.parent.mkdir(exist_ok=True)
    documents = [doc for doc in corpus(Path(chosen.data)) if not held_out(doc)]
    chunker.fit(documents, corpus="GENIA treebank", notes=NOTES).save(chosen.output)


if __name__ == "__main__":
    main()
