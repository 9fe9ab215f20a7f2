"""Working commands of all verbs, and every way to break one of them in one place.

A mutation misspells an option, a value, a key or a column, or names a file that is not there. It must be refused, or
be told as a warning: what was asked is done or refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaffinch import write
from chaffinch.cli import main
from tests.deid.releases import KEY, SECRET
from tests.relations.made import documents

OUT = "OUT"  # in a command: a new path
PATIENT = r"^(p\d+)-"
SOURCES = (
    '[[source]]\nkind = "regex"\nname = "trials"\npattern = "NCT[0-9]{8}"\nlabel = "Trial"\n'
    '[[source]]\nkind = "lexicon"\nname = "doctors"\nphrases = "doctors.txt"\nlabel = "DOCTOR"\n'
)
NOTE = "Seen by Dr. {} on 03/04/1998 for Project Wren, NCT01234567. Zyx Lowe slept well.\n"
FILES = {
    **{f"notes/p{n % 3}-{n}.txt": NOTE.format(("Penn", "Lowe")[n % 2]) for n in range(6)},
    "notes.csv": "number,subject,report,ward\n" + "".join(f"{n},p{n % 2},Dr. Penn slept.,east\n" for n in range(4)),
    "known.csv": "patient,last,mrn\np0,Zyx,\np1,Zyx,\np2,Zyx,\n",
    "groups.tsv": "".join(f"p{n % 3}-{n}\tp{n % 3}\n" for n in range(6)),
    "deny.txt": "Project Wren\n",
    "doctors.txt": "Penn\nLowe\n",
    "sources.toml": SOURCES,
    "policy.toml": (
        'types = ["Trial"]\ndefault = "tag"\n[rules]\nTrial = "remove"\n'
        'DATE = { operator = "shift", weeks = true }\n'
    ),
    "config.toml": '[deid]\ndeny = "deny.txt"\n[deid.run]\nids = "keep"\n',
    "train.toml": '[train]\nlayer = "gold"\n[train.cascade]\nepochs = 1\n',
}  # fmt: skip

DEID = ["deid", "notes", "-o", OUT, "--model", "rules"]
ROLES = ["--relation", "localises", "--role", "Protein", "--role", "Location"]
COMMANDS: Sequence[Sequence[str]] = (
    [*DEID, "--policy", "policy.toml", "--types", "sources.toml", "--group-by", PATIENT, "--secret-file", "secret"],
    [*DEID, "--known", "known.csv", "--group-by", "groups.tsv", "--deny", "deny.txt", "--from", "txt"],
    [*DEID, "--config", "config.toml"],
    ["deid", "run", "notes", "-o", OUT, "--model", "rules", "--vault", f"{OUT}.v", "--key-file", "key"],
    ["deid", "notes.csv", "-o", f"{OUT}.csv", "--model", "rules", "--text-column", "report", "--id-column", "number",
     "--patient-column", "subject", "--keep", "ward", "--policy", "limited-dataset"],
    ["deid", "notes", "--dry-run", "--model", "rules", "--group-by", PATIENT, "--html", f"{OUT}.html"],
    ["deid", "sample", "clean", "-o", f"{OUT}.json", "--notes", "3", "--strata", "1", "--allocation", "mixed",
     "--category", "NAME"],
    ["deid", "estimate", "sample.json", "form.csv", "--recall", "0.95", "--planted", "20"],
    ["deid", "restore", "kept", "-o", OUT, "--vault", "kept.v", "--key-file", "key"],
    ["deid", "secret", "new", OUT],
    ["convert", "gold.jsonl", "-o", OUT, "--to", "brat", "--layer", "gold", "--from", "jsonl"],
    ["convert", "notes", "-o", f"{OUT}.jsonl", "--group-by", PATIENT],
    ["convert", "notes.csv", "-o", f"{OUT}.jsonl", "--text-column", "report", "--patient-column", "subject"],
    ["train", "gold.jsonl", "-o", f"{OUT}.cfm", "--method", "cascade", "--layer", "gold", "--set", "epochs=1",
     "--dev", "0.3", "--lexicon", "DOCTOR=doctors.txt"],
    ["train", "gold.jsonl", "-o", f"{OUT}.cfm", "--config", "train.toml"],
    ["tag", "m.cfm", "notes", "-o", f"{OUT}.jsonl", "--bias", "O=-1", "--group-by", PATIENT, "--align", "recall"],
    ["tag", "deid-en", "notes", "-o", OUT, "--to", "i2b2", "--from", "txt"],
    ["evaluate", "gold.jsonl", "pred.jsonl", "--scheme", "strict", "--layer", "gold", "--pred-layer", "cascade"],
    ["compare", "gold.jsonl", "pred.jsonl", "pred.jsonl", "--a-layer", "cascade", "--b-layer", "cascade"],
    ["show", "m.cfm"],
    ["show", "cascade", "--json"],
    ["synth", "notes", "-o", OUT, "--to", "txt", "--patients", "2", "--notes", "1", "--names", "train", "--style",
     "varied", "--sites", "a,b"],
    ["weak", "apply", "notes", "--sources", "sources.toml", "-o", f"{OUT}.jsonl", "--group-by", PATIENT],
    ["weak", "aggregate", "votes.jsonl", "-o", f"{OUT}.jsonl", "--method", "multihmm", "--only", "trials,doctors"],
    ["weak", "analyse", "votes.jsonl", "--only", "trials,doctors"],
    ["relate", "train", "docs.jsonl", "-o", f"{OUT}.cfm", *ROLES, "--mode", "entities", "--view", "words"],
    ["relate", "extract", "r.cfm", "docs.jsonl", "-o", f"{OUT}.jsonl", "--from", "jsonl"],
    ["relate", "evaluate", "r.cfm", "docs.jsonl"],
)  # fmt: skip

EDITS: Sequence[tuple[int, str, str, str]] = (  # of the command with this number: a file, and words changed in it
    *((0, "policy.toml", old, new) for old, new in (
        ("types =", "type ="), ('["Trial"]', '["Trail"]'), ("default", "defualt"), ("[rules]", "[rule]"),
        ("DATE =", "DTAE ="), ('"shift"', '"shfit"'), ("weeks", "week"), ("operator", "operater"), ("true", '"true"'),
        ("Trial =", "Trail ="), ('"remove"', '"remvoe"'))),
    *((0, "sources.toml", old, new) for old, new in (
        ('"regex"', '"regexp"'), ("kind", "knd"), ("pattern", "patern"), ("doctors.txt", "doctor.txt"),
        ("[[source]]", "[[sources]]"), ("NCT[", "NCX["), ("name", "nmae"), ("label", "lable"), ('"Trial"', '"Trail"'))),
    *((1, "known.csv", old, new) for old, new in (
        ("patient", "patent"), ("last", "lsat"), ("p0,", "q0,"), (",last", ""), ("p", "x"))),
    *((1, "groups.tsv", old, new) for old, new in (("p0-0", "q0-0"), ("\t", " "), ("-", "_"))),
    (1, "deny.txt", "Wren", "Crow"),
    (1, "deny.txt", "Project", "# Project"),
    *((2, "config.toml", old, new) for old, new in (
        ("[deid]", "[died]"), ("deny =", "deyn ="), ("deny.txt", "dney.txt"), ("[deid.run]", "[deid.rnu]"),
        ("ids", "id"), ('"keep"', '"kept"'))),
    *((14, "train.toml", old, new) for old, new in (
        ("[train]", "[trian]"), ("layer", "leyer"), ('"gold"', '"glod"'), ("[train.cascade]", "[train.cascad]"),
        ("epochs", "epoch"), ("= 1", "= 0.5"))),
    *((22, "sources.toml", old, new) for old, new in (
        ('"regex"', '"regexp"'), ("pattern", "patern"), ("doctors.txt", "doctor.txt"), ("kind", "knd"))),
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A command with one place changed: one of its words, or a file that it reads."""

    command: int
    words: tuple[str, ...]
    edit: tuple[str, str, str] | None = None

    def __str__(self) -> str:
        changed = "" if self.edit is None else f" with {self.edit[0]}: {self.edit[1]!r} → {self.edit[2]!r}"
        return " ".join(self.words) + changed


def prepare(place: Path) -> None:
    """Write everything that the commands read, into the current folder."""
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    SECRET.write(place / "secret")
    KEY.write(place / "key")
    write(documents(12), place / "docs.jsonl")
    for command in (
        ["synth", "notes", "-o", "gold.jsonl", "--to", "jsonl", "--patients", "8", "--notes", "1"],
        ["train", "gold.jsonl", "-o", "m.cfm", "--set", "epochs=1"],
        ["tag", "m.cfm", "gold.jsonl", "-o", "pred.jsonl"],
        ["deid", "notes", "-o", "clean", "--model", "rules"],
        ["deid", "notes", "-o", "kept", "--model", "rules", "--vault", "kept.v", "--key-file", "key"],
        ["deid", "sample", "clean", "-o", "sample.json", "--form", "form.csv", "--notes", "3", "--strata", "1"],
        ["weak", "apply", "notes", "--sources", "sources.toml", "-o", "votes.jsonl"],
        ["relate", "train", "docs.jsonl", "-o", "r.cfm", *ROLES],
    ):
        assert main([*command, "--quiet"]) == 0, command
    form = (place / "form.csv").read_text().splitlines()
    (place / "form.csv").write_text("\n".join([form[0], *(_fill(line) for line in form[1:])]) + "\n")


def _fill(line: str) -> str:
    cells = line.split(",")
    return ",".join([*cells[:2], "0", *cells[3:]])


def mutations() -> list[Mutation]:
    """Every mutation of every command."""
    found = []
    for number, command in enumerate(COMMANDS):
        for index, word in enumerate(command):
            changed = _misspell(word) if not _is_output(command, index) and len(word) > 2 else None
            if changed is not None:
                found.append(Mutation(number, (*command[:index], changed, *command[index + 1 :])))
        found += [Mutation(number, tuple(command), (name, old, new)) for at, name, old, new in EDITS if at == number]
    return found


def _is_output(command: Sequence[str], index: int) -> bool:
    return OUT in command[index] or command[index - 1] == "-o"


def _misspell(word: str) -> str:
    """The word with one letter more in its middle, where it matters."""
    start = 4 if word.startswith("--") else 2 if word.startswith("^") else max(1, len(word.partition(".")[0]) // 2)
    return word[:start] + "q" + word[start:]


def name_output(words: Sequence[str], output: str) -> list[str]:
    """The words of a command with a new output."""
    return [word.replace(OUT, output) for word in words]


def apply_edit(edit: tuple[str, str, str] | None, place: Path) -> Iterator[None]:
    """Change a file, and put it back."""
    if edit is None:
        yield
        return
    name, old, new = edit
    text = (place / name).read_text()
    assert old in text, edit
    (place / name).write_text(text.replace(old, new))
    yield
    (place / name).write_text(text)
