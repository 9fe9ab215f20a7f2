"""Settings of an encoder that is fine-tuned as a token classifier."""

from __future__ import annotations

from dataclasses import dataclass

from chaffinch.checks import check_flags, check_fractions, check_numbers, check_text, check_wholes


@dataclass(frozen=True, slots=True)
class Encoder:
    """Settings of a token classifier: a pretrained encoder, a linear layer on a token's first word piece, IOB2 tags.

    `folder` is a Hugging Face folder on this computer, None the packaged MiniLM. Documents are read in windows of
    `length` word pieces, whole sentences as far as they fit, and a batch has `batch` windows. The learning rate rises
    to `rate` over the share `warmup` of all steps and falls to 0; the new layer learns `head` times as fast. With
    `shape`, case and shape of a word are added to the encoder's output, because MiniLM knows lower case only. Word
    vectors are frozen unless `words`, and so are the lowest `frozen` layers, which saves time. With `bfloat16` the
    encoder multiplies numbers of 8 significant bits: on processors that can, it takes less than half of the time; on
    others it takes longer. With dev documents, training ends after `patience` epochs without a better F1. Continuing
    from a model halves the rate.
    """

    folder: str | None = None
    epochs: int = 3
    rate: float = 3e-4
    head: float = 5.0
    batch: int = 8
    length: int = 128
    warmup: float = 0.1
    decay: float = 0.01
    shape: bool = True
    words: bool = False
    frozen: int = 0
    bfloat16: bool = False
    patience: int = 2
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for a setting out of its range or of a wrong type."""
        check_wholes(self, "epochs", "batch", "patience", "threads", least=1)
        check_wholes(self, "length", least=16)
        check_wholes(self, "seed", "frozen")
        check_numbers(self, "rate", above=0, most=1)
        check_numbers(self, "head", least=0, most=1e4)
        check_fractions(self, "warmup", "decay")
        check_flags(self, "shape", "words", "bfloat16")
        if self.folder is not None:
            check_text(self.folder, "folder")
