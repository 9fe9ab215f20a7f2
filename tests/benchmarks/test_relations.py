"""The relations benchmark: the publication's comparison, its intervals, and invented documents."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from benchmarks.relations import data, generated
from benchmarks.relations import published as comparison

from chaffinch import PhraseHMM
from chaffinch.models.phrasehmm.segments import add_parses
from chaffinch.relations.candidates import candidates


def curve(right: list[bool], document: list[int], stated: list[int]) -> comparison.Curve:
    return comparison.Curve(np.array(right, bool), np.array(document), np.array(stated), 0.0)


def test_every_model_of_the_publication_is_compared_with_both_null_models() -> None:
    models = comparison.comparison((True,), "tuples")
    assert len({one.name for one in models}) == len(models) == 10
    by_name = {(one.representation, one.null, one.training): one.config() for one in models}
    assert by_name["token 2", "separate", comparison.ML] == PhraseHMM.published("token 2")
    krogh = by_name["phrase", "combined", comparison.KROGH]
    assert krogh == PhraseHMM.published("phrase", combined=True, trainer="krogh")
    ours = by_name["phrase", "combined", comparison.OURS]
    assert (ours.update, ours.held_out > 0, krogh.update, krogh.held_out) == ("exponentiated", True, "plain", 0.0)


def test_the_end_point_and_its_intervals_of_documents_that_are_alike_and_that_differ() -> None:
    alike = curve([True, False] * 6, [n // 2 for n in range(12)], [2] * 6)
    assert alike.rates() == (0.5, 0.5, 0.5)
    assert alike.intervals() == [(0.5, 0.5)] * 3
    differing = curve([True, True, False, False], [0, 0, 1, 1], [2, 2])
    (low, high), *_ = differing.intervals()
    assert (low, high) == (0.0, 1.0)


def test_a_band_ends_where_most_draws_end_and_holds_the_curve() -> None:
    rng = np.random.default_rng(3)
    found = curve((rng.random(200) < 0.6).tolist(), rng.integers(40, size=200).tolist(), [6] * 40)
    band = found.band()
    assert 0 < band[-1][0] < 0.6
    inside = [
        low <= precision <= high for recall, precision in found.points() for level, low, high in band
        if abs(level - recall) < 0.005
    ]  # fmt: skip
    assert inside
    assert all(inside)


def test_training_labels_by_tuples_are_found_in_other_documents() -> None:
    first, second = generated.documents(2, seed=3)
    bare = second.__class__.make(second.text, id="bare", layers={"gold": second.layer("gold")})
    labelled = comparison.by_tuples([first, second, bare], generated.MOVES)
    stated = [own.arguments for own in second.relations]
    assert stated
    assert set(stated) <= {own.arguments for own in labelled[2].relations}


def test_invented_sentences_state_what_their_words_say() -> None:
    for doc in generated.documents(30, seed=5):
        for sentence, (start, end) in enumerate(doc.sentences.tolist()):
            text = doc.text[start:end]
            moves = (
                any(verb in text for verb in ("move", "transported", "exported", "relocate")) and "never" not in text
            )
            found = [own for own in candidates(doc, generated.MOVES) if own.sentence == sentence]
            assert any(own.stated for own in found) == moves
            assert sum(own.stated for own in found) == (2 if "Both" in text else int(moves))
            assert all("stays" not in doc.text[own.spans[0].end : own.spans[0].end + 6] for own in found if own.stated)


def test_pairs_are_counted_in_the_corpus_itself(tmp_path: Path) -> None:
    entity = '<entity id="e{0}" charOffset="{0}-{1}" text="x" type="protein"/>'
    sentence = "<sentence>" + "".join(entity.format(n, n + 1) for n in range(4)) + "</sentence>"
    text = f"<corpus><document>{sentence}<sentence>{entity.format(0, 1)}</sentence></document></corpus>"
    (tmp_path / "ppi-5corpora").mkdir()
    (tmp_path / "ppi-5corpora" / "LLL-train.xml.gz").write_bytes(gzip.compress(text.encode()))
    assert data.own_pairs(tmp_path, "LLL") == 6
    assert data.own_pairs(tmp_path, "IEPA") == 0


def test_a_part_of_a_sample_has_its_own_name_and_keeps_the_folds() -> None:
    docs = generated.documents(6)
    sample = data.Sample("x", docs, generated.MOVES, list(range(6)))
    part = sample.some(4)
    assert part.name == "x, 4 sentences"
    assert [doc.id for doc in part.docs] == [docs[n].id for n in part.fold]
    assert part.groups == [doc.id for doc in part.docs]
    assert sample.some(9).name == "x"


@pytest.mark.parametrize("masked", [True, False])
def test_a_model_is_measured_on_documents_with_known_truth(masked: bool) -> None:
    docs = add_parses(generated.documents(20))
    sample = data.Sample("invented", docs, generated.MOVES, [0] * 20)
    found = comparison.measure(sample, comparison.Compared("phrase", "separate", comparison.ML, "corpus", masked))
    assert int(found.stated.sum()) == sum(len(doc.relations) for doc in docs)
    assert found.rates()[2] > 0.5
    row = comparison.row("invented", comparison.Compared("phrase", "separate", "counts", "corpus", masked), found)
    assert row["F1"] == round(found.rates()[2], 4)
