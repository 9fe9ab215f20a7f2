"""The HMM of many sources against listing every path, and on votes whose truth is known."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch.bundle import Manifest, load, save
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.kernels import forward_backward, log_partition
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.chains import REACH, Chains, may_be_inside, token_potentials
from chaffinch.models.votes.multihmm.fit import Model, MultiHMM, estimates, fit
from chaffinch.models.votes.multihmm.patterns import observe, states
from chaffinch.models.votes.multihmm.tables import Belief, SourceWeights, VoteTables, log_prior
from chaffinch.models.votes.multihmm.weights import prefers_voted_entities
from tests.models.votes.votes import by_hand, drawn

STATES = ("O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B")


def random_model(rng: np.random.Generator, sources: int, *, silence: float, voted: bool, rules: int = 0) -> Model:
    """A model of tables drawn at random, for labels A and B."""
    trans = np.array([[rng.random() if may_follow(a, b) else 0.0 for b in STATES] for a in STATES])
    tables = VoteTables(
        trans / trans.sum(axis=1, keepdims=True), rng.uniform(0.05, 0.95, (sources, 9)),
        rng.dirichlet(np.ones(3), (sources, 2)), rng.dirichlet(np.ones(4), (sources, 4)),
        rng.dirichlet(np.ones(9), sources), rng.uniform(0.6, 0.95, (rules, 2)),
    )  # fmt: skip
    weights = SourceWeights(rng.uniform(0.3, 1.0, sources), np.full(sources, silence), voted)
    names = tuple(f"s{k}" for k in range(sources))
    return Model(MultiHMM(decode="viterbi"), ("A", "B"), names, tuple("xyz"[:rules]), tables, weights, np.zeros(0))


def may_follow(a: str, b: str) -> bool:
    if a[0] in "BI":
        return b[0] in "IE" and a[1:] == b[1:]
    return b[0] in "OBS"


def said(vote_matrix: VoteMatrix) -> list[list[str]]:
    """What every source says of every token, told from the codes in plain Python."""
    out = []
    for k in range(len(vote_matrix.sources)):
        tags = ["" if code < 0 else vote_matrix.labels.tags[code] for code in vote_matrix.codes[:, k].tolist()]
        own = []
        for t, tag in enumerate(tags):
            if tag in ("", "O"):
                own.append(tag)
                continue
            goes_on = t + 1 < len(tags) and tags[t + 1] == "I" + tag[1:] and t + 1 not in vote_matrix.bounds
            own.append({"B": "BS", "I": "IE"}[tag[0]][not goes_on] + tag[1:])
        out.append(own)
    return out


def log_score(model: Model, vote_matrix: VoteMatrix, votes: list[list[str]], path: list[str], at: int) -> float:
    """The log-potential of one path of states over the sentence that begins at a token; -inf if it cannot be."""
    tables, weights, score, before = model.tables, model.weights, 0.0, "O"
    for t, state in enumerate(path, start=at):
        if not may_follow(before, state):
            return -math.inf
        i, spoken = STATES.index(state), any(own[t] for own in votes)
        score += math.log(tables.trans[STATES.index(before), i])
        if weights.voted_is_entity and state == "O" and any(own[t] not in ("", "O") for own in votes):
            return -math.inf
        near = range(max(at, t - REACH), min(at + len(path), t + REACH + 1))
        said_near = any(own[u] for own in votes for u in near) or any(
            any(vote_matrix.links[u].tolist()) for u in near if vote_matrix.rules
        )
        if not weights.reading and state != "O" and not said_near:
            return -math.inf
        linked = vote_matrix.rules and t > at and any(vote_matrix.links[t].tolist())
        if weights.reading and state != "O" and not linked and all(own[t] in ("", "O") for own in votes):
            return -math.inf
        for k, own in enumerate(votes):
            if not own[t]:
                silent = weights.silence[k] if spoken else 1.0
                score += weights.sources[k] * silent * math.log(1 - tables.rates[k, i])
                continue
            j = STATES.index(own[t])
            if i == 0:
                chance = tables.outside[k, j]
            elif j == 0:
                chance = tables.types[k, (i - 1) // 4, 0]
            else:
                chance = tables.types[k, (i - 1) // 4, 1 + (j - 1) // 4] * tables.letters[k, (i - 1) % 4, (j - 1) % 4]
            score += weights.sources[k] * math.log(tables.rates[k, i] * chance)
        for r, word in enumerate(vote_matrix.links[t].tolist() if vote_matrix.rules and t > at else []):
            if word:
                right = tables.links[r, 0 if word == 1 else 1]
                score += math.log(right if (state[0] in "IE") == (word == 1) else 1 - right)
        before = state
    return score if before[0] in "OES" else -math.inf


def listed(model: Model, vote_matrix: VoteMatrix) -> tuple[np.ndarray, list[int], float]:
    """Marginals of tags (T, 5), the best tags and the log-likelihood, from every path of every sentence."""
    tags = ("O", "B-A", "I-A", "B-B", "I-B")
    coarse = {name: tags.index(name.replace("S-", "B-").replace("E-", "I-")) for name in STATES}
    chances, best, total, votes = np.zeros((len(vote_matrix), 5)), [], 0.0, said(vote_matrix)
    for at, end in itertools.pairwise(vote_matrix.bounds.tolist()):
        paths = [
            (log_score(model, vote_matrix, votes, list(p), at), p) for p in itertools.product(STATES, repeat=end - at)
        ]
        top = max(paths, key=lambda own: own[0])
        z = math.fsum(math.exp(score - top[0]) for score, _ in paths)
        for score, path in paths:
            for t, state in enumerate(path, start=at):
                chances[t, coarse[state]] += math.exp(score - top[0]) / z
        best += [coarse[state] for state in top[1]]
        total += top[0] + math.log(z)
    return chances, best, total


@pytest.mark.parametrize("silence", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("voted", [True, False])
@pytest.mark.parametrize("reading", [True, False])
def test_agrees_with_listing_every_path(silence: float, voted: bool, reading: bool) -> None:
    rng = np.random.default_rng(5)
    spans = {"s0": [(0, 2, "A"), (5, 6, "B")], "s1": [(1, 2, "B"), (3, 4, "O")], "s2": [(3, 6, "A")]}
    votes = by_hand(7, spans, bounds=(3,))
    links = np.zeros((7, 2), np.int8)
    links[[1, 3, 5], [0, 0, 1]] = 1, 1, -1  # that on token 3 is on a sentence's first
    votes = replace(votes, rules=("x", "y"), links=links, documents=np.array([0, 7]))
    model = random_model(rng, 3, silence=silence, voted=voted, rules=2)
    model = replace(model, weights=replace(model.weights, reading=reading))
    found, (chances, best, total) = model.posterior(votes), listed(model, votes)
    np.testing.assert_allclose(found.chances, chances, rtol=0, atol=1e-9)
    assert found.tags.tolist() == best
    np.testing.assert_allclose(found.log_likelihood, [total], rtol=0, atol=1e-9)


@pytest.mark.parametrize("reading", [True, False])
def test_stretches_agree_with_whole_sentences(reading: bool) -> None:
    rng, size = np.random.default_rng(8), 120
    spans = {f"s{k}": [(a, a + 1 + int(rng.integers(3)), "ABO"[rng.integers(3)]) for a in range(5, 115, 37 + k)]
             for k in range(2)}  # fmt: skip
    votes = by_hand(size, spans, bounds=(1, 2, 30, 31, 60, 90))
    soft = np.zeros((size, 5))
    soft[70:75] = rng.dirichlet(np.ones(5), 5)
    codes = np.concatenate([votes.codes, np.where(soft.sum(axis=1) > 0, soft.argmax(axis=1), -1)[:, None]], axis=1)
    votes = replace(votes, sources=("s0", "s1", "s2"), codes=codes.astype(np.int16), soft={"s2": soft})
    model, seen = random_model(rng, 3, silence=1.0, voted=False), observe(votes)
    weights = replace(model.weights, reading=reading)
    own = Chains.of(model.tables, weights, votes, seen)
    assert 20 < len(own.outside) == size - len(own.tokens)
    emit = token_potentials(model.tables, weights, seen, votes.bounds)
    found, full = forward_backward(own.batch), forward_backward(replace(own.batch, emit=emit, bounds=votes.bounds))
    np.testing.assert_allclose(found.states, full.states[own.tokens], rtol=0, atol=1e-12)
    np.testing.assert_allclose(full.states[own.outside, 0], 1.0, rtol=0, atol=1e-12)
    by_sentence = own.log_likelihoods(found.log_z, votes.bounds)
    np.testing.assert_allclose(by_sentence, full.log_z, rtol=0, atol=1e-9)


def test_who_may_be_inside() -> None:
    votes = by_hand(40, {"s0": [(1, 2, "A"), (22, 23, "O")]}, bounds=(10,))
    seen, ones = observe(votes), np.ones(1)
    reading = may_be_inside(SourceWeights(ones, ones, reading=True), seen, votes.bounds)
    learning = may_be_inside(SourceWeights(ones, ones), seen, votes.bounds)
    assert np.flatnonzero(reading).tolist() == [1]
    assert np.flatnonzero(learning).tolist() == [*range(8), *range(16, 29)]


def test_log_likelihood_is_per_document() -> None:
    votes = by_hand(6, {"s0": [(0, 2, "A"), (4, 5, "B")]}, bounds=(3,))
    model = random_model(np.random.default_rng(1), 1, silence=1.0, voted=False)
    alone = [model.posterior(votes.part(np.array([d]))).log_likelihood[0] for d in (0, 1)]
    np.testing.assert_allclose(model.posterior(votes).log_likelihood, alone, rtol=0, atol=1e-12)


def test_without_any_vote_all_is_outside() -> None:
    for votes in (by_hand(5, {}), by_hand(5, {}, names=()), by_hand(0, {}), by_hand(5, {"s0": []})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit(votes)
        found = model.posterior(votes)
        assert found.tags.tolist() == [0] * len(votes)
        assert found.chances.shape == (len(votes), 1 + 2 * len(votes.names))
        assert np.isfinite(found.log_likelihood).all()


def test_one_source_is_believed() -> None:
    votes, tags = drawn(np.random.default_rng(2), recall=(1.0,), stray=(0.0,), sentences=60)
    assert fit(votes).posterior(votes).tags.tolist() == tags.tolist()


def test_neighbouring_spans_of_a_source_stay_two() -> None:
    spans = [(start, start + 1, "A") for start in (0, 1, 5, 8)]
    votes = by_hand(10, {"s0": spans, "s1": spans[:2]})
    assert fit(votes).posterior(votes).tags.tolist() == [1, 1, 0, 0, 0, 1, 0, 0, 1, 0]


def test_a_source_that_never_speaks_is_dropped_with_a_warning() -> None:
    votes = by_hand(8, {"mute": [], "s1": [(1, 3, "A")], "s2": [(1, 3, "A"), (5, 6, "B")]})
    with pytest.warns(UserWarning, match="never speak are left out: mute"):
        model = fit(votes)
    assert model.sources == ("s1", "s2")
    want = fit(votes.choose(["s1", "s2"])).posterior(votes)
    np.testing.assert_array_equal(model.posterior(votes).chances, want.chances)


def test_a_label_that_no_source_uses_is_not_found() -> None:
    votes, tags = drawn(np.random.default_rng(3), recall=(0.8, 0.8), stray=(0.01, 0.01), sentences=100)
    wide = replace(votes, names=("A", "B", "C"))
    found = fit(wide).posterior(wide)
    assert found.tags.max() <= 4
    assert (found.tags == tags).mean() > 0.9


def test_the_order_of_sources_changes_nothing() -> None:
    votes, _ = drawn(np.random.default_rng(4), recall=(0.9, 0.6, 0.4), stray=(0.02, 0.0, 0.1), sentences=80)
    turned = votes.choose(["s2", "s0", "s1"])
    one, other = fit(votes), fit(turned)
    np.testing.assert_allclose(one.posterior(votes).chances, other.posterior(turned).chances, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.weights.sources, other.weights.sources[[1, 2, 0]], rtol=0, atol=1e-9)


def test_the_order_of_labels_changes_nothing() -> None:
    votes, _ = drawn(
        np.random.default_rng(4), recall=(0.9, 0.6), stray=(0.02, 0.1), confused=(0.2, 0.3), sentences=80
    )  # fmt: skip
    swap = np.array([0, 3, 4, 1, 2, -1])
    turned = replace(votes, names=("B", "A"), codes=swap[votes.codes].astype(np.int16))
    one, other = fit(votes).posterior(votes), fit(turned).posterior(turned)
    np.testing.assert_allclose(one.chances, other.chances[:, swap[:5]], rtol=0, atol=1e-9)


def test_copies_of_a_source_count_as_one() -> None:
    votes, _ = drawn(np.random.default_rng(6), recall=(0.7, 0.6, 0.5), stray=(0.05, 0.02, 0.1), sentences=80)
    more = replace(votes, sources=("s0", "s1", "s2", "copy"), codes=votes.codes[:, [0, 1, 2, 2]])
    one, two = fit(votes), fit(more)
    np.testing.assert_allclose(two.posterior(more).chances, one.posterior(votes).chances, rtol=0, atol=1e-6)
    np.testing.assert_allclose(two.weights.sources[2:].sum(), one.weights.sources[2], rtol=0, atol=1e-9)
    trusting = MultiHMM(dependence=False)
    double = fit(more, trusting).posterior(more).chances - fit(votes, trusting).posterior(votes).chances
    assert np.abs(double).max() > 0.01


def test_near_copies_weigh_less_than_sources_of_their_own() -> None:
    rng = np.random.default_rng(7)
    votes, _ = drawn(rng, recall=(0.7, 0.7, 0.7), stray=(0.05, 0.05, 0.05))
    near = np.where(rng.random(len(votes)) < 0.05, -1, votes.codes[:, 2]).astype(np.int16)
    more = replace(votes, sources=(*votes.sources, "near"), codes=np.column_stack([votes.codes, near]))
    weights = fit(more).weights.sources
    assert weights[:2].min() > 0.8
    assert weights[2:].max() < 0.65


def test_planted_reliabilities_are_recovered() -> None:
    recall, stray, confused = (0.9, 0.6, 0.7), (0.0, 0.01, 0.03), (0.0, 0.05, 0.25)
    rng, size = np.random.default_rng(8), 24_000
    tags = rng.choice([0, 1, 3], size, p=[0.8, 0.1, 0.1])
    codes = np.full((size, 3), -1, np.int16)
    for k in range(3):
        said = np.where(rng.random(size) < confused[k], 4 - tags, tags)
        found = (tags > 0) & (rng.random(size) < recall[k])
        codes[found, k] = said[found]
        wrong = (tags == 0) & (rng.random(size) < stray[k])
        codes[wrong, k] = rng.choice([1, 3], wrong.sum())
    bounds = np.arange(0, size + 1, 12)
    votes = VoteMatrix(("s0", "s1", "s2"), ("A", "B"), codes, bounds, bounds)
    model = fit(votes, MultiHMM(dependence=False, passes=100, trust=0.05))
    for k, own in enumerate(multihmm.estimates(model, votes)):
        right = votes.codes[:, k] == tags
        for label, tag in enumerate((1, 3)):
            np.testing.assert_allclose(own.rates[tag], recall[k], rtol=0, atol=0.03)
            np.testing.assert_allclose(own.confusion[tag, tag], 1 - confused[k], rtol=0, atol=0.03)
            says, true = votes.codes[:, k] == tag, tags == tag
            for precision in (own.span_precision, own.token_precision):
                np.testing.assert_allclose(precision[label], right[says].mean(), rtol=0, atol=0.03)
            for found_by in (own.span_recall, own.token_recall):
                np.testing.assert_allclose(found_by[label], right[true].mean(), rtol=0, atol=0.03)
        np.testing.assert_allclose(own.rates[0], (votes.codes[:, k] >= 0)[tags == 0].mean(), rtol=0, atol=0.005)


def test_em_never_lowers_its_objective() -> None:
    for seed, dependence in itertools.product(range(3), (True, False)):
        votes, _ = drawn(
            np.random.default_rng(seed), recall=(0.8, 0.5, 0.3), stray=(0.1, 0.02, 0.2), confused=(0.1, 0.3, 0.2),
            sentences=60,
        )  # fmt: skip
        trace = fit(votes, MultiHMM(passes=25, dependence=dependence)).trace
        assert len(trace) == 24
        assert np.diff(trace).min() > -1e-7


def test_em_ends_where_no_small_change_of_the_tables_is_better() -> None:
    rng = np.random.default_rng(17)
    votes, _ = drawn(rng, recall=(0.8, 0.5), stray=(0.1, 0.05), confused=(0.1, 0.3), sentences=40)
    links = rng.integers(-1, 2, (len(votes), 1)).astype(np.int8)
    votes = replace(votes, rules=("x",), links=links)
    model, seen = fit(votes, MultiHMM(passes=1500, dependence=False, trust=1.0)), observe(votes)
    labels, belief, weights = states(votes.names), Belief(10.0, 1.0), replace(model.weights, reading=False)

    def objective(tables: VoteTables) -> float:
        own = Chains.of(tables, weights, votes, seen)
        likely = log_partition(own.batch).sum() + own.sure.sum()
        return float(likely) + log_prior(tables, weights, seen, labels, belief)

    best = objective(model.tables)
    for name in ("trans", "types", "letters", "outside", "rates", "links"):
        table = getattr(model.tables, name)
        for sign in (1, -1):
            for _ in range(5):
                moved = table * np.exp(sign * 0.01 * rng.normal(size=table.shape))
                if name in ("rates", "links"):
                    moved = moved / (moved + (1 - table))
                else:
                    moved = moved / moved.sum(axis=-1, keepdims=True)
                assert objective(replace(model.tables, **{name: moved})) < best + 1e-6, name


def test_silence_is_chosen_on_held_out_documents_without_gold() -> None:
    votes, _ = drawn(
        np.random.default_rng(9), recall=(0.95, 0.9, 0.9, 0.05), stray=(0.0, 0.1, 0.1, 0.0), longest=1
    )  # fmt: skip
    chosen = fit(votes, MultiHMM(silence="held-out", trust=0)).weights.silence
    assert chosen[0] == 1  # where it is silent the others are astray
    told = fit(votes, MultiHMM(silence="held-out", trust=0, negative_reliable=("s1", "s3"))).weights.silence
    assert told.tolist() == [chosen[0], 1, chosen[2], 1]


def test_voted_tokens_are_entities_where_that_foretells_votes_better() -> None:
    model = random_model(np.random.default_rng(0), 2, silence=1.0, voted=False)
    rates = np.full((2, 9), 0.9)
    rates[:, 0] = 0.3  # it believes in much noise
    tables, weights, prior = (
        replace(model.tables, rates=rates),
        SourceWeights(np.ones(2), np.ones(2)),
        np.full(9, 1 / 9),
    )
    together = observe(by_hand(3, {"s0": [(0, 1, "A"), (2, 3, "A")], "s1": [(0, 1, "A"), (2, 3, "A")]}))
    apart = observe(by_hand(3, {"s0": [(0, 1, "A")], "s1": [(2, 3, "A")]}))
    certain = replace(tables, types=np.tile([0.0, 1.0, 0.0], (2, 2, 1)), letters=np.tile(np.eye(4), (2, 1, 1)) + 1e-9)
    certain = replace(certain, types=certain.types + 1e-9, outside=np.full((2, 9), 1 / 9))
    assert prefers_voted_entities(certain, weights, together, prior)
    assert not prefers_voted_entities(certain, weights, apart, prior)


def test_a_saved_model_reads_alike(tmp_path: Path) -> None:
    votes, _ = drawn(np.random.default_rng(11), recall=(0.8, 0.6), stray=(0.05, 0.02), sentences=50)
    model = fit(votes, MultiHMM(silence=0.5, negative_reliable=("s1",)))
    arrays, strings = dict(model.state().arrays), model.state().strings
    save(tmp_path / "m.cfm", Manifest("multihmm", asdict(model.config), model.names), arrays, strings)
    again = Model.of(load(tmp_path / "m.cfm").state)
    assert (again.config, again.sources, again.names) == (model.config, model.sources, model.names)
    for one, other in zip(model.posterior(votes), again.posterior(votes), strict=True):
        np.testing.assert_array_equal(one, other)
    save(tmp_path / "bad.cfm", Manifest("multihmm", asdict(model.config)), arrays | {"tables.rates": np.ones((1, 1))}, strings)  # fmt: skip # noqa: E501
    with pytest.raises(ModelError, match="do not fit"):
        Model.of(load(tmp_path / "bad.cfm").state)


def test_sources_that_know_no_label_have_estimates() -> None:
    votes = VoteMatrix(
        ("s0", "s1"), (), np.array([[0, 0], [0, -1], [-1, -1]], np.int16), np.array([0, 3]), np.array([0, 3])
    )
    found = estimates(fit(votes), votes)
    assert [own.source for own in found] == ["s0", "s1"]
    assert all(own.span_precision.shape == own.token_recall.shape == (0,) for own in found)
    assert all(own.confusion.tolist() == [[1.0]] for own in found)  # all there is to say is O
    nobody = VoteMatrix((), (), np.zeros((3, 0), np.int16), np.array([0, 3]), np.array([0, 3]))
    assert estimates(fit(nobody), nobody) == []


def test_same_votes_same_bytes() -> None:
    votes, _ = drawn(np.random.default_rng(12), recall=(0.8, 0.6), stray=(0.05, 0.02), sentences=50)
    one, other = (fit(votes).state().arrays for _ in range(2))
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_votes_with_other_labels_or_unknown_sources_are_refused() -> None:
    votes = by_hand(4, {"s0": [(0, 2, "A")]})
    model = fit(votes)
    with pytest.raises(DataError, match="labels"):
        model.posterior(replace(votes, names=("B", "A")))
    with pytest.raises(DataError, match="there is no source 's0'"):
        model.posterior(by_hand(4, {"other": [(0, 2, "A")]}))
    with pytest.raises(DataError, match="negative_reliable names 'who'"):
        fit(votes, MultiHMM(negative_reliable=("who",)))


@pytest.mark.parametrize(
    "wrong",
    [{"passes": 0}, {"silence": 2}, {"silence": "auto"}, {"voted_is_entity": "yes"}, {"certainty": 0}, {"trust": -1},
     {"decode": "best"}, {"threshold": -1}],
)  # fmt: skip
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        MultiHMM(**wrong)  # type: ignore[arg-type]
