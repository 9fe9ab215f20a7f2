"""Penn parts of speech and CoNLL-2000 base phrases (chunks), read off the trees of the GENIA treebank.

A chunk is a run of words that hang directly on one phrase, up to the last word that can be its head (Tjong Kim Sang
and Buchholz, "Introduction to the CoNLL-2000 Shared Task: Chunking", 2000, section 3). The trees are first made flat
where the Penn Treebank, from which CoNLL-2000 comes, has no brackets and GENIA has: modifiers and determiners of
nouns, coordinated single words, and conjuncts that share a word (GENIA marks the place of the shared word with an
empty phrase). Then the runs are read off. Differences from CoNLL-2000 are said where they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from chaffinch.errors import DataError
from chaffinch.text import Corpus, Document, Span
from recipes.corpora import READERS

PENN = {"PERIOD": ".", "COMMA": ",", "COLON": ":", "LRB": "(", "RRB": ")", "LQT": "``", "RQT": "''"}
PENN |= {"PRPP": "PRP$", "WPP": "WP$"}
NOUNS = frozenset("NN NNS NNP NNPS".split())
VERBS = frozenset("VB VBD VBG VBN VBP VBZ MD TO".split())
ADVERBS = frozenset("RB RBR RBS".split())
DETERMINERS = frozenset("DT PDT PRP$ WP$ WDT".split())
MODIFIERS = NOUNS | DETERMINERS | frozenset("CD JJ JJR JJS VBN VBG FW POS SYM".split())
OPENING = {"(": ")", "``": "''"}
MARKS = frozenset(". , : ( ) `` ''".split())
CORRELATIVES = frozenset("both either neither".split())  # conjunctions that may begin a noun phrase
COMPOUND = frozenset("as instead rather well".split())  # adverbs that are part of a preposition: rather than

HEADS = {  # the parts of speech that can be the last word of a chunk of this type
    "NP": NOUNS | frozenset("CD PRP JJ JJR JJS DT EX VB VBD VBG VBN VBP VBZ FW SYM WP WDT LS POS".split()),
    "VP": VERBS | frozenset("JJ NN NNS".split()),
    "PP": frozenset("IN TO VBG VBN JJ RP FW".split()),  # CoNLL-2000: at times also the CC between two PPs
    "ADVP": ADVERBS | frozenset("IN DT PDT JJ JJR JJS RP FW NN CD WRB".split()),
    "ADJP": ADVERBS | frozenset("JJ JJR JJS VB VBD VBG VBN VBP VBZ IN FW DT NN NNS CD".split()),
    "SBAR": frozenset("IN WDT WRB".split()),
    "PRT": frozenset("RP IN RB".split()),
    "CONJP": ADVERBS | frozenset("CC IN TO".split()),
    "INTJ": frozenset("UH RB JJ NN FW".split()),
    "LST": frozenset("LS CD NN JJ FW".split()),
    "UCP": NOUNS | frozenset("JJ CD VBN VBG".split()),
}
UNBRACKETED = frozenset("10209041 10221643 10229820".split())  # abstracts with sentences that have no phrases


@dataclass(slots=True, eq=False)
class _Phrase:
    """A bracket of the tree; it is changed while the tree is made flat, and nobody else holds it."""

    label: str
    first: int
    end: int
    attributes: dict[str, str]
    items: list[_Item] = field(default_factory=list)

    @property
    def flat(self) -> bool:
        """Words only, and at least one."""
        return bool(self.words()) and all(isinstance(item, int) or item.first == item.end for item in self.items)

    def words(self) -> list[int]:
        return [item for item in self.items if isinstance(item, int)]


_Item: TypeAlias = "_Phrase | int"  # a phrase or the index of a token


def penn_tag(tag: str) -> str:
    """The Penn Treebank's name of a part of speech of GENIA, as CoNLL-2000 writes it; of "NN|NNS" the first.

    >>> [penn_tag(tag) for tag in ["NN", "LRB", "PRPP", "VBN|JJ"]]
    ['NN', '(', 'PRP$', 'VBN']
    """
    first = tag.partition("|")[0]
    return PENN.get(first, first)


def prepare(doc: Document) -> Document:
    """The document with the layers "pos" (a span per token) and "chunks" (no two overlap), in place of its trees."""
    raw, rows = doc.meta.get("columns", {}).get("1"), doc.meta.get("constituents")
    if raw is None or rows is None or len(raw) != len(doc.tokens):
        raise DataError(f"{doc.id}: has no trees with a part of speech per token; use the GENIA treebank reader")
    pos, offsets = [penn_tag(tag) for tag in raw], doc.tokens.tolist()
    trees = _Trees(pos, [word.lower() for word in doc.words()])
    chunks = [Span(offsets[first][0], offsets[end - 1][1], label) for first, end, label in trees.chunks(_tops(rows))]
    tags = [Span(start, end, tag) for (start, end), tag in zip(offsets, pos, strict=True)]
    meta = {key: value for key, value in doc.meta.items() if key not in {"columns", "constituents"}}
    return replace(doc, meta=meta, layers={}).with_layer("pos", tags).with_layer("chunks", chunks)


def corpus(data: Path) -> Corpus:
    """The abstracts of the treebank in the folder `data`/genia-treebank, prepared, without the `UNBRACKETED` ones."""
    whole = Corpus(lambda: READERS["genia-treebank"](data / "genia-treebank"), "genia-treebank")
    return whole.filter(lambda doc: doc.id not in UNBRACKETED).map(prepare)


def held_out(doc: Document) -> bool:
    """Whether the abstract is for measuring only: its PubMed id ends in 7.

    >>> held_out(Document.make("A title.", id="90110107"))
    True
    """
    return int(doc.id) % 10 == 7


def _tops(rows: Sequence[Sequence[Any]]) -> list[_Phrase]:
    """The outermost phrases, each with its phrases and tokens in the order of the text."""
    phrases = [_Phrase(str(label), first, end, dict(attributes)) for _, label, first, end, attributes in rows]
    tops: list[_Phrase] = []
    owner: dict[int, _Phrase] = {}
    for phrase, row in zip(phrases, rows, strict=True):
        (tops if row[0] < 0 else phrases[row[0]].items).append(phrase)
        owner |= dict.fromkeys(range(phrase.first, phrase.end), phrase)  # an inner phrase comes later
    for word, phrase in owner.items():
        phrase.items.append(word)
    for phrase in phrases:
        phrase.items.sort(key=lambda item: (item, 1) if isinstance(item, int) else (item.first, 0))
    return tops


@dataclass(frozen=True, slots=True)
class _Trees:
    """The words of a document, by which its trees are made flat and read."""

    pos: list[str]
    words: list[str]

    def chunks(self, tops: Sequence[_Phrase]) -> Iterator[tuple[int, int, str]]:
        """First token, end token and type of every chunk, in the order of the brackets."""
        for top in tops:
            self._flatten(top)
            last = top.first
            for first, end, label in self._read(top):
                loose = label == "VP" and self.pos[first] == "VB" and first > last and self.pos[first - 1] == "TO"
                yield first - loose, end, label  # "in order to" keeps its "to" outside the clause; CoNLL-2000 does not
                last = end

    def _flatten(self, phrase: _Phrase) -> None:
        """Dissolves the brackets that the Penn Treebank does not have, from the innermost outwards."""
        phrase.label = phrase.label.removeprefix("WH")
        for item in phrase.items:
            if isinstance(item, _Phrase):
                self._flatten(item)
        for part in self._single_words(phrase):
            place = phrase.items.index(part)
            phrase.items[place : place + 1] = part.items
        place = 0
        while place < len(phrase.items):
            item = phrase.items[place]
            if isinstance(item, _Phrase) and item.first < item.end and self._dissolves(phrase, item, place):
                subject = item.label == "S"  # an empty one, which must not part the verbs
                phrase.items[place : place + 1] = item.items[subject:]  # and look at these again, in their new place
            else:
                place += 1
        if phrase.label == "VP":
            self._adverbs_before_verbs(phrase)

    def _single_words(self, phrase: _Phrase) -> list[_Phrase]:
        """The conjuncts, where each is a single word or lacks a word that they share: "T and B cells"."""
        parts = [item for item in phrase.items if isinstance(item, _Phrase) and item.first < item.end]
        if not any(isinstance(item, int) and self.pos[item] in {"CC", ",", "TO"} for item in phrase.items):
            return []
        lacking = [place for place, part in enumerate(parts) if _lacks_word(part)]
        if lacking and lacking[-1] + 1 < len(parts):  # the shared word is a phrase of its own, or in the last conjunct
            apart = parts[lacking[-1]].end == parts[lacking[-1] + 1].first
            parts = parts[: lacking[-1] + 1] if apart else parts
        short = [len(part.words()) == 1 or place in lacking for place, part in enumerate(parts)]
        alike = all(part.flat and phrase.label in {part.label, "UCP"} for part in parts)
        return parts if alike and all(short[:-1]) and (lacking or all(short)) else []

    def _dissolves(self, phrase: _Phrase, item: _Phrase, place: int) -> bool:
        if phrase.label == "VP":
            return self._continues_verbs(phrase, item, place)
        if phrase.label in {"NP", "QP", "UCP", "ADJP"} and item.label in {"QP", "NAC", "NX"}:
            return True
        if phrase.label == "NP" and item.label in {"NP", "ADJP", "UCP", "PRN"}:
            return self._belongs_to_noun(phrase, item, place)
        adverbs = all(isinstance(before, int) and self.pos[before] in ADVERBS for before in phrase.items[:place])
        return adverbs and phrase.label == "ADJP" and item.label in {"ADVP", "ADJP"}

    def _continues_verbs(self, phrase: _Phrase, item: _Phrase, place: int) -> bool:
        """A verb phrase, or a clause without a subject, after verbs and adverbs alone: "was found to bind"."""
        if place == 0 or not all(self._is_verb_or_adverb(part) for part in phrase.items[:place]):
            return False
        if item.label != "S" or set(item.attributes) & {"role", "func", "adv"}:
            return item.label == "VP"
        words = [part for part in item.items if isinstance(part, int) or part.first < part.end]
        return words[0] is not item.items[0] and isinstance(words[0], _Phrase) and words[0].label in {"VP", "ADVP"}

    def _is_verb_or_adverb(self, item: _Item) -> bool:
        return self.pos[item] in VERBS | ADVERBS if isinstance(item, int) else item.label == "ADVP"

    def _adverbs_before_verbs(self, phrase: _Phrase) -> None:
        verbs = [place for place, item in enumerate(phrase.items) if isinstance(item, int) and self.pos[item] in VERBS]
        for place in reversed(range(max(verbs, default=0))):
            item = phrase.items[place]
            if isinstance(item, _Phrase) and item.label == "ADVP" and item.flat:
                phrase.items[place : place + 1] = item.items

    def _belongs_to_noun(self, phrase: _Phrase, item: _Phrase, place: int) -> bool:
        """A part of a noun phrase that has words of the same noun directly before or after it."""
        before, after = _near(phrase.items[:place][::-1]), _near(phrase.items[place + 1 :])
        if isinstance(before, int) and isinstance(after, int) and (self.pos[before], self.pos[after]) == ("(", ")"):
            return item.flat
        if isinstance(after, _Phrase) and after.label == "PRN":  # "the virus (HIV) protein" is one noun phrase
            after = _near(phrase.items[phrase.items.index(after) + 1 :])
        modifies = isinstance(after, int) and self.pos[after] in MODIFIERS - DETERMINERS
        if item.label == "PRN":
            simple = all(isinstance(part, int) or part.flat for part in item.items)
            return modifies and simple and isinstance(before, int)
        if item.label != "NP":
            first = isinstance(before, int) and self.pos[before] not in NOUNS
            return modifies or before is None or first or (isinstance(after, _Phrase) and after.label == "NP")
        if set(item.attributes) & {"func", "adv"}:
            return False
        opens = self.pos[item.first] in DETERMINERS | {"PRP", "EX"}
        if isinstance(before, int) and self.pos[before] in MODIFIERS | ADVERBS and self.words[before] != "not":
            return not opens or self.pos[before] == "PDT"
        return modifies or (isinstance(after, _Phrase) and (_lacks_word(item) or self._is_name_of(after, item)))

    def _is_name_of(self, name: _Phrase, noun: _Phrase) -> bool:
        """An apposition without a comma, as in "the transcription factor NFATc": flat in the Penn Treebank."""
        inner = {self.pos[word] for word in name.words()}
        plain = name.label == "NP" and name.flat and noun.flat and not set(name.attributes) & {"func", "adv"}
        return plain and self.pos[name.first] in NOUNS | {"JJ"} and not inner & {"CC", ","}

    def _read(self, phrase: _Phrase) -> Iterator[tuple[int, int, str]]:
        run: list[int] = []
        for item in phrase.items:
            if isinstance(item, int):
                run.append(item)
            elif item.first < item.end:
                yield from self._run(run, phrase.label)
                yield from self._read(item)
                run = []
        yield from self._run(run, phrase.label)

    def _run(self, run: list[int], label: str) -> Iterator[tuple[int, int, str]]:
        """The chunks of neighbouring words of one phrase."""
        if label == "S":  # "whereas" and its like may hang on the clause itself
            run, label = run[-1:], "SBAR"
        label = "NP" if label == "QP" else label
        if label in HEADS:
            for piece in self._pieces(run, label):
                yield from self._chunk(piece, self._own_type(piece, label))

    def _pieces(self, run: list[int], label: str) -> list[list[int]]:
        """A run, cut before a possessive mark, before a second determiner, and around nouns and adverbs of a PP."""
        pieces: list[list[int]] = [[]]
        for place, word in enumerate(run):
            piece, tag, last = pieces[-1], self.pos[word], self.pos[run[place - 1]] if place else ""
            if label == "NP":
                second = tag in DETERMINERS and last in {"CC", ","}
                cut = tag == "POS" or (second and any(self.pos[before] in NOUNS for before in piece))
            else:
                noun = (tag in NOUNS | {"DT"}) != (last in NOUNS | {"DT"}) and place > 0  # "in [the absence] of"
                cut = label == "PP" and (noun or self._is_adverb_of(run, place - 1))
            pieces.extend([[word]] if cut else [])
            piece.extend([] if cut else [word])
        return pieces

    def _is_adverb_of(self, run: list[int], place: int) -> bool:
        """An adverb before a preposition that is not part of it: "only in", but not "rather than"."""
        return place == 0 and self.pos[run[0]] in ADVERBS and self.words[run[0]] not in COMPOUND

    def _own_type(self, piece: list[int], label: str) -> str:
        if label == "PP" and piece and self.pos[piece[0]] in NOUNS | {"DT"}:
            return "NP"
        if label == "PP" and len(piece) == 1 and self._is_adverb_of(piece, 0):
            return "ADVP" if self.words[piece[0]] != "not" else ""
        return "ADVP" if label == "SBAR" and piece and self.pos[piece[-1]] == "WRB" else label

    def _chunk(self, piece: list[int], label: str) -> Iterator[tuple[int, int, str]]:
        """A piece without what follows its head and without the marks before it; brackets stay in pairs."""
        tags = [self.pos[word] for word in piece]
        end = max((place + 1 for place, tag in enumerate(tags) if tag in HEADS.get(label, ())), default=0)
        first = 0
        while first < end and label != "CONJP" and tags[first] in MARKS | {"CC"}:
            if OPENING.get(tags[first]) in tags[first:end] or self.words[piece[first]] in CORRELATIVES:
                break
            first += 1
        if end < len(tags) and any(OPENING.get(tag) == tags[end] for tag in tags[first:end]):
            end += tags[end] not in tags[first:end]
        if first < end:
            yield piece[first], piece[end - 1] + 1, label


def _near(items: Sequence[_Item]) -> _Item | None:
    """The first item that has words."""
    return next((item for item in items if isinstance(item, int) or item.first < item.end), None)


def _lacks_word(part: _Phrase) -> bool:
    """Whether an empty phrase stands for words that come later."""
    return any(isinstance(item, _Phrase) and item.attributes.get("null") == "RNR" for item in part.items)
