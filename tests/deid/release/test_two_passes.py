"""A patient's notes that are not held together are released as if they were, byte for byte."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.detect import repeats
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.detect.voices import across_notes
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.memory import Memories, NoteMemory, PatientMemory, RememberedNote
from chaffinch.deid.release.patient import NumberedDocument, Release, Released, Withheld, release
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.deid.release.state import STATE
from chaffinch.deid.release.two_passes import PatientRelease, takes_two_passes
from chaffinch.deid.synth.notes import notes as invented_notes
from chaffinch.errors import DataError, StorageError
from chaffinch.jobs.batching.sealed import SealedRecords
from chaffinch.text import Document
from chaffinch.weak.sources import source
from tests.deid.releases import CANARY, KEY, SECRET
from tests.deid.releases import detector as known_names

SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy")
LIMITED = Release(Policy.read("limited-dataset"), SECRET)
RULES = detector(by_patient=True)
PIECES = (
    "Dr. Quillfeather", "Quillfeather", "QUILLFEATHER", "quillfeather", "Ada Penn, MD", "Penn", "Ada", "Mr. Wren",
    "Wren", "Patient: Lowe", "Lowe", "Foley", "Dr. Foley", "Wells", "the Wells score", "Salem", "seen in Salem, MA",
    "May", "Dr. May", "born 3/4/1909", "25/12/1997", "03/04/1998", "on 5/6", "95 years ago", "MRN 1234567", "1234567",
    "call 555-123-4567", "\n", "\r\n", " ", ". ", ", ", "Q u i l l f e a t h e r", "Qu\u00adillfeather", "\U0001f426",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map(" ".join)
NOTES = st.lists(st.tuples(st.sampled_from("abc"), TEXTS), min_size=1, max_size=9)


def documents(pairs: Sequence[tuple[str, str]], group: str | None = "p") -> list[NumberedDocument]:
    """The notes of one patient; some share an id."""
    docs = [Document.make(text, id=name if group else "same", group=group) for name, text in pairs]
    return [NumberedDocument(3 * number + 1, doc) for number, doc in enumerate(docs)]


def told(result: Released | Withheld, seal: Seal | None = None) -> Any:
    """All that a result says, what is sealed in plain."""
    if isinstance(result, Withheld):
        return result.id, result.original, result.reason
    note_memory = (
        None
        if result.note_memory is None or seal is None
        else msgspec.to_builtins(NoteMemory.open(result.note_memory, seal))
    )
    return msgspec.structs.replace(result, note_memory=None).pack(), result.original, result.patient, note_memory


def in_passes(
    given: Sequence[NumberedDocument | Withheld],
    how: Release,
    find: Detector,
    *,
    size: int = 2,
    memories: Memories | None = None,
) -> list[Released | Withheld]:
    """Release notes in two passes, handed over in parts of this size, with all that waits on the disk."""
    one = PatientRelease(how, find, lambda: SealedRecords(memory=0), memories=memories)
    for first in range(0, len(given), size):
        one.add(given[first : first + size])
    results = list(one.results())
    one.close()
    return results


def check(given: list[NumberedDocument], how: Release, find: Detector, *, size: int = 2) -> list[Released | Withheld]:
    expected = release(given, how, find)
    assert list(map(told, in_passes(given, how, find, size=size))) == list(map(told, expected))
    return expected


@given(NOTES, st.integers(1, 5), st.sampled_from([SURROGATES, LIMITED]), st.sampled_from(["p", None]))
@settings(max_examples=120, deadline=None)
def test_rules_release_the_same_in_two_passes(
    pairs: list[tuple[str, str]], size: int, how: Release, group: str | None
) -> None:
    check(documents(pairs, group), how, RULES, size=size)


@pytest.mark.parametrize("tile", [1, 60, 100_000])
def test_invented_notes_are_released_the_same_in_two_passes(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(across_notes, "TILE_TOKENS", tile)
    docs = [replace(doc, layers={}) for doc in invented_notes(1, 40, seed=3)]
    results = check([NumberedDocument(number, doc) for number, doc in enumerate(docs)], SURROGATES, RULES, size=7)
    assert all(isinstance(result, Released) for result in results)


@pytest.mark.parametrize(("fast", "number"), [(True, 30), (False, 5)])
def test_models_release_the_same_in_two_passes(fast: bool, number: int) -> None:
    docs = [replace(doc, layers={}) for doc in invented_notes(1, number, seed=5)]
    find = detector("deid-en", by_patient=True, fast=fast)
    check([NumberedDocument(number, doc) for number, doc in enumerate(docs)], SURROGATES, find, size=2)


def test_one_note_finds_names_and_hides_dates_in_the_others() -> None:
    """Worked by hand: the name of the last note is found in the first, and the last date tells the age in the first."""
    parts = [("a", "Zimmerle came. Born 3/4/1920."), ("b", "All well."), ("c", "Mr. Zimmerle on 5/6/2015.")]
    results = in_passes(documents(parts), SURROGATES, RULES, size=1)
    first, second, third = (result.text for result in results if isinstance(result, Released))
    name = first.split()[0]
    assert first == f"{name} came. Born [DATE]."
    assert second == "All well."
    assert third.startswith(f"Mr. {name} on ")
    assert name != "Zimmerle"
    assert not third.endswith("5/6/2015.")


def test_what_cannot_be_read_comes_out_in_its_turn() -> None:
    given: list[NumberedDocument | Withheld] = [*documents([("a", "Dr. Penn"), ("b", "Penn came")])]
    withheld = Withheld("x", "y", "cannot be read")
    given.insert(1, withheld)
    results = in_passes(given, SURROGATES, RULES, size=2)
    assert results[1] is not withheld
    assert told(results[1]) == told(withheld)
    assert [isinstance(result, Released) for result in results] == [True, False, True]
    assert in_passes([withheld], SURROGATES, RULES) == [withheld]
    assert in_passes([], SURROGATES, RULES) == []


def test_a_note_with_a_field_that_cannot_wait_on_the_disk_is_withheld() -> None:
    given = documents([("a", "Dr. Penn"), ("b", "Penn came"), ("c", "Wren")])
    given[1] = replace(given[1], doc=replace(given[1].doc, meta={"read": lambda: CANARY}))
    results = in_passes(given, SURROGATES, RULES)
    assert [isinstance(result, Released) for result in results] == [True, False, True]
    assert CANARY not in repr(results)


@source("fails", label="Own")
def fails(doc: Document) -> list[tuple[int, int]]:
    if "FAIL" in doc.text:
        raise DataError("cannot be read by this source")
    return []


def test_a_note_in_which_detection_fails_is_left_out_and_the_others_still_tell_of_one_another() -> None:
    """Worked by hand: that one note fails does not let the name of the third stand in the first."""
    find = detector(types=[fails], by_patient=True)
    given = documents([("a", "Zimmerle came."), ("b", "FAIL"), ("c", "Mr. Zimmerle came."), ("d", "FAIL")])
    for size in (1, 2, 3, 4):
        first, second, third, fourth = check(given, SURROGATES, find, size=size)
        assert isinstance(first, Released)
        assert isinstance(third, Released)
        assert third.text == f"Mr. {first.text}"
        assert first.text != "Zimmerle came."
        assert isinstance(second, Withheld)
        assert isinstance(fourth, Withheld)
    assert all(isinstance(one, Withheld) for one in check(documents([("a", "FAIL"), ("b", "FAIL")]), SURROGATES, find))


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_notes_that_cannot_be_read_together_are_all_withheld(
    begun: bool, poison: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one note tells of another is lost if each is read by itself."""
    usual_labels, usual_counts = repeats.choose_labels, repeats.add_counts

    def choose_labels(notes: Iterable[repeats.NameCounts]) -> dict[str, str]:
        found = usual_labels(notes)
        if len(found) > 1:
            raise MemoryError(CANARY)
        return found

    def add_counts(total: repeats.NameCounts, more: repeats.NameCounts) -> None:
        usual_counts(total, more)
        if len(total) > 1:
            raise MemoryError(CANARY)

    monkeypatch.setattr(repeats, "choose_labels", choose_labels)
    if begun:
        monkeypatch.setattr(repeats, "add_counts", add_counts)
    find = detector(types=[fails], by_patient=True)
    given = documents([("a", "Mr. Zimmerle came."), ("b", "FAIL" if poison else "Well."), ("c", "Dr. Quillfeather.")])
    results = check(given, SURROGATES, find)
    reasons = [result.reason for result in results if isinstance(result, Withheld)]
    failed = "failed with MemoryError"
    assert reasons == [failed, "cannot be read by this source" if poison else failed, failed]


@pytest.mark.parametrize("by_patient", [False, True])
def test_other_detectors(by_patient: bool) -> None:
    find = known_names(by_patient=by_patient)
    assert takes_two_passes(find) != by_patient
    if not by_patient:
        check(documents([("a", "Dr. Penn"), ("b", "Penn came on 03/04/1998"), ("c", "Lowe")]), SURROGATES, find)


def test_a_detector_that_reads_each_note_by_itself_stays_so() -> None:
    check(documents([("a", "Dr. Zimmerle came."), ("b", "Zimmerle slept.")]), SURROGATES, detector())


def test_what_earlier_releases_tell_counts_and_note_memories_are_the_same() -> None:
    seal = Seal.new(KEY, b"s" * 32, STATE)
    first = documents([("a", "Mr. Zimmerle, born 3/4/1920."), ("b", "Zimmerle and Dr. Wren on 5/6/2001.")])
    memory = PatientMemory("p")
    empty = Memories({"p": memory}, seal)
    before = release(first, SURROGATES, RULES, memories=empty)
    assert [told(one, seal) for one in in_passes(first, SURROGATES, RULES, memories=empty)] == [
        told(one, seal) for one in before
    ]
    remembered = [
        NoteMemory.open(one.note_memory, seal) for one in before if isinstance(one, Released) and one.note_memory
    ]
    memory.learn(
        (RememberedNote(f"n{n}", note_memory.content, "", 0), note_memory) for n, note_memory in enumerate(remembered)
    )
    later = documents([("c", "Zimmerle again."), ("d", "Wren wrote on 7/8/2015."), ("e", "Mr. Lowe.")])
    known = Memories({"p": memory}, seal)
    expected = release(later, SURROGATES, RULES, memories=known)
    results = in_passes(later, SURROGATES, RULES, memories=known)
    assert [told(one, seal) for one in results] == [told(one, seal) for one in expected]
    assert isinstance(results[0], Released)
    assert results[0].places, "the name was found, because an earlier note tells of it"


def test_a_full_disk_stops_and_is_no_fault_of_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(StorageError, match="No space left"):
        in_passes(documents([("a", "Dr. Penn")]), SURROGATES, RULES)


@pytest.fixture
def only_new_objects() -> Iterator[None]:
    """Hide what earlier tests left from `gc.get_objects`, which would otherwise walk through all of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("only_new_objects")
def test_memory_holds_no_note_but_those_of_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more documents are alive than a tile has, however many notes the patient has."""
    monkeypatch.setattr(across_notes, "TILE_TOKENS", 40)
    alive: list[int] = []
    usual = HybridDetector.detect

    def count_notes() -> int:
        return sum(type(thing) is Document and thing.group == "large" for thing in gc.get_objects())

    def detect(self: HybridDetector, docs: Sequence[Document]) -> list[Document]:
        alive.append(count_notes())
        return usual(self, docs)

    monkeypatch.setattr(HybridDetector, "detect", detect)
    one = PatientRelease(SURROGATES, RULES, lambda: SealedRecords(memory=0))
    for number in range(120):
        one.add([NumberedDocument(number, Document.make("Dr. Penn saw Wren.", id=str(number), group="large"))])
    for number, result in enumerate(one.results()):
        assert isinstance(result, Released)
        assert number > 110 or count_notes() < 40
    one.close()
    assert 0 < max(alive) < 40
