"""Own sources on cases worked by hand; what is labelled already is never changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.text import Document, Span
from chaffinch.weak import propagate as text_sources
from chaffinch.weak.propagate import TextSources, enrich
from chaffinch.weak.propagate.heads import Heads, learn_heads
from chaffinch.weak.propagate.labelled_text import LabelledText, plain


def marked(text: str, *entities: str | tuple[str, str], id: str = "d") -> Document:  # noqa: A002  (as in Document)
    """A document with the first occurrence of each phrase labelled."""
    spans = []
    for entity in entities:
        phrase, label = entity if isinstance(entity, tuple) else (entity, "Disease")
        start = text.index(phrase)
        spans.append(Span(start, start + len(phrase), label, source="votes"))
    return Document.make(text, id=id, layers={"base": spans})


def spaced(text: str, *entities: str, id: str) -> Document:  # noqa: A002  (as in Document)
    """The same with tokens between spaces, as some formats give them."""
    doc = marked(text, *entities, id=id)
    tokens = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    return Document.make(text, id=id, layers=doc.layers, tokens=tokens)


def added(doc: Document, sources: TextSources | None = None) -> list[tuple[str, str, str]]:
    """Text, label and source of what own sources add."""
    spans = (sources or TextSources())(doc, doc.layer("base"))
    return [(doc.text[s.start : s.end], s.label, s.source) for s in spans if s.source != "votes"]


def test_a_short_form_is_labelled_everywhere_its_plural_too() -> None:
    doc = marked("DMDs occur. Duchenne muscular dystrophy (DMD) is rare; DMD kills.", "Duchenne muscular dystrophy")
    assert added(doc) == [(word, "Disease", "abbreviation") for word in ("DMDs", "DMD", "DMD")]


def test_a_short_form_before_its_long_form_in_brackets() -> None:
    doc = marked("DMD (Duchenne muscular dystrophy). DMD kills.", "Duchenne muscular dystrophy")
    assert [own[0] for own in added(doc)] == ["DMD", "DMD"]


def test_a_label_that_does_not_cover_the_long_form_names_no_short_form() -> None:
    assert added(marked("deleted in colorectal carcinoma (DCC) is a gene", "colorectal carcinoma")) == []


def test_case_tells_short_forms_from_words() -> None:
    doc = marked("Angelman syndrome (AS) is as rare as that.", "Angelman syndrome")
    assert [own[0] for own in added(doc)] == ["AS"]


def test_a_single_letter_after_one_word_that_begins_with_it() -> None:
    doc = marked("Testosterone (T) rose. T fell, E (p) did not.", ("Testosterone", "Chemical"))
    assert added(doc) == [("T", "Chemical", "abbreviation")] * 2
    assert added(marked("Low testosterone (E) rose. E fell.", ("testosterone", "Chemical"))) == []


def test_history_sees_through_case_plural_hyphen_possessive_and_spelling() -> None:
    text = "haemolytic-uraemic tumour . Hemolytic uremic tumors and HAEMOLYTIC URAEMIC TUMOUR 's , not the tumour ."
    assert added(marked(text, "haemolytic-uraemic tumour")) == [
        ("Hemolytic uremic tumors", "Disease", "history"), ("HAEMOLYTIC URAEMIC TUMOUR", "Disease", "history")
    ]  # fmt: skip


def test_history_takes_the_longest_free_string() -> None:
    doc = marked("cancer, breast cancer; then breast cancer and cancer", "breast cancer", "cancer")
    assert added(doc) == [("breast cancer", "Disease", "history"), ("cancer", "Disease", "history")]


def test_compounds_follow_what_their_suffix_mostly_does() -> None:
    docs = [spaced(f"x{n} and x{n}-induced", f"x{n}", f"x{n}-induced", id=f"a{n}") for n in range(3)]
    docs += [spaced(f"z{n} but z{n}-free", f"z{n}", id=f"b{n}") for n in range(5)]
    docs += [spaced("y1 and y1-induced or y1-free", "y1", id="c")]
    out = enrich(docs, "base")
    assert [docs[-1].text[s.start : s.end] for s in out[-1].layer("own")] == ["y1", "y1-induced"]
    assert [s.source for s in out[-1].layer("own")] == ["votes", "compound"]


def corpus_of_heads() -> list[Document]:
    """ "deficiency" with four different words before it; "severe" stands outside before spans, "iron" inside."""
    phrases = ["iron deficiency", "zinc deficiency", "copper deficiency", "G6PD deficiency"]
    docs = [marked(f"A severe {phrase} was there .", phrase, id=phrase) for phrase in phrases]
    return [*docs, marked("He had severe biotin deficiency then .", id="new"), marked("The deficiency .", id="bare")]


def test_heads_take_along_words_that_belong_to_them() -> None:
    out = enrich(corpus_of_heads(), "base")
    found = {doc.id: [doc.text[s.start : s.end] for s in doc.layer("own")] for doc in out}
    assert found["new"] == ["biotin deficiency"]  # "severe" stands before spans; "biotin" is new
    assert found["bare"] == []  # alone it is no span anywhere


def test_three_words_before_are_too_few_for_a_head() -> None:
    docs = corpus_of_heads()
    assert "deficiency" in learn_heads([LabelledText.of(doc, doc.layer("base")) for doc in docs]).labels
    fewer = [doc for doc in docs if doc.id != "zinc deficiency"]
    assert not learn_heads([LabelledText.of(doc, doc.layer("base")) for doc in fewer]).labels


def test_heads_labelled_seldom_are_none() -> None:
    docs = corpus_of_heads()
    many = [marked("no deficiency here", id=f"n{n}") for n in range(20)]  # 4 of 26 is below 30 %
    assert not learn_heads([LabelledText.of(doc, doc.layer("base")) for doc in docs + many]).labels


def test_heads_take_at_most_four_words_and_none_across_a_sentence() -> None:
    heads = TextSources(Heads({"deficiency": "Disease"}))
    text = "one two three four five deficiency"
    assert [own[0] for own in added(marked(text), heads)] == ["two three four five deficiency"]
    cut = Document.make(text, layers={"base": []}, sentences=[(0, 18), (19, len(text))])
    assert [own[0] for own in added(cut, heads)] == ["five deficiency"]


def test_heads_take_a_dash_with_what_it_ties() -> None:
    heads = TextSources(Heads({"disease": "Disease"}))
    assert [own[0] for own in added(marked("in PLP-associated disease"), heads)] == ["PLP-associated disease"]
    assert [own[0] for own in added(marked("in PLP - severe disease"), heads)] == ["severe disease"]


def test_heads_take_a_possessive_with_its_name() -> None:
    heads = TextSources(Heads({"disease": "Disease"}))
    assert [own[0] for own in added(marked("in Pompe 's disease"), heads)] == ["Pompe 's disease"]
    assert added(marked("in child 's disease"), heads) == []


def test_the_lexicon_of_other_documents_comes_last() -> None:
    docs = [marked(f"They have lung fibrosis {n}.", "lung fibrosis", id=f"{n}") for n in range(2)]
    docs += [marked("Once more Lung Fibrosis.", id="new"), marked("It is lung.", id="other")]
    out = enrich(docs, "base")
    assert [(s.start, s.end, s.source) for s in out[2].layer("own")] == [(10, 23, "lexicon")]
    assert out[3].layer("own") == ()


def test_one_patient_alone_puts_no_string_into_the_lexicon() -> None:
    docs = [marked("They have lung fibrosis.", "lung fibrosis", id="1"), marked("More lung fibrosis.", id="2")]
    assert not text_sources.learn(docs, "base").lexicon


def test_several_labels_stay_apart() -> None:
    text = "methotrexate (MTX) for chronic granulomatous disease (CGD): MTX in CGD"
    doc = marked(text, ("methotrexate", "Chemical"), ("chronic granulomatous disease", "Disease"))
    assert [(own[0], own[1]) for own in added(doc)] == [
        ("MTX", "Chemical"), ("CGD", "Disease"), ("MTX", "Chemical"), ("CGD", "Disease")
    ]  # fmt: skip


def test_without_labels_nothing_is_added() -> None:
    docs = [marked("Renal failure (RF) is RF-induced, a deficiency .", id=f"{n}") for n in range(3)]
    assert all(doc.layer("own") == () for doc in enrich(docs, "base"))
    assert enrich([], "base") == []
    assert enrich([Document.make("", layers={"base": []})], "base")[0].layer("own") == ()


def test_offsets_and_the_label_at_work_beyond_the_basic_plane() -> None:
    doc = marked("𝛼-thalassaemia major 😀 (ATM)? 😀 α thalassemia", "𝛼-thalassaemia major")
    for text, _, _ in added(doc):
        assert text in doc.text
    text = "😀 renal failure (RF): 😀 RF"
    assert [own[0] for own in added(marked(text, "renal failure"))] == ["RF", "RF"]


WORDS = st.sampled_from(
    "acute renal failure RF ( ) RF-induced failures 's - Renal deficiency of iron zinc copper gold ARF .".split()
)
PLACES = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4), st.sampled_from(["A", "B"])), max_size=4)


def drawn(words: Sequence[str], places: Sequence[tuple[int, int, str]], number: int) -> Document:
    doc, spans = Document.make(" ".join(words), id=str(number)), []
    for first, length, label in places:
        if first + length <= len(doc.tokens):
            spans.append(Span(int(doc.tokens[first, 0]), int(doc.tokens[first + length - 1, 1]), label, 0.5, "votes"))
    return doc.with_layer("base", spans)


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(WORDS, max_size=12), PLACES), max_size=5))
def test_never_changes_a_span_and_adds_only_whole_free_tokens(
    data: list[tuple[list[str], list[tuple[int, int, str]]]],
) -> None:
    docs = [drawn(words, places, number) for number, (words, places) in enumerate(data)]
    out = enrich(docs, "base")
    for doc, more in zip(docs, out, strict=True):
        base, own = doc.layer("base"), more.layer("own")
        kept = [s for s in own if s.source == "votes"]
        assert kept == list(base)
        assert all(s.score == 0.5 for s in kept)
        new = [s for s in own if s.source != "votes"]
        starts, ends = set(doc.tokens[:, 0].tolist()), set(doc.tokens[:, 1].tolist())
        assert all(s.start in starts and s.end in ends for s in new)
        assert not any(s.overlaps(other) for s in new for other in own if other is not s)
        assert more.layer("base") == base
    again = enrich(docs, "base")
    assert [[(s, s.source) for s in doc.layer("own")] for doc in out] == [
        [(s, s.source) for s in doc.layer("own")] for doc in again
    ]


def test_a_page_refuses_a_run_with_a_taken_token() -> None:
    doc = marked("one two three", "two")
    page = LabelledText.of(doc, doc.layer("base"))
    assert not page.add(0, 2, "Disease", "x")
    assert page.add(2, 3, "Disease", "x")
    assert page.added == [Span(8, 13, "Disease")]


def test_what_was_learnt_survives_a_file() -> None:
    docs = corpus_of_heads() + [spaced(f"x{n} and x{n}-induced", f"x{n}", id=f"a{n}") for n in range(3)]
    learnt = text_sources.learn(docs, "base")
    back = TextSources.of(learnt.strings())
    assert back.strings() == learnt.strings()
    assert text_sources.apply(back, docs, "base") == enrich(docs, "base")


def test_plain_spelling() -> None:
    assert plain("abnormalities") == ("abnormality",)
    assert plain("diagnosis") == ("diagnosis",)
    assert plain("carcinomas") == ("carcinoma",)
    assert plain("Parkinson's") == ("parkinson",)
    assert plain("X-linked") == ("X", "linked")
    assert plain("-") == ()
    assert plain("+") == ("+",)
