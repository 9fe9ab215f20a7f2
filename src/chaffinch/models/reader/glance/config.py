"""What may be chosen for a glance."""

from __future__ import annotations

from dataclasses import dataclass

from chaffinch.checks import check_fractions, check_numbers, check_text, check_wholes


@dataclass(frozen=True, slots=True)
class Glance:
    """A net over a word and the `reach` words on either side: a vector of `width` numbers each, `hidden` units.

    A word's vector is a learnt linear map of the mean vector of its pieces in a pretrained encoder, `folder` (None: the
    packaged MiniLM). `layers` are layers of cues, whose labels are added to it. `notes` notes are learnt from at once;
    the rate falls from `rate` to 0. `dropout` is the share of inputs and hidden units that are left out while it
    learns, `hide` that of whole words, so that contexts are learnt.
    """

    folder: str | None = None
    reach: int = 6
    width: int = 64
    hidden: int = 128
    layers: tuple[str, ...] = ()
    epochs: int = 16
    rate: float = 3e-3
    notes: int = 4
    dropout: float = 0.2
    hide: float = 0.1
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for a setting out of its range."""
        check_wholes(self, "reach", "width", "hidden", "epochs", "notes", "threads", least=1)
        check_wholes(self, "seed")
        check_numbers(self, "rate", above=0, most=1)
        check_fractions(self, "dropout", "hide")
        if self.folder is not None:
            check_text(self.folder, "folder")
