"""A state remembers: the next release keeps and finds names, takes new notes only, and says where a patient is."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chaffinch as cf
from chaffinch.deid.policy import Policy
from chaffinch.deid.release import sealed_file
from chaffinch.deid.release.memory import RememberedNote
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.state import ReleaseState
from chaffinch.deid.release.verify import verify
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.deid.vault import Vault
from chaffinch.errors import ConfigError, DataError
from chaffinch.jobs import release as release_module
from chaffinch.jobs.deid import plan
from chaffinch.jobs.effects import check_effects
from chaffinch.jobs.job import NotesInput, Patients, ReleaseJob, SealedTargets, StateTarget, VaultTarget
from chaffinch.jobs.release import dry_run, run_release
from chaffinch.jobs.run import Interrupted
from chaffinch.jobs.work import DetectorSpec
from tests.attacks.sizes import sized
from tests.deid.releases import CANARY, KEY, OTHER_KEY, OTHER_SECRET, SECRET, detector

SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET, keep_ids=True)
FIND = cf.deid.detector(by_patient=True)
HEADER = 82
Notes = Mapping[str, str]


@pytest.fixture(autouse=True)
def cheap_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_file, "_COST", 4)
    monkeypatch.setattr(sealed_file, "_COSTS", range(30))


def write(folder: Path, notes: Notes) -> Path:
    folder.mkdir()
    for name, text in notes.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def job(notes: Path, output: Path, state: Path | None, how: Release = SURROGATES, **more: Any) -> ReleaseJob:
    target = StateTarget() if state is None else StateTarget(state, more.pop("key", KEY))
    groups = Patients(more.pop("group_by", r"^(p\d+)-"))
    return plan(
        NotesInput(notes), output, how, more.pop("find", FIND), patients=groups, sealed=SealedTargets(state=target)
    )


def release(notes: Path, output: Path, state: Path | None, how: Release = SURROGATES, **more: Any) -> dict[str, Any]:
    run = {name: more.pop(name) for name in ("resume", "overwrite", "workers") if name in more}
    return run_release(job(notes, output, state, how, **more), **run)


def texts(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_bytes().decode() for path in folder.iterdir()} if folder.is_dir() else {}


def lines(output: Path, name: str) -> list[dict[str, Any]]:
    path = output.with_name(f"{output.name}.private") / name
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


JANUARY = {"p1-a": "Patient Name: Quorndale, Ilse. Seen on 03/14/1998.", "p2-a": "Dr. Penn saw her on 25 May 1998."}
FEBRUARY = {"p1-b": "Plan: Quorndale tomorrow, 03/20/1998.", "p3-a": "Plan: Quorndale tomorrow."}


def two_months(tmp_path: Path, **more: Any) -> tuple[Path, Path, Path]:
    state = tmp_path / "state"
    release(write(tmp_path / "jan", JANUARY), tmp_path / "one", state, **more)
    return state, tmp_path / "one", write(tmp_path / "feb", FEBRUARY)


def test_a_name_found_in_january_is_found_in_february_with_its_surrogate(tmp_path: Path) -> None:
    state, one, february = two_months(tmp_path)
    release(february, tmp_path / "two", state)
    alone = tmp_path / "alone"
    release(february, alone, None)
    assert "Quorndale" in texts(alone)["p1-b"], "without the state nobody knows the name"
    (surname,) = re.findall(r"Name: (\w+),", texts(one)["p1-a"])
    out = texts(tmp_path / "two")
    assert out["p1-b"].startswith(f"Plan: {surname} tomorrow")
    assert "Quorndale" in out["p3-a"], "it is no name of this patient"
    assert (read_day(out["p1-b"]) - read_day(texts(one)["p1-a"])).days == 6


def read_day(text: str) -> date:
    (found,) = re.findall(r"\d\d/\d\d/\d{4}", text)
    return datetime.strptime(found, "%m/%d/%Y").date()


def test_only_new_notes_are_released_and_the_others_are_excluded_and_listed(tmp_path: Path) -> None:
    state, _, _ = two_months(tmp_path)
    write(tmp_path / "both", {**JANUARY, **FEBRUARY})
    counted = dry_run(job(tmp_path / "both", tmp_path / "two", state))
    manifest = release(tmp_path / "both", tmp_path / "two", state)
    assert manifest["documents"] == {"in": 4, "released": 2, "withheld": 0, "excluded": 2} == counted["documents"]
    assert manifest["excluded"] == {"was released before with the same text, as the state says": 2}
    assert manifest["state"] == {"releases": 1, "patients": 2, "notes": 2} == counted["state"]
    assert set(texts(tmp_path / "two")) == set(FEBRUARY)
    rows = lines(tmp_path / "two", "excluded.jsonl")
    assert [(row["document"], row["file"]) for row in rows] == [(f"p{n}-a", f"p{n}-a.txt") for n in (1, 2)]
    again = release(tmp_path / "both", tmp_path / "three", state)
    assert again["documents"] == {"in": 4, "released": 0, "withheld": 0, "excluded": 4}
    assert verify(tmp_path / "two").texts == 2


def test_a_note_that_changed_moved_or_is_there_twice_is_withheld_with_the_reason(tmp_path: Path) -> None:
    state, _, _ = two_months(tmp_path)
    rows = [
        {"id": "p1-a", "text": "Patient Name: Quorndale, Ilse. An addendum.", "patient": "p1"},
        {"id": "p2-a", "text": JANUARY["p2-a"], "patient": "p9"},
        {"id": "new", "text": "Seen.", "patient": "p1"},
        {"id": "new", "text": "Seen again.", "patient": "p1"},
    ]
    path = tmp_path / "feb.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = release(path, tmp_path / "two.jsonl", state, group_by=None)
    assert manifest["documents"] == {"in": 4, "released": 1, "withheld": 3, "excluded": 0}
    reasons = [row["reason"].partition(";")[0] for row in lines(tmp_path / "two.jsonl", "withheld.jsonl")]
    assert reasons == [
        "was released before with another text", "was released before as a note of another patient",
        "has the id of an earlier document",
    ]  # fmt: skip
    assert [note.id for note in found(state, "p1")] == ["p1-a", "new"]
    assert [note.id for note in found(state, "p2")] == ["p2-a"]


def found(state: Path, patient: str) -> list[RememberedNote]:
    memory = ReleaseState.open(state, KEY).find(patient)
    return [] if memory is None else memory.notes


def test_a_field_that_is_kept_belongs_to_what_must_not_change(tmp_path: Path) -> None:
    how = Release(Policy("tag"), SECRET, keep_ids=True, fields=("ward",))
    for number, ward in enumerate((3, 3, 4)):
        row = {"id": "a", "text": "Seen.", "patient": "p1", "ward": ward, "time": number}
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(row) + "\n")
    runs = [
        release(tmp_path / f"{n}.jsonl", tmp_path / f"out{n}.jsonl", tmp_path / "state", how, group_by=None)[
            "documents"
        ]
        for n in range(3)
    ]
    assert [run["released"] for run in runs] == [1, 0, 0]
    assert (runs[1]["excluded"], runs[2]["withheld"]) == (1, 1), "the time of the export does not matter, the ward does"


def test_a_state_of_other_settings_a_wrong_key_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    state, _, february = two_months(tmp_path)
    out, whole = tmp_path / "two", state.read_bytes()
    with pytest.raises(ConfigError, match="does not open this state"):
        release(february, out, state, key=OTHER_KEY)
    with pytest.raises(ConfigError, match="another secret"):
        release(february, out, state, Release(SURROGATES.policy, OTHER_SECRET))
    with pytest.raises(ConfigError, match="policy i2b2-surrogate"):
        release(february, out, state, Release(Policy.read("safe-harbor"), SECRET))
    with pytest.raises(ConfigError, match="the order of dates mdy"):
        release(february, out, state, Release(SURROGATES.policy, SECRET, date_order="dmy"))
    with pytest.raises(ConfigError, match="same"):
        job(february, out, tmp_path / "new", key=SECRET)
    for place in [3, 17, 20, 50, HEADER + 2, HEADER + 40, len(whole) // 2, len(whole) - 1]:
        changed = bytearray(whole)
        changed[place] ^= 1
        for content in (bytes(changed), whole[:place]):
            state.write_bytes(content)
            with pytest.raises((ConfigError, DataError)) as caught:
                release(february, out, state)
            assert "Quorndale" not in str(caught.value)
    state.write_bytes(whole)
    assert not out.exists()
    assert release(february, out, state)["documents"]["released"] == 2


def test_a_record_cannot_be_left_out_or_moved(tmp_path: Path) -> None:
    state, _, _ = two_months(tmp_path)
    content = state.read_bytes()
    parts, at = [content[:HEADER]], HEADER
    while at < len(content):
        size = 4 + int.from_bytes(content[at : at + 4], "big")
        parts.append(content[at : at + size])
        at += size
    header, head, one, two, end = parts
    for wrong in ([header, head, two, one, end], [header, head, one, end], [header, one, two, end], [header, end]):
        state.write_bytes(b"".join(wrong))
        with pytest.raises(DataError):
            ReleaseState.open(state, KEY)


def test_the_state_is_private_and_holds_no_text_of_notes(tmp_path: Path) -> None:
    text = f"Patient Name: {CANARY}, Ilse. Seen on 03/14/1998. Haematochezia persists. "
    for times in (1, 50):
        folder = tmp_path / str(times)
        folder.mkdir()
        release(write(folder / "notes", {"p1-a": text * times}), folder / "out", folder / "state")
        assert stat.S_IMODE((folder / "state").stat().st_mode) == 0o600
        assert not (folder / "state.part").exists()
        content = (folder / "state").read_bytes()
        assert CANARY.encode() not in content
        memory = ReleaseState.open(folder / "state", KEY).find("p1")
        assert memory is not None
        assert "haematochezia" not in str(msgspec.to_builtins(memory)).casefold()
        assert CANARY.casefold() in str(msgspec.to_builtins(memory)).casefold()
        assert CANARY not in repr(memory) + repr(memory.notes) + repr(ReleaseState.open(folder / "state", KEY))
    sizes = [(tmp_path / times / "state").stat().st_size for times in ("1", "50")]
    assert sizes[1] - sizes[0] < 20, "it grows with names and notes, not with text"


def test_what_waits_in_a_ledger_for_the_state_is_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("chaffinch.jobs.release.build_outputs", stop)
    with pytest.raises(Interrupted):
        release(write(tmp_path / "jan", JANUARY), tmp_path / "one", tmp_path / "state")
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "jan"]
    assert {path.name for path in left} > {"results", "state.part"}
    assert not any(b"uorndale" in path.read_bytes().lower() for path in left)


def test_the_order_of_dates_that_january_told_holds_in_february(tmp_path: Path) -> None:
    state, february = tmp_path / "state", {"p2-b": "Seen on 03/04/1998."}
    release(write(tmp_path / "jan", {"p1-a": "Seen on 25/12/1997 and 26/12/1997."}), tmp_path / "one", state)
    release(write(tmp_path / "feb", february), tmp_path / "two", state)
    release(tmp_path / "feb", tmp_path / "alone", None)
    assert "[DATE]" in texts(tmp_path / "alone")["p2-b"], "by itself it may be March or April"
    assert re.search(r"\d\d/\d\d/\d{4}", texts(tmp_path / "two")["p2-b"])


def test_a_date_of_january_tells_an_age_over_89_in_february(tmp_path: Path) -> None:
    how = Release(Policy.read("safe-harbor"), keep_ids=True)
    state, february = tmp_path / "state", {"p1-b": "Came from Poland in 1925.", "p2-b": "Came from Poland in 1925."}
    release(write(tmp_path / "jan", {"p1-a": "Seen on 03/14/2016."}), tmp_path / "one", state, how)
    release(write(tmp_path / "feb", february), tmp_path / "two", state, how)
    out = texts(tmp_path / "two")
    assert ("1925" in out["p1-b"], "1925" in out["p2-b"]) == (False, True)


def test_workers_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # workers make keys at the usual cost
    source = DetectorSpec(None)
    find = source.build()
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        for number, notes in enumerate((JANUARY, {**JANUARY, **FEBRUARY})):
            planned = replace(
                job(write(folder / f"in{number}", notes), folder / f"out{number}", folder / "state", find=find),
                detector_source=source.pin(find),
            )
            run_release(planned, workers=workers)
    for number in range(2):
        assert content(tmp_path / "1", number) == content(tmp_path / "2", number)
    one, two = (list(ReleaseState.open(tmp_path / name / "state", KEY)) for name in ("1", "2"))
    assert one == two


def test_a_vault_and_a_state_go_together(tmp_path: Path) -> None:
    state, _, february = two_months(tmp_path)
    planned = replace(job(february, tmp_path / "two", state), vault=VaultTarget(tmp_path / "vault", OTHER_KEY))
    run_release(planned)
    out = texts(tmp_path / "two")
    records = {record.id: record.restore(out[record.id]).text for record in Vault.open(tmp_path / "vault", OTHER_KEY)}
    assert records == FEBRUARY
    assert len(found(state, "p1")) == 2


def content(folder: Path, number: int) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and f"out{number}" in str(path.relative_to(folder))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_which_files_hold_a_patient_can_be_asked(tmp_path: Path) -> None:
    state, _, february = two_months(tmp_path)
    release(february, tmp_path / "two", state)
    opened = ReleaseState.open(state, KEY)
    assert [(one.output, one.notes) for one in opened.head.releases] == [("one", 2), ("two", 2)]
    assert [(note.id, note.release, note.released) for note in found(state, "p1")] == [
        ("p1-a", 0, "p1-a"), ("p1-b", 1, "p1-b"),
    ]  # fmt: skip
    assert opened.find("p7") is None


def test_an_output_that_the_state_remembers_is_not_written_again(tmp_path: Path) -> None:
    state, one, february = two_months(tmp_path)
    with pytest.raises(ConfigError, match="remembers notes in"):
        release(february, one, state, overwrite=True)
    with pytest.raises(ConfigError, match="among the outputs"):
        release(february, tmp_path / "two", tmp_path / "two.manifest.json")
    with pytest.raises(ConfigError, match="does not exist"):
        release(february, tmp_path / "two", tmp_path / "nowhere" / "state")
    state.rename(tmp_path / "real")
    state.symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError, match="symbolic link"):
        release(february, tmp_path / "two", state)


def test_two_runs_do_not_use_a_state_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, _, february = two_months(tmp_path)
    other, usual, met = write(tmp_path / "march", {"p1-c": "Quorndale left."}), release_module.build_outputs, []

    def meet(planned: ReleaseJob, done: Any) -> None:
        monkeypatch.setattr(release_module, "build_outputs", usual)
        with pytest.raises(ConfigError, match="another run uses"):
            release(other, tmp_path / "three", state)
        met.append(1)
        usual(planned, done)

    monkeypatch.setattr(release_module, "build_outputs", meet)
    early = job(other, tmp_path / "four", state)
    release(february, tmp_path / "two", state)
    assert met == [1]
    with pytest.raises(DataError, match="changed since this run began"):
        run_release(early)
    assert sorted(path.name for path in tmp_path.iterdir() if "three" in path.name or "four" in path.name) == []
    release(other, tmp_path / "three", state)
    assert not (tmp_path / "state.part").exists()


def test_a_state_without_effect_is_a_warning(tmp_path: Path) -> None:
    state, _, _ = two_months(tmp_path)
    fresh = check_effects(job(tmp_path / "jan", tmp_path / "new", tmp_path / "nothing"))
    assert [warning.partition(";")[0] for warning in fresh.warnings] == ["state: the file is new"]
    others = check_effects(job(write(tmp_path / "x", {"p8-a": "Seen."}), tmp_path / "new", state))
    assert len(others.warnings) == 1
    assert "none of its 2 patients" in others.warnings[0]
    assert not check_effects(job(tmp_path / "feb", tmp_path / "new", state)).warnings


def test_a_detector_that_takes_no_names_is_a_warning(tmp_path: Path) -> None:
    state, _, february = two_months(tmp_path)
    warned = check_effects(job(february, tmp_path / "two", state, find=detector(by_patient=True)))
    assert any("takes no names of earlier releases" in warning for warning in warned.warnings)


SURNAMES = ("Quorndale", "Vorlinsky", "Zyrleman", "Trasketti", "Behlquist", "Oskarwitz")
FORMS = (
    "Patient Name: {0}, Ilse. ", "Plan: {0} tomorrow. ", "Dr. {0} called. ", "Seen on {1}. ", "{0} left early. ",
    "Discharged {1}; {0} agrees. ",
)  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    """Notes of two patients in two parts; within a patient, those of the second part come later."""
    parts: tuple[dict[str, str], dict[str, str]] = ({}, {})
    days = st.dates(date(1990, 1, 13), date(2010, 1, 1)).map(lambda day: day.replace(day=28).strftime("%m/%d/%Y"))
    for patient in ("p1", "p2"):
        first = draw(st.integers(1, 3))
        for number in range(first + draw(st.integers(1, 3))):
            chosen = draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=4))
            text = "".join(form.format(draw(st.sampled_from(SURNAMES)), draw(days)) for form in chosen)
            parts[number >= first][f"{patient}-{number}"] = text
    return parts


@given(histories())
@settings(max_examples=sized(12, 300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_releases_with_a_state_agree_with_one(
    tmp_path_factory: pytest.TempPathFactory, parts: tuple[dict[str, str], dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("history")
    for number, notes in enumerate(parts):
        release(write(folder / f"in{number}", notes), folder / f"out{number}", folder / "state")
    release(write(folder / "all", parts[0] | parts[1]), folder / "whole", None)
    out, whole = texts(folder / "out0") | texts(folder / "out1"), texts(folder / "whole")
    assert out.keys() == whole.keys()
    assert {name: out[name] for name in parts[1]} == {name: whole[name] for name in parts[1]}
    for patient in ("p1", "p2"):
        own = {name: text for name, text in (parts[0] | parts[1]).items() if name.startswith(patient)}
        drawn: dict[str, set[str]] = {}
        shifts = set()
        for name, text in own.items():
            before, after = read_words(text), read_words(out[name])
            for real, new in zip(before, after, strict=True):
                if real in SURNAMES and real != new:
                    drawn.setdefault(real, set()).add(new)
            shifts |= {(b - a).days for a, b in zip(read_days(text), read_days(out[name]), strict=True)}
        assert all(len(surrogates) == 1 for surrogates in drawn.values()), "one surrogate a name, in both parts"
        assert len(set.union(set(), *drawn.values())) == len(drawn), "and one name a surrogate"
        assert not set(SURNAMES) & set.union(set(), *drawn.values()), "which is no real name of the patient"
        assert len(shifts) <= 1


def read_words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text)


def read_days(text: str) -> list[date]:
    return [datetime.strptime(day, "%m/%d/%Y").date() for day in re.findall(r"\d\d/\d\d/\d{4}", text)]


def test_a_book_goes_on_where_it_ended_and_tells_what_is_new() -> None:
    book = NameBook()
    book.add_real_words(["penn", "lowe"])
    assert book.surrogate_for("penn", ["Hart"].__getitem__) == "Hart"
    assert book.take_new() == ({"penn": "Hart"}, ["lowe", "penn"])
    assert book.take_new() == ({}, [])
    again = NameBook({"penn": "Hart"}, ["lowe", "penn"])
    again.add_real_words(["wren"])
    draws = ["Lowe", "Hart", "Penn", "Finch"]
    assert again.surrogate_for("wren", draws.__getitem__) == "Finch", "no real name of January, and nobody's surrogate"
    assert again.surrogate_for("penn", draws.__getitem__) == "Hart"
    assert again.take_new() == ({"wren": "Finch"}, ["wren"])
