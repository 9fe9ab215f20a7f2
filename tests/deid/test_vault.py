"""The vault gives the originals back, to the holder of the key alone, and only if nobody touched it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaffinch.deid import vault as module
from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release import sealed_file
from chaffinch.deid.release.replace import replace_identifiers
from chaffinch.deid.vault import UndoRecord, Vault, rekey, restore, write_vault
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from tests.deid.releases import CANARY, KEY, OTHER_KEY, SECRET
from tests.deid.texts import documents

POLICIES = [
    *(Policy(name, PolicyRule(name)) for name in ("tag", "number", "mask", "remove", "keep")),
    Policy.read("safe-harbor"),
    Policy.read("i2b2-surrogate"),
]
HEADER = 82
GONE = Policy("gone", PolicyRule("remove"))


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """The same keys, with less work, and each made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed_file, "_COST", 14)
        patch.setattr(sealed_file, "_derive_keys", lru_cache(maxsize=None)(sealed_file._derive_keys))
        yield


def note(text: str, name: str = "n1", start: int = 4) -> tuple[Document, Document, UndoRecord]:
    """An input, what was released of it, and what the vault keeps: its first word but one is gone."""
    end = text.index(" ", start)
    doc = Document.make(
        text, id=f"in-{name}", group="Mary", meta={"ward": 7}, layers={"f": [Span(start, end, "DOCTOR")]}
    )
    acted = replace_identifiers(doc, "f", GONE)
    return doc, Document.make(acted.text, id=name), UndoRecord.of(doc, acted, name)


def written(path: Path, *kept: UndoRecord) -> Path:
    with write_vault(path, KEY) as vault:
        for one in kept:
            vault.add(one)
    return path


@given(documents(overlaps=True), st.sampled_from(POLICIES))
@settings(max_examples=300)
def test_what_is_kept_undoes_a_release(doc: Document, policy: Policy) -> None:
    acted = replace_identifiers(doc, "found", policy, SECRET)
    assert UndoRecord.of(doc, acted, "out").restore(acted.text) == doc


@given(st.lists(documents(overlaps=True), max_size=6), st.sampled_from(POLICIES))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_vault_gives_every_input_back(tmp_path: Path, docs: list[Document], policy: Policy) -> None:
    path = tmp_path / "v"
    path.unlink(missing_ok=True)
    acted = [replace_identifiers(doc, "found", policy, SECRET) for doc in docs]
    kept = [UndoRecord.of(doc, one, str(number)) for number, (doc, one) in enumerate(zip(docs, acted, strict=True))]
    vault = Vault.open(written(path, *kept), KEY)
    assert list(vault) == kept
    out = [Document.make(one.text, id=str(number)) for number, one in enumerate(acted)]
    assert list(restore(out, vault)) == docs
    assert list(restore(out[::-1], vault)) == docs[::-1]


def test_no_text_is_on_the_disk_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    _, _, kept = note(f"Dr. {CANARY} came.")
    path = written(tmp_path / "v", kept)
    content = path.read_bytes()
    assert CANARY.encode() not in content
    assert b"Mary" not in content
    assert CANARY not in repr(kept)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_wrong_key_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "v", note("Dr. Penn came.")[2])
    with pytest.raises(ConfigError, match="does not open"):
        Vault.open(path, OTHER_KEY)


def test_no_byte_can_change(tmp_path: Path) -> None:
    path = written(tmp_path / "v", note("Dr. Penn came.")[2], note("Dr. Lowe came.", "n2")[2])
    content = path.read_bytes()
    places = [*range(18), 20, 49, 50, 81, *range(HEADER, len(content))]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises((ConfigError, DataError)) as caught:
            Vault.open(path, KEY)
        assert "Penn" not in str(caught.value)


def _parts(content: bytes) -> list[bytes]:
    parts, at = [content[:HEADER]], HEADER
    while at < len(content):
        size = 4 + int.from_bytes(content[at : at + 4], "big")
        parts.append(content[at : at + size])
        at += size
    return parts


def test_no_record_can_be_moved_left_out_repeated_or_brought_from_elsewhere(tmp_path: Path) -> None:
    kept = [note(f"Dr. {name} came.", f"n{number}")[2] for number, name in enumerate(("Penn", "Lowe", "Hart"))]
    path = written(tmp_path / "v", *kept)
    header, a, b, c, end = _parts(path.read_bytes())
    other = _parts(written(tmp_path / "other", *kept).read_bytes())
    wrong = [
        [header, b, a, c, end], [header, a, c, end], [header, a, b, end], [header, a, b, c], [header, a, a, b, c, end],
        [header, a, b, c, end, end], [header, a, b, c, end, b"\0"], [header, end], [header], [],
        [header, other[1], b, c, end],
        [header, a, b, c, end[:-1]], [other[0], a, b, c, end], [header, a, b[:-1], c, end],
    ]  # fmt: skip
    for parts in wrong:
        path.write_bytes(b"".join(parts))
        with pytest.raises(DataError):
            Vault.open(path, KEY)
    path.write_bytes(b"".join([header, a, b, c, end]))
    assert list(Vault.open(path, KEY)) == kept


def test_a_vault_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    def fail() -> None:
        with write_vault(tmp_path / "v", KEY) as vault:
            vault.add(note("Dr. Penn came.")[2])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_vault_is_never_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path / "v")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="never overwritten"):
        written(path)
    assert path.read_bytes() == before


def test_rekey_changes_the_key_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [note(f"Dr. {name} came.", f"n{number}")[2] for number, name in enumerate(("Penn", "Lowe"))]
    path = written(tmp_path / "v", *kept)
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        rekey(path, OTHER_KEY, KEY)
    with monkeypatch.context() as patch:
        patch.setattr(module.Writer, "end", _full)
        with pytest.raises(OSError, match="full"):
            rekey(path, KEY, OTHER_KEY)
    assert path.read_bytes() == before
    assert rekey(path, KEY, OTHER_KEY) == 2
    assert list(Vault.open(path, OTHER_KEY)) == kept
    with pytest.raises(ConfigError):
        Vault.open(path, KEY)
    assert [file.name for file in tmp_path.iterdir()] == ["v"]


def _full(_: object) -> None:
    raise OSError(28, "full")


def test_a_document_that_was_changed_or_is_another_is_refused(tmp_path: Path) -> None:
    doc, out, kept = note(f"Dr. {CANARY} came.")
    vault = Vault.open(written(tmp_path / "v", kept), KEY)
    assert list(restore([out], vault)) == [doc]
    for wrong in (Document.make(out.text + " ", id=out.id), Document.make(out.text, id="n9")):
        with pytest.raises(DataError) as caught:
            list(restore([wrong], vault))
        assert CANARY not in str(caught.value)


def test_documents_of_one_name_and_text_are_told_apart_by_their_order(tmp_path: Path) -> None:
    one, two = note("Dr. Penn came.", "same"), note("Dr. Lowe came.", "same")
    vault = Vault.open(written(tmp_path / "v", one[2], two[2]), KEY)
    assert list(restore([one[1], two[1]], vault)) == [one[0], two[0]]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"chaffinch vault\0", b"chaffinch vault\0" + b"\x09" * 80])
def test_what_is_no_vault_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises(DataError, match="vault"):
        Vault.open(path, KEY)
    with pytest.raises(DataError, match="cannot be read"):
        Vault.open(tmp_path / "absent", KEY)
