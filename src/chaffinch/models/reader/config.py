"""What may be chosen for a contextual reader."""

from __future__ import annotations

from dataclasses import dataclass

from chaffinch.checks import check_flags, check_fractions, check_numbers, check_text, check_wholes
from chaffinch.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Reader:
    """A pretrained uncased BERT, cut to some of its layers and fine-tuned: a label for each token's first word piece.

    `folder` is a Hugging Face folder on this computer, None the packaged MiniLM. `layers` are the layers to keep, the
    lowest first. A document is read in windows of at most `length` word pieces that share at least `overlap`; to learn,
    it is cut at random. `pieces` word pieces are learnt from at once. The learning rate rises to `rate` over the share
    `warmup` of all steps and falls to 0; new parts (tables of shapes, gaps and lengths, the last layer) learn `head`
    times as fast. Word vectors stay as they are. With `short`, products are computed in bfloat16: 2.6 times as fast on
    processors that have it. The defaults were chosen on the dev writers of `bench deid`.
    """

    folder: str | None = None
    layers: tuple[int, ...] = (0, 1, 2)
    epochs: int = 18
    rate: float = 4e-4
    head: float = 5.0
    pieces: int = 1280
    length: int = 254
    overlap: int = 32
    warmup: float = 0.06
    decay: float = 0.01
    dropout: float = 0.1
    short: bool = True
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for a setting out of its range, or an overlap above half the length."""
        check_wholes(self, "epochs", "threads", least=1)
        check_wholes(self, "pieces", "length", least=16)
        check_wholes(self, "overlap", "seed")
        check_numbers(self, "rate", above=0, most=1)
        check_numbers(self, "head", least=0, most=1e4)
        check_flags(self, "short")
        check_fractions(self, "warmup", "decay", "dropout")
        _check_layers(self.layers)
        if 2 * self.overlap > self.length:
            raise ConfigError(f"overlap must be at most half of length {self.length}, got {self.overlap}")
        if self.folder is not None:
            check_text(self.folder, "folder")


def _check_layers(layers: tuple[int, ...]) -> None:
    """Raise ConfigError unless layers are distinct numbers from 0 in rising order."""
    if not layers or list(layers) != sorted(set(layers)) or layers[0] < 0:
        raise ConfigError(f"layers must be different numbers from 0 in rising order, got {layers}")
