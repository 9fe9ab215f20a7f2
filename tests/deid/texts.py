"""Generated texts of every awkward sort, and spans over them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from chaffinch.text import Document, Span

LABELS = (
    "PATIENT", "DOCTOR", "AGE", "DATE", "ZIP", "STATE", "PHONE", "MEDICALRECORD",
    "NOMBRE_PERSONAL_SANITARIO", "Own type",
)  # fmt: skip
_AWKWARD = ["\r\n", "\n", "\r", "\ufeff", "\0", "\u2028", "\u200d", "\U0001f469\u200d\u2695\ufe0f", "\U0001d49c", "é"]
_WORDS = [
    "Penn",
    "e\u0301",
    "n\u0303o\u0308",
    "92",
    "57-year-old",
    "03/04/2071",
    "1999",
    "02139",
    "03601",
    " ",
    "[DATE]",
]

texts = st.lists(
    st.one_of(
        st.sampled_from(_AWKWARD),
        st.sampled_from(_WORDS),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=14,
).map("".join)


@st.composite
def documents(draw: st.DrawFn, *, overlaps: bool = False, sure: bool = False) -> Document:
    """A document with a layer "found"; its spans often touch, and overlap only if they may; their scores may be 1."""
    text = draw(texts)
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=10)))
    named = st.tuples(st.sampled_from(LABELS), st.sampled_from([1.0] if sure else [0.25, 0.5, 1.0]))
    if overlaps and len(cuts) > 1:
        ends = st.lists(st.sampled_from(cuts), min_size=2, max_size=2, unique=True).map(sorted)
        places = [(a, b) for a, b in draw(st.lists(ends, max_size=8))]
    else:
        places = [pair for pair in pairwise(cuts) if draw(st.booleans())]
    spans = [Span(start, end, *draw(named)) for start, end in places]
    group, key = draw(st.sampled_from([(None, "n1"), (None, "n2"), ("p1", "n3"), ("p2", "n1")]))
    return Document.make(text, id=key, group=group, layers={"found": spans})
