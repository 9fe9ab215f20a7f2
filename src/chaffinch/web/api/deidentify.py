"""Releases of the REST interface: the documents of a request through the steps of a release job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release, Released, Withheld
from chaffinch.errors import ConfigError
from chaffinch.jobs.batching.batches import check_patients, release_units
from chaffinch.jobs.date_order import settle_date_order
from chaffinch.jobs.job import OptionNames
from chaffinch.jobs.work import BatchWork
from chaffinch.text import Document
from chaffinch.text.formats import Unit
from chaffinch.web.api import types
from chaffinch.web.api.documents import check_sizes
from chaffinch.web.api.engine import Engine
from chaffinch.web.api.operations import with_recall
from chaffinch.web.api.work import Work, WorkQueue
from chaffinch.web.settings import Limits

DEFAULT_SECRET = "default"  # noqa: S105  (a name)
_FIELDS = OptionNames("patient", "each_document_a_patient")  # of a request, in messages
_requests = count()


@dataclass(frozen=True, slots=True, eq=False)
class Deidentify:
    """The function of the endpoint /deidentify."""

    engine: Engine
    queue: WorkQueue
    limits: Limits

    async def __call__(self, request: types.DeidentifyRequest) -> types.DeidentifyAnswer:
        """De-identify documents in the queue; answer with texts, or why withheld; ConfigError, Problem if unfit."""
        engine = self.engine
        model = request.model or engine.default_detector
        detector = with_recall(engine.detector(model), request.recall)
        policy = engine.policy(request.policy)
        secret_name = request.secret
        if secret_name is None and policy.needs_secret and DEFAULT_SECRET in engine.secrets:
            secret_name = DEFAULT_SECRET
        check_names(request, policy)
        characters = check_sizes(request.documents, self.limits)
        units = units_of(request.documents, is_keyed=secret_name is not None)
        release = Release(policy, engine.secret(secret_name), date_order=request.date_order)
        release = settle_date_order(release, units, "date_order")
        key = ("deidentify", model, request.recall, policy.name, secret_name, release.date_order, release.counted_order)
        patients = frozenset(unit.read().patient for unit in units)
        run = partial(_release, BatchWork(release, detector))
        work = Work(run, units, len(units), characters, key, patients)
        results = await self.queue.submit(work)
        documents = [
            _answer(each, result, is_keyed=secret_name is not None)
            for each, result in zip(request.documents, results, strict=True)
        ]
        released = sum(each.status == "released" for each in documents)
        return types.DeidentifyAnswer(
            model=model,
            policy=policy.name,
            secret=secret_name,
            released=released,
            withheld=len(documents) - released,
            documents=documents,
        )


def check_names(request: types.DeidentifyRequest, policy: Policy) -> None:
    """Raise ConfigError if patients (or ids in their place) are needed but missing, contradict, or ids repeat."""
    documents = request.documents
    with_patient = sum(each.patient is not None for each in documents)
    alone = request.each_document_a_patient
    check_patients(policy, len(documents), with_patient, names=_FIELDS, each_note=alone)
    if policy.needs_secret and alone and any(each.id is None for each in documents):
        raise ConfigError("with each_document_a_patient surrogates are drawn by id, and documents have none; give id")
    ids = [each.id for each in documents if each.id is not None]
    if len(set(ids)) < len(ids):
        raise ConfigError("two documents have one id; make the ids differ")


def units_of(documents: Sequence[types.InputDocument], *, is_keyed: bool) -> list[Unit]:
    """Return each document as a unit to release; without a secret, ids and patients get a prefix unique to the call.

    Documents of two requests that are released together must not be taken for those of one patient.
    """
    mark = "" if is_keyed else f"{next(_requests)}:"
    units = []
    for number, each in enumerate(documents, start=1):
        name = mark + (f"#{number}" if each.id is None else each.id)
        group = None if each.patient is None else mark + each.patient
        doc = Document.make(each.text, id=name, group=group)
        units.append(Unit("", name, bytes, partial(_same, doc), number=number))
    return units


def _same(doc: Document, _: bytes) -> Document:
    """Return the given document, in place of parsing the unit's bytes."""
    return doc


def _release(work: BatchWork, payloads: Sequence[list[Unit]]) -> list[Any]:
    """Release the units of several requests in one call, and return the results of each request."""
    every = [unit for units in payloads for unit in units]
    results = iter(release_units(work, [replace(unit, number=n) for n, unit in enumerate(every, start=1)]))
    return [[next(results) for _ in units] for units in payloads]


def _answer(document: types.InputDocument, result: Released | Withheld, *, is_keyed: bool) -> types.ReleasedDocument:
    """Return one document's answer: released text and replacements, or the reason; a pseudonym if `is_keyed`."""
    if isinstance(result, Withheld):
        return types.ReleasedDocument(
            id=document.id, status="withheld", text=None, reason=result.reason, replacements=[]
        )
    replaced = [
        types.Replacement(start=p[0], end=p[1], label=p[2], operator=p[3], out_start=p[4], out_end=p[5])
        for p in result.places
    ]
    return types.ReleasedDocument(
        id=document.id,
        status="released",
        text=result.text,
        reason=None,
        replacements=replaced,
        pseudonym=result.id if is_keyed and document.id is not None else None,
        patient_pseudonym=result.group,
    )
