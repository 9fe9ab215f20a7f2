"""Why a span was suggested: the voices of the project's detector, for readers who see its suggestions.

The note is read alone: with other notes in view, the detector could tell of notes that the reader must not see.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaffinch.deid.detect.explain import explain
from chaffinch.errors import DataError
from chaffinch.text.explanation import Explanation, Voice
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.reading import open_task
from chaffinch.web.review.store.notes import StoredNote
from chaffinch.web.review.store.users import User


@dataclass(frozen=True, slots=True)
class Reason:
    """What the detector says of a stretch, in words without text of the note: a headline and a line per voice."""

    headline: str
    voices: tuple[str, ...] = ()


def explain_stretch(desk: Desk, user: User, number: int, start: int, end: int) -> Reason:
    """Return what the detector says of a stretch in a reader's own task; DataError if suggestions are hidden there."""
    opened = open_task(desk, user, number)
    if not opened.assignment.suggested:
        raise DataError("suggestions are hidden for this note, and so is what the detector says of it")
    if not 0 <= start < end <= len(opened.note.document.text):
        raise DataError(f"[{start}, {end}) does not fit a text of {len(opened.note.document.text)} characters")
    found = desk.explanations.fetch(opened.note.number, lambda: _explain_note(desk, opened.note))
    touching = [one for one in found if one.span.start < end and start < one.span.end]
    if not touching:
        return Reason("The project's detector finds nothing here.")
    best = max(touching, key=lambda one: min(end, one.span.end) - max(start, one.span.start))
    return Reason(_describe(best, start, end), tuple(map(_describe_voice, best.voices)))


def _explain_note(desk: Desk, note: StoredNote) -> tuple[Explanation, ...]:
    """Explain all that the project's detector finds in a note; the texts of explanations are not kept."""
    return tuple(explain(note.document, desk.detector(), features=False))


def _describe(one: Explanation, start: int, end: int) -> str:
    """Return a line on an explanation: type, chance, threshold, runner-up, and whether its edges are others."""
    facts = [one.span.label]
    facts += [f"chance {one.chance:.2f}"] if one.chance is not None else []
    facts += [f"marked from {one.threshold:.2f} on"] if one.threshold is not None else []
    others = [span.label for span in one.runner_up if span.label != one.span.label]
    facts += [f"next likeliest {'no identifier' if others[0] == 'O' else others[0]}"] if others else []
    facts += [] if (one.span.start, one.span.end) == (start, end) else ["with other edges"]
    return ", ".join(facts)


def _describe_voice(voice: Voice) -> str:
    """Return a line on a voice: what it is, which types it names, and how sure it is."""
    labels = [span.label for span in voice.spans]
    named = ", ".join("no identifier" if label == "O" else label for label in dict.fromkeys(labels))
    said = named or ("finds nothing there" if voice.kind in ("tagger", "reader") else "")
    sure = f"{voice.chance:.2f}" if voice.chance is not None else ""
    return ": ".join(filter(None, [f"{voice.kind} {voice.name}".strip(), " ".join(filter(None, [said, sure]))]))
