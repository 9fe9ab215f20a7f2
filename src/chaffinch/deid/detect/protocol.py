"""The interface of a detector, as used by releases, taggers and services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from chaffinch.text import Document


class Detector(Protocol):
    """A callable that finds identifiers: documents in, the same documents in order with an added layer out.

    `chaffinch.deid.detector(...)` builds one; any object with these members works.
    """

    @property
    def name(self) -> str:
        """The name of the detector in the manifest."""

    @property
    def layer(self) -> str:
        """The name of the layer that is added."""

    @property
    def by_patient(self) -> bool:
        """Tell whether the documents of one patient must be passed in one call."""

    @property
    def model_digest(self) -> str:
        """The digest of the model; it is published in the manifest."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Further settings for the manifest, without any text of the user."""

    @property
    def digest(self) -> str:
        """A fingerprint of everything that decides the result, the user's phrases included.

        Never publish it: it lets anyone check a guessed phrase.
        """

    def __call__(self, documents: Sequence[Document], /) -> Iterable[Document]:
        """Return the documents, each with the layer."""
