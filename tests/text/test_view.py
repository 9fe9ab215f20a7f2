"""Views: what they show, and that every character leads back to the place it came from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaffinch.text import Document, Soft, Span
from chaffinch.text.view import ShownDocument, View, narrow_view, plain_text, view_of

SHOWN = [
    ("Pe\u00adnn", "Penn"),
    ("P\u200be\u2060n\ufeffn", "Penn"),
    ("Pe\x00nn, \x07Ada\x7f", "Penn, Ada"),
    ("Ada\x00Penn", "Ada Penn"),
    ("Mac\u200bDonald", "MacDonald"),
    ("Penn\x00\x00\x00Ada", "Penn Ada"),
    ("Ada\u00a0Penn\u202f47\u3000y", "Ada Penn 47 y"),
    ("Ｐｅｎｎ　１９５１", "Penn 1951"),
    ("𝐏𝐞𝐧𝐧 Ⓟ Gri\ufb03th", "Penn P Griffith"),
    ("Jose\u0301 Mu\u0308ller", "José Müller"),
    ("P\u0301e\u0301n\u0301n\u0301", "Penn"),
    ("P\u0336e\u0336n\u0336n\u0336", "Penn"),
    ("617\u2011555\u20110142", "617-555-0142"),
    ("٠٣/١٤/١٩٥١", "03/14/1951"),
    ("Dr. P e n n left.", "Dr. Penn left."),
    ("J o h n  W r e n", "John Wren"),
    ("J o h n W r e n", "John Wren"),
    ("P E N N", "PENN"),
    ("O ' B r i e n , A d a", "O'Brien, Ada"),
    ("call 6 1 7 - 5 5 5 - 0 1 4 2 now", "call 617-555-0142 now"),
    ("M a y  4 ,  1 9 9 8", "May 4, 1998"),
    ("a d a @ w r e n . o r g", "ada@wren.org"),
    ("Dr. Pen-\nnington", "Dr. Pennington"),
    ("Dr. PEN-\r\n  NINGTON", "Dr. PENNINGTON"),
    ("call 617-\n555-0142", "call 617-555-0142"),
    ("Dr. Pen\u00ad\n  nington", "Dr. Pennington"),
]
PLAIN = [
    "Seen by Dr. Penn – 5 µg/m² of “X”, 37 °C, ½ tablet, naïve José.\r\n\tNext:  none.\f",
    "J R R Tolkien, A & O x 3, 5 L x 4 W, L x W x H",
    "Pain 0 1 2 3 4 5 6 7 8 9 of 10; grades 1 2 3",
    "Assessment-\npneumonia",
    "well-known\n- item",
    "שָׁלוֹם مُحَمَّد हिन्दी",  # marks of scripts are letters
    "",
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_what_a_view_shows(text: str, shown: str) -> None:
    view = view_of(text)
    assert view is not None
    assert view.text == shown == plain_text(text)


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_text_has_no_view(text: str) -> None:
    assert view_of(text) is None
    assert plain_text(text) is text


def test_a_span_of_the_view_covers_the_whole_original_stretch() -> None:
    text = "Dr. P\u200be\u0336nn\u00ad, 5mg"
    view = view_of(text)
    assert view is not None
    assert view.back(4, 8) == (4, 11)
    assert view.spans_back([Span(4, 8, "DOCTOR", 0.5, "x")]) == [Span(4, 11, "DOCTOR")]
    assert view.forth(np.array([[4, 11], [5, 6], [0, 3]])).tolist() == [[4, 8], [4, 5], [0, 3]]


SIGNS = st.sampled_from(
    [
        *"Aab1 \n\r\t-/.,'(",
        "\u200b",
        "\u00ad",
        "\x00",
        "\u00a0",
        "\u0301",
        "\u0336",
        "\uff21",
        "\ufb03",
        "é",
        "\U0001d400",
    ]
)


@given(st.lists(SIGNS, max_size=40).map("".join))
@example("\u0301\u200b")
@example("A\u00ad\nb")
def test_every_character_of_a_view_leads_back_in_order(text: str) -> None:
    for view in (view_of(text), narrow_view(text)):
        if view is not None:
            _check(view, text)


def _check(view: View, text: str) -> None:
    assert len(view.starts) == len(view.ends) == len(view.text)
    assert np.all(view.starts < view.ends)
    assert np.all(np.diff(view.starts) >= 0)
    assert np.all(np.diff(view.ends) >= 0)
    assert not len(view.ends) or view.ends[-1] <= len(text)
    for place, sign in enumerate(view.text):
        start, _ = view.back(place, place + 1)
        if sign in "Aab1" and text[start] in "Aab1":
            assert text[start] == sign
    seen = {place for start, end in zip(view.starts, view.ends, strict=True) for place in range(start, end)}
    assert not any(text[place] in "Aab1/.," for place in set(range(len(text))) - seen)


@given(st.lists(SIGNS, max_size=40).map("".join))
def test_a_document_comes_back_with_its_text_tokens_and_layers(text: str) -> None:
    doc = Document.make(text, id="n", group="p", layers={"gold": [Span(0, 1, "X")] if text else []})
    page = ShownDocument.of(doc)
    soft = Soft(("O", "X"), np.tile([0.25, 0.75], (len(page.shown.tokens), 1)))
    spans = [Span(int(a), int(b), "Y") for a, b in page.shown.tokens]
    back = page.restore(page.shown.with_layer("deid", spans).with_soft("deid", soft))
    assert (back.id, back.group, back.text) == ("n", "p", text)
    assert np.array_equal(back.tokens, doc.tokens)
    assert back.layer("gold") == doc.layer("gold")
    assert len(back.soft["deid"].values) == len(doc.tokens)
    covered = {place for span in back.layer("deid") for place in range(span.start, span.end)}
    assert all(place in covered for place, sign in enumerate(text) if sign.isalnum())


def test_tabs_and_double_blanks_are_one_blank_in_the_narrow_view() -> None:
    view = narrow_view("Dr.  Ada\tPenn  MRN: 7. Home  by")
    assert view is not None
    assert view.text == "Dr. Ada Penn  MRN: 7. Home by"
    assert view.back(4, 12) == (5, 13)
    assert narrow_view("He left.  She stayed.   Name") is None
