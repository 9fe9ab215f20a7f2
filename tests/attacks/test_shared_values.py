"""Attack surrogates of a value that many patients share: a clinician, a hospital, a number of a template.

The attacker holds the surrogates of one value in the releases of thousands of patients, knows the list of values it may
be, and has this program with secrets of their own. If what is drawn depends on the value in any way, over enough
patients some value comes too rarely or too often. Three attackers try to tell which value it was.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.surrogates.lists import entries, names
from chaffinch.deid.surrogates.surrogate import surrogate
from tests.attacks.sizes import sized

pytestmark = pytest.mark.drill

PATIENTS = sized(1500, 5000)  # who share the value, at most
EACH = sized(5, 5000)  # patients for each value that it may be: enough to miss the one that never comes
TRIALS = sized(15, 300)  # values attacked, each under a secret of its own
ADVANTAGE = 0.01  # over guessing: what the promise allows; so few TRIALS see only more (docs/security.md)

_DIGITS = [str(digit) for digit in range(10)]


def _numbers(size: int) -> list[str]:
    return [f"{number:0{size}d}" for number in range(10**size)]


def _surnames() -> list[str]:
    plain = (name for name in entries("names-last") if name.isascii() and name.isalpha() and len(name) > 3)
    return [name for name in plain if names().roles.get(name.lower(), "S") == "S"]  # no first names


def _first_names() -> list[str]:
    lines = entries("names-first-female")
    return [name for name in lines if name.isascii() and names().roles.get(name.lower()) == "F"]


def _initials() -> list[str]:
    """Return pairs of letters that are no short name, such as Xu."""
    pairs = [first + last for first in "ABJKQXZ" for last in "CDEMSUW"]
    return [pair for pair in pairs if pair.lower() not in names().roles]


# By name: the label, and all that the value may be.
VALUES: dict[str, tuple[str, Callable[[], Sequence[str]]]] = {
    "a digit": ("MEDICALRECORD", lambda: _DIGITS),
    "two digits": ("IDNUM", lambda: _numbers(2)),
    "three digits": ("ACCOUNT", lambda: _numbers(3)),
    "a letter": ("DEVICE", lambda: list(string.ascii_uppercase)),
    "an initial": ("DOCTOR", lambda: list(string.ascii_uppercase)),
    "initials": ("DOCTOR", _initials),
    "a state": ("STATE", lambda: [line[:2] for line in entries("states")]),
    "a country": ("COUNTRY", lambda: entries("countries")),
    "a department": ("DEPARTMENT", lambda: entries("departments")),
    "a short department": ("DEPARTMENT", lambda: entries("wards")),
    "a room": ("ROOM", lambda: [f"Room {number}" for number in range(10, 100)]),
    "a street": ("STREET", lambda: [f"{name} Street" for name in entries("streets") if " " not in name]),
    "a profession": ("PROFESSION", lambda: [job for job in entries("professions") if job[0] not in "aeiouy"]),
    "an area code": ("PHONE", lambda: [f"{area}-253-1234" for area in range(200, 900) if str(area)[1] in "0234"]),
    "a fictitious line": ("PHONE", lambda: [f"555-01{line:02d}" for line in range(100)]),
    "an address for documentation": ("IPADDR", lambda: [f"192.0.2.{number}" for number in range(1, 255)]),
    "a city": ("CITY", lambda: [name for name in entries("cities") if " " not in name][:800]),
    "a hospital": ("HOSPITAL", lambda: [f"{name} Hospital" for name in entries("cities") if " " not in name][:800]),
    "a host": ("EMAIL", lambda: [f"q7@{name.lower()}.org" for name in entries("cities") if " " not in name][:800]),
    "a first name": ("DOCTOR", _first_names),
    "a surname": ("DOCTOR", _surnames),
}


def _telling(text: str) -> str:
    """The form in which a surrogate and a value are compared; hosts and numbers by the part that is drawn."""
    if "@" in text:
        return text.partition("@")[2].partition(".")[0]
    return text[:3] if text.endswith("253-1234") or text[3:7] == "-555" else text


def _drawn(value: str, label: str, secret: Secret, patients: int) -> Counter[str]:
    """How often each surrogate of the shared value is seen, over all patients."""
    kind = kind_of(label)
    return Counter(_telling(surrogate(value, kind, f"patient {n}", secret)) for n in range(patients))


def _rarest(seen: Counter[str], values: Sequence[str], rng: np.random.Generator) -> str:
    """Guess what comes most rarely: a value that is never drawn for itself."""
    counts = np.array([seen[value] for value in values]) + rng.random(len(values)) / 2
    return values[int(counts.argmin())]


def _commonest(seen: Counter[str], values: Sequence[str], rng: np.random.Generator) -> str:
    """Guess what comes most often."""
    counts = np.array([seen[value] for value in values]) + rng.random(len(values)) / 2
    return values[int(counts.argmax())]


def _by_character(seen: Counter[str], values: Sequence[str], rng: np.random.Generator) -> str:
    """Guess the value whose characters come most rarely at their places."""
    at: Counter[tuple[int, str]] = Counter()
    for text, count in seen.items():
        for place, char in enumerate(text.lower()):
            at[place, char] += count
    scores = [sum(at[place, char] for place, char in enumerate(value.lower())) for value in values]
    return values[int((np.array(scores) + rng.random(len(values)) / 2).argmin())]


ATTACKERS = (_rarest, _commonest, _by_character)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_shared_by_thousands_of_patients_is_guessed_no_better_than_by_chance(name: str) -> None:
    label, domain = VALUES[name]
    values = list(dict.fromkeys(map(_telling, domain())))
    originals = list(domain())
    rng = np.random.default_rng(7)
    right: Counter[str] = Counter()
    for _ in range(TRIALS):
        original = originals[int(rng.integers(len(originals)))]
        seen = _drawn(original, label, Secret(rng.bytes(32)), min(PATIENTS, EACH * len(values)))
        for attacker in ATTACKERS:
            right[attacker.__name__] += attacker(seen, values, rng) == _telling(original)
    chance = 1 / len(values)
    # Four standard deviations of pure guessing beyond what is allowed: by chance once in 30,000.
    allowed = ADVANTAGE + chance + 4 * np.sqrt(chance * (1 - chance) / TRIALS)
    assert all(count / TRIALS <= allowed for count in right.values()), (right, TRIALS, chance)


PARTS: tuple[Callable[[str], str], ...] = (
    lambda text: text[0], lambda text: text[-1], lambda text: text[len(text) // 2], lambda text: text[:2],
)  # fmt: skip


@pytest.mark.parametrize(
    ("label", "first", "second"),
    [
        ("MEDICALRECORD", "1234", "9877"),
        ("MEDICALRECORD", "123-45-6789", "998-87-0001"),
        ("LICENSE", "AB1", "ZQ9"),
        ("SSN", "123-45-6789", "911-22-0000"),
        ("ZIP", "02139", "90210"),
        ("PHONE", "617-253-1234", "212-555-0143"),
        ("PHONE", "x12", "x99"),
        ("PATIENT", "Q", "S"),
        ("DOCTOR", "Smith", "Xiong"),
        ("DOCTOR", "Unheardof", "Smith"),
        ("PATIENT", "Mary", "Zelda"),
        ("PATIENT", "John", "Ivo"),
        ("USERNAME", "zqj7", "aab0"),
        ("HOSPITAL", "Boston Medical Center", "Austin Medical Center"),
        ("HOSPITAL", "MGH", "XQZ"),
        ("CITY", "Boston", "Nowhereville"),
        ("STREET", "12 Oak Street", "99 Maple Street"),
        ("STATE", "MA", "WY"),
        ("PROFESSION", "plumber", "teacher"),
        ("EMAIL", "zq7@boston.org", "aa1@denver.com"),
        ("IPADDR", "192.0.2.7", "10.0.0.1"),
        ("BIOID", "Ж7", "Б1"),
    ],
)
def test_two_values_of_one_form_have_surrogates_of_one_distribution(label: str, first: str, second: str) -> None:
    """Whichever value it was: each part of what is drawn comes as often."""
    number, kind, secret = sized(1500, 30_000), kind_of(label), Secret(np.random.default_rng(11).bytes(32))
    drawn = [[surrogate(value, kind, f"{value} {n}", secret) for n in range(number)] for value in (first, second)]
    for part in PARTS:
        counts = [Counter(map(part, texts)) for texts in drawn]
        keys = sorted(set().union(*counts))
        table = np.array([[count[key] for count in counts] for key in keys], float)
        table = table[table.sum(axis=1) >= 10]
        expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
        chi, free = float(((table - expected) ** 2 / expected).sum()), len(table) - 1
        assert chi < free + 5 * np.sqrt(2 * max(free, 1)) + 6, (label, part(drawn[0][0]), chi, free)
