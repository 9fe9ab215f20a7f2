"""Parts of speech and chunks from the GENIA treebank."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes.genia_chunks import corpus, held_out, penn_tag, prepare

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from tests.recipes.files import tar_gz


def document(*trees: str) -> Document:
    """A sentence per tree: "(NP the/DT gene/NN (NP null=RNR))" has two words and an empty phrase."""
    words: list[str] = []
    pos: list[str] = []
    rows: list[list[Any]] = []
    lengths: list[int] = []
    for tree in trees:
        opened: list[int] = []
        for piece in re.findall(r"\(\w+|\)(?!/)|[^\s()]\S*?/[A-Z]+|[()]/[A-Z]+|\w+=\w+", tree):
            if piece == ")":
                rows[opened.pop()][3] = len(words)
            elif "=" in piece:
                name, _, value = piece.partition("=")
                rows[opened[-1]][4][name] = value
            elif piece.startswith("(") and "/" not in piece:
                rows.append([opened[-1] if opened else -1, piece[1:], len(words), 0, {}])
                opened.append(len(rows) - 1)
            else:
                word, _, tag = piece.rpartition("/")
                words.append(word)
                pos.append(tag)
        lengths.append(len(words))
    ends = [len(" ".join(words[: place + 1])) for place in range(len(words))]
    tokens = [(end - len(word), end) for word, end in zip(words, ends, strict=True)]
    firsts = [0, *lengths[:-1]]
    sentences = [(tokens[first][0], tokens[end - 1][1]) for first, end in zip(firsts, lengths, strict=True)]
    meta = {"columns": {"1": pos}, "constituents": rows, "split": "train"}
    return Document.make(" ".join(words), id="17", meta=meta, tokens=tokens, sentences=sentences)


def chunked(*trees: str) -> str:
    """The words with every chunk in square brackets."""
    doc = prepare(document(*trees))
    text = doc.text
    for span in reversed(doc.layer("chunks")):
        text = f"{text[: span.start]}[{span.label} {text[span.start : span.end]}]{text[span.end :]}"
    return text


CASES = {
    "base noun phrase": ("(NP the/DT human/JJ gene/NN)", "[NP the human gene]"),
    "determiner outside": ("(NP the/DT (NP GM-CSF/NN gene/NN))", "[NP the GM-CSF gene]"),
    "modifier in brackets": ("(NP (NP Oct-2/NN gene/NN) expression/NN)", "[NP Oct-2 gene expression]"),
    "adjectives": ("(NP (ADJP very/RB old/JJ) cells/NNS)", "[NP very old cells]"),
    "adverb before noun": ("(NP potentially/RB (NP negative/JJ genes/NNS))", "[NP potentially negative genes]"),
    "quantity": ("(NP (QP at/IN least/JJS two/CD) sites/NNS)", "[NP at least two sites]"),
    "apposition": ("(NP (NP the/DT factor/NN) (NP NFATc/NN))", "[NP the factor NFATc]"),
    "prepositional phrase": (
        "(NP (NP expression/NN) (PP of/IN (NP the/DT gene/NN)))",
        "[NP expression] [PP of] [NP the gene]",
    ),
    "adverb and preposition": ("(PP only/RB in/IN (NP cells/NNS))", "[ADVP only] [PP in] [NP cells]"),
    "not and preposition": ("(PP not/RB in/IN (NP cells/NNS))", "not [PP in] [NP cells]"),
    "compound preposition": ("(PP such/JJ as/IN (NP IL-2/NN))", "[PP such as] [NP IL-2]"),
    "adverb in a preposition": ("(PP rather/RB than/IN (NP IL-2/NN))", "[PP rather than] [NP IL-2]"),
    "noun in a preposition": (
        "(PP in/IN the/DT absence/NN of/IN (NP IL-2/NN))",
        "[PP in] [NP the absence] [PP of] [NP IL-2]",
    ),
    "coordinated noun phrases": (
        "(NP syn=COOD (NP the/DT gene/NN) and/CC (NP its/PRPP protein/NN))",
        "[NP the gene] and [NP its protein]",
    ),
    "coordinated single words": ("(NP syn=COOD both/CC (NP IL-2/NN) and/CC (NP IL-4/NN))", "[NP both IL-2 and IL-4]"),
    "shared noun": (
        "(NP syn=COOD (NP human/JJ T/NN (NP null=RNR)) and/CC (NP B/NN (NP null=RNR)) (NP cells/NNS))",
        "[NP human T and B cells]",
    ),
    "shared noun, two determiners": (
        "(NP syn=COOD (NP a/DT T/NN (NP null=RNR)) and/CC (NP a/DT B/NN (NP null=RNR)) (NP cell/NN))",
        "[NP a T] and [NP a B cell]",
    ),
    "shared noun in the last": (
        "(NP syn=COOD (NP T/NN (NP null=RNR)) and/CC (NP B/NN cells/NNS))",
        "[NP T and B cells]",
    ),
    "shared determiner, long conjuncts": (
        "(NP syn=COOD the/DT (NP first/JJ kinase/NN) and/CC (NP second/JJ kinase/NN))",
        "[NP the first kinase] and [NP second kinase]",
    ),
    "shared noun with a complement": (
        "(NP (NP T/NN (NP null=RNR)) or/CC (NP B/NN (NP null=RNR)) (NP (NP cells/NNS) (PP in/IN (NP mice/NNS))))",
        "[NP T or B cells] [PP in] [NP mice]",
    ),
    "shared noun after a long conjunction": (
        "(NP (NP T/NN (NP null=RNR)) (CONJP but/CC not/RB) (NP B/NN (NP null=RNR)) (NP (NP cells/NNS) (PP in/IN)))",
        "[NP T] [CONJP but not] [NP B cells] [PP in]",
    ),
    "determiner within": ("(NP half/NN (NP the/DT level/NN))", "[NP half] [NP the level]"),
    "noun phrase of time": ("(NP activity/NN (NP adv=TMP last/JJ year/NN))", "[NP activity] [NP last year]"),
    "quantity on its own": ("(PRN (/LRB (QP 1/CD to/TO 2/CD) )/RRB)", "( [NP 1 to 2] )"),
    "coordinated prepositional phrases": (
        "(PP syn=COOD (PP in/IN (NP A/NN)) or/CC (PP on/IN (NP B/NN)))",
        "[PP in] [NP A] or [PP on] [NP B]",
    ),
    "possessive": ("(NP (NP Hodgkin/NNP 's/POS) disease/NN)", "[NP Hodgkin] [NP 's disease]"),
    "passive with an adverb": (
        "(S (NP It/PRP) (VP was/VBD (ADVP strongly/RB) (VP induced/VBN (NP null=NONE) (PP by/IN (NP X/NN)))) ./PERIOD)",
        "[NP It] [VP was strongly induced] [PP by] [NP X] .",
    ),
    "adverb after the verb": ("(VP fell/VBD (ADVP slowly/RB))", "[VP fell] [ADVP slowly]"),
    "infinitive": (
        "(VP was/VBD (VP shown/VBN (S (NP null=NONE) (VP to/TO (VP bind/VB (NP DNA/NN))))))",
        "[VP was shown to bind] [NP DNA]",
    ),
    "infinitive of purpose": (
        "(VP was/VBD (VP used/VBN (NP null=NONE) (S (NP null=NONE) (VP to/TO (VP bind/VB (NP DNA/NN))))))",
        "[VP was used] [VP to bind] [NP DNA]",
    ),
    "in order to": (
        "(SBAR in/IN order/NN to/TO (S (NP null=NONE) (VP bind/VB (NP DNA/NN))))",
        "[SBAR in] order [VP to bind] [NP DNA]",
    ),
    "coordinated verbs": (
        "(VP was/VBD (VP syn=COOD (VP cloned/VBN (NP null=NONE)) and/CC (VP mapped/VBN (NP null=NONE))))",
        "[VP was cloned and mapped]",
    ),
    "coordinated verb phrases": (
        "(VP syn=COOD (VP binds/VBZ (NP DNA/NN)) and/CC (VP is/VBZ (ADJP active/JJ)))",
        "[VP binds] [NP DNA] and [VP is] [ADJP active]",
    ),
    "complementiser": (
        "(VP show/VBP (SBAR that/IN (S (NP it/PRP) (VP binds/VBZ))))",
        "[VP show] [SBAR that] [NP it] [VP binds]",
    ),
    "conjunction of a clause": (
        "(S (S (NP A/NN) (VP rose/VBD)) ,/COMMA whereas/IN (NP B/NN) (VP fell/VBD))",
        "[NP A] [VP rose] , [SBAR whereas] [NP B] [VP fell]",
    ),
    "relative clause": (
        "(NP (NP genes/NNS) (SBAR (WHNP that/WDT) (S (NP null=T) (VP act/VBP))))",
        "[NP genes] [NP that] [VP act]",
    ),
    "when": ("(SBAR (WHADVP when/WRB) (S (NP it/PRP) (VP acts/VBZ)))", "[ADVP when] [NP it] [VP acts]"),
    "when without a bracket": ("(SBAR when/WRB (S (NP it/PRP) (VP acts/VBZ)))", "[ADVP when] [NP it] [VP acts]"),
    "adverbial clause": (
        "(VP grew/VBD (S func=ADV (NP null=NONE) (VP using/VBG (NP it/PRP))))",
        "[VP grew] [VP using] [NP it]",
    ),
    "predicative adjective": (
        "(VP is/VBZ not/RB (ADJP role=PRD (ADVP very/RB) stable/JJ (PP in/IN (NP cells/NNS))))",
        "[VP is] not [ADJP very stable] [PP in] [NP cells]",
    ),
    "adjective after the noun": (
        "(NP (NP genes/NNS) (ADJP responsible/JJ (PP for/IN (NP it/PRP))))",
        "[NP genes] [ADJP responsible] [PP for] [NP it]",
    ),
    "abbreviation": (
        "(NP (NP interleukin/NN 2/CD) (PRN (/LRB (NP IL-2/NN) )/RRB))",
        "[NP interleukin 2] ( [NP IL-2] )",
    ),
    "abbreviation under a determiner": (
        "(NP the/DT (NP (NP long/JJ repeat/NN) (PRN (/LRB (NP LR/NN) )/RRB)))",
        "[NP the long repeat] ( [NP LR] )",
    ),
    "abbreviation before the noun": (
        "(NP (NP (NP long/JJ repeat/NN) (PRN (/LRB (NP LR/NN) )/RRB)) gene/NN)",
        "[NP long repeat ( LR ) gene]",
    ),
    "brackets at the end of a flat phrase": ("(NP the/DT defect/NN (/LRB s/NNS )/RRB)", "[NP the defect ( s )]"),
    "list item": ("(S (LST (/LRB 1/LS )/RRB) (NP it/PRP) (VP binds/VBZ))", "( [LST 1] ) [NP it] [VP binds]"),
    "conjunction of several words": (
        "(NP (NP the/DT gene/NN) (CONJP as/RB well/RB as/IN) (NP DNA/NN))",
        "[NP the gene] [CONJP as well as] [NP DNA]",
    ),
    "particle": ("(VP carried/VBD (PRT out/RP) (NP it/PRP))", "[VP carried] [PRT out] [NP it]"),
    "inverted verb": (
        "(SINV (CONJP not/RB only/RB) does/VBZ (NP it/PRP) (VP bind/VB))",
        "[CONJP not only] does [NP it] [VP bind]",
    ),
}


@pytest.mark.parametrize(("tree", "expected"), CASES.values(), ids=CASES)
def test_chunks_are_those_a_reader_would_mark(tree: str, expected: str) -> None:
    assert chunked(tree) == expected


def test_a_chunk_takes_no_word_of_the_sentence_before() -> None:
    assert chunked("(S (NP it/PRP) to/TO)", "(VP bind/VB (NP DNA/NN))") == "[NP it] to [VP bind] [NP DNA]"


def test_rows_of_the_reader_give_one_tag_per_token_and_chunks_on_token_edges() -> None:
    rows = [[-1, "S", 0, 4, {}], [0, "NP", 0, 2, {}], [0, "VP", 2, 3, {}], [2, "NP", 3, 3, {"null": "NONE"}]]
    meta = {"columns": {"1": ["PRPP", "NN", "VBD", "PERIOD"]}, "constituents": rows, "split": "dev"}
    tokens = [(0, 3), (4, 8), (9, 13), (13, 14)]
    layers = {"constituents": [Span(0, 8, "NP")]}
    raw = Document.make("Its gene fell.", id="42", layers=layers, meta=meta, tokens=tokens, sentences=[(0, 14)])
    doc = prepare(raw)
    assert doc.layers == {
        "pos": (Span(0, 3, "PRP$"), Span(4, 8, "NN"), Span(9, 13, "VBD"), Span(13, 14, ".")),
        "chunks": (Span(0, 8, "NP"), Span(9, 13, "VP")),
    }
    assert (doc.text, doc.tokens.tolist(), doc.sentences.tolist()) == (raw.text, raw.tokens.tolist(), [[0, 14]])
    assert (doc.id, doc.group, doc.given, doc.meta) == ("42", None, True, {"split": "dev"})


def test_an_empty_phrase_has_no_chunk_and_a_document_without_sentences_no_layers_but_empty_ones() -> None:
    assert chunked("(S (NP null=NONE) (VP (VP null=QSTN) fell/VBD (NP null=T)))") == "[VP fell]"
    empty = Document.make("", id="7", meta={"columns": {"1": []}, "constituents": []}, tokens=[], sentences=[])
    assert prepare(empty).layers == {"pos": (), "chunks": ()}


LABELS = ["S", "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRN", "QP", "WHNP", "UCP", "CONJP", "LST", "FRAG"]
TAGS = ["NN", "DT", "JJ", "VBD", "TO", "VB", "IN", "CC", "COMMA", "LRB", "RRB", "RB", "POS", "CD", "LQT", "RQT", "WRB"]
WORDS = st.builds("{}/{}".format, st.sampled_from(["a", "not", "both", "as"]), st.sampled_from(TAGS))
EMPTY = st.builds("({} null={})".format, st.sampled_from(LABELS), st.sampled_from(["NONE", "RNR"]))
TREES = st.recursive(
    WORDS | EMPTY,
    lambda inner: st.builds(
        lambda label, items: f"({label} {' '.join(items)})",
        st.sampled_from(LABELS),
        st.lists(inner, min_size=1, max_size=5),
    ),
    max_leaves=25,
)


@given(st.lists(TREES.map("(S a/DT {})".format), min_size=1, max_size=3))
def test_chunks_never_overlap_nor_cross_sentences_and_lie_on_token_edges(trees: list[str]) -> None:
    raw = document(*trees)
    doc = prepare(raw)
    starts, ends = set(doc.tokens[:, 0].tolist()), set(doc.tokens[:, 1].tolist())
    chunks = doc.layer("chunks")
    assert all(chunk.start in starts and chunk.end in ends for chunk in chunks)
    assert all(one.end <= other.start for one, other in pairwise(chunks))
    sentences = doc.sentences.tolist()
    assert all(any(start <= chunk.start and chunk.end <= end for start, end in sentences) for chunk in chunks)
    assert [[span.start, span.end] for span in doc.layer("pos")] == doc.tokens.tolist()
    assert prepare(raw) == doc  # the trees of the document are left as they were


@pytest.mark.parametrize(
    ("raw", "penn"), [("COLON", ":"), ("RRB", ")"), ("LQT", "``"), ("RQT", "''"), ("WPP", "WP$"), ("NN|NNS", "NN")]
)
def test_tags_have_the_names_of_the_penn_treebank(raw: str, penn: str) -> None:
    assert penn_tag(raw) == penn


@pytest.mark.parametrize("meta", [{}, {"columns": {"1": ["NN"]}}, {"columns": {"1": []}, "constituents": []}])
def test_a_document_without_trees_is_refused_without_its_words(meta: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="42: has no trees") as caught:
        prepare(Document.make("canary", id="42", meta=meta))
    assert "canary" not in str(caught.value)


def test_the_corpus_leaves_out_abstracts_without_brackets_and_holds_out_a_tenth(tmp_path: Path) -> None:
    xml = """<Annotation><PubmedArticle><PMID>{}</PMID><Article><ArticleTitle><sentence id="S1"><cons cat="NP">\
<tok cat="NN">Foo</tok></cons></sentence></ArticleTitle></Article></PubmedArticle></Annotation>"""
    folder = tmp_path / "genia-treebank"
    folder.mkdir()
    tar_gz(folder / "genia.tar.gz", {f"G/{name}.xml": xml.format(name) for name in ("42", "107", "10229820")})
    docs = sorted(corpus(tmp_path), key=lambda doc: int(doc.id))
    assert [(doc.id, held_out(doc)) for doc in docs] == [("42", False), ("107", True)]
    assert docs[0].layer("chunks") == (Span(0, 3, "NP"),)
