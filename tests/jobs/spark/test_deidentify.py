"""Notes of a DataFrame are released as by the plain run, and bad ones are withheld."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.synth.notes import notes as invent
from chaffinch.errors import ConfigError
from chaffinch.jobs import deid, spark
from chaffinch.jobs.spark.deidentify import CountPartition
from chaffinch.jobs.work import DetectorSpec
from tests.jobs.spark.conftest import QUIET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, *QUIET]

RULES = DetectorSpec(None)
SCHEMA = "id string, patient string, text string"
KEEP = spark.Settings(ids="keep")


def rows_of(session: SparkSession, rows: list[Any], schema: str = SCHEMA, **options: Any) -> dict[str, dict[str, Any]]:
    """De-identify rows by rules, and return the results by id."""
    chosen: dict[str, Any] = {"detector": RULES, "settings": KEEP} | options
    return {
        row["id"]: row
        for row in spark.deidentify(session.createDataFrame(rows, schema), **chosen).toArrow().to_pylist()
    }


@pytest.fixture(scope="module")
def synthetic() -> list[tuple[str, str, str]]:
    """Invented notes of twelve patients and more."""
    return [(doc.id, str(doc.group), doc.text) for doc in invent(60, seed=5)]


@pytest.fixture(scope="module")
def plain(
    synthetic: list[tuple[str, str, str]], secret_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The rows that the plain run releases, by released id: its text and patient."""
    folder = tmp_path_factory.mktemp("plain")
    table = pa.table(
        {name: list(cells) for name, cells in zip(("id", "patient", "text"), zip(*synthetic, strict=True), strict=True)}
    )
    pq.write_table(table, folder / "notes.parquet")
    policy = Policy.read("i2b2-surrogate")
    secret = Secret.read(secret_file)
    deid.run(folder / "notes.parquet", folder / "out.parquet", RULES, policy=policy, secret=secret)
    return {row["id"]: row for row in pq.read_table(folder / "out.parquet").to_pylist()}


def test_text_and_patients_equal_the_plain_run(
    session: SparkSession,
    synthetic: list[tuple[str, str, str]],
    plain: dict[str, dict[str, Any]],
    secret_file: Path,
) -> None:
    df = session.createDataFrame(list(reversed(synthetic)), SCHEMA)
    options = spark.Settings(partitions=3)
    out = spark.deidentify(df, policy="i2b2-surrogate", secret_file=secret_file, detector=RULES, settings=options)
    assert out.columns == ["id", "patient", "text", "spans", "status", "reason", "model_sha256", "policy_sha256"]
    rows = out.toArrow().to_pylist()
    assert len(rows) == len(synthetic)
    assert {row["status"] for row in rows} == {"released"}
    assert {row["id"]: (row["patient"], row["text"]) for row in rows} == {
        name: (row["patient"], row["text"]) for name, row in plain.items()
    }
    assert {row["policy_sha256"] for row in rows} == {Policy.read("i2b2-surrogate").digest()}
    assert {row["model_sha256"] for row in rows} == {RULES.build().model_digest}


def test_spans_are_where_the_replacements_are(session: SparkSession) -> None:
    row = rows_of(session, [("a", "p", "Call 617-555-0142 now.")])["a"]
    (span,) = row["spans"]
    assert row["text"][span["start"] : span["end"]] == f"[{span['label']}]"
    assert row["text"].replace(f"[{span['label']}]", "617-555-0142") == "Call 617-555-0142 now."
    assert rows_of(session, [("a", "p", "Call 617-555-0142.")], settings=spark.Settings(ids="keep", spans=False))["a"][
        "spans"
    ] is None  # fmt: skip


def test_bad_rows_are_withheld_and_the_others_released(session: SparkSession, secret_file: Path) -> None:
    from pyspark.sql import functions

    rows = [
        ("twice", "p", "first"),
        ("twice", "q", "second"),
        (None, "p", "no id"),
        ("empty", "p", None),
        ("alone", None, "Call 617-555-0142."),
        ("blank", "", "Call 617-555-0142."),
        ("long", "p", "x" * 600),
        ("broken", "p", "to be broken"),
        ("good", "p", "Call 617-555-0142."),
    ]
    df = session.createDataFrame(rows, SCHEMA)
    broken = functions.when(df["id"] == "broken", functions.unhex(functions.lit("FF41")).cast("string"))
    df = df.withColumn("text", functions.coalesce(broken, df["text"]))
    options = spark.Settings(ids="keep", max_chars=500)
    out = spark.deidentify(df, policy="i2b2-surrogate", secret_file=secret_file, detector=RULES, settings=options)
    found = out.toArrow().to_pylist()
    assert len(found) == len(rows)
    assert {row["id"] for row in found if row["status"] == "released"} == {"good"}
    withheld = {row["id"]: row["reason"] for row in found if row["status"] == "withheld"}
    assert withheld["twice"] == "has the id of another note; make the ids differ"
    assert withheld[None] == "has no id; give every note an id"
    assert withheld["empty"] == "has no text"
    assert withheld["alone"].startswith("has no patient, and policy i2b2-surrogate")
    assert withheld["blank"] == withheld["alone"]
    assert withheld["broken"].startswith("is not valid UTF-8")
    assert "500" in withheld["long"]
    assert {(row["text"], row["spans"]) for row in found if row["status"] == "withheld"} == {(None, None)}


def test_notes_without_a_patient_are_alone_where_the_policy_needs_none(session: SparkSession) -> None:
    rows = rows_of(session, [("a", None, "Call 617-555-0142."), ("b", None, "Call 617-555-0143.")])
    assert {row["status"] for row in rows.values()} == {"released"}
    assert {row["patient"] for row in rows.values()} == {None}


def test_numbers_order_names_and_make_ids(session: SparkSession) -> None:
    df = session.createDataFrame([("x", "p", "one", 7), ("y", "p", "two", 3)], SCHEMA + ", place bigint")
    out = spark.deidentify(df, detector=RULES, settings=spark.Settings(number="place")).toArrow().to_pylist()
    assert {(row["id"], row["text"]) for row in out} == {("0000007", "one"), ("0000003", "two")}


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("id string, patient string, text binary", {}, "text: the column is of type binary"),
        ("id double, patient string, text string", {}, "id: the column is of type double"),
        (SCHEMA, {"text": "note"}, "text: no column of the 3"),
        (SCHEMA, {"policy": "i2b2-surrogate"}, "needs a secret"),
        (SCHEMA, {"settings": spark.Settings()}, "new ids are drawn from a secret"),
        (SCHEMA, {"settings": spark.Settings(ids="keep", partitions=0)}, "partitions must be at least 1"),
        (SCHEMA, {"settings": spark.Settings(ids="keep", each_note_a_patient=True)}, "each_note_a_patient"),
        (SCHEMA, {"settings": spark.Settings(ids="keep", date_order="mdy")}, "shifts no dates"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(
    session: SparkSession, schema: str, options: dict[str, Any], message: str
) -> None:
    df = session.createDataFrame([], schema)
    chosen: dict[str, Any] = {"detector": RULES, "settings": KEEP} | options
    with pytest.raises(ConfigError, match=message):
        spark.deidentify(df, **chosen)


def test_no_secret_is_in_the_plan_and_no_text_on_the_disk(
    session: SparkSession, secret_file: Path, scratch: Path
) -> None:
    df = session.createDataFrame(
        [(f"n{number}", f"p{number % 7}", "Zanzibarrow rests. " * 40) for number in range(99)], SCHEMA
    )
    out = spark.deidentify(df, policy="i2b2-surrogate", secret_file=secret_file, detector=RULES)
    assert out.toArrow().num_rows == 99
    plan = out._jdf.queryExecution().toString()
    secret = secret_file.read_text().strip()
    assert "DeidentifyPartition" in plan
    assert secret not in plan
    assert "Zanzibarrow" not in plan.replace("LocalRelation", "")
    files = [path for path in scratch.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".data") for path in files)  # shuffled blocks, not compressed
    assert not [
        path.name for path in files if b"Zanzibarrow" in path.read_bytes() or secret.encode() in path.read_bytes()
    ]


def test_another_secret_on_a_worker_stops_the_job(session: SparkSession, secret_file: Path) -> None:
    df = session.createDataFrame([("a", "p", "Call Zanzibarrow.")], SCHEMA)
    other = spark.SecretFile(str(secret_file), "0" * 16)
    out = spark.deidentify(df, policy="i2b2-surrogate", secret_file=other, detector=RULES)
    with pytest.raises(Exception, match="the secret is not the one") as caught:
        out.toArrow()
    assert "Zanzibarrow" not in str(caught.value)


def test_notes_that_are_too_long_do_not_count_for_the_date_order() -> None:
    texts = ["On 13/04/1998, then on 14/05/1998.", "On 04/13/1998."]
    row = {"key": "p", "number": 1, "id": "a", "patient": "p", "repeated": False}
    batch = pa.RecordBatch.from_pylist([row | {"text": text} for text in texts])
    for most, votes in ((20, [(0, 0), (1, 0)]), (99, [(0, 2), (1, 0)])):
        (counted,) = CountPartition(most)(iter([batch]))
        assert [(found["mdy"], found["dmy"]) for found in counted.to_pylist()] == votes
