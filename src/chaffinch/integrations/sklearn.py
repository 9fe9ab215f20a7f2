"""An estimator in the manner of scikit-learn and sklearn-crfsuite: token lists in, tag lists out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document
from chaffinch.text.tags import decode, encode

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingExtraError("scikit-learn", "sklearn") from None

LAYER = "gold"


class SequenceTagger(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types here
    """A tagger of token lists: X has a list of words for each sentence, y a list of tags (B-, I-, O) for each.

    `config` is a method's config (`cf.Cascade()`, `cf.HMMDP()`, …) or its name; None is the cascade. `groups` of `fit`
    are the patients of the sentences, which decide what enters a vocabulary.

    >>> sentences = [["Dr.", name, "came"] for name in ("Penn", "Lowe", "Hart", "Ford")]
    >>> tagger = SequenceTagger().fit(sentences, [["O", "B-DOCTOR", "O"]] * 4)
    >>> tagger.predict([["Dr.", "Bell", "came"]])
    [['O', 'B-DOCTOR', 'O']]
    """

    def __init__(self, config: Any = None) -> None:
        """Keep the config unchecked, as scikit-learn asks; `fit` checks it."""
        self.config = config

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]], groups: Any = None) -> SequenceTagger:
        """Train on sentences and tags, `groups` as patients; set `tagger_`, `classes_`; return self; or DataError."""
        if y is None:
            raise DataError("y is None, and a tagger learns from tags; give one list of tags for each sentence")
        sentences, tags = list(X), list(y)
        if len(sentences) != len(tags):
            raise DataError(
                f"X has {len(sentences):,} sentences and y has {len(tags):,}; give one list of tags for each"
            )
        patients = [None] * len(sentences) if groups is None else list(groups)
        if len(patients) != len(sentences):
            raise DataError(f"groups has {len(patients):,} entries for {len(sentences):,} sentences; give one for each")
        notes = []
        for doc, row in zip(_documents(sentences, patients), tags, strict=True):
            if len(row) != len(doc.tokens):
                raise DataError(f"sentence {doc.id} has {len(doc.tokens)} words and {len(row)} tags; give one for each")
            notes.append(doc.with_layer(LAYER, decode(list(row), doc.tokens)))
        self.tagger_: Tagger = train(notes, self.config)
        self.classes_ = sorted({tag for row in tags for tag in row} | {"O"})
        return self

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return a tag per word and sentence; NotFittedError before `fit`, DataError if X is no lists of words."""
        check_is_fitted(self)
        tagger = self.tagger_
        return [encode(doc.layer(tagger.layer), doc.tokens) for doc in tagger.annotate(_documents(list(X)))]

    def predict_marginals(self, X: Sequence[Sequence[str]]) -> list[list[dict[str, float]]]:
        """Return {"O" or label: chance} per word and sentence; NotFittedError if not fitted, or DataError."""
        check_is_fitted(self)
        tagger = self.tagger_
        found = [doc.soft[tagger.layer] for doc in tagger.posteriors(_documents(list(X)), name=tagger.layer)]
        return [
            [dict(zip(soft.labels, map(float, row), strict=True)) for row in soft.values.tolist()] for soft in found
        ]

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> float:
        """Return the share of words with the right tag, 0 without any; ValueError if X and y differ in lengths."""
        pairs = [
            (ours, theirs)
            for row, gold in zip(self.predict(X), y, strict=True)
            for ours, theirs in zip(row, gold, strict=True)
        ]
        return sum(ours == theirs for ours, theirs in pairs) / max(len(pairs), 1)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of the estimator: X holds strings, no table; y is required."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


def _is_list_of_words(value: object) -> bool:
    """Tell whether a value is an iterable, but no string, of strings that are not empty."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    return all(isinstance(word, str) and word for word in value)


def _documents(sentences: Iterable[Sequence[str]], patients: Sequence[Any] | None = None) -> list[Document]:
    """Return a document per sentence, its words as given tokens; DataError if one is no list of words."""
    made = []
    for number, words in enumerate(sentences):
        if not _is_list_of_words(words):
            raise DataError(
                f"sentence {number} is no list of words; X is a list of lists of strings that are not empty"
            )
        tokens, at = [], 0
        for word in words:
            tokens.append((at, at + len(word)))
            at += len(word) + 1
        patient = None if patients is None or patients[number] is None else str(patients[number])
        text = " ".join(words)
        made.append(
            Document.make(
                text, id=str(number), group=patient, tokens=tokens, sentences=[(0, len(text))] if text else []
            )
        )
    return made
