"""A run is only finished with the very inputs it was begun with; what changed is refused, never mixed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.model import load
from chaffinch.errors import ConfigError
from chaffinch.jobs.ledger import Ledger
from chaffinch.weak.sources import Lexicon, Regex, source
from tests.deid.releases import KEY, OTHER_SECRET, SECRET

FILES = {
    "policy.toml": 'name = "ours"\ndefault = "tag"\n[rules]\nNAME = "surrogate"\n',
    "known.csv": "patient,last\np1,Zyx\n",
    "allow.txt": "Mayo stand\n",
    "deny.txt": "Project Wren\n",
    "groups.tsv": "".join(f"p{number % 2}-{number}\tp{number % 2}\n" for number in range(6)),
    "types.toml": (
        '[[source]]\nkind = "lexicon"\nname = "wards"\nphrases = "wards.txt"\nlabel = "Ward"\n'
        '[[source]]\nkind = "context"\nname = "trials"\ntriggers = "triggers.txt"\nlabel = "Trial"\n'
        '[[source]]\nkind = "tokens"\nname = "codes"\nlabel = "Code"\npattern = [{ in_list = "codes.txt" }]\n'
        '[[source]]\nkind = "spans"\nname = "crowd"\npath = "crowd.jsonl"\n'
    ),
    "wards.txt": "Ward Nine\n",
    "triggers.txt": "study of\n",
    "codes.txt": "xq77\n",
    "crowd.jsonl": '{"document": "p0-0", "start": 0, "end": 4, "label": "Word"}\n',
    "types.py": (
        "from chaffinch.weak.sources import source\nWORDS = ['Wren']\n"
        '@source("own", label="Own")\ndef own(doc):\n    return [(0, 1)] if WORDS[0] in doc.text else []\n'
    ),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the commands run, with notes and all that can be given with them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    for number in range(6):
        text = f"Seen by Dr. Penn on 3/{number + 1}/1998 in Ward Nine, for Project Wren and Zyx. Xq77.\n"
        (tmp_path / "notes" / f"p{number % 2}-{number}.txt").write_text(text)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    SECRET.write(tmp_path / "secret")
    KEY.write(tmp_path / "key")
    return tmp_path


def stop_after(puts: int, patch: pytest.MonkeyPatch, run: Callable[[], object]) -> object:
    """Run, and stop as by Ctrl-C when so many results are stored."""
    usual, done = Ledger.put, 0

    def put(self: Ledger, number: int, key: str, result: bytes) -> None:
        nonlocal done
        if done == puts:
            raise KeyboardInterrupt
        usual(self, number, key, result)
        done += 1

    with patch.context() as own:
        own.setattr(Ledger, "put", put)
        return run()


def content(output: Path) -> dict[str, bytes]:
    """All files of a release, by name without that of the output."""
    files = [path for path in output.parent.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(output.parent)).removeprefix(output.name): path.read_bytes()
        for path in files
        if str(path.relative_to(output.parent)).startswith(output.name)
    }


BASE = {
    "--policy": "policy.toml", "--secret-file": "secret", "--group-by": "groups.tsv", "--known": "known.csv",
    "--allow": "allow.txt", "--deny": "deny.txt", "--types": "types.toml", "--model": "rules",
}  # fmt: skip


def arguments(output: str, options: dict[str, str]) -> list[str]:
    return ["deid", "notes", "-o", output, "--quiet", *(part for pair in options.items() for part in pair if part)]


def edit(name: str, old: str, new: str) -> Callable[[dict[str, str]], dict[str, str]]:
    """Change a file that is given."""

    def change(options: dict[str, str]) -> dict[str, str]:
        path = Path(name)
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        return options

    return change


def give(**changed: str) -> Callable[[dict[str, str]], dict[str, str]]:
    """Give other options."""
    return lambda options: {**options, **{f"--{name.replace('_', '-')}": value for name, value in changed.items()}}


def another_secret(options: dict[str, str]) -> dict[str, str]:
    Path("secret").unlink()
    OTHER_SECRET.write("secret")
    return options


CHANGES: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "admission list": edit("known.csv", "Zyx", "Zyxel"),
    "allow": edit("allow.txt", "stand", "tray"),
    "deny": edit("deny.txt", "Project Wren", "Ward Nine"),
    "phrase file of a type": edit("wards.txt", "Nine", "Ten"),
    "triggers of a type": edit("triggers.txt", "study", "trial"),
    "word list of a token": edit("codes.txt", "77", "78"),
    "spans of a crowd": edit("crowd.jsonl", '"end": 4', '"end": 7'),
    "types": edit("types.toml", '"Ward"', '"Place"'),
    "types in Python": give(types="types.py"),
    "group table": edit("groups.tsv", "p1-3\tp1", "p1-3\tp0"),
    "group pattern": give(group_by=r"^(p\d)-"),
    "policy": edit("policy.toml", '"tag"', '"mask"'),
    "secret": another_secret,
    "model": give(model="deid-en"),
    "ids": give(ids="keep"),
    "apart": give(apart=""),
    "max chars": give(max_chars="5000"),
    "vault": give(vault="v", key_file="key"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_command_with_another_input_does_not_go_on(
    change: Callable[[dict[str, str]], dict[str, str]],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", BASE))) == 130
    before = content(place / "out")
    changed = change(dict(BASE))
    capsys.readouterr()
    assert main([*arguments("out", changed), "--resume"]) == 2
    assert "is of a run with other settings" in capsys.readouterr().err
    assert content(place / "out") == before
    assert main(arguments("fresh", changed)) == 0, "the change itself is sound"


def test_a_command_with_the_same_inputs_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(arguments("whole", BASE)) == 0
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", BASE))) == 130
    for name in FILES:
        (place / name).touch()
    assert main([*arguments("out", BASE), "--resume"]) == 0
    assert content(place / "out") == content(place / "whole")


def test_a_python_file_of_types_counts_whole(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**BASE, "--types": "types.py"}
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", options))) == 130
    edit("types.py", "Wren", "Lark")(options)
    assert main([*arguments("out", options), "--resume"]) == 2


@pytest.mark.parametrize("change", ["recall", "model file", "nothing"])
def test_another_model_file_or_recall_does_not_go_on(change: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load("deid-en").save(place / "m.cfm", notes="first")
    options = {**BASE, "--model": "m.cfm", "--recall": "0.95"}
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", options))) == 130
    if change == "model file":
        first = load("m.cfm")
        replace(first, taggers=first.taggers[:1], rules=False).save(place / "m.cfm")
    options |= {"--recall": "0.96"} if change == "recall" else {}
    assert main([*arguments("out", options), "--resume"]) == (0 if change == "nothing" else 2)


def test_another_key_or_place_of_the_vault_does_not_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**BASE, "--vault": "v", "--key-file": "key"}
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", options))) == 130
    OTHER_SECRET.write("other")
    assert main([*arguments("out", {**options, "--key-file": "other"}), "--resume"]) == 2
    assert main([*arguments("out", {**options, "--vault": "w"}), "--resume"]) == 2
    assert main([*arguments("out", options), "--resume"]) == 0


def test_each_note_a_patient_does_not_go_on_without_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"--model": "rules", "--each-note-a-patient": ""}
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", options))) == 130
    assert main([*arguments("out", {"--model": "rules"}), "--resume"]) == 2
    assert main([*arguments("out", options), "--resume"]) == 0


@pytest.mark.parametrize("package", ["chaffinch", "numpy", "scipy", "numba", "python"])
def test_another_version_does_not_go_on(package: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", BASE))) == 130
    from chaffinch.jobs import job as jobs

    found = jobs.versions()
    assert package in found
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "versions", lambda: {**found, package: "0.0"})
        assert main([*arguments("out", BASE), "--resume"]) == 2
    assert main([*arguments("out", BASE), "--resume"]) == 0


@source("first", label="Own")
def mark_first(doc: cf.Document) -> list[tuple[int, int]]:
    return [(0, 4)]


@source("first", label="Own")
def mark_second(doc: cf.Document) -> list[tuple[int, int]]:
    return [(5, 7)]


def of(**options: Any) -> Callable[[], cf.deid.Detector]:
    return lambda: cf.deid.detector(**options)


def with_another_dial(model: Any) -> Any:
    """The model with thresholds that nobody would set."""
    told = json.loads(json.dumps(model.dial.to_dict()).replace("0.", "0.1"))
    return replace(model, dial=type(model.dial).from_dict(told))


def moved(model: Any) -> Any:
    """The model with one tagger less; nobody has saved it, so that it has the old checksum."""
    return replace(model, taggers=model.taggers[:1]) if len(model.taggers) > 1 else replace(model, rules=False)


PAIRS: dict[str, tuple[Callable[[], cf.deid.Detector], Callable[[], cf.deid.Detector]]] = {
    "known": (
        of(known=KnownIdentifiers.of([{"patient": "p1", "last": "Zyx"}])),
        of(known=KnownIdentifiers.of([{"patient": "p1", "last": "Wren"}])),
    ),
    "patient of known": (
        of(known=KnownIdentifiers.of([{"patient": "p1", "last": "Zyx"}])),
        of(known=KnownIdentifiers.of([{"patient": "p0", "last": "Zyx"}])),
    ),
    "known or not": (of(), of(known=KnownIdentifiers.of([{"patient": "p1", "last": "Zyx"}]))),
    "allow": (of(allow=["Mayo stand"]), of(allow=["Mayo tray"])),
    "allow or deny": (of(allow=["Zyx"]), of(deny=["Zyx"])),
    "label of deny": (of(deny={"PATIENT": ["Zyx"]}), of(deny={"DOCTOR": ["Zyx"]})),
    "phrases of a type": (
        of(types=[Lexicon("own", ["Ward Nine"], label="Own")]), of(types=[Lexicon("own", ["Xq77"], label="Own")]),
    ),
    "pattern of a type": (
        of(types=[Regex("own", "Ward", label="Own")]), of(types=[Regex("own", "Zyx", label="Own")]),
    ),
    "function of a type": (of(types=[mark_first]), of(types=[mark_second])),
    "by patient": (of(by_patient=True), of(by_patient=False)),
    "dial": (
        lambda: cf.deid.detector(load("deid-en")), lambda: cf.deid.detector(with_another_dial(load("deid-en"))),
    ),
    "model in memory": (
        lambda: cf.deid.detector(load("deid-en")), lambda: cf.deid.detector(moved(load("deid-en"))),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=PAIRS)
def test_a_call_with_another_detector_does_not_go_on(
    first: Callable[[], cf.deid.Detector],
    second: Callable[[], cf.deid.Detector],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(output: str, find: cf.deid.Detector, *, resume: bool = False) -> None:
        cf.deid.run("notes", output, find, group_by=r"^(p\d)-", settings=cf.deid.RunSettings(resume=resume))

    run("whole", first())
    with pytest.raises(BaseException, match="interrupted"):
        stop_after(3, monkeypatch, lambda: run("out", first()))
    with pytest.raises(ConfigError, match="other settings"):
        run("out", second(), resume=True)
    run("out", first(), resume=True)
    assert content(place / "out") == content(place / "whole")


def test_a_call_finishes_what_the_command_began(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"--model": "rules", "--known": "known.csv", "--deny": "deny.txt", "--group-by": "groups.tsv"}
    assert main(arguments("whole", options)) == 0
    assert stop_after(3, monkeypatch, lambda: main(arguments("out", options))) == 130
    table = dict(line.split("\t") for line in FILES["groups.tsv"].splitlines())
    find = cf.deid.detector(known="known.csv", deny=["Project Wren"], by_patient=True)
    with pytest.raises(ConfigError, match="other settings"):
        cf.deid.run("notes", "out", find, group_by={**table, "p1-3": "p0"}, settings=cf.deid.RunSettings(resume=True))
    cf.deid.run("notes", "out", find, group_by=table, settings=cf.deid.RunSettings(resume=True))
    assert content(place / "out") == content(place / "whole")


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("change", ["added first", "added last", "removed", "edited", "renamed", "swapped"])
def test_notes_that_changed_meanwhile_come_out_as_in_a_fresh_run(
    change: str, apart: bool, keyed: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 2)
    options = {"--model": "rules", "--group-by": r"^(p\d)-", "--secret-file": "secret"}
    options |= {"--policy": "i2b2-surrogate"} if keyed else {}
    options |= {"--apart": ""} if apart else {}
    assert stop_after(4, monkeypatch, lambda: main(arguments("out", options))) == 130
    notes = place / "notes"
    first, second = notes / "p0-0.txt", notes / "p0-2.txt"
    if change.startswith("added"):
        (notes / ("p0--.txt" if "first" in change else "p1-9.txt")).write_text("Patient: Adam Lowe.\n")
    elif change == "removed":
        first.unlink()
    elif change == "edited":
        first.write_text("Patient: Adam Lowe, seen by Dr. Penn.\n")
    elif change == "renamed":
        first.rename(notes / "p0-1.txt")
    else:
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)
    assert main([*arguments("out", options), "--resume"]) == main(arguments("whole", options)) == 0
    assert content(place / "out") == content(place / "whole")


def test_the_digest_of_a_detector_is_the_same_in_every_process_and_before_and_after_use() -> None:
    find = cf.deid.detector(deny=["Zyx"], types=[Lexicon("own", ["Ward Nine"], label="Own")])
    before = find.digest
    list(find([cf.Document.make("Zyx in Ward Nine")]))
    assert find.digest == before
    assert cf.deid.detector(deny=["Zyx"], types=[Lexicon("own", ["Ward Nine"], label="Own")]).digest == before
    assert all(first().digest != second().digest for first, second in PAIRS.values())
