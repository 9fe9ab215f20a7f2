"""Other libraries on the same notes, each a function from texts to character spans; all as they come."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from benchmarks.hmmdp.peers import CRF, PIP
from chaffinch import Document, Span

Find: TypeAlias = Callable[[str], list[tuple[int, int]]]

MODULES: Mapping[str, str] = {
    "Presidio, patterns": "presidio_analyzer", "scrubadub": "scrubadub", "pyDeid": "pyDeid",
    "python-crfsuite": "pycrfsuite",
}  # fmt: skip
TRAINED = "python-crfsuite"
FROM_SOURCE = "no release on PyPI; pip install git+https://github.com/GEMINI-Medicine/pyDeid"


def absent(name: str) -> str:
    """How to install a peer that is not there, or nothing."""
    try:
        there = importlib.util.find_spec(MODULES[name]) is not None
    except ValueError:  # switched off
        there = False
    return "" if there else FROM_SOURCE if name == "pyDeid" else PIP


def finder(name: str) -> Find:
    """What finds identifiers in a text, loaded and warm."""
    find = {"Presidio, patterns": _presidio, "scrubadub": _scrubadub, "pyDeid": _pydeid}[name]()
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

    domains: Any = importlib.import_module("tldextract")
    domains.extract = domains.TLDExtract(suffix_list_urls=())  # the list that comes with it: nothing is fetched
    engine = engines.SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "blank"}])
    engine.nlp = {"en": spacy.blank("en")}
    registry = library.RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"])
    registry.recognizers = [own for own in registry.recognizers if "Spacy" not in type(own).__name__]
    analyzer = library.AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    return lambda text: [(own.start, own.end) for own in analyzer.analyze(text=text, language="en")]


def _scrubadub() -> Find:
    """scrubadub's default detectors for American English."""
    library: Any = importlib.import_module("scrubadub")
    scrubber = library.Scrubber(locale="en_US")
    return lambda text: [(own.beg, own.end) for own in scrubber.iter_filth(text)]


def _pydeid() -> Find:
    """pyDeid for one string; it gives the surrogates with the places they take."""
    library: Any = importlib.import_module("pyDeid")
    return lambda text: [(own["phi_start"], own["phi_end"]) for own in library.deid_string(text)[0]]
