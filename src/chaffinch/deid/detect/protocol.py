"""What a release, a tagger or a service asks of a detector, whoever made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from chaffinch.text import Document


class Detector(Protocol):
    """Finds identifiers: documents in, the same documents in their order with one more layer out.

    `chaffinch.deid.detector(...)` makes ours; anything else with these members will do.
    """

    @property
    def name(self) -> str:
        """What it is called in the manifest."""

    @property
    def layer(self) -> str:
        """The name of the layer it adds."""

    @property
    def by_patient(self) -> bool:
        """Whether it reads a patient's documents together, so that they must come together."""

    @property
    def model_digest(self) -> str:
        """The digest of its model, which is published."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What else is told of it in the manifest."""

    @property
    def digest(self) -> str:
        """What stands for all that decides what it finds, phrases of the user included.

        Never publish it: whoever guesses a phrase could check the guess.
        """

    def __call__(self, documents: Sequence[Document], /) -> Iterable[Document]:
        """Return the documents, each with the layer."""
