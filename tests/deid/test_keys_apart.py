"""The secret and the key of a vault are two keys, and the fingerprint of a secret helps nobody to guess it."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.deid import keys, vault
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob, VaultTarget
from tests.deid.releases import KEY, OTHER_KEY, SECRET, detector

SAME = "the secret and the key of the vault are the same"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("Seen by Dr. Penn on 12/05/1998.")
    SECRET.write(tmp_path / "secret")
    KEY.write(tmp_path / "key")
    return ["deid", "note.txt", "-o", "out.txt", "--model", "rules", "--vault", "v", "-q"]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> bool:
    code = main(arguments)
    said = capsys.readouterr().err
    assert SECRET.key.decode() not in said
    return code == 2 and SAME in said


@pytest.mark.parametrize("how", ["same file", "copy", "copy with blanks", "link"])
def test_one_key_for_both_is_refused_by_its_content(
    how: str, run: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / ("secret" if how == "same file" else "second")
    if how == "copy":
        shutil.copy(tmp_path / "secret", key)
    elif how == "copy with blanks":
        key.touch(mode=0o600)
        key.write_bytes(b"\n " + SECRET.key + b" \n\n")
    elif how == "link":
        key.symlink_to(tmp_path / "secret")
    assert refused([*run, "--secret-file", "secret", "--key-file", str(key)], capsys)
    assert not (tmp_path / "out.txt").exists()
    assert not (tmp_path / "v").exists()
    assert main([*run, "--secret-file", "secret", "--key-file", "key"]) == 0


def test_variables_are_compared_too(
    run: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(keys.VARIABLE, SECRET.key.decode())
    assert refused([*run, "--key-file", "secret"], capsys)
    monkeypatch.setenv(vault.VARIABLE, SECRET.key.decode())
    assert refused(run, capsys)
    monkeypatch.delenv(keys.VARIABLE)
    assert refused([*run, "--secret-file", "secret"], capsys)
    monkeypatch.setenv(vault.VARIABLE, KEY.key.decode())
    assert main([*run, "--secret-file", "secret"]) == 0


def test_a_job_refuses_one_key_for_both(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("x")
    given, how = open_source(tmp_path / "note.txt"), Release(Policy("tag"), SECRET)
    with pytest.raises(ConfigError, match=SAME):
        ReleaseJob(given, tmp_path / "out", how, detector(), vault=VaultTarget(tmp_path / "v", Secret(SECRET.key)))
    ReleaseJob(given, tmp_path / "out", how, detector(), vault=VaultTarget(tmp_path / "v", KEY))


def test_a_vault_is_not_put_under_the_secret_or_its_old_key(
    run: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*run, "--secret-file", "secret", "--key-file", "key"]) == 0
    before = (tmp_path / "v").read_bytes()
    rekey = ["deid", "rekey", "v", "--key-file", "key", "-q", "--new-key-file"]
    monkeypatch.setenv(keys.VARIABLE, SECRET.key.decode())
    assert refused([*rekey, "secret"], capsys)
    assert main([*rekey, "key"]) == 2
    assert "the new key is the old one" in capsys.readouterr().err
    assert (tmp_path / "v").read_bytes() == before
    OTHER_KEY.write(tmp_path / "other")
    assert main([*rekey, "other"]) == 0


def test_the_fingerprint_is_scrypt_of_the_secret() -> None:
    made = hashlib.scrypt(
        SECRET.key, salt=b"chaffinch fingerprint 2", n=1 << 15, r=8, p=1, maxmem=1 << 26, dklen=8
    )  # the same on every machine
    assert SECRET.fingerprint() == made.hex()


def test_a_fingerprint_costs_a_guesser_much_and_its_owner_once() -> None:
    fresh = Secret.new()
    began = time.process_time()
    first = fresh.fingerprint()
    cost = time.process_time() - began
    began = time.process_time()
    assert all(fresh.fingerprint() == first for _ in range(100))
    assert time.process_time() - began < cost
    assert cost > 0.01  # an HMAC takes a millionth


def test_the_manifest_has_the_slow_fingerprint(run: list[str], tmp_path: Path) -> None:
    assert main([*run, "--secret-file", "secret", "--key-file", "key"]) == 0
    manifest = json.loads((tmp_path / "out.txt.manifest.json").read_text())
    assert manifest["settings"]["secret"] == SECRET.fingerprint()
    assert f"{next(SECRET.stream('fingerprint')):016x}" not in (tmp_path / "out.txt.manifest.json").read_text()
