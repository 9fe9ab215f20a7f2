"""Bad input, as `chaffinch deid` meets it: withheld or refused in clear words, and running again finishes the rest."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from chaffinch.cli import main
from chaffinch.text.formats import FORMATS, read
from chaffinch.text.formats.base import Entry
from tests.canary import Canary
from tests.deid.releases import SECRET

Printed = pytest.CaptureFixture[str]
WORD = "Quillfeather"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(4):
        text = f"Seen by Dr. {WORD} on 0{number + 1}/10/1998.\r\n\U0001f600 She is well.\n"
        (folder / f"p{number % 2}-{number}.txt").write_bytes(text.encode())
    return folder


def deid(*arguments: str | Path, model: str = "rules") -> int:
    return main(["deid", *map(str, arguments), "--model", model])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def withheld(output: Path) -> list[str]:
    return [
        json.loads(line)["reason"] for line in Path(f"{output}.private", "withheld.jsonl").read_bytes().splitlines()
    ]


def test_every_bad_file_is_withheld_for_its_reason_and_no_word_of_it_is_anywhere(
    notes: Path, tmp_path: Path, canary: Canary
) -> None:
    word = canary.word
    (notes / "gone.txt").symlink_to(tmp_path / "nowhere")
    (notes / "round.txt").symlink_to(notes / "round.txt")
    os.mkfifo(notes / "pipe.txt")
    (notes / "program.txt").write_bytes(b"\x7fELF\x02\x01\r" + bytes(range(256)) * 40 + word.encode())
    (notes / "latin.txt").write_bytes(f"Visite de {word} le 3 f\xe9vrier".encode("latin-1"))
    (notes / "half.txt").write_bytes(f"{word} \U0001f600".encode()[:-2])
    (notes / "surrogate.txt").write_bytes(word.encode() + b"\xed\xa0\x80")
    (notes / "utf16.txt").write_bytes(word.encode("utf-16"))
    (notes / "scan.pdf").write_bytes(b"%PDF-1.7 " + word.encode())
    (notes / "long.txt").write_bytes(f"Dr. {word} ".encode() * 1000)
    place = tmp_path / "out" / "clean"
    place.parent.mkdir()
    done = canary.run("deid", notes, "-o", place, "--model", "rules", "--max-chars", "5000", outputs=[place])
    assert done.returncode == 5, done.stderr
    assert "9 of 14 documents were withheld; " in done.stderr
    assert "clean.private/withheld.jsonl says which and why" in done.stderr
    reasons = withheld(place)
    for words, times in (
        ("cannot be read (No such file", 1), ("cannot be read (Too many levels", 1),
        ("cannot be read (it is no plain file)", 1),
        ("is not valid UTF-8; convert it first", 5),
        ("17,000 characters, the limit is 5,000; raise it with --max-chars", 1),
    ):  # fmt: skip
        assert sum(words in reason for reason in reasons) == times, (words, reasons)
    assert len(list(place.iterdir())) == 4
    manifest = json.loads(Path(f"{place}.manifest.json").read_bytes())
    assert manifest["documents"] == {"in": 14, "released": 4, "withheld": 9, "excluded": 1}
    for name, held in content(place.parent).items():
        assert (word.encode() in held) == (name == "clean.private/ids.jsonl" and word in name), name


def test_a_note_of_100_megabytes_is_refused_by_its_size_at_once(notes: Path, tmp_path: Path, capsys: Printed) -> None:
    with (notes / "huge.txt").open("wb") as stream:
        stream.truncate(100_000_000)
    began = time.process_time()
    assert deid(notes, "-o", tmp_path / "clean") == 5
    assert time.process_time() - began < 10
    assert withheld(tmp_path / "clean") == [
        "100,000,000 characters, the limit is 10,000,000; raise it with --max-chars"
    ]
    assert "documents released  4" in capsys.readouterr().out


@pytest.mark.parametrize("policy", ["safe-harbor", "i2b2-surrogate"])
@pytest.mark.parametrize("text", ["31/02/1998", "02/31/1998", "30 February 1998", "1998-02-30", "29/02/1999"])
def test_a_day_that_does_not_exist_is_never_passed(text: str, policy: str, tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "a.txt").write_text(f"Admitted on {text} with fever.\n")
    SECRET.write(tmp_path / "secret")
    out = tmp_path / "out"
    how: list[str | Path] = ["--policy", policy, "--secret-file", tmp_path / "secret", "--each-note-a-patient", "-q"]
    assert deid(tmp_path / "n", "-o", out, *how) == 0
    (doc,) = read(out)
    assert doc.text.startswith("Admitted on ")
    assert doc.text.endswith(" with fever.\n")
    assert text not in doc.text
    if policy == "i2b2-surrogate":
        assert doc.text == "Admitted on [DATE] with fever.\n"


def test_overlapping_known_identifiers_leave_nothing_of_any(tmp_path: Path) -> None:
    rows = ["p,Mary Penn,", "p,Penn Lowe,", "p,Mary Penn Lowe,12-34-567", "p,Lowe,4-567"]
    (tmp_path / "known.csv").write_text("\n".join(["patient,name,mrn", *rows]))
    (tmp_path / "n").mkdir()
    text = "MARY PENN LOWE (penn lowe) is here, 1234567; not Pennsylvania. lowe"
    (tmp_path / "n" / "p-1.txt").write_text(text)
    out = tmp_path / "out"
    assert deid(tmp_path / "n", "-o", out, "--known", tmp_path / "known.csv", "--group-by", "^p", "-q") == 0
    (doc,) = read(out)
    assert doc.text == "[PATIENT] ([PATIENT]) is here, [MEDICALRECORD]; not Pennsylvania. [PATIENT]"


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "secret new"),
        (b"", 0o600, "secret"),
        (b"short", 0o600, "secret"),
        (b"\xff\xfe", 0o600, "secret"),
        (SECRET.key, 0o644, "chmod 600"),
    ],
)
def test_a_missing_or_poor_secret_is_refused_before_any_note_is_read(
    content: bytes | None, mode: int, words: str, notes: Path, tmp_path: Path, capsys: Printed
) -> None:
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_bytes(content)
        secret.chmod(mode)
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments: list[str | Path] = ["-o", tmp_path / "clean", "--policy", "i2b2-surrogate", "--secret-file", secret]
    assert deid(notes, *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert str(secret) in said
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["absent", "-o", "out"], 3, "does not exist; check the path"),
        (["empty", "-o", "out"], 3, "has no files that can be read"),
        (["notes", "-o", "no/out"], 2, "make it first"),
        (["notes", "-o", "out", "--html", "no/page.html"], 2, "make it first"),
        (["notes", "-o", "out", "--html", "notes/page.html"], 2, "in the input or the output"),
        (["notes", "-o", "out", "--html", "out/page.html"], 2, "does not exist"),
        (["notes", "-o", "out", "--known", "bytes"], 3, "save the file as UTF-8"),
        (["notes", "-o", "out", "--allow", "bytes"], 3, "save the file as UTF-8"),
        (["notes", "-o", "out", "--group-by", "bytes"], 3, "id, tab, patient"),
        (["notes", "-o", "out", "--policy", "bytes"], 2, "cannot be read"),
        (["notes", "-o", "out", "--recall", "0.99"], 2, "rules have none"),
        (["notes", "-o", "full"], 3, "is a folder that is not empty; choose another output"),
    ],
)
def test_what_cannot_work_is_refused_at_once_with_its_name_and_the_remedy(
    arguments: Sequence[str], code: int, words: str, notes: Path, tmp_path: Path, capsys: Printed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(notes.parent)
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "x.txt").touch()
    (tmp_path / "bytes").write_bytes(b"\xff" + WORD.encode() + b"\n")
    before = content(tmp_path)
    assert deid(*arguments) == code
    said = capsys.readouterr().err
    assert words in said
    assert WORD not in said
    assert "internal" not in said
    assert content(tmp_path) == before


@pytest.mark.parametrize("where", ["output", "list"])
def test_a_full_disk_stops_with_no_output_and_the_rest_is_finished_later(
    where: str, notes: Path, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    assert deid(notes, "-o", tmp_path / "whole" / "out", "-q") == 0
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes" if where == "output" else "chaffinch.jobs.release._sync", full)
        assert deid(notes, "-o", tmp_path / "part" / "out", "-q") == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "out.part" in said
    assert "--resume" in said
    assert [path.name for path in (tmp_path / "part").iterdir()] == ["out.part"]
    assert WORD.encode() not in b"".join(content(tmp_path / "part").values())
    assert deid(notes, "-o", tmp_path / "part" / "out", "-q", "--resume") == 0
    assert content(tmp_path / "part") == content(tmp_path / "whole")


_KILLED = """
import os, signal, sys
from pathlib import Path
from chaffinch.cli import main
from chaffinch.jobs.ledger import Ledger

usual, moves, when = Ledger.sync, Path.replace, sys.argv[1]

def sync(self):
    usual(self)
    if when == "working" and len(self) >= 20:
        os.kill(os.getpid(), signal.SIGKILL)

def moved(self, target):
    if when == "placing" and self.name == "manifest.json":
        os.kill(os.getpid(), signal.SIGKILL)
    return moves(self, target)

Ledger.sync, Path.replace = sync, moved
main(sys.argv[2:])
"""


@pytest.mark.parametrize("when", ["working", "placing"])
def test_a_killed_process_is_finished_by_resume_with_the_same_bytes(
    when: str, notes: Path, tmp_path: Path, capsys: Printed
) -> None:
    for number in range(50):
        text = f"Seen by Dr. {WORD} on 3/{number % 28 + 1}/1998. " + "x" * 30_000
        (notes / f"p{number % 9}-{number}.txt").write_bytes(text.encode())
    SECRET.write(tmp_path / "secret")
    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    how: list[str | Path] = [
        "--policy",
        "i2b2-surrogate",
        "--secret-file",
        tmp_path / "secret",
        "--group-by",
        r"^(p\d)-",
        "-q",
    ]
    assert deid(notes, "-o", tmp_path / "whole" / "out", *how) == 0
    again = ["deid", str(notes), "-o", str(tmp_path / "part" / "out"), *map(str, how), "--model", "rules"]
    killed = subprocess.run([sys.executable, "-c", _KILLED, when, *again], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout + killed.stderr == ""
    assert not (tmp_path / "part" / "out").exists()
    assert WORD.encode() not in b"".join(content(tmp_path / "part").values())
    assert main(again) == 2
    assert "--resume" in capsys.readouterr().err
    assert main([*again, "--resume"]) == 0
    assert content(tmp_path / "part") == content(tmp_path / "whole")


def test_no_bytes_break_the_recognition_of_formats() -> None:
    rng = np.random.default_rng(0)
    seeds = [
        b'{"text": "x", "id": 3}\n', b'id,text\r\n1,"a\rb"\r\n', b'<?xml version="1.0"?><deIdi2b2><TEXT>', b"PAR1",
        b"12|t|x\n12|a|y\n", b'[{"data":{"text":"x"}}]', b"a B-X\nb O\n", b"\xef\xbb\xbfnote\ttext\n", b"T1\tX 0 1\ta",
        Path(sys.executable).read_bytes()[:4096],
    ]  # fmt: skip
    odd = np.frombuffer(b'\0\t\n\r",;<[{}\xed\xff', np.uint8)
    for number in range(3000):
        held = bytearray(seeds[number % len(seeds)][: int(rng.integers(1, 4097))])
        for _ in range(int(rng.integers(0, 6))):
            held[int(rng.integers(len(held)))] = int(rng.choice(odd))
        name = f"x.{('txt', 'csv', 'json', 'xml', 'bin')[number % 5]}"
        entry = Entry(name, name, lambda own=bytes(held): io.BytesIO(own))  # type: ignore[misc]
        assert all(form.recognises(entry, bytes(held)) in (True, False) for form in FORMATS)
