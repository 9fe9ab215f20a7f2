"""What may be chosen for an encoder fine-tuned as a token classifier."""

from __future__ import annotations

from dataclasses import dataclass

from chaffinch.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Encoder:
    """What to fine-tune and how: a pretrained encoder, a linear layer on each token's first word piece, IOB2 tags.

    `folder` is a Hugging Face folder on this computer, None the packaged MiniLM. Documents are read in windows of
    `length` word pieces, whole sentences as far as they fit, and `batch` windows are learnt from at once. The learning
    rate rises to `rate` over the share `warmup` of all steps and falls to 0; the new layer learns `head` times as fast.
    With `shape`, case and shape of a word stand beside what the encoder says of it, for MiniLM knows lower case alone.
    Word vectors stay as they are unless `words`. With dev documents, learning ends after `patience` epochs without a
    better F1. Going on from a model halves the rate.
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
    patience: int = 2
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 1), ("length", 16), ("patience", 1), ("threads", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name} must be a whole number, at least {least}, got {value!r}")
        for name, most in (("rate", 1.0), ("head", 1e4), ("warmup", 1.0), ("decay", 1.0)):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
                raise ConfigError(f"{name} must be a number from 0 to {most:g}, got {value!r}")
        if self.rate == 0:
            raise ConfigError("rate must be above 0, or nothing is learnt")
