"""The promises of de-identification, each over thousands of generated documents of every script and sort.

What hypothesis looks for in single functions is tested beside them; here whole releases have to keep their word.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaffinch.deid.detect import cues
from chaffinch.deid.detect.detector import detector as rules
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release.account import Account, check_chain
from chaffinch.deid.release.patient import LAYER, NumberedDocument, Release, Released, Withheld, release
from chaffinch.deid.release.replace import replace_identifiers
from chaffinch.deid.release.units import UnitSource, open_source
from chaffinch.deid.surrogates.letters import bases
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.vault import Vault, restore
from chaffinch.errors import ChaffinchError, ConfigError, DataError, ModelError
from chaffinch.jobs.job import ReleaseJob, VaultTarget
from chaffinch.jobs.release import dry_run, run_release
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import train
from chaffinch.text import Document, Span
from chaffinch.text.formats import FORMATS, Unit, by_name, read, write
from tests.deid.promises import (
    LABELS,
    PLANTED,
    POLICIES,
    READY,
    dated,
    document,
    documents,
    glue,
    planted,
    put_back,
    with_patient,
    word,
)  # fmt: skip
from tests.deid.releases import KEY, OTHER_SECRET, SECRET, FunctionDetector

SURROGATES = READY[2]
TAGS = Release(Policy("tag"))
_SMALL_LISTS = ("STATE", "COUNTRY", "DEPARTMENT", "STREET", "PROFESSION", "CITY", "HOSPITAL")
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def by_rules(*, by_patient: bool = False) -> Detector:
    return rules(by_patient=by_patient)


def written(docs: Sequence[Document], form: str, folder: Path) -> Path:
    """The documents in a file or folder, without what was planted."""
    place = folder / ("in" if by_name(form).folder else f"in{by_name(form).suffixes[0]}")
    write([replace(doc, layers={"gold": ()} if form == "brat" else {}) for doc in docs], place, format=form)
    return place


def account_of(output: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines and the manifest beside an output."""
    lines = Path(f"{output}.private", "documents.jsonl").read_bytes().splitlines()
    manifest = json.loads(Path(f"{output}.manifest.json").read_bytes())
    assert check_chain(lines, manifest) == len(lines)
    return [json.loads(line) for line in lines], manifest


class Test1NoTextLostOrMoved:
    """Undo every replacement in an output and the input comes back, byte for byte."""

    @pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
    def test_outside_identifiers_every_character_stays(self, policy: Policy) -> None:
        for doc in documents(2000, 1):
            acted = replace_identifiers(doc, PLANTED, policy, SECRET)
            made = acted.replacements
            befores = [0, *(one.end for one in made)], [*(one.start for one in made), len(doc.text)]
            afters = [0, *(one.out_end for one in made)], [*(one.out_start for one in made), len(acted.text)]
            assert [doc.text[a:b] for a, b in zip(*befores, strict=True)] == [
                acted.text[a:b] for a, b in zip(*afters, strict=True)
            ]

    @pytest.mark.parametrize("form", [form.name for form in FORMATS if form.can.exact])
    def test_files_of_every_exact_format_come_back(self, form: str, tmp_path: Path) -> None:
        docs = documents(300, 2)
        if form in ("i2b2", "meddocan", "uima-xmi"):
            docs = tuple(replace(doc, text=_NO_XML.sub("\u00b6", doc.text)) for doc in docs)
        if form in ("i2b2", "meddocan"):
            docs = tuple(replace(doc, text=doc.text.replace("\r", "\n")) for doc in docs)
        place, output = written(docs, form, tmp_path), tmp_path / "out"
        manifest = run_release(
            ReleaseJob(
                open_source(place, form=form, grouping=with_patient),
                output,
                Release(SURROGATES, SECRET, True),
                planted(docs),
            )
        )
        assert manifest["documents"] == {"in": len(docs), "released": len(docs), "withheld": 0, "excluded": 0}
        after = {doc.id: doc.text for doc in read(output, format=form)}
        before = {doc.id: doc.text for doc in docs}
        for line in account_of(output)[0]:
            own = line["id"]
            assert put_back(after[own], before[own], line["replacements"]) == before[own]
        if form == "txt":
            for line in account_of(output)[0]:
                old, new = (folder / f"{line['id']}.txt" for folder in (place, output))
                again = put_back(new.read_bytes().decode(), old.read_bytes().decode(), line["replacements"])
                assert again.encode() == old.read_bytes()

    def test_with_the_real_detector(self) -> None:
        docs = documents(400, 3)
        given = [NumberedDocument(n, replace(doc, layers={})) for n, doc in enumerate(docs)]
        for doc, one in zip(docs, release(given, Release(SURROGATES, SECRET), by_rules()), strict=True):
            assert isinstance(one, Released)
            assert put_back(one.text, doc.text, one.places) == doc.text


class Test2ExactOffsets:
    """Offsets are code points of the stored text, in the input and in the output."""

    def test_whatever_stands_before_an_identifier_it_is_found_where_it_is(self) -> None:
        rng = np.random.default_rng(4)
        docs, places = [], []
        for number in range(400):
            text, own = "", []
            for one in ("617-555-1234", "mary.penn@hospital.org", "03/04/1998", "10.20.30.40"):
                text += re.sub(r"[^\W_]", "\u00a7", glue(rng)) + "\n"
                own.append((len(text), len(text) + len(one)))
                text += one + "\n"
            docs.append(Document.make(text, id=str(number)))
            places.append(own)
        for doc, expected in zip(rules()(docs), places, strict=True):
            assert {(span.start, span.end) for span in doc.layer(LAYER)} >= set(expected)

    def test_places_in_the_output_hold_what_replaced_and_nothing_else(self, tmp_path: Path) -> None:
        docs = documents(1500, 5)
        place, output = written(docs, "jsonl", tmp_path), tmp_path / "out.jsonl"
        how = Release(Policy("tag"), keep_ids=True, spans=True)
        run_release(ReleaseJob(open_source(place), output, how, planted(docs)))
        after = {doc.id: doc for doc in read(output)}
        for line in account_of(output)[0]:
            doc = after[line["id"]]
            for _, _, label, _, start, end in line["replacements"]:
                assert doc.text[start:end] == f"[{kind_of(label).name if label != 'Own type' else label}]"
            assert [(s.start, s.end) for s in doc.layer()] == [(a, b) for *_, a, b in line["replacements"]]


class _OddError(Exception):
    """An error that tells the text."""


def _read_bytes(doc: Document, fate: str) -> bytes:
    """The bytes of a unit of that fate."""
    if fate == "gone":
        raise OSError(errno.EIO, doc.text)
    return b"" if fate == "empty" else doc.text.encode()


def _parse(doc: Document, fate: str, _: bytes) -> Document:
    """The document of a unit of that fate."""
    if fate == "unreadable":
        raise DataError("is not UTF-8")
    if fate == "broken":
        raise _OddError(doc.text)
    return doc


def _unit(number: int, doc: Document, fate: str) -> Unit:
    """A unit of the input with a fate: good, or one of the ways to fail."""
    return Unit(doc.id, doc.id, partial(_read_bytes, doc, fate), partial(_parse, doc, fate), number=number)


_FATES = ("good", "good", "good", "gone", "unreadable", "broken", "detector", "moved", "outside", "recursion")


def _fateful(docs: Sequence[Document], fates: dict[str, str]) -> FunctionDetector:
    """A detector that fails on documents in the way that is their fate."""
    sound = planted(docs)

    def find(given: Sequence[Document]) -> Iterator[Document]:
        for doc in given:
            fate = fates[doc.text]
            if fate == "detector":
                raise _OddError(doc.text)
            if fate == "recursion":
                raise RecursionError(doc.text)
            (found,) = sound.find([doc])
            if fate == "moved":
                found = replace(found, text=doc.text + "!")
            if fate == "outside":
                found = replace(found, layers={LAYER: (Span(0, len(doc.text) + 1, "DATE"),)})
            yield found

    return FunctionDetector(find, "fateful")


def _mixture(number: int, seed: int) -> tuple[list[Document], dict[str, str], UnitSource]:
    rng = np.random.default_rng(seed)
    made = [document(rng, n) for n in range(number)]
    docs = [replace(doc, text=f"{n} {doc.text}", layers={PLANTED: ()}) for n, doc in enumerate(made)]
    fates = {doc.text: _FATES[rng.integers(len(_FATES))] for doc in docs}
    units = [_unit(n, doc, fates[doc.text]) for n, doc in enumerate(docs, start=1)]
    return docs, fates, UnitSource(by_name("jsonl"), lambda: iter(units))


class Test3FailsClosed:
    """Documents in = released + withheld; nothing is half-written."""

    @pytest.mark.parametrize("seed", range(8))
    def test_exactly_the_sound_documents_go_out(self, seed: int, tmp_path: Path) -> None:
        docs, fates, given = _mixture(250, seed)
        good = [doc.id for doc in docs if fates[doc.text] == "good"]
        job = ReleaseJob(given, tmp_path / "out.jsonl", Release(Policy("tag"), keep_ids=True), _fateful(docs, fates))
        manifest = run_release(job)
        assert manifest["documents"] == {"in": 250, "released": len(good), "withheld": 250 - len(good), "excluded": 0}
        assert [doc.id for doc in read(job.output)] == good
        lines, _ = account_of(job.output)
        assert [line["id"] for line in lines if line["status"] == "released"] == good
        withheld = [json.loads(line) for line in (job.private / "withheld.jsonl").read_bytes().splitlines()]
        assert len(withheld) == sum(manifest["withheld"].values()) == 250 - len(good)
        assert dry_run(job)["documents"] == manifest["documents"]

    def test_a_disk_that_fails_at_any_step_leaves_all_or_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of releases
        monkeypatch.setattr("chaffinch.deid.release.sealed_file._COST", 4)  # cheap keys
        monkeypatch.setattr("chaffinch.deid.release.sealed_file._COSTS", range(30))
        docs = documents(5, 6)
        place = written(docs, "txt", tmp_path)
        job = ReleaseJob(
            open_source(place, grouping=with_patient),
            tmp_path / "w" / "out",
            Release(SURROGATES, SECRET),
            planted(docs),
            vault=VaultTarget(tmp_path / "v", KEY),
        )
        (tmp_path / "w").mkdir()
        run_release(job)
        whole = _content(tmp_path / "w")
        steps, finished = 0, False
        said: set[str] = set()
        while not finished:
            shutil.rmtree(tmp_path / "w")
            (tmp_path / "w").mkdir()
            (tmp_path / "v").unlink(missing_ok=True)
            _DISK.start(tmp_path, fail_at=steps)
            try:
                run_release(job)
                finished = not _DISK.failed
            except ChaffinchError as error:
                said.add(str(error))
                assert not job.output.exists() or job.work.exists()
            finally:
                _DISK.stop()
            if job.work.exists():
                assert not job.output.exists() or job.manifest.exists()
                run_release(job, resume=True)
            elif not job.output.exists():
                run_release(job)
            assert _content(tmp_path / "w") == whole, f"at step {steps}"
            assert len(list(restore(read(job.output), Vault.open(tmp_path / "v", KEY)))) == 5
            steps += 1
        assert steps > 20
        assert all("No space left" in message for message in said), said


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class _Disk:
    """Counts openings, renames and removals below a folder, and fails at one of them with "no space left"."""

    _EVENTS = frozenset({"open", "os.rename", "os.mkdir", "os.truncate"})

    def __init__(self) -> None:
        self._below, self._left, self.failed = "", -1, False
        self._hooked = False

    def start(self, below: Path, *, fail_at: int) -> None:
        if not self._hooked:
            sys.addaudithook(self._note)  # cannot be taken away; it does nothing but between start and stop
            self._hooked = True
        self._left, self.failed, self._below = fail_at, False, str(below)

    def stop(self) -> None:
        self._below = ""

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._below or event not in self._EVENTS or not str(arguments[0]).startswith(self._below):
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        self._left -= 1
        if self._left == -1:
            self.failed = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_DISK = _Disk()


class Test4NoTextAnywhereElse:
    """No word of a document in logs, errors, tracebacks, reprs, or any file but the output."""

    @pytest.mark.parametrize("seed", range(4))
    def test_a_word_in_every_document_is_nowhere_else(
        self, seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        caplog.set_level(logging.DEBUG)
        canary = word(np.random.default_rng(seed), 6)
        made, fates, _ = _mixture(250, 100 + seed)
        docs = [
            replace(
                doc,
                id=f"{canary}{doc.id}",
                text=f"{canary} {doc.text}",
                group=f"{canary}{doc.group}",
                meta={"n": canary},
            )
            for doc in made
        ]
        fates = {f"{canary} {text}": fate for text, fate in fates.items()}
        units = [_unit(n, doc, fates[doc.text]) for n, doc in enumerate(docs, start=1)]
        job = ReleaseJob(
            UnitSource(by_name("jsonl"), lambda: iter(units)), tmp_path / "out.jsonl", Release(SURROGATES, SECRET),
            _fateful([replace(doc, layers={PLANTED: (Span(0, len(canary), "PATIENT"),)}) for doc in docs], fates),
            vault=VaultTarget(tmp_path / "vault", KEY),
        )  # fmt: skip
        manifest = run_release(job)
        assert 0 < manifest["documents"]["withheld"] < 250
        private = {f"out.jsonl.private/{name}.jsonl" for name in ("ids", "withheld")}  # they lead to files by name
        for path, content in _content(tmp_path).items():
            assert (canary.encode() in content) == (path in private), path
        results = release([NumberedDocument(n, doc) for n, doc in enumerate(docs)], job.release, job.detector)
        told = [repr(results), repr(units), repr(job), caplog.text, *capfd.readouterr()]
        assert not any(canary in one for one in told)

    def test_no_error_of_an_operator_or_a_reader_tells_the_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(text: str, *_: object, **__: object) -> str:
            raise ValueError(f"cannot read {text!r}")

        monkeypatch.setattr("chaffinch.deid.surrogates.surrogate.surrogate", fail)
        monkeypatch.setattr("chaffinch.deid.dates.shift.shift", fail)
        failed = 0
        for found in documents(1000, 7, overlaps=False):
            doc = found.with_layer(PLANTED, [replace(span, score=1.0) for span in found.layer(PLANTED)])  # no doubt
            hidden = [doc.text[span.start : span.end] for span in doc.layer(PLANTED)]
            if not {kind_of(span.label).category for span in doc.layer(PLANTED)} - {"AGE", "OTHER"}:
                continue
            with pytest.raises(DataError) as caught:
                replace_identifiers(doc, PLANTED, SURROGATES, SECRET)
            failed += 1
            told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
            shown = re.sub(r'  File ".*\n(    .*\n)*', "", told)  # lines of our code are no text of a document
            assert not any(one in shown for one in hidden if len(one) > 5 and one not in LABELS)
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__
        assert failed > 500


class Test5Deterministic:
    """The same bytes for any order, any parcels, any neighbours, and any hash of strings."""

    @pytest.mark.parametrize("by_patient", [False, True])
    def test_order_and_neighbours_change_nothing(self, by_patient: bool) -> None:
        docs = [replace(doc, layers={}) for doc in documents(250, 8)]
        how, found = Release(SURROGATES, SECRET), by_rules(by_patient=by_patient)
        whole = {one.id: one for one in release([NumberedDocument(n, doc) for n, doc in enumerate(docs)], how, found)}
        rng = np.random.default_rng(9)
        patients: dict[str, list[Document]] = defaultdict(list)
        for doc in docs:
            patients[doc.patient].append(doc)  # the policy reads them together, whatever the detector does
        parts = [patients[key] for key in rng.permutation(sorted(patients))]
        while parts:
            few = [doc for part in parts[: int(rng.integers(1, 90))] for doc in part]
            del parts[: len({doc.patient for doc in few})]
            given = [NumberedDocument(int(n), few[n]) for n in rng.permutation(len(few))]
            for one in release(given, how, found):
                assert one == whole[one.id]

    def test_hashes_of_strings_change_nothing(self, tmp_path: Path) -> None:
        place = written(documents(200, 10), "jsonl", tmp_path)
        SECRET.write(tmp_path / "secret")
        found = []
        for seed in ("0", "1"):
            (tmp_path / seed).mkdir()
            arguments = ["deid", place, "-o", tmp_path / seed / "out.jsonl", "--model", "rules", "--quiet"]
            arguments += ["--policy", "i2b2-surrogate", "--secret-file", tmp_path / "secret", "--group-by", r"^n\d{4}"]
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            subprocess.run([sys.executable, "-m", "chaffinch", *map(str, arguments)], env=environment, check=True)
            found.append(_content(tmp_path / seed))
        assert found[0] == found[1]
        assert len(found[0]) == 5


class Test6Keyed:
    """Surrogates and shifts follow from secret and patient; never the original; intervals stay; unlinkable."""

    def test_one_identifier_of_a_patient_has_one_surrogate_in_all_documents(self) -> None:
        drawn: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        rng = np.random.default_rng(11)
        pool = [(label, text) for doc in documents(60, 12, overlaps=False) for label, text in _pairs(doc)]
        for number in range(3000):
            label, text = pool[rng.integers(len(pool))]
            patient = f"p{rng.integers(5)}"
            doc = _one(glue(rng), text, label, patient, str(number))
            made = replace_identifiers(doc, PLANTED, SURROGATES, SECRET)
            if label not in ("DATE", "AGE", "Own type"):
                drawn[patient, label, text].add(_outs(made)[0])
        assert len(drawn) > 300
        assert all(len(outs) == 1 for outs in drawn.values())

    def test_a_surrogate_is_the_original_by_chance_alone_and_no_name_keeps_a_word(self) -> None:
        seen = same = 0
        for doc in documents(3000, 13):
            acted = replace_identifiers(doc, PLANTED, SURROGATES, SECRET)
            for one, out in zip(acted.replacements, _outs(acted), strict=True):
                original = doc.text[one.start : one.end]
                if one.operator == "surrogate" and bases(original):
                    seen += 1
                    same += bases(out) == bases(original)
                    assert bases(out) != bases(original) or len(bases(original)) < 4 or one.label in _SMALL_LISTS
                    if kind_of(one.label).category == "NAME":
                        words = {bases(part) for part in re.findall(r"[^\W\d_]{5,}", original)} - {"doctor"}
                        assert not words & {bases(part) for part in re.findall(r"[^\W\d_]{5,}", out)}
        assert seen > 3000
        assert same < 0.01 * seen

    def test_another_secret_tells_nothing_of_the_first(self) -> None:
        same, number = Counter[str](), Counter[str]()
        for doc in documents(2000, 14, overlaps=False):
            one, other = (replace_identifiers(doc, PLANTED, SURROGATES, secret) for secret in (SECRET, OTHER_SECRET))
            for made, a, b in zip(one.replacements, _outs(one), _outs(other), strict=True):
                if made.operator == "surrogate" and made.label != "STATE" and len(doc.text[made.start : made.end]) > 4:
                    number[made.label] += 1
                    same[made.label] += a == b
        assert all(same[label] < 0.01 * n for label, n in number.items() if n), (same, number)
        assert number.total() > 2500

    @pytest.mark.parametrize("weeks", [False, True])
    def test_the_days_between_any_two_full_dates_of_a_patient_stay(self, weeks: bool) -> None:
        policy = Policy("dates", PolicyRule("tag"), {"DATE": PolicyRule("shift", (("weeks", weeks),))})
        rng = np.random.default_rng(15)
        shifts = set()
        for patient in range(500):
            moved, before = [], []
            for number in range(2):
                own = dated(rng, number, f"p{patient}", 4)
                acted = replace_identifiers(own.doc, PLANTED, policy, SECRET)
                for out, (form, one) in zip(_outs(acted), own.days, strict=True):
                    same = form.replace("%b", "%B") if one.month == 5 else form  # May is short and long
                    moved.append(datetime.strptime(out, same).date())  # the same format, or it fails
                    before.append(one)
            pairs = list(combinations(range(len(before)), 2))
            assert [moved[a] - moved[b] for a, b in pairs] == [before[a] - before[b] for a, b in pairs]
            days = (moved[0] - before[0]).days
            assert days != 0
            assert not weeks or days % 7 == 0
            shifts.add(days)
        assert len(shifts) > (150 if weeks else 350), "patients move by days of their own"


def _pairs(doc: Document) -> list[tuple[str, str]]:
    return [(span.label, doc.text[span.start : span.end]) for span in doc.layer(PLANTED)]


def _one(before: str, text: str, label: str, patient: str, key: str) -> Document:
    layers = {PLANTED: [Span(len(before), len(before) + len(text), label)]}
    return Document.make(before + text, id=key, group=patient, layers=layers)


def _outs(acted: Any) -> list[str]:
    return [acted.text[one.out_start : one.out_end] for one in acted.replacements]


class Test7ReversibleOnlyWithTheKey:
    """The mapping is in its own encrypted file, or nowhere."""

    def test_the_vault_gives_thousands_of_documents_back_and_its_key_alone_opens_it(self, tmp_path: Path) -> None:
        docs = documents(1500, 16)
        place, output, vault = written(docs, "jsonl", tmp_path), tmp_path / "out.jsonl", tmp_path / "vault"
        how = Release(SURROGATES, SECRET)
        run_release(
            ReleaseJob(
                open_source(place, grouping=with_patient), output, how, planted(docs), vault=VaultTarget(vault, KEY)
            )
        )
        again = list(restore(read(output), Vault.open(vault, KEY)))
        assert [(doc.id, doc.text, doc.group) for doc in again] == [(doc.id, doc.text, doc.patient) for doc in docs]
        content, rng = vault.read_bytes(), np.random.default_rng(17)
        for _ in range(4):
            with pytest.raises(ConfigError, match="does not open"):
                Vault.open(vault, Secret(rng.bytes(32)))
        hidden = {text for doc in docs for _, text in _pairs(doc) if len(text.encode()) > 7}
        assert not [text for text in sorted(hidden)[::8] if text.encode() in content]

    def test_without_a_vault_nothing_of_an_identifier_is_left(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(18)
        names = [word(rng, 6) for _ in range(1500)]
        docs = [_one(glue(rng) + " ", name, "PATIENT", name, f"{name}-{n}") for n, name in enumerate(names)]
        for name in ("in", "out"):
            (tmp_path / name).mkdir()
        place = written(docs, "jsonl", tmp_path / "in")
        run_release(
            ReleaseJob(open_source(place), tmp_path / "out" / "n.jsonl", Release(SURROGATES, SECRET), planted(docs))
        )
        files = _content(tmp_path / "out")
        del files["n.jsonl.private/ids.jsonl"]  # the steward's own, 0600
        left = b"".join(files.values())
        assert not [name for name in names if name.encode() in left]
        assert sorted(files) == ["n.jsonl", "n.jsonl.manifest.json", "n.jsonl.private/documents.jsonl"]


@pytest.fixture(scope="module")
def model() -> Model:
    """A small model of one tagger."""
    notes = list(cues.with_cues(synth.notes(12, 1, seed=3, names="train")))
    return Model((train(notes, Cascade(layers=cues.LAYERS), layer="gold"),))


class Test8SafeModels:
    """A model is data with a checksum: what changed is refused, and nothing in it is ever run."""

    def test_any_damage_is_refused(self, model: Model, tmp_path: Path) -> None:
        path = tmp_path / "m.cfm"
        model.save(path)
        content, rng = path.read_bytes(), np.random.default_rng(19)
        for _ in range(120):
            at = int(rng.integers(len(content)))
            if rng.random() < 0.5:
                path.write_bytes(content[:at])
            else:
                path.write_bytes(content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :])
            with pytest.raises(ModelError):
                load(path)

    def test_a_saved_model_decodes_alike_and_nothing_is_unpickled(
        self, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object, **__: object) -> None:
            raise AssertionError("unpickled")

        model.save(tmp_path / "m.cfm")
        with monkeypatch.context() as patch:
            for name in ("load", "loads", "Unpickler"):
                patch.setattr(pickle, name, refused)
            again = load(tmp_path / "m.cfm")
        docs = [replace(doc, layers={}) for doc in documents(300, 20)]
        for one, other in zip(rules(model)(docs), rules(again)(docs), strict=True):
            assert one.layer(LAYER) == other.layer(LAYER)
            assert [span.score for span in one.layer(LAYER)] == [span.score for span in other.layer(LAYER)]
            np.testing.assert_array_equal(one.soft[LAYER].values, other.soft[LAYER].values)


_HOOKED = """
import sys

def note(event, arguments):
    if event.startswith("socket.") or event in ("urllib.Request", "http.client.connect", "webbrowser.open"):
        raise SystemExit(f"network: {event}")

sys.addaudithook(note)
from chaffinch.cli import main

for line in sys.stdin.read().splitlines():
    code = main(line.split("\\t"))
    assert code in (0, 5), (line, code)
"""


class Test9Local:
    """No command of de-identification opens a socket."""

    def test_no_command_opens_a_socket(self, tmp_path: Path) -> None:
        place = written(documents(200, 21), "jsonl", tmp_path)
        commands = [
            "deid secret new secret", "deid secret new key", "deid secret new other-key",
            f"deid {place} -o out.jsonl --model rules --policy i2b2-surrogate --secret-file secret --vault v "
            r"--key-file key --group-by ^n\d{4}",
            "deid sample out.jsonl -o sample.json --notes 20",
            "deid restore out.jsonl -o again.jsonl --vault v --key-file key",
            "deid rekey v --key-file key --new-key-file other-key", "deid secret rotate secret",
        ]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", _HOOKED], input="\n".join(line.replace(" ", "\t") for line in commands), text=True,
            cwd=tmp_path, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "again.jsonl").exists()


def test_accounts_of_any_mixture_add_up() -> None:
    """In = released + withheld for the account itself, whatever comes in whatever order."""
    rng = np.random.default_rng(22)
    results = release(
        [NumberedDocument(n, doc) for n, doc in enumerate(documents(300, 23))],
        TAGS,
        replace(planted(()), layer=PLANTED, find=lambda docs: docs),
    )
    for _ in range(200):
        account = Account({"chaffinch": "0"})
        chosen = [
            results[n] if rng.random() < 0.7 else Withheld(str(n), "x", f"reason {n % 3}")
            for n in rng.integers(0, len(results), int(rng.integers(0, 40)))
        ]
        lines = [account.add(one) for one in chosen]
        told = account.manifest()
        numbers = told["documents"]
        assert numbers["in"] == numbers["released"] + numbers["withheld"] == len(chosen)
        assert sum(told["withheld"].values()) == numbers["withheld"]
        done = sum(n for facts in told["labels"].values() for n in facts["operators"].values())
        assert done == told["replacements"] == sum(len(one.places) for one in chosen if isinstance(one, Released))
        assert check_chain(lines, told) == len(chosen)
