"""The part "writers" of the benchmark of de-identification: marks, counts, intervals, overlaps, the log of scorings.

Nothing here shows a word of the notes: what is checked of them are counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from benchmarks.deid import benchmark as deid
from benchmarks.deid import peers, writers
from benchmarks.deid.writers import WritersRun, log, measure_writers
from benchmarks.deid.writers.classes import classes_of
from benchmarks.deid.writers.corpus import (
    HELD_OUT,
    NOTES,
    SPLITS,
    Split,
    check_notes,
    read_briefs,
    read_notes,
    read_second_marks,
    style_of,
)  # fmt: skip
from benchmarks.deid.writers.counts import FIGURES, NoteCounts, count_note, estimate
from benchmarks.deid.writers.overlap import count_overlaps, runs_of
from benchmarks.deid.writers.site import compare, halves, precision_at
from benchmarks.deid.writers.systems import OURS, VOICES, SystemJob, SystemResult, read_results, run_system

from chaffinch import Document, Span
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.errors import ConfigError

BRIEFS = """# Briefs
| writer | country | hospital | specialities | documents | style | printed by |
|---|---|---|---|---|---|---|
| w01 | Kenya, Kisumu | mission | all | letters | prose | clerk |
| w02 | Ireland | regional | all | letters | prose | scanned paper |
| w03 | India, Delhi | regional | all | letters | prose | slip |
| w04 | Norway | regional | all | letters | prose | slip |
"""
NOTE = (
    "===== w0{n}-01 w0{n}-p1\nDr {{{{DOCTOR|Moya Quill}}}} saw {{{{PATIENT|Tam Orr}}}} on {{{{DATE|3/4/2021}}}}.\n"
    "Tinel 16 Fr.\n"
)
MORE = (
    "===== w0{n}-02 w0{n}-p1\nTRIAGE NOTE\n=====\n{{{{PATIENT|Orr}}}} back, {{{{AGE|7}}}}-year-old, from "
    "{{{{CITY|Brill}}}}.\n"
)


@dataclass(frozen=True)
class Asked:
    data: Path | None = None
    only: str | None = "writers"
    split: str = "test"
    seeds: int = 1


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "BRIEFS.md").write_text(BRIEFS, encoding="utf-8")
    for number, split in enumerate(SPLITS, 1):
        (tmp_path / split).mkdir()
        text = NOTE.format(n=number) + MORE.format(n=number)
        (tmp_path / split / f"w0{number}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "second").mkdir()
    second = "===== w03-01\nDr {{DOCTOR|Moya Quill}} saw Tam Orr on {{DATE|3/4/2021}}.\nTinel 16 Fr.\n"
    (tmp_path / "second" / "w03.txt").write_text(second, encoding="utf-8")
    return tmp_path


def test_notes_are_read_with_spans_patients_and_groups(corpus: Path) -> None:
    first, second = read_notes("train", corpus)
    assert first.text == "Dr Moya Quill saw Tam Orr on 3/4/2021.\nTinel 16 Fr.\n"
    assert [(first.text[span.start : span.end], span.label) for span in first.layer("gold")] == [
        ("Moya Quill", "DOCTOR"),
        ("Tam Orr", "PATIENT"),
        ("3/4/2021", "DATE"),
    ]
    assert first.patient == second.patient == "w01-p1"
    assert (first.meta["writer"], first.meta["country"]) == ("w01", "Kenya")
    assert "\n=====\n" in second.text  # a rule inside a note does not end it
    assert second.meta["document"] == "triage"


def test_second_marks_are_those_of_the_split(corpus: Path) -> None:
    marks = read_second_marks("test", corpus)
    assert {name: [span.label for span in spans] for name, spans in marks.items()} == {"w03-01": ["DOCTOR", "DATE"]}
    assert read_second_marks("dev", corpus) == {}


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("PT ADMITTED WITH FEVER. SEEN AT ONCE.", "capitals"),
        ("pt came in, fever. seen at once.", "lower case"),
        ("the man came in on the third of june with a fever and was seen by doctor lane and sent home", "dictated"),
        ("She was seen in the clinic on Monday, and he was told that it would be well.", "prose"),
        ("[x] Fever [ ] Cough [ ] Rash [x] Pain: yes.", "check boxes"),
        ("From: Ann\nTo: Bea\nSubject: Fever\nSent: today\nHello there, all well.", "messages"),
    ],
)  # fmt: skip
def test_styles_are_told_by_shape(text: str, style: str, corpus: Path) -> None:
    briefs = read_briefs(corpus)
    assert style_of(text, briefs["w01"]) == style
    assert style_of(text, briefs["w02"]) == "scanned"


@pytest.mark.parametrize(
    ("marked", "fault"),
    [
        ("Dr {{DOCTOR|Quill", "not closed"),
        ("{{DOCTOR|Moya {{PATIENT|Quill}}}}", "not closed"),
        ("Dr {{DOCTOR| Quill}}", "blanks"),
        ("Dr {{SURGEON|Quill}}", "guideline lacks"),
    ],
)
def test_faulty_marks_are_named_without_their_text(marked: str, fault: str, corpus: Path) -> None:
    assert check_notes(corpus) == []
    (corpus / "dev" / "w02.txt").write_text(f"===== w02-01 w02-p1\n{marked}\n", encoding="utf-8")
    faults = check_notes(corpus)
    assert any(fault in each for each in faults)
    assert not any("Quill" in each for each in faults)


def test_all_notes_of_the_corpus_are_sound_and_as_many_as_its_data_card_says() -> None:
    assert len(check_notes()) == 0
    card = (NOTES / "README.md").read_text(encoding="utf-8")
    for split in SPLITS:
        notes = read_notes(split)
        writers, marks = len({note.meta["writer"] for note in notes}), sum(map(count_marks, notes))
        assert f"| `{split}/` | {writers} | {len(notes)} | {marks:,} |" in card


def count_marks(note: Document) -> int:
    return len(note.layer("gold"))


def test_words_spans_types_and_classes_are_counted(corpus: Path) -> None:
    note = read_notes("train", corpus)[0]
    spans = [Span(3, 13, "DOCTOR"), Span(18, 21, "PATIENT"), Span(39, 44, "PATIENT")]  # Moya Quill, Tam, Tinel
    counts = count_note(note, spans).counts
    assert (counts["gold"], counts["hits"], counts["flagged"]) == (5, 3, 4)
    assert (counts["direct"], counts["direct hits"], counts["leaking direct"]) == (2, 1, 1)
    assert (counts["hipaa"], counts["hipaa hits"]) == (3, 1)  # clinicians are not on HIPAA's list
    assert (counts["type DOCTOR"], counts["type DOCTOR hits"]) == (2, 2)
    assert (counts["class eponym or test"], counts["class eponym or test flagged"]) == (1, 1)
    assert count_note(note, note.layer("gold")).counts["leaking direct"] == 0
    assert (counts["spans"], counts["spans marked"], counts["span hits"], counts["typed hits"]) == (3, 3, 1, 1)


def test_a_relative_marked_as_family_has_the_right_type() -> None:
    groups = {"writer": "w01", "country": "", "style": ""}
    note = Document.make("Son Tam", meta=groups, layers={"gold": [Span(4, 7, "PATIENT")]})
    assert count_note(note, [Span(4, 7, "FAMILY")]).counts["typed hits"] == 1
    assert count_note(note, [Span(4, 7, "DOCTOR")]).counts["typed hits"] == 0


def test_words_have_the_class_that_their_lists_and_shapes_say() -> None:
    doc = Document.make("Allergies: metformin 500 mg. Tinel at the L4 disc, His BGL is well, Dr X.")
    classes = dict(zip(doc.words(), classes_of(doc), strict=True))
    expected = {
        "Allergies": "field label", "metformin": "drug or brand", "500": "clinical number", "mg": "clinical number",
        "Tinel": "eponym or test", "L4": "anatomy", "disc": "anatomy", "His": "ordinary word", "BGL": "abbreviation",
        "well": "ordinary word", "Dr": "title",
    }  # fmt: skip
    assert {word: classes[word] for word in expected} == expected


def test_intervals_draw_writers_and_not_notes() -> None:
    notes = [NoteCounts(writer, "", "", {"gold": 10, "hits": 5 * (1 + (writer > "c"))}) for writer in "abcdef" * 40]
    recall = estimate(notes, FIGURES["R"])
    assert recall.value == 0.75
    assert recall.low is not None
    assert recall.low < 0.6  # drawn by notes it would be .72 to .78
    assert estimate([note for note in notes if note.writer < "e"], FIGURES["R"]).low is None  # four writers: too few
    assert estimate(notes, FIGURES["direct R"]).low is None


def test_shared_runs_of_words_are_counted(corpus: Path) -> None:
    size, by_source, anywhere = count_overlaps("test", corpus)
    assert by_source["train notes"] == by_source["dev notes"] == anywhere == size > 0  # the made-up notes are the same
    assert by_source["older written notes"] == 0
    assert len(runs_of(["one two three four five six seven eight nine", "one two"])) == 2
    assert not runs_of(["a b c d e f g h"]) & runs_of(["a b c d e f g x h"])


def test_the_second_reader_is_scored_as_a_system(corpus: Path) -> None:
    (result,) = run_system(SystemJob("second reader", "test", str(corpus), ""))
    assert [note.counts["hits"] for note in result.notes] == [3, 0]
    again = msgspec.json.decode(msgspec.json.encode([result]), type=list[SystemResult])
    assert again == [result]


def made_up_results(system: str, run: WritersRun) -> list[SystemResult]:
    docs = read_notes(run.split, run.notes)
    ours = (("balanced", None), ("recall 0.995", 0.995), ("balanced, fast", None), ("recall 0.995, fast", 0.995))
    settings = ours if system == OURS else ((system, None),)
    return [
        SystemResult(name, [count_note(doc, doc.layer("gold")[:1]) for doc in docs], 2.0, asked=asked)
        for name, asked in settings
    ]


def run_of(corpus: Path, split: Split) -> WritersRun:
    return WritersRun(split, corpus, "the command", corpus, corpus / "scorings.jsonl", (OURS, "scrubadub"))


@pytest.mark.parametrize("split", sorted(HELD_OUT))
def test_a_scoring_of_held_out_notes_needs_a_reason(
    split: Split, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(log.VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=log.VARIABLE):
        measure_writers(run_of(corpus, split))
    with pytest.raises(ConfigError, match=log.VARIABLE):
        deid.run(Asked(split=split))
    monkeypatch.setenv(log.VARIABLE, "  ")
    with pytest.raises(ConfigError, match=log.VARIABLE):
        deid.run(Asked(split=split))


def test_only_the_part_writers_has_fresh_notes() -> None:
    with pytest.raises(ConfigError, match="--only writers"):
        deid.run(Asked(data=Path(), only="english,writers", split="fresh"))


@pytest.mark.parametrize("split", sorted(HELD_OUT))
def test_a_scoring_of_held_out_notes_leaves_a_line_and_one_of_dev_none(
    split: Split, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "run_process", made_up_results)
    monkeypatch.setitem(peers.MODULES, "scrubadub", ("no_such_module_of_ours",))
    monkeypatch.setenv(log.VARIABLE, "a made-up reason")
    measure_writers(run_of(corpus, "dev"))
    assert not (corpus / "scorings.jsonl").exists()
    for _ in range(2):
        report = measure_writers(run_of(corpus, split))
    lines = (corpus / "scorings.jsonl").read_bytes().splitlines()
    assert len(lines) == 2
    entry = msgspec.json.decode(lines[0])
    assert set(entry) == {"date", "commit", "command", "reason", "figures", "by category"}
    assert (entry["command"], entry["reason"]) == ("the command", "a made-up reason")
    assert entry["figures"]["chaffinch, balanced"]["R"][0] == pytest.approx(3 / 8, abs=1e-4)
    assert entry["by category"]["chaffinch, balanced"]["type DATE"] == 0.0
    assert b"Quill" not in lines[0]
    assert any(row["system"] == "scrubadub" and "pip install" in row["absent"] for row in report.rows)


def test_rows_and_bars_break_recall_down(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "run_process", made_up_results)
    report = measure_writers(run_of(corpus, "dev"))
    categories = {row["category"] for row in report.rows if "category" in row}
    assert {
        "type DOCTOR",
        "style scanned",
        "country Ireland",
        "class drug or brand",
        "class ordinary word",
    } <= categories
    bars = {bar["id"]: bar for bar in report.bars}
    assert bars["writers_balanced_recall"]["value"] == pytest.approx(3 / 8, abs=1e-4)
    assert bars["writers_safe_leaking_direct"]["better"] == "lower"
    assert (bars["writers_balanced_fast_recall"]["floor"], bars["writers_safe_fast_precision"]["floor"]) == (0.94, 0.82)
    assert set(bars["writers_balanced_recall"]) == {"id", "value", "low", "high", "unit", "floor", "goal", "better"}
    assert "writers_safe_recall_scanned" in bars
    assert "writers_safe_recall_dictated" not in bars


def test_results_of_a_process_come_back(tmp_path: Path) -> None:
    result = SystemResult("balanced", [NoteCounts("w01", "Kenya", "prose", {"gold": 1})], 1.0, promised=0.9)
    (tmp_path / "out.json").write_bytes(msgspec.json.encode([result]))
    assert read_results(tmp_path / "out.json") == [result]


def test_what_philter_replaced_is_told_by_its_asterisks() -> None:
    assert peers._masked("5* Ann Lee.", "5* *** ***.") == [(3, 6), (7, 10)]


def test_voices_are_scored_alone_and_together(corpus: Path, tmp_path: Path) -> None:
    results = run_system(SystemJob(VOICES, "dev", str(corpus), str(tmp_path / "out.json")))
    names = {result.setting.partition(",")[0] for result in results}
    alone = ("cascade", "hmmdp", "reader")
    assert names == {" + ".join(some) for size in (1, 2, 3) for some in combinations(alone, size)}
    for result in results:
        asked = float(result.setting.rpartition(" ")[2])
        assert estimate(result.notes, FIGURES["R"]).value >= asked


def sampled(chances: list[float], ruled: list[bool]) -> DialSample:
    """Return four tokens, of which the first and the third are identifiers."""
    gold = np.array([True, False, True, False])
    return DialSample(np.array(chances), np.zeros(4, np.int64), np.array(ruled), gold)


def test_precision_at_a_recall_counts_from_the_surest_and_rules_are_surest() -> None:
    by_chance = sampled([0.9, 0.8, 0.7, 0.1], [False] * 4)
    assert precision_at([by_chance], (0.5, 1.0)).tolist() == pytest.approx([1.0, 2 / 3])
    by_rule = sampled([0.9, 0.8, 0.7, 0.1], [False, False, False, True])
    assert precision_at([by_rule], (0.5, 1.0)).tolist() == pytest.approx([1 / 2, 2 / 4])


def test_differences_are_of_the_same_patients_and_halves_share_none() -> None:
    better, worse = sampled([0.9, 0.1, 0.8, 0.2], [False] * 4), sampled([0.1, 0.9, 0.2, 0.8], [False] * 4)
    rows = {"before": {"p1": [worse], "p2": [better]}, "after": {"p1": [better], "p2": [better]}}
    gain, error = compare(rows, "before", "after")
    assert (gain > 0).all()
    assert (error > 0).all()
    same = compare(rows, "after", "after")
    assert not same[0].any()
    assert not same[1].any()
    docs = [Document.make("note", id=str(number), group=f"p{number % 5}") for number in range(11)]
    learnt, scored = halves(docs)
    assert {doc.patient for doc in learnt} == {"p1", "p3"}
    assert {doc.patient for doc in scored} == {"p0", "p2", "p4"}
    assert len(learnt) + len(scored) == 11
