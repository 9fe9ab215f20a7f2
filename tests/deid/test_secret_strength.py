"""Secrets that people think of are refused; those that machines make never are."""

from __future__ import annotations

import base64
import random
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.deid.keys import VARIABLE, Secret
from chaffinch.deid.secret_strength import guessing_bits
from chaffinch.errors import ConfigError

HUMAN = [
    # sentences, sayings, songs and verses
    "a secret of the tests, not of people",
    "This is the secret of our hospital, do not tell anyone",
    "the quick brown fox jumps over the lazy dog",
    "The Quick Brown Fox Jumps Over The Lazy Dog 2024!",
    "to be or not to be that is the question",
    "To be, or not to be: that is the question. Whether 'tis nobler in the mind to suffer the slings and arrows",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
    "it was the epoch of belief, it was the epoch of incredulity, it was the season of Light",
    "itwasthebestoftimesitwastheworstoftimes",
    "ItWasTheBestOfTimesItWasTheWorstOfTimes",
    "it_was_the_best_of_times_it_was_the_worst",
    "i-t-w-a-s-t-h-e-b-e-s-t-o-f-t-i-m-e-s-it-was",
    "yesterday all my troubles seemed so far away",
    "is this the real life? is this just fantasy?",
    "twinkle twinkle little star how i wonder what you are",
    "never gonna give you up never gonna let you down",
    "We the People of the United States, in Order to form a more perfect Union",
    "en un lugar de la mancha de cuyo nombre no quiero acordarme",
    "Alle Menschen werden Brüder wo dein sanfter Flügel weilt",
    "allons enfants de la patrie le jour de gloire est arrivé",
    "nel mezzo del cammin di nostra vita mi ritrovai per una selva oscura",
    "lorem ipsum dolor sit amet consectetur adipiscing elit",
    "Союз нерушимый республик свободных сплотила навеки Русь",
    "春眠不觉晓处处闻啼鸟夜来风雨声花落知多少春眠不觉晓",
    "please change this secret before production use",
    "i do not know what to write here so i write this",
    "tHiS iS mY vErY sEcReT pAsSpHrAsE oK",
    # hospitals, names, places, years, dates, telephone numbers
    "Massachusetts General Hospital 2024",
    "massachusettsgeneralhospital2024!!",
    "StMarysHospitalResearchDepartment2023",
    "Charite Universitaetsmedizin Berlin 1710",
    "Hospital Clinic de Barcelona, 1906-2024",
    "JohnSmith1962-11-07JaneSmith1964-02-29",
    "john.smith@general-hospital.example.org",
    "deid-secret-for-radiology-notes-2025-v2",
    "Boston-Chicago-Denver-Houston-Seattle-1",
    "Cardiology/Oncology/Radiology/Surgery/2021",
    "12/05/1998 13/06/1999 14/07/2000 15/08/2001",
    "2019-01-01 2020-01-01 2021-01-01 2022-01-01",
    "19980512199906132000071420010815",
    "1990 1991 1992 1993 1994 1995 1996 1997",
    "+1 617 555 0123 +1 617 555 0199 +1 617 555 0142",
    "Ward 7, Bed 3, Room 214, Building B, 02114 Boston",
    # words, repeated or padded
    "passwordpasswordpasswordpassword",
    "Password1!Password1!Password1!Password1!",
    "correct horse battery staple 12345678",
    "correcthorsebatterystaple!!!!!!!!!!!!",
    "CorrectHorseBatteryStaple--------------------------------",
    "abandon ability able about above absent absorb abstract absurd abuse access accident",
    "correct-horse-battery-staple-hospital-window-orange-bicycle-mountain-river",
    "chaffinchchaffinchchaffinchchaffinch",
    "secretsecretsecret hospitalhospitalhospital",
    "hunter2hunter2hunter2hunter2hunter2hunter2",
    "changeme-changeme-changeme-changeme-1234",
    "admin admin root root test test guest guest 1",
    "drowssapdrowssapdrowssapdrowssap",
    # l33t
    "P@ssw0rdP@ssw0rdP@ssw0rdP@ssw0rd",
    "Th1s1sMyH0sp1t4lS3cr3tP@ssw0rd2024!",
    "c0rr3ct h0rs3 b4tt3ry st4pl3 0f h0sp1t4l",
    "1ts4ll4b0utth3p4t13nts4ndth31rn0t3s",
    "My$3cr3tK3yF0rTh3H0sp1t4lN0t3s!!",
    # walks on the keyboard, sequences, repetitions
    "qwertyuiopasdfghjklzxcvbnm1234567890",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,",
    "!QAZ@WSX#EDC$RFV%TGB^YHN&UJM*IK<",
    "zaq12wsxcde34rfvbgt56yhnmju78ik,",
    "qazwsxedcrfvtgbyhnujmikolpqazwsxedc",
    "asdfasdfjkl;jkl;asdfasdfjkl;jkl;asdf",
    "poiuytrewqlkjhgfdsamnbvcxz0987654321",
    "0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "fedcba9876543210fedcba9876543210fedcba9876543210",
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8",
    "00112233445566778899aabbccddeeff",
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    "deadbeefdeadbeefdeadbeefdeadbeef",
    "deadbeefcafebabefeedfacebadc0ffee0ddf00ddeadc0de",
    "00000000000000000000000000000001",
    "1111111122222222333333334444444455555555666666667777777788888888",
    "1234567890123456789012345678901234567890",
    "31415926535897932384626433832795028841971693993751",
    "112358132134558914423337761098715972584",
    "xyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxy",
    "!@#$%^&*()!@#$%^&*()!@#$%^&*()!@#$%^&*()",
    "................................................................",
    "abcabcabcabcdefdefdefdefghighighighijkljkljkljkl",
    "12345678-1234-1234-1234-123456789abc",
    "00000000-0000-0000-0000-000000000000",
]  # fmt: skip

MACHINE: dict[str, Callable[[random.Random], bytes]] = {
    "64 hex digits": lambda rng: rng.randbytes(32).hex().encode(),
    "64 capital hex digits": lambda rng: rng.randbytes(32).hex().upper().encode(),
    "base64 of 32 bytes": lambda rng: base64.b64encode(rng.randbytes(32)),
    "URL-safe base64 of 32 bytes": lambda rng: base64.urlsafe_b64encode(rng.randbytes(32)).rstrip(b"="),
    "base32 of 32 bytes": lambda rng: base64.b32encode(rng.randbytes(32)),
    "32 bytes": lambda rng: rng.randbytes(32),
    "two UUIDs": lambda rng: b" ".join(str(uuid.UUID(bytes=rng.randbytes(16), version=4)).encode() for _ in "ab"),
    "two UUIDs without a blank": lambda rng: b"".join(
        uuid.UUID(bytes=rng.randbytes(16), version=4).hex.encode() for _ in "ab"
    ),
    "40 printable characters": lambda rng: bytes(rng.choices(range(33, 127), k=40)),
}


@pytest.mark.parametrize("choice", HUMAN)
def test_what_a_person_thinks_of_is_refused(choice: str) -> None:
    assert len(choice.encode()) >= 32
    with pytest.raises(ConfigError, match=r"easy to guess.*chaffinch deid secret new") as caught:
        Secret(choice.encode())
    assert choice not in str(caught.value)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_makes_a_sentence_no_secret(encoding: str) -> None:
    with pytest.raises(ConfigError, match="easy to guess"):
        Secret("Alle Menschen werden Brüder, wo dein sanfter Flügel weilt".encode(encoding))


@pytest.mark.parametrize(("kind", "count"), [(kind, 20_000 if kind == "64 hex digits" else 2_000) for kind in MACHINE])
def test_what_a_machine_makes_is_accepted(kind: str, count: int) -> None:
    rng = random.Random(11)
    for _ in range(count):
        Secret(MACHINE[kind](rng))


def test_new_secrets_are_accepted() -> None:
    for _ in range(500):
        Secret(Secret.new().key)


def test_a_check_takes_less_than_five_milliseconds() -> None:
    keys = [b"chaffinch " * 400, random.Random(1).randbytes(4000), HUMAN[5].encode(), Secret.new().key]
    for key in keys:
        durations = []
        for _ in range(6):  # the first may read word lists
            began = time.perf_counter()
            guessing_bits(key)
            durations.append(time.perf_counter() - began)
        assert min(durations) < 0.005


def test_a_human_choice_is_refused_from_a_file_and_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "our.key"
    path.write_text(HUMAN[0] + "\n")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"our\.key is easy to guess.*chaffinch deid secret new"):
        Secret.read(path)
    monkeypatch.setenv(VARIABLE, HUMAN[0])
    with pytest.raises(ConfigError, match=f"{VARIABLE} is easy to guess"):
        Secret.read()
    (tmp_path / "notes.txt").write_text("Seen by Dr. Penn.")
    assert main(["deid", str(tmp_path / "notes.txt"), "-o", str(tmp_path / "out.txt"), "--model", "rules"]) == 2
    assert "easy to guess" in capsys.readouterr().err
    assert not (tmp_path / "out.txt").exists()
