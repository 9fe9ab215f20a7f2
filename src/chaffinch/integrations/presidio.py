"""A recogniser for Presidio's analyzer: our detector inside a Presidio pipeline, with calibrated scores."""

from __future__ import annotations

from typing import Any

from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.detect.entity_types import all_types, presidio_type
from chaffinch.errors import MissingExtraError
from chaffinch.text import Document

try:
    from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult
except ImportError:
    raise MissingExtraError("presidio-analyzer", "presidio") from None


class ChaffinchRecognizer(EntityRecognizer):  # type: ignore[misc]  # Presidio has no types here
    """Presidio's view of a detector: types are Presidio's (PERSON, DATE_TIME, …), with `native` ours.

    >>> recognizer = ChaffinchRecognizer(model=None)  # rules alone
    >>> [(each.entity_type, each.start) for each in recognizer.analyze("Seen by Dr. Penn.", [])]
    [('PERSON', 12)]
    """

    def __init__(
        self,
        model: str | None = "deid-en",
        *,
        find: HybridDetector | None = None,
        recall: float | None = None,
        native: bool = False,
        language: str = "en",
    ) -> None:
        """Make a recogniser of a model (name, file, None: rules alone), or of a detector; ConfigError, ModelError.

        `recall` sets the detector's threshold; with `native`, types are ours and not Presidio's.
        """
        self._find = find or detector(model, recall=recall)
        self._native = native
        super().__init__(
            supported_entities=all_types(native=native), name="ChaffinchRecognizer", supported_language=language
        )

    def load(self) -> None:
        """Do nothing: the detector was loaded when the recogniser was made."""

    def analyze(self, text: str, entities: list[str], nlp_artifacts: Any = None) -> list[RecognizerResult]:
        """Return the identifiers found in a text, in order, only those of the given types unless the list is empty."""
        (doc,) = self._find([Document.make(text, id="text")])
        results = []
        for span in doc.layer(self._find.layer):
            entity_type = span.label if self._native else presidio_type(span.label)
            if not entities or entity_type in entities:
                reasons = AnalysisExplanation(
                    recognizer=self.name,
                    original_score=float(span.score),
                    textual_explanation=f"found by {span.source}",
                )
                results.append(RecognizerResult(entity_type, span.start, span.end, float(span.score), reasons))
        return results
