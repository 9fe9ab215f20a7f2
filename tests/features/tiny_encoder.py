"""A tiny random BERT in a folder, made without any download."""

from __future__ import annotations

import string
from pathlib import Path

LAYERS, SIZE, LONGEST = 2, 16, 64


def make(folder: Path, *, seed: int = 0) -> Path:
    """The folder, with letters and pairs of letters for word pieces."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    letters = string.ascii_lowercase + string.digits + ".,-"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    words += ["dr", "mrs", "mr", "the", "take", "mg", "ml", "to", "by", "no"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=LONGEST).save_pretrained(
        str(folder)
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(words), hidden_size=SIZE, num_hidden_layers=LAYERS, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=LONGEST,
        )  # fmt: skip
        BertModel(config).save_pretrained(str(folder))
    return folder
