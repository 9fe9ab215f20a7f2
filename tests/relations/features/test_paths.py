"""The features of one sentence worked by hand: frames, the way between the arguments, and the words around."""

from __future__ import annotations

import numpy as np

from chaffinch.models.phrasehmm.segments import parse
from chaffinch.relations import Schema
from chaffinch.relations.candidates import candidates, scenes
from chaffinch.relations.features import contexts, paths, vectors
from chaffinch.relations.features.frames import Frame, Part, frames
from chaffinch.text import Document, Span

SCHEMA = Schema("localises", ("Protein", "Location"))
#       0   4    9   13        23 26  30      38  42
TEXT = "The Abc1 does not localise to the outer membrane of Xyz2."
TAGS = ("DT", "NN", "VBZ", "RB", "VB", "TO", "DT", "JJ", "NN", "IN", "NN", ".")
CHUNKS = ((0, 8, "NP"), (9, 26, "VP"), (27, 29, "PP"), (30, 48, "NP"), (49, 51, "PP"), (52, 56, "NP"))


def sentence() -> Document:
    """A negated statement with parts of speech and chunks given, and a third mention behind it."""
    bare = Document.make(TEXT)
    tags = [Span(a, b, tag) for (a, b), tag in zip(bare.tokens.tolist(), TAGS, strict=True)]
    spans = [Span(4, 8, "Protein"), Span(40, 48, "Location"), Span(52, 56, "Protein")]
    return Document.make(
        TEXT, id="d", layers={"gold": spans, "pos": tags, "chunks": [Span(*own) for own in CHUNKS]}
    )  # fmt: skip


def framed() -> list[Frame]:
    doc = sentence()
    (scene,) = scenes(doc, SCHEMA, layer="gold")
    return frames(doc, scene, parse(doc, scene.first, scene.end), SCHEMA)


def test_a_frame_by_hand() -> None:
    first, second = framed()
    assert first.stems[1] == "<1>"
    assert first.stems[8] == "<2>"
    assert first.stems[10] == "<ent>"
    assert (first.places, first.order, first.sense, first.mentions) == ((1, 8), (1, 8), "0>1", 3)
    assert [part.type for part in first.parts] == ["NP", "VP", "PP", "NP", "PP", "NP", "."]
    assert [(part.first, part.end) for part in first.parts][:4] == [(0, 2), (2, 5), (5, 6), (6, 9)]
    assert first.ranks == (0, 1), "the other protein lies nearer to the place than the first one"
    assert (second.places, second.order, second.sense) == ((10, 8), (8, 10), "1>0")
    assert second.ranks == (0, 0)
    assert (second.stems[8], second.stems[10], second.stems[1]) == ("<2>", "<1>", "<ent>")


def test_the_way_by_hand() -> None:
    found = paths.features(framed()[0])
    assert all(name.endswith(" 0>1") for name in found)
    said = {name.removesuffix(" 0>1") for name in found}
    assert {"distance 8", "mentions 3", "mentions before 0", "mentions between 0", "mentions after 1"} <= said
    assert {"negation", "negation between", "nearer to 1: 0", "nearer to 2: 1", "nearer: 0 1"} <= said
    verbs = [name for name in said if name.startswith("verb ")]
    assert "verbs 2" in said
    assert len(verbs) == 2
    assert {"links w", "open 0", "types NP-VP-PP-NP", "segments 3"} <= said
    assert {"head NP <1>", "head PP to", "head NP <2>"} <= said
    assert {"head after of", "head after <ent>"} <= said
    assert not any(name.startswith(("head before", "joins")) for name in said), "nothing stands before the first"


def test_the_way_back_has_no_negation_between() -> None:
    said = {name.removesuffix(" 1>0") for name in paths.features(framed()[1])}
    assert "negation" in said
    assert "negation between" not in said
    assert {"distance 2", "mentions between 0", "mentions before 1", "verbs 0", "types NP-PP-NP"} <= said
    assert "joins to: of" in said, "the last head before the arguments, and what joins them"


def test_a_head_that_the_argument_modifies() -> None:
    stems = ["<1>", "recept", "bind", "<2>"]
    parts = [Part("NP", 0, 2), Part("VP", 2, 3), Part("NP", 3, 4)]
    frame = Frame(stems, ["NN", "NN", "VBZ", "NN"], parts, (0, 3), (0, 3), "", 2, (0, 0), ("overlap",))
    said = paths.features(frame)
    assert {"head NP <1>+recept", "head VP bind", "heads <1>+recept bind <2>", "acts BEGIN bind END"} <= set(said)
    assert "overlap" in said


def test_contexts_by_hand() -> None:
    parts = [Part("W", n, n + 1) for n in range(4)]
    frame = Frame(["thus", "<1>", "bind", "<2>"], ["RB", "NN", "VB", "NN"], parts, (1, 3), (1, 3), "0>1", 2, (0, 0), ())
    found = list(contexts.features(frame))
    runs = [name for name in found if not name.startswith(("at", "tag"))]
    assert runs == [
        "to thus", "to <1>", "to bind", "to <2>", "to0>1 thus <1>", "to0>1 <1> bind", "to0>1 bind <2>",
        "to0>1 thus <1> bind", "to0>1 <1> bind <2>", "to0>1 thus … bind", "to0>1 <1> … <2>",
        "between <1>", "between bind", "between <2>", "between0>1 <1> bind", "between0>1 bind <2>",
        "between0>1 <1> bind <2>", "between0>1 <1> … <2>",
        "from <1>", "from bind", "from <2>", "from0>1 <1> bind", "from0>1 bind <2>", "from0>1 <1> bind <2>",
        "from0>1 <1> … <2>",
    ]  # fmt: skip
    windows = [name for name in found if name.startswith("at 1")]
    assert windows == [
        "at 1-30>1 <edge>", "at 1-20>1 <edge>", "at 1-10>1 thus", "at 1+10>1 bind", "at 1+20>1 <2>", "at 1+30>1 <edge>",
    ]  # fmt: skip
    assert "tag at 2-10>1 VB" in found
    assert len(found) == len(runs) + 2 * 2 * 6


def test_a_row_is_the_log_of_counts_made_of_one_length() -> None:
    parts = [Part("W", n, n + 1) for n in range(3)]
    frame = Frame(["<1>", "bind", "<2>"], ["NN"] * 3, parts, (0, 2), (0, 2), "", 2, (0, 0), ())
    columns = vectors.FeatureColumns.of(("words",), [("between bind", "distance 2", "pair bind <2>", "unseen")])
    found = vectors.row(frame, columns)
    assert [column for column, _ in found] == [0, 1, 2]
    np.testing.assert_allclose([value for _, value in found], [3**-0.5] * 3, rtol=0, atol=1e-12)
    twice = frame._replace(stems=["<1>", "bind", "bind", "<2>"], tags=["NN"] * 4, places=(0, 3), order=(0, 3))
    ((_, one), (_, other)) = vectors.row(
        twice, vectors.FeatureColumns.of(("words",), [("between bind", "pair bind <2>")])
    )
    np.testing.assert_allclose(one / other, np.log2(3), rtol=0, atol=1e-12)


def test_a_floor_counts_groups_once_however_their_rows_stand() -> None:
    parts = [Part("W", n, n + 1) for n in range(3)]
    frame = Frame(["<1>", "rare", "<2>"], ["NN"] * 3, parts, (0, 2), (0, 2), "", 2, (0, 0), ())
    mixed = [(frame, "p1"), (frame, "p2"), (frame, "p1"), (frame, "p2")]
    assert len(vectors.learn(mixed, ("words",), floor=2)) > 0
    assert len(vectors.learn(mixed, ("words",), floor=3)) == 0


def test_three_roles_have_every_combination_of_types_once() -> None:
    schema = Schema("treats", ("drug", "dose", "disease"), ("Drug", "Dose", "Disease"))
    text = "Aspirin or heparin 20mg for gout and rickets."
    marks = (("Aspirin", "Drug"), ("heparin", "Drug"), ("20mg", "Dose"), ("gout", "Disease"), ("rickets", "Disease"))
    spans = [Span(text.index(word), text.index(word) + len(word), kind) for word, kind in marks]
    doc = Document.make(text, layers={"gold": spans}, relations=[schema.relation((spans[0], spans[2], spans[3]))])
    found = candidates(doc, schema)
    assert [tuple(span.start for span in one.spans) for one in found] == [
        (spans[a].start, spans[2].start, spans[b].start) for a in (0, 1) for b in (3, 4)
    ]
    assert [one.stated for one in found] == [True, False, False, False]
    alike = Schema("meets", ("a", "b", "c"), ("P", "P", "P"), symmetric=True)
    four = Document.make("A1 B2 C3 D4", layers={"gold": [Span(n, n + 2, "P") for n in (0, 3, 6, 9)]})
    assert len(candidates(four, alike)) == 4
    assert len(candidates(four, Schema("meets", ("a", "b", "c"), ("P", "P", "P")))) == 24
