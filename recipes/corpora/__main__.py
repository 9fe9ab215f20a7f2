"""Converts a corpus to JSONL: python -m recipes.corpora gad --data DIR -o gad.jsonl

DIR holds one folder per corpus, named like the corpus; it defaults to $CHAFFINCH_DATA.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from chaffinch.errors import ChaffinchError, ConfigError, outcome
from chaffinch.text import Corpus
from chaffinch.text.formats import write
from recipes.corpora import READERS


def main(arguments: list[str] | None = None) -> int:
    """The exit code; the converted corpus is in the file that -o names."""
    parser = argparse.ArgumentParser(prog="python -m recipes.corpora", description="Converts a corpus to JSONL.")
    parser.add_argument("name", choices=sorted(READERS), help="the corpus")
    parser.add_argument("--data", type=Path, help="the folder with the corpora; default $CHAFFINCH_DATA")
    parser.add_argument("--split", help='keep only the documents of this split, such as "train"')
    parser.add_argument("-o", "--output", type=Path, required=True, help="the JSONL file to write")
    chosen = parser.parse_args(arguments)
    try:
        convert(chosen.name, chosen.data, chosen.output, split=chosen.split)
    except ChaffinchError as error:
        sys.stderr.write(f"{error}\n")
        return outcome(error).exit_code
    return 0


def convert(name: str, data: Path | None, output: Path, *, split: str | None = None) -> None:
    """Writes the documents of a corpus, of one split if it is named, to a JSONL file."""
    folder = data or (Path(os.environ["CHAFFINCH_DATA"]) if os.environ.get("CHAFFINCH_DATA") else None)
    if folder is None:
        raise ConfigError("give --data DIR or set CHAFFINCH_DATA")
    documents = Corpus(lambda: READERS[name](folder / name))
    if split is not None:
        documents = documents.filter(lambda doc: doc.meta.get("split") == split)
    write(documents, output, format="jsonl")


if __name__ == "__main__":
    sys.exit(main())
