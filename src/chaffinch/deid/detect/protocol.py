"""The interface of a detector, as used by releases, taggers and services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from chaffinch.deid.detect.repeats import NameCounts
from chaffinch.deid.detect.voices.across_notes import NewRecords
from chaffinch.text import Document


class Detector(Protocol):
    """A callable that finds identifiers: documents in, the same documents in order with an added layer out.

    `chaffinch.deid.detector(...)` builds one; any object with these members works.
    """

    @property
    def name(self) -> str:
        """Return the name of the detector, as the manifest shows it."""

    @property
    def layer(self) -> str:
        """Return the name of the layer that the detector adds."""

    @property
    def by_patient(self) -> bool:
        """Tell whether the documents of one patient must be passed in one call."""

    @property
    def model_digest(self) -> str:
        """Return the checksum of the model, which the manifest publishes."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return further settings for the manifest, without any text of the user."""

    @property
    def digest(self) -> str:
        """Return a hash of everything that decides the result, the user's phrases included.

        Never publish it: it lets anyone check a guessed phrase.
        """

    def __call__(self, documents: Sequence[Document], /) -> Iterable[Document]:
        """Return the same documents in order, each with its identifiers as spans of the layer."""


@runtime_checkable
class RememberingDetector(Protocol):
    """A detector that takes the names of a patient's earlier notes, and gives those of new ones."""

    def read(
        self, documents: Sequence[Document], remembered: Mapping[str, NameCounts], /
    ) -> Iterable[tuple[Document, NameCounts]]:
        """Return (document with the layer, counts of its names); `remembered` names, by patient, are found too."""


class ReadingInPasses(Protocol):
    """The detection of one patient's notes that are not held together: all are added, settled, and given again."""

    def add(self, documents: Iterable[Document], /) -> None:
        """Detect in the next notes, and keep what was found in records."""

    def settle(self, remembered: NameCounts, /) -> None:
        """After all notes are added, decide what they and names of earlier notes (`remembered`) say of one another."""

    def tag_again(self, originals: Iterable[Document], /) -> Iterator[tuple[Document, NameCounts] | Exception]:
        """Yield each note as `RememberingDetector.read` does, or its error; the notes are given again, in order."""

    def close(self) -> None:
        """Drop all that is kept."""


@runtime_checkable
class PatientDetector(Protocol):
    """A detector that reads the notes of a patient together without all of them in memory."""

    @property
    def by_patient(self) -> bool:
        """Tell whether the documents of one patient are read together."""

    def read_patient(self, new_records: NewRecords, /) -> ReadingInPasses:
        """Return a detection in two passes of one patient's notes, which keeps what it found in records of its own."""
