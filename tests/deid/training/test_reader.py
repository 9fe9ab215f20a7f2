"""The contextual reader adapted to a site: what it is shown, what it needs, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.cli import main
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.voices.context import ContextVoice
from chaffinch.deid.training import reader as adapting
from chaffinch.deid.training.reader import adapt_reader, describe_reader, require_enough
from chaffinch.errors import ConfigError, DataError, MissingExtraError
from chaffinch.models.core.training import Progress
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.model import Model as ReaderModel
from chaffinch.text import Document, Span
from tests.models.reader.random_reader import reader_of

# What is marked, with labels that readers have and one that they do not; none of these words is in any list.
MARKED = {
    "DOCTOR": "Quillfeather", "FAMILY": "Vandermolen", "HOSPITAL": "Oxenfordham Infirmary", "CITY": "Tillinghurst",
    "EMAIL": "zyzzyv@qoph.example", "BADGE": "zyzzyvaq-48151", "MEDICALRECORD": "48151623", "BIOID": "qophprint",
    "PROFESSION": "glimmerhand", "AGE": "48", "DATE": "14.08.1987",
}  # fmt: skip
TEXT = (
    "wardlead ~ {DOCTOR} ~ at {HOSPITAL}, {CITY}; {FAMILY} ({AGE}, {PROFESSION}) rang\u200b on {DATE}: {EMAIL} "
    "{MEDICALRECORD} {BADGE} {BIOID}\nrounds done\n"
)
LABELS = "DOCTOR HOSPITAL CITY PATIENT AGE PROFESSION DATE EMAIL MEDICALRECORD BADGE BIOID"  # as a reader has them


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EPOCHS": 2, "GENERATED": 2, "LENDERS": 6}.items():
        monkeypatch.setattr(adapting, name, value)


def reviewed(number: int) -> Document:
    """A note with one identifier of every kind."""
    text, spans = "", []
    for part in TEXT.split("{"):
        label, closed, rest = part.partition("}")
        if closed:
            spans.append(Span(len(text), len(text) + len(MARKED[label]), label))
        text += MARKED[label] + rest if closed else part
    return Document.make(text, id=f"r{number}", group=f"p{number}", layers={"gold": spans})


NOTES = [reviewed(number) for number in range(3)]


def voice() -> ContextVoice:
    return ContextVoice(reader_of(["DOCTOR", "DATE", "CITY"], layers=1))


def test_no_marked_identifier_is_shown_to_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Document] = []

    def watched(
        model: ReaderModel, epochs: Callable[[int], Iterable[Document]], config: Reader, **_: object
    ) -> ReaderModel:
        for number in range(20):
            shown.extend(epochs(number))
        return model

    monkeypatch.setattr(adapting, "fit_further", watched)
    adapt_reader(voice(), NOTES)
    ours = [doc for doc in shown if doc.id.startswith("r")]
    assert len(ours) == 60
    assert len(shown) == 60 + 20 * 2
    words = {word for label, text in MARKED.items() if label != "AGE" for word in text.split() if word != "Infirmary"}
    assert not [word for word in words for doc in ours if word.casefold() in doc.text.casefold()]
    for doc in ours:
        assert doc.text.startswith("wardlead ~ ")
        assert doc.text.endswith("\nrounds done\n")
        assert "\u200b" not in doc.text
        assert " ".join(span.label for span in doc.layer("gold")) == LABELS
    assert len({doc.text for doc in ours}) == 60


def test_it_is_adapted_the_same_way_again_and_its_file_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Progress] = []
    one, two = adapt_reader(voice(), NOTES, tell=told.append), adapt_reader(voice(), NOTES)
    other = adapt_reader(voice(), NOTES, seed=1)
    assert {step.part for step in told} == {"reader"}
    assert one.adapted == 3
    arrays = [each.reader.weights.arrays["head"] for each in (one, two, other, voice())]
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert len({array.tobytes() for array in arrays}) == 3
    Model(context=one).save(tmp_path / "ours.cfm")
    again = load(tmp_path / "ours.cfm")
    assert again.context is not None
    assert again.context.adapted == 3
    np.testing.assert_array_equal(again.context.reader.read(NOTES[0]), one.reader.read(NOTES[0]))
    assert bundle.read_manifest(tmp_path / "ours.cfm").config["context"]["adapted"] == 3
    assert main(["show", str(tmp_path / "ours.cfm")]) == 0
    assert "contextual reader adapted to 3 reviewed notes" in " ".join(capsys.readouterr().out.split())
    content = (tmp_path / "ours.cfm").read_bytes()
    assert not [text for text in MARKED.values() if len(text) > 2 and text.encode() in content]
    assert "adapted" not in voice().describe()


def test_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Model(context=voice())
    alike = [replace(NOTES[0], id=str(number)) for number in range(adapting.FEWEST)]
    many = [*alike[1:], replace(NOTES[1], id="other")]
    require_enough(whole, many)
    with pytest.raises(DataError, match="all reviewed notes are of one patient"):
        require_enough(whole, alike)
    with pytest.raises(DataError, match=f"{len(many) - 1} reviewed notes are too few .* review {len(many)} or more"):
        require_enough(whole, many[1:])
    with pytest.raises(ConfigError, match="no contextual reader"):
        require_enough(Model(), many)
    with pytest.raises(DataError, match="no reviewed notes"):
        adapt_reader(voice(), [])
    monkeypatch.setattr(adapting, "find_spec", lambda module: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chaffinch\[neural\]'"):
        require_enough(whole, many)


def test_what_became_of_it_is_said() -> None:
    assert describe_reader(Model()) == []
    assert "reads as before" in describe_reader(Model(context=voice()))[0]
    assert "from 1,234 reviewed notes" in describe_reader(Model(context=replace(voice(), adapted=1234)))[0]
