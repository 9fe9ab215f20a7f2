"""/analyze: what the detector and ad hoc recognisers find, as Presidio words it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaffinch.deid.detect.entity_types import all_types, presidio_type
from chaffinch.deid.detect.explain import explain
from chaffinch.text import Document
from chaffinch.text.explanation import Explanation
from chaffinch.web.api.documents import check_sizes
from chaffinch.web.api.operations import Operations
from chaffinch.web.api.types import FoundSpan, InputDocument
from chaffinch.web.api.work import Work
from chaffinch.web.presidio.ad_hoc import (
    DEFAULT_FLAGS,
    AdHocRecognizer,
    Match,
    compile_pattern,
    read_recognizers,
)
from chaffinch.web.presidio.bodies import field_of, refuse, strings_of

RECOGNIZER = "ChaffinchRecognizer"
LANGUAGES = ("en",)
NO_RECOGNIZERS = "No matching recognizers were found to serve the request."


@dataclass(frozen=True, slots=True)
class AnalyzeRequest:
    """A request, checked."""

    texts: list[str] = field(repr=False)
    is_batch: bool
    entities: frozenset[str] | None
    threshold: float
    with_decisions: bool
    recognizers: list[AdHocRecognizer]
    context: list[str] = field(repr=False)
    allowed: frozenset[str] = field(repr=False)
    allowed_pattern: Any = field(repr=False)
    native: bool

    def allows(self, text: str) -> bool:
        """Tell whether a found text is in the request's allow list, or matches the list's pattern."""
        if self.allowed_pattern is not None:
            return self.allowed_pattern.search(text) is not None
        return text in self.allowed


def read_request(body: dict[str, Any], *, native: bool) -> AnalyzeRequest:
    """Parse and check the body of /analyze; raise Problem with Presidio's words and status if it is malformed."""
    texts: Any = body.get("text")
    if not texts:
        raise refuse("No text provided", 500)
    is_batch = isinstance(texts, list)
    if not isinstance(texts, str) and not (is_batch and all(isinstance(text, str) for text in texts)):
        raise refuse("Failed to parse request. text must be a string or an array of strings", 400)
    language = field_of(body, "language", str, "")
    if not language:
        raise refuse("No language provided", 500)
    recognizers = read_recognizers(body, language)
    entities = frozenset(strings_of(body, "entities")) or None
    known = {*all_types(native=native), *(each.entity_type for each in recognizers)}
    if language not in LANGUAGES or (entities is not None and not entities & known):
        raise refuse(NO_RECOGNIZERS, 500)
    allowed = strings_of(body, "allow_list")
    how = field_of(body, "allow_list_match", str, "exact")
    if how not in ("exact", "regex"):
        raise refuse("allow_list_match must either be set to 'exact' or 'regex'.", 500)
    flags = field_of(body, "regex_flags", int, DEFAULT_FLAGS)
    return AnalyzeRequest(
        texts if is_batch else [texts],
        is_batch,
        entities,
        float(field_of(body, "score_threshold", float, 0.0)),
        field_of(body, "return_decision_process", bool, False),
        recognizers,
        strings_of(body, "context"),
        frozenset(allowed),
        compile_pattern("|".join(f"(?:{each})" for each in allowed), flags) if allowed and how == "regex" else None,
        native,
    )


async def analyze(do: Operations, body: dict[str, Any], *, native: bool) -> Any:
    """Return results for the body's text, a list of them for a list of texts; `native`: our types; or Problem."""
    request = read_request(body, native=native)
    documents = [InputDocument(text=text) for text in request.texts]
    if request.with_decisions:
        found = await _explain_texts(do, documents)
    else:
        spans = await do.find_spans(documents, None, None)
        found = [[_result_of_span(span) for span in row] for row in spans]
    results = [_select_results(request, text, rows) for text, rows in zip(request.texts, found, strict=True)]
    return results if request.is_batch else results[0]


async def _explain_texts(do: Operations, documents: Sequence[InputDocument]) -> list[list[dict[str, Any]]]:
    """Return each text's results by the default detector, each with its reasons; these hold no word of the text."""
    find = do.engine.detector(None)
    characters = check_sizes(documents, do.limits)

    def run(_: Sequence[Any]) -> list[Any]:
        """Explain the detector's finds, without features; return a list with the explanations by document."""
        return [[explain(Document.make(each.text, id="text"), find, features=False) for each in documents]]

    rows: list[list[Explanation]] = await do.queue.submit(Work(run, None, len(documents), characters))
    return [[_result_with_explanation(why) for why in row] for row in rows]


def _result_with_explanation(why: Explanation) -> dict[str, Any]:
    """Return an explained span as a result with Presidio's explanation; the label is still ours."""
    pattern = next((voice.name for voice in why.voices if voice.kind == "pattern"), None)
    score = float(why.span.score)
    return {
        **_bare_result(why.span.start, why.span.end, why.span.label, score),
        "analysis_explanation": _presidio_explanation(RECOGNIZER, pattern, None, score, str(why)),
    }


def _result_of_span(span: FoundSpan) -> dict[str, Any]:
    """Convert a span of the detector to a result without reasons; the label is still ours."""
    return _bare_result(span.start, span.end, span.label, span.score)


def _bare_result(start: int, end: int, label: str, score: float) -> dict[str, Any]:
    """Return a result without reasons; its keys are sorted, as Presidio's are."""
    return {"analysis_explanation": None, "end": end, "entity_type": label, "score": score, "start": start}


def _presidio_explanation(
    recognizer: str, name: str | None, pattern: str | None, score: float, words: str | None, context: str = "",
    original: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return an explanation with Presidio's keys; `original` is the score before context raised it."""
    first = score if original is None else original
    return {
        "original_score": first,
        "pattern": pattern,
        "pattern_name": name,
        "recognizer": recognizer,
        "regex_flags": None if pattern is None else DEFAULT_FLAGS,
        "score": score,
        "score_context_improvement": score - first,
        "supportive_context_word": context,
        "textual_explanation": words,
        "validation_result": None,
    }


def _result_of_match(match: Match, *, with_decisions: bool) -> dict[str, Any]:
    """Return a match of an ad hoc recogniser as a result, with its explanation if `with_decisions`."""
    bare = _bare_result(match.start, match.end, match.entity_type, match.score)
    if not with_decisions:
        return bare
    words = f"Detected by `{match.recognizer}` using pattern `{match.pattern_name}`"
    reasons = _presidio_explanation(
        match.recognizer,
        match.pattern_name,
        match.pattern,
        match.score,
        words,
        match.context_word,
        match.original_score,
    )
    return {**bare, "analysis_explanation": reasons}


def _select_results(request: AnalyzeRequest, text: str, found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results and ad hoc matches that pass types, threshold and allow list; surest first, no nested ones."""
    results = [
        each if request.native else {**each, "entity_type": presidio_type(each["entity_type"])} for each in found
    ]
    for recognizer in request.recognizers:
        matches = recognizer.find(text, request.context)
        results += [_result_of_match(match, with_decisions=request.with_decisions) for match in matches]
    chosen = [
        each
        for each in results
        if (request.entities is None or each["entity_type"] in request.entities)
        and each["score"] >= request.threshold
        and each["score"] > 0
        and not request.allows(text[each["start"] : each["end"]])
    ]
    chosen.sort(key=lambda each: (-each["score"], each["start"], each["start"] - each["end"]))
    return _without_contained(chosen)


def _without_contained(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results, given surest first, without those that lie inside an earlier one of their type."""
    kept: list[dict[str, Any]] = []
    furthest: dict[str, list[tuple[int, int]]] = {}
    for each in results:
        others = furthest.setdefault(each["entity_type"], [])
        if not any(start <= each["start"] and each["end"] <= end for start, end in others):
            kept.append(each)
            others.append((each["start"], each["end"]))
    return kept
