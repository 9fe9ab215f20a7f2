"""The tagger's benchmark: the peer sees the published features, and the table says what was measured."""

from __future__ import annotations

from benchmarks.tagger import benchmark as tagger
from benchmarks.tagger import peers as _tagger_peers
from benchmarks.tagger import worker as _tagger

from chaffinch import Document


def test_the_peer_sees_the_published_features() -> None:
    first, second = _tagger_peers.features(["NF-kappa", "B"])
    assert {"w0=NF-kappa", "w1=B", "w-1=<s>", "w2=</s>", "w01=NF-kappa|B", "w-2-10=<s>|<s>|NF-kappa"} <= set(first)
    assert {"0c=AA_aaaaa", "0b=A_a", "0l=8", "0C1", "0S0", "p=NF-ka", "s=kappa", "1c=A", "1l=1"} <= set(first)
    assert "-1c=AA_aaaaa" in second
    assert len([name for name in second if name.startswith(("p=", "s="))]) == 2


def test_copies_of_an_abstract_are_known_by_their_letters() -> None:
    one, other = Document.make("IL-2 gene expression ."), Document.make("IL-2 gene  expression.")
    assert _tagger.same_text(one) == _tagger.same_text(other) != _tagger.same_text(Document.make("IL-4 gene."))


def test_a_row_shows_the_score_with_its_interval_and_without_the_leak() -> None:
    found = {"F1": 72.0, "low": 70.0, "high": 74.0}
    assert tagger._row(found)["interval"] == "70.0–74.0"
    leaked = {"F1 without leaked": 71.0, "low without leaked": 69.0, "high without leaked": 73.0}
    assert tagger._row({**found, **leaked})["without leaked"] == "71.0 (69.0–73.0)"
