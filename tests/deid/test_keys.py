"""Secrets: never shown, never open to others, never overwritten; numbers uniform and domain-separated."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import pickle
import stat
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from chaffinch.cli.deid.secret import new_command, rotate_command
from chaffinch.deid.keys import VARIABLE, Secret, rotate
from chaffinch.errors import ConfigError
from tests.deid.releases import SECRET

KEY = SECRET.key
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=6)  # lone surrogates included


def test_the_stream_is_hmac_of_length_prefixed_parts() -> None:
    message = b"chaffinch deid 1" + b"\0" * 7 + b"\x02" + "é".encode() + b"\0" * 7 + b"\x00"
    blocks = [hmac.new(KEY, message + at.to_bytes(8, "big"), hashlib.sha256).digest() for at in (0, 1)]
    expected = [int.from_bytes(block[at : at + 8], "big") for block in blocks for at in (0, 8, 16, 24)]
    assert list(islice(SECRET.stream("é", ""), 8)) == expected


@given(st.lists(ANY_TEXT, max_size=4), st.lists(ANY_TEXT, max_size=4))
def test_different_parts_give_different_streams(one: list[str], other: list[str]) -> None:
    assert (next(SECRET.stream(*one)) == next(SECRET.stream(*other))) == (one == other)


def test_parts_cannot_be_moved_across_their_borders() -> None:
    words = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("a", "b", "c"), ()]
    assert len({next(SECRET.stream(*parts)) for parts in words}) == len(words)


@given(st.integers(1, 2**200), ANY_TEXT)
def test_numbers_are_in_range_and_repeatable(bound: int, part: str) -> None:
    number = SECRET.number(bound, part)
    assert 0 <= number < bound
    assert number == Secret(KEY).number(bound, part)


@pytest.mark.parametrize("bound", [2, 3, 7, 10])
def test_numbers_are_uniform(bound: int) -> None:
    draws = 7000
    counts = Counter(SECRET.number(bound, "draw", str(at)) for at in range(draws))
    chi2 = sum((counts[value] - draws / bound) ** 2 / (draws / bound) for value in range(bound))
    assert chi2 < (bound - 1) + 5 * math.sqrt(2 * (bound - 1)) + 5  # five deviations


def test_draws_beyond_the_last_full_multiple_are_drawn_again() -> None:
    # With bound 3 * 2**62 a quarter of all words must be refused; taken modulo the bound they would fall below 2**62.
    bound = 3 << 62
    low = sum(SECRET.number(bound, str(at)) < 1 << 62 for at in range(2000))
    assert abs(low / 2000 - 1 / 3) < 0.05  # half, had they been taken


def test_wide_bounds_use_every_bit() -> None:
    numbers = [SECRET.number(10**30, str(at)) for at in range(50)]
    assert max(numbers) > 10**29
    assert len({number % 2**64 for number in numbers}) == 50


def test_a_bound_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="bound must be at least 1, got 0"):
        SECRET.number(0, "x")


def test_nothing_shows_the_secret() -> None:
    assert repr(SECRET) == "Secret()"
    assert KEY.decode() not in f"{SECRET} {SECRET.fingerprint()}"
    assert SECRET.fingerprint() != Secret.new().fingerprint()
    assert pickle.loads(pickle.dumps(SECRET)) == SECRET


def test_new_secrets_differ() -> None:
    assert len({Secret.new().key for _ in range(20)}) == 20


def test_a_written_secret_reads_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path, secret = tmp_path / "a.key", Secret.new()
    before = os.umask(0)
    try:
        secret.write(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Secret.read(path) == secret == Secret.read(str(path))


def test_writing_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    SECRET.write(path)
    with pytest.raises(ConfigError, match="exists and is not overwritten"):
        Secret.new().write(path)
    assert Secret.read(path) == SECRET
    with pytest.raises(ConfigError, match="cannot be written"):
        SECRET.write(tmp_path / "none" / "a.key")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_file_open_to_others_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    SECRET.write(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"open to others .mode {mode:04o}.; run: chmod 600"):
        Secret.read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hunter2hunter2", "has 14 bytes, at least 32"),
        (b"", "has 0 bytes"),
        (b"  \n" + b"x1" * 15 + b"\n", "has 30 bytes"),
        (b"a" * 64, "easy to guess"),
        (bytes(range(256)) * 20, "hardly a secret"),
    ],
)
def test_a_poor_secret_is_refused_without_showing_it(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=message) as caught:
        Secret.read(path)
    assert "hunter2" not in str(caught.value)


def test_a_missing_secret_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="chaffinch deid secret new"):
        Secret.read(tmp_path / "none.key")
    with pytest.raises(ConfigError, match="not a plain file"):
        Secret.read(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a plain file"):
        Secret.read(tmp_path / "pipe")
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=f"set {VARIABLE}"):
        Secret.read()


def test_the_environment_can_hold_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY.decode() + "\n")
    assert Secret.read() == SECRET
    monkeypatch.setenv(VARIABLE, "hunter2")
    with pytest.raises(ConfigError, match=f"the secret in {VARIABLE} has 7 bytes"):
        Secret.read()


def test_rotation_keeps_every_old_secret(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    SECRET.write(path)
    second, first_kept = rotate(path)
    third, second_kept = rotate(path)
    assert [file.name for file in (first_kept, second_kept)] == ["a.key.old-1", "a.key.old-2"]
    assert [Secret.read(file) for file in (first_kept, second_kept, path)] == [SECRET, second, third]
    assert len({SECRET.key, second.key, third.key}) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_rotation_leaves_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.key"
    SECRET.write(path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ConfigError, match="No space left"):
        rotate(path)
    assert Secret.read(path) == SECRET
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_link_to_the_secret_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "a.key", tmp_path / "link.key"
    SECRET.write(path)
    link.symlink_to(path)
    new, kept = rotate(link)
    assert link.is_symlink()
    assert (Secret.read(path), Secret.read(kept)) == (new, SECRET)


def test_the_commands_tell_paths_and_fingerprints_only(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command("new")(new_command)
    app.command("rotate")(rotate_command)
    path = tmp_path / "a.key"
    made = CliRunner().invoke(app, ["new", str(path), "--json"])
    secret = Secret.read(path)
    assert json.loads(made.output) == {"secret": str(path), "fingerprint": secret.fingerprint(), "old": None}
    turned = CliRunner().invoke(app, ["rotate", str(path)])
    assert turned.exit_code == 0
    assert "a.key.old-1" in turned.output
    for output in (made.output, turned.output):
        assert secret.key.decode() not in output
        assert Secret.read(path).key.decode() not in output
    again = CliRunner().invoke(app, ["new", str(path)])
    assert isinstance(again.exception, ConfigError)
