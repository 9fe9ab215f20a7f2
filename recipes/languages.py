"""Makes the word lists of the language packs en, es and de.

    python -m recipes.languages --data DIR --faker FAKER.whl --words american-english

A word's bucket in a lexicon is hi if log10(rate there) - log10(rate in the language) > 0.5. Rates
in a lexicon come from the list where it has any (census, inhabitants), else every entry is taken to be of middling
rank; an entry of several words counts for each. Rates in the language come from open corpora, none of which is one that
figures are reported on: training files of NCBI-Disease and BC5CDR, GENIA, notes of the train writers. Of corpora with
identifiers only what is outside every marked span is counted, and of MEDDOCAN only training notes that no benchmark
holds out. No word gets into `common.txt` from fewer than three documents, nor an English one that is hi among
names or cities and that fewer write in small letters: "James" is no common word. To the English ones come, with a rate
of 0, the small words of a spelling list (SCOWL, Debian's package wamerican) and of our own lists in `words/`, but for
those hi among names or cities. `pack.toml`, `lexicon-hospital.txt` and `words/` are written by hand.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import math
import os
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.deid.writers.corpus import read_notes

import chaffinch
from chaffinch import languages
from chaffinch.deid.synth import personas
from chaffinch.languages import COMMON, fold
from chaffinch.text import Document
from recipes.corpora import READERS

HIGH = 0.5  # powers of ten
MIN_DOCUMENTS = 3
NAMES = ("first", "last", "city")
OWN = Path(__file__).parent / "words"
OWN_COMMON = ("plain", "acronyms")  # lists of words that identify nobody
MOST_SURNAMES, MOST_CITIES, MOST_COMMON = 8_000, 4_500, 6_000  # keep a pack below 1 MB
RAREST = 5e-6  # the census prints rates below one in a hundred thousand as zero
UMLAUTS = {ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue", ord("ß"): "ss"}
WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
PARTICLES = frozenset(
    "of the and de del la las los el y e i d l do da dos das du le les von zu zum zur am an der die das den in im"
    " bei auf ob van al a und mit für unter vor san santa st new north south east west upper lower city town".split()
)

US_STATES = (
    "alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho"
    " illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi"
    " missouri montana nebraska nevada hampshire jersey mexico york carolina dakota ohio oklahoma oregon"
    " pennsylvania rhode tennessee texas utah vermont virginia washington wisconsin wyoming columbia puerto rico"
    " us usa uk england scotland wales al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo"
    " mt ne nv nh nj nm ny nc nd oh ok or pa ri sc sd tn tx ut vt va wa wv wi wy dc"
)
TRADES = {
    "en": "welder carpenter plumber electrician mechanic janitor waiter waitress bartender cashier clerk secretary"
    " teacher nurse lawyer attorney farmer fisherman firefighter fireman policeman policewoman officer soldier"
    " veteran sailor marine driver trucker chef cook baker butcher barber hairdresser tailor roofer painter"
    " mason bricklayer contractor foreman machinist miner librarian bookkeeper accountant realtor broker"
    " salesman saleswoman salesperson homemaker housewife babysitter nanny maid custodian landscaper gardener"
    " programmer professor student retiree pastor priest minister rabbi imam chaplain missionary clergyman"
    " clergywoman deacon monk nun singer musician pianist guitarist violinist drummer comedian model referee"
    " umpire athlete boxer jockey golfer reporter newscaster broadcaster columnist publicist linguist"
    " stockbroker auctioneer jeweler jeweller watchmaker locksmith blacksmith goldsmith gunsmith shoemaker"
    " cobbler seamstress dressmaker upholsterer weaver potter sculptor glazier plasterer tiler paver ironworker"
    " steelworker metalworker millwright boilermaker pipefitter steamfitter lineman longshoreman stevedore"
    " shipbuilder shipfitter toolmaker autoworker forklift warehouseman packer picker stocker sorter loader"
    " mover courier mailman postman postmaster dispatcher conductor brakeman switchman chauffeur cabbie"
    " cabdriver bellhop doorman concierge porter housekeeper caretaker groundskeeper handyman exterminator"
    " logger lumberjack sawyer rancher cowboy farmhand dairyman beekeeper florist nurseryman trapper hunter"
    " shepherd sommelier dishwasher caterer hostess busboy grocer shopkeeper storekeeper bookmaker croupier"
    " bellman stewardess detective deputy sheriff bailiff paralegal magistrate constable lifeguard bodyguard"
    " watchman jailer prosecutor superintendent principal headmaster dean registrar lecturer tutor childminder"
    " receptionist typist stenographer telemarketer teller auditor economist entrepreneur businessman"
    " businesswoman landlord developer webmaster copywriter cartoonist cameraman projectionist puppeteer"
    " stuntman airman infantryman paratrooper corpsman reservist seaman navigator astronaut surveyor draftsman"
    " draughtsman",
    "es": "ama soldador camionero camionera camarero camarera albañil fontanero electricista mecánico conserje"
    " limpiadora maestro maestra profesor profesora enfermero enfermera abogado abogada agricultor agricultora"
    " ganadero ganadera pescador bombero policía militar soldado jubilado jubilada conductor conductora cocinero"
    " cocinera panadero carnicero peluquero peluquera pintor minero administrativo administrativa secretario"
    " secretaria estudiante comerciante taxista pastor obrero dependiente dependienta contable funcionario"
    " funcionaria jardinero carpintero empleada empleado ingeniero ingeniera",
    "de": "schweißer tischler schreiner maurer dachdecker klempner elektriker mechaniker hausmeister kellner kellnerin"
    " koch köchin bäcker metzger friseur friseurin lehrer lehrerin krankenschwester krankenpfleger anwalt"
    " rechtsanwalt landwirt bauer fischer feuerwehrmann polizist polizistin soldat fahrer lkw-fahrer kraftfahrer"
    " busfahrer gärtner maler lackierer rentner rentnerin pensionist pensionistin hausfrau student studentin"
    " schüler schülerin sekretärin buchhalter buchhalterin verkäufer verkäuferin kaufmann kauffrau ingenieur"
    " ingenieurin beamter beamtin pfarrer schlosser bergmann",
}
SPANISH_CITIES = (
    "madrid barcelona valencia sevilla zaragoza málaga murcia palma bilbao alicante córdoba valladolid vigo gijón"
    " hospitalet vitoria coruña granada elche oviedo terrassa badalona cartagena jerez sabadell móstoles pamplona"
    " almería fuenlabrada leganés donostia sebastián burgos albacete santander getafe castellón alcorcón logroño"
    " badajoz salamanca huelva lleida lérida marbella tarragona león cádiz dos-hermanas parla mataró torrejón"
    " coloma reus telde alcobendas ourense orense girona gerona lugo santiago compostela cáceres torrevieja"
    " barakaldo baracaldo getxo algeciras roquetas avilés ferrol toledo guadalajara palencia ciudad-real"
    " pontevedra cuenca segovia soria teruel zamora huesca ávila mérida ceuta melilla talavera ponferrada manresa"
    " vilanova rubí sant-cugat gandía gandia benidorm alcoy elda orihuela lorca motril linares jaén ronda utrera"
    " écija antequera fuengirola estepona benalmádena torremolinos arona laguna tenerife orotava arrecife mahón"
    " ibiza manacor inca calvià irún eibar portugalete santurtzi tudela calahorra miranda aranda medina alcalá"
    " pozuelo majadahonda coslada aranjuez valdemoro pinto rivas collado villalba puertollano tomelloso hellín"
    " almansa plasencia don-benito villarreal sagunto torrent paterna burjassot xàtiva játiva alzira cullera denia"
    " dénia bogotá lima quito caracas santiago méxico montevideo asunción habana managua buenos aires rosario"
    " medellín cali guayaquil cuzco"
)


@dataclass(slots=True)
class Language:
    """How often each word occurs in the corpora of a language; one genre is one kind of text."""

    genres: dict[str, Counter[str]] = field(default_factory=dict)
    documents: Counter[str] = field(default_factory=Counter)
    small: Counter[str] = field(default_factory=Counter)  # documents that have the word in small letters
    capitals: bool = False  # tell names from other words

    def add(self, genre: str, documents: Iterable[Document], layer: str | None = None) -> None:
        """Counts the words of documents that stand outside the spans of a layer."""
        counts = self.genres.setdefault(genre, Counter())
        for doc in documents:
            written = list(_words_outside(doc, layer))
            words = [fold(word) for word in written]
            counts.update(words)
            self.documents.update(set(words))
            self.small.update({word for word, own in zip(words, written, strict=True) if own.islower()})

    def rate(self, word: str) -> float:
        """The word's rate in all text, or in the genre where it is likelier, if enough documents have it."""
        totals = [genre.total() for genre in self.genres.values()]
        pooled = (sum(genre[word] for genre in self.genres.values()) + 0.5) / sum(totals)
        if self.documents[word] < MIN_DOCUMENTS:
            return pooled
        return max(pooled, *(genre[word] / total for genre, total in zip(self.genres.values(), totals, strict=True)))

    def common(self, names: Collection[str]) -> list[str]:
        """The words of enough documents, the most frequent if there are too many, each with its rate per million.

        Where capitals tell, those names count that enough documents have in small letters.
        """
        words = [
            word
            for word in self.documents
            if (self.small if self.capitals and word in names else self.documents)[word] >= MIN_DOCUMENTS
            and len(word) > 1
        ]
        words.sort(key=lambda word: (-self.rate(word), word))
        return sorted(f"{word}\t{max(1, round(1e6 * self.rate(word)))}" for word in words[:MOST_COMMON])


def _words_outside(doc: Document, layer: str | None) -> Iterator[str]:
    spans = [] if layer is None else [(span.start, span.end) for span in doc.layers[layer]]
    for start, end in doc.tokens.tolist():
        word = doc.text[start:end]
        if WORD.fullmatch(word) and not any(first < end and start < last for first, last in spans):
            yield word


def english(data: Path) -> Language:
    """Count general, biomedical and clinical English in text that no figure is reported on."""
    language = Language(capitals=True)
    language.add("general", READERS["semeval2010-task8"](data / "semeval2010-task8"))
    for file in ("ncbi-disease/NCBItrainset_corpus.txt.gz", "bc5cdr/CDR_TrainingSet.PubTator.txt.gz"):
        language.add("biomedical", chaffinch.read(data / file, format="pubtator"))
    language.add("biomedical", READERS["genia-treebank"](data / "genia-treebank"))
    language.add("clinical", read_notes("train"), "gold")
    return language


def spanish(data: Path) -> Language:
    """The words of MEDDOCAN's training notes outside identifiers, less the fifth that benchmarks hold out."""
    notes = [
        doc
        for doc in chaffinch.read(data / "meddocan" / "meddocan-train.tar.gz", format="brat")
        if doc.layers.get("gold")
    ]
    digests = {
        doc.id: int(hashlib.sha1(Path(doc.id).stem.encode(), usedforsecurity=False).hexdigest(), 16) for doc in notes
    }
    lowest = sorted(digests.values())[len(digests) // 5]
    language = Language()
    language.add("clinical", (doc for doc in notes if digests[doc.id] >= max(lowest, 2**160 // 5)), "gold")
    return language


def german(data: Path) -> Language:
    """The words of GraSCCo outside identifiers."""
    language = Language()
    language.add("clinical", READERS["grascco-phi"](data / "grascco-phi"), "gold")
    return language


def census(path: Path, most: int | None = None) -> Iterator[tuple[str, float]]:
    """Names of a census file with their rates, the most frequent first."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == most:
                return
            name, percent, *_ = line.split()
            yield name, max(float(percent) / 100, RAREST)


def cities(path: Path) -> Iterator[tuple[str, float]]:
    """The words of the names of the largest US cities, with inhabitants."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in list(lines)[:MOST_CITIES]:
            name, _, inhabitants = line.rstrip("\n").split("\t")
            yield name, float(inhabitants)


def once(*lists: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Every entry of lists without rates, counted once."""
    for listed in lists:
        for entry in listed:
            yield entry, 1.0


def lines(path: Path) -> list[str]:
    """The lines of a text file."""
    return path.read_text(encoding="utf-8").splitlines()


def plain(words: Path) -> Iterator[str]:
    """The small words of a spelling list, and our own words that identify nobody, folded."""
    yield from (word for word in lines(words) if word.islower() and word.isalpha())
    own = [word for name in OWN_COMMON for word in lines(OWN / f"{name}.txt")]
    own += languages.lines("en", "protected/credentials")
    yield from (fold(word) for word in own if WORD.fullmatch(word) and len(word) > 2)  # two letters may be initials


def heads(jobs: Iterable[str], *, first: bool) -> Iterator[str]:
    """The words that say what somebody is: the first of a Spanish or German title, the last of an English one."""
    for job in jobs:
        words = WORD.findall(re.split("[,/(]", job)[0])
        if words:
            yield words[0 if first else -1]


def feminine(words: Iterable[str]) -> Iterator[str]:
    """Spanish words, and their feminine forms after those in -o and -or."""
    for word in words:
        yield word
        if word.endswith(("o", "or")):
            yield word.removesuffix("o") + "a"


def buckets(entries: Iterable[tuple[str, float]], language: Language) -> list[str]:
    """Sorted rows of a lexicon: word, tab, bucket. A word without its accents is a row of its own."""
    weights: defaultdict[str, float] = defaultdict(float)
    ranked = False
    for entry, weight in entries:
        ranked = ranked or weight != 1.0
        words = WORD.findall(fold(entry).replace("’", "'"))
        for word in words:
            if len(word) > 1 and (len(words) == 1 or word not in PARTICLES):
                weights[word] += weight
    total = sum(weights.values())
    if not ranked:  # of n words after Zipf's law the middle one has the rate 2 / (n log n), not 1 / n
        total *= max(1.0, math.log(len(weights)) / 2)
    rates = {word: weight / total for word, weight in weights.items()}
    for word in sorted(rates):
        for plain in _without_accents(word):
            rates.setdefault(plain, rates[word])
    return sorted(f"{word}\t{'hi' if _gap(rate, word, language) > HIGH else 'lo'}" for word, rate in rates.items())


def _gap(rate: float, word: str, language: Language) -> float:
    return math.log10(rate) - math.log10(language.rate(word))


def _without_accents(word: str) -> set[str]:
    """The word as it is typed without accents: muller, mueller."""
    bare = "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
    spelt = word.translate(UMLAUTS)
    return {other for other in (bare, spelt) if other != word and other.isascii()}


def provider(kind: str, locale: str) -> Any:
    """Faker's lists of one kind (person, address, job) and locale."""
    return importlib.import_module(f"faker.providers.{kind}.{locale}" if locale else f"faker.providers.{kind}").Provider


def english_lexica(data: Path) -> dict[str, Iterable[tuple[str, float]]]:
    """The English lists: census, GeoNames, Faker's countries and jobs."""
    lists = data / "gazetteers"
    given = [pair for sex in ("female", "male") for pair in census(lists / f"us_census_1990_dist.{sex}.first.txt.gz")]
    return {
        "first": given,
        "last": census(lists / "us_census_1990_dist.all.last.txt.gz", MOST_SURNAMES),
        "city": cities(lists / "us_cities_geonames5000.tsv.gz"),
        "state": once(US_STATES.split(), provider("address", "en").countries),
        "job": once(
            TRADES["en"].split(),
            heads([*provider("job", "").jobs, *personas.lines("varied/professions")], first=False),
        ),
    }


def spanish_lexica(_: Path) -> dict[str, Iterable[tuple[str, float]]]:
    """The Spanish lists: Faker's, and cities written by hand."""
    person, address = provider("person", "es_ES"), provider("address", "es_ES")
    mexican = provider("person", "es_MX")
    return {
        "first": once(set(person.first_names) | set(mexican.first_names)),
        "last": once(set(person.last_names) | set(mexican.last_names)),
        "city": once(SPANISH_CITIES.split()),
        "state": once(address.states, address.regions, provider("address", "es").countries),
        "job": once(feminine([*TRADES["es"].split(), *heads(provider("job", "es").jobs, first=True)])),
    }


def german_lexica(_: Path) -> dict[str, Iterable[tuple[str, float]]]:
    """The German lists: Faker's."""
    people = [provider("person", locale) for locale in ("de_DE", "de_AT", "de_CH")]
    address, jobs = provider("address", "de_DE"), provider("job", "de_AT")
    titles = [*provider("job", "de_DE").jobs, *jobs.jobs_male, *jobs.jobs_female]
    return {
        "first": once({name for person in people for name in person.first_names}),
        "last": once({name for person in people for name in person.last_names}),
        "city": once(address.cities, "wien graz linz salzburg innsbruck klagenfurt zürich genf basel bern".split()),
        "state": once(address.states, provider("address", "de").countries),
        "job": once(TRADES["de"].split(), {title for title in heads(titles, first=True) if title[0].isupper()}),
    }


MADE = {"en": (english, english_lexica), "es": (spanish, spanish_lexica), "de": (german, german_lexica)}


def write(
    folder: Path, language: Language, lexica: Mapping[str, Iterable[tuple[str, float]]], more: Iterable[str] = ()
) -> None:
    """Writes the word lists of one pack; more words are common as well, but for names."""
    rows_of = {name: buckets(entries, language) for name, entries in lexica.items()}
    names = {row.removesuffix("\thi") for name in NAMES for row in rows_of[name] if row.endswith("\thi")}
    common = language.common(names)
    known = names.union(row.partition("\t")[0] for row in common)
    common += [f"{word}\t0" for word in set(more) - known if len(word) > 1]
    lists = {f"lexicon-{name}.txt": rows for name, rows in rows_of.items()}
    for name, rows in {**lists, COMMON: sorted(common)}.items():
        (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8", newline="")


def main() -> None:
    """Reads corpora and lists, writes the packs into the package."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    arguments.add_argument("--faker", required=True, help="the wheel of Faker 40 (MIT)")
    arguments.add_argument("--words", required=True, type=Path, help="a spelling list of American English (SCOWL)")
    arguments.add_argument("--only", choices=MADE)
    chosen = arguments.parse_args()
    if not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    sys.path.insert(0, chosen.faker)
    place = Path(chaffinch.__file__).parent / "languages"
    for name, (count, lists) in MADE.items():
        if chosen.only in (None, name):
            more = plain(chosen.words) if name == "en" else ()
            write(place / name, count(Path(chosen.data)), lists(Path(chosen.data)), more)


if __name__ == "__main__":
    main()
