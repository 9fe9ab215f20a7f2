"""Numbers, codes and contacts: shape kept, separators do not count, and every range belongs to nobody."""

from __future__ import annotations

import ipaddress
import re
import string
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.surrogates.letters import base, is_significant
from chaffinch.deid.surrogates.surrogate import surrogate
from tests.deid.releases import OTHER_SECRET, SECRET

CODES = st.text(string.ascii_letters + string.digits + "-/. #", min_size=1, max_size=20)
PATIENTS = st.text(string.ascii_lowercase, min_size=1, max_size=4)
PS = [f"p{number}" for number in range(20)]


def drawn(text: str, label: str = "MEDICALRECORD", patient: str = "p1", secret: Secret = SECRET) -> str:
    return surrogate(text, kind_of(label), patient, secret)


def shape(text: str) -> str:
    """The class of every character; what is neither letter nor number stands for itself."""
    return "".join(
        "9"
        if c.isnumeric() and not c.isalpha() and not c.isupper()
        else "A"
        if c.isupper()
        else "a"
        if c.isalpha()
        else c
        for c in text
    )


@given(CODES, PATIENTS)
@settings(max_examples=1000)
def test_codes_keep_their_shape(text: str, patient: str) -> None:
    assume(any(c.isalnum() for c in text))
    assert shape(drawn(text, patient=patient)) == shape(text)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("patient", ["p1", "p2"])
def test_no_two_codes_of_one_form_become_the_same(size: int, patient: str) -> None:
    codes = [f"{number:0{size}d}" for number in range(10**size)]
    assert sorted(drawn(code, patient=patient) for code in codes) == codes
    letters = [f"{a}{number}" for a in string.ascii_uppercase for number in range(10)]
    assert sorted(drawn(code, patient=patient) for code in letters) == letters


@given(CODES, st.sampled_from("-./ "), st.integers(0, 19), PATIENTS)
@settings(max_examples=1000)
def test_separators_and_case_do_not_count(text: str, mark: str, at: int, patient: str) -> None:
    bare = "".join(c for c in text if c.isalnum())
    assume(bare)
    out = drawn(bare, patient=patient)
    written = bare[:at] + mark + bare[at:]
    assert drawn(written, patient=patient) == out[:at] + mark + out[at:]
    assert drawn(written.swapcase(), patient=patient) == (out[:at] + mark + out[at:]).swapcase()


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=16))
@settings(max_examples=1000)
def test_codes_in_any_script_keep_their_length_and_separators(text: str) -> None:
    assume(any(map(is_significant, text)))
    out = drawn(text)
    assert len(out) == len(text)
    for a, b in zip(text, out, strict=True):
        assert a == b or is_significant(a)
        assert a.isalpha() == b.isalpha() or unusual(a)


def unusual(char: str) -> bool:
    """Letters that are numbers, such as Ⅷ, and the other way round."""
    return char.isnumeric() or len(base(char)) != 1


def test_a_digit_becomes_every_digit_as_often() -> None:
    counts = Counter(drawn("7", patient=str(number)) for number in range(4000))
    assert sorted(counts) == list("0123456789")
    assert sum((count - 400) ** 2 / 400 for count in counts.values()) < 28  # chi-square, 9 degrees: 1 in 1000


def test_codes_are_unlike_under_another_secret() -> None:
    codes = [f"{number:07d}" for number in range(0, 9_000_000, 17_011)]
    same = sum(drawn(code) == drawn(code, secret=OTHER_SECRET) for code in codes)
    alike = sum(a == b for code in codes for a, b in zip(drawn(code), drawn(code, secret=OTHER_SECRET), strict=True))
    assert same == 0
    assert 0.08 < alike / (7 * len(codes)) < 0.12  # one in ten, as by chance
    assert len({drawn(code) for code in codes}) == len(codes)


@pytest.mark.parametrize("patient", ["p1", "p2", "p3", "p4"])
def test_social_security_numbers_are_never_issued_and_agree_in_their_last_four(patient: str) -> None:
    whole = drawn("123-45-6789", "SSN", patient)
    assert re.fullmatch(r"9\d\d-\d\d-\d{4}", whole)
    assert drawn("123456789", "SSN", patient) == whole.replace("-", "")
    assert drawn("xxx-xx-6789", "SSN", patient) == "xxx-xx-" + whole[-4:]
    assert drawn("6789", "SSN", patient) == whole[-4:]


def test_zip_codes_agree_with_and_without_their_last_four() -> None:
    long = drawn("02139-4307", "ZIP")
    assert re.fullmatch(r"\d{5}-\d{4}", long)
    assert long[:5] == drawn("02139", "ZIP")
    assert drawn("021394307", "ZIP") == long.replace("-", "")
    assert shape(drawn("K1A 0B1", "ZIP")) == "A9A 9A9"


ROOMS = [("Room 312B", r"Room \d{3}[A-Z]"), ("Bed 4-17", r"Bed [1-9]-\d\d"), ("312", r"[1-9]\d\d")]


@pytest.mark.parametrize(("text", "form"), ROOMS)
def test_rooms_keep_their_words(text: str, form: str) -> None:
    assert re.fullmatch(form, drawn(text, "ROOM"))
    assert any(drawn("Floor", "ROOM", patient) != "Floor" for patient in ("p1", "p2"))


US_FORMS = [
    "({a}) {b}-{c}",
    "{a}-{b}-{c}",
    "{a}.{b}.{c}",
    "{a}{b}{c}",
    "1-{a}-{b}-{c}",
    "+1 {a} {b} {c}",
    "{a}/{b}-{c}",
]


def digits(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True, alphabet=string.digits)


@given(digits("[2-9][0-9]{2}"), digits("[2-9][0-9]{2}"), digits("[0-9]{4}"))
@settings(max_examples=200)
def test_telephone_numbers_are_fictitious_and_agree_in_all_forms(a: str, b: str, c: str) -> None:
    plain = drawn(a + b + c, "PHONE")
    assert re.fullmatch(r"[2-9][0-8]\d55501\d\d", plain)
    assert plain[1:3] != "11"
    parts = {"a": plain[:3], "b": plain[3:6], "c": plain[6:]}
    for form in US_FORMS:
        assert drawn(form.format(a=a, b=b, c=c), "FAX") == form.format_map(parts)
    assert drawn(f"{b}-{c}", "PHONE") == f"{parts['b']}-{parts['c']}"
    assert drawn(f"{a}-{b}-{c} x12", "PHONE").startswith(f"{parts['a']}-{parts['b']}-{parts['c']} x")


def test_areas_and_fictitious_lines_stand_for_themselves_as_often_as_by_chance() -> None:
    lines = [
        drawn(f"555-01{line:02d}", "PHONE", patient) == f"555-01{line:02d}" for line in range(100) for patient in PS
    ]
    assert 0.005 < sum(lines) / len(lines) < 0.017  # one in 100
    areas = [f"{area}" for area in range(200, 990) if str(area)[1] != "9" and str(area)[1:] != "11"]
    assert sorted(drawn(f"{area}-253-1234", "PHONE")[:3] for area in areas) == areas


@given(st.from_regex(r"\+?[0-9]{2,3}[ /-][0-9]{3,8}([ -][0-9]{2,4})?", fullmatch=True))
@settings(max_examples=500)
def test_other_telephone_numbers_keep_length_and_punctuation(text: str) -> None:
    assert shape(drawn(text, "PHONE")) == shape(text)


def test_telephone_numbers_from_abroad_keep_the_country() -> None:
    assert drawn("+49 89 1234567", "PHONE")[4:] == drawn("089 1234567", "PHONE")[1:]
    assert drawn("+49 89 1234567", "PHONE").startswith("+49 ")
    assert re.fullmatch(r"pager \d{5}", drawn("pager 12345", "PHONE"))
    assert re.fullmatch(r"\d-\d{3}-[A-Z]{7}", drawn("1-800-FLOWERS", "PHONE"))


def test_mail_addresses_have_reserved_hosts_and_the_names_of_notes() -> None:
    user, host = drawn("john.smith@gmail.com", "EMAIL").split("@")
    assert user == drawn("John Smith", "PATIENT").lower().replace(" ", ".")
    assert re.fullmatch(r"[a-z]+\.example", host)
    assert drawn("zqx9@GMAIL.com", "EMAIL").endswith("@" + host)
    assert re.fullmatch(r"<\w+@[a-z]+\.example>", drawn("<zqx9@yahoo.com>", "EMAIL"))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("http://www.mercy.org/john/12?id=3", r"http://www\.[a-z]+\.example/[a-z]+/\d\d\?[a-z]{2}=\d"),
        ("www.mercy.org", r"www\.[a-z]+\.example"),
        ("HTTPS://mercy.org:8080/", r"HTTPS://[a-z]+\.example:\d{4}/"),
        ("ftp://joe@mercy.org", r"ftp://[a-z]+@[a-z]+\.example"),
    ],
)
def test_web_addresses_have_reserved_hosts(text: str, form: str) -> None:
    out = drawn(text, "URL")
    assert re.fullmatch(form, out)
    assert not {"mercy", "john", "joe", "12", "8080"} & set(re.findall(r"\w+", out))


@given(st.ip_addresses())
@settings(max_examples=500)
def test_internet_addresses_are_of_ranges_for_documentation(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    ranges = ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"]
    assume(any(map(str.isalnum, str(address))))  # :: is an address without digits
    out = ipaddress.ip_address(drawn(str(address), "IPADDR"))
    assert any(out in ipaddress.ip_network(network) for network in ranges)
    assert out.version == address.version
    assert out != address
    if isinstance(address, ipaddress.IPv6Address):
        assert drawn(address.exploded.upper(), "IPADDR").lower() == str(out)


def test_all_addresses_for_documentation_become_such() -> None:
    ranges = ("192.0.2.", "198.51.100.", "203.0.113.")
    for address in (f"{start}{number}" for start in ranges for number in range(256)):
        for patient in ("p5", "p6", "p7", "p8"):
            assert drawn(address, "IPADDR", patient).startswith(ranges)
    assert re.fullmatch(r"[\d.]+:\d{4}", drawn("10.1.2.3:8080", "IPADDR"))
