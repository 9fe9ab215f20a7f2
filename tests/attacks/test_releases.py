"""Attack whole releases: one clinician of thousands of patients, among the other names of their notes.

No surrogate of a patient's surnames is another real name of that patient, so the shared clinician's surname is a
little rarer among surrogates than others are. The attacker lists all names that are as rare: they have to be too many
to choose from.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import LAYER, NumberedDocument, Release, Released, release
from chaffinch.deid.surrogates.lists import names, surnames
from chaffinch.text import Document, Span
from tests.attacks.sizes import sized
from tests.deid.releases import FunctionDetector

pytestmark = pytest.mark.drill

PATIENTS = sized(300, 5000)
OTHERS = 20  # names beside that of the clinician
SUSPECTS = 100  # names as rare as the clinician's own, at least: an advantage of 1 %


def _note(people: list[str], patient: int) -> Document:
    text, spans = "", []
    for name in people:
        text += "Seen by Dr. "
        spans.append(Span(len(text), len(text) + len(name), "DOCTOR"))
        text += f"{name}.\n"
    return Document.make(text, id=str(patient), group=str(patient), layers={LAYER: spans})


@pytest.mark.parametrize("sort", ["surnames", "first names"])
def test_the_name_of_a_clinician_of_all_patients_is_not_the_one_that_is_missing(sort: str) -> None:
    rng = np.random.default_rng(21)
    first = [name for (role, _), every in names().real.items() if role == "F" for name in every if len(name) > 3]
    pool = [name for name in surnames()[:20_000] if len(name) > 3] if sort == "surnames" else first
    how, marked = Release(Policy.read("i2b2-surrogate"), Secret(rng.bytes(32))), FunctionDetector(list, "marked")
    clinician = pool[37]
    seen: Counter[str] = Counter()
    for patient in range(PATIENTS):
        people = [clinician, *(pool[place] for place in rng.choice(len(pool), OTHERS, replace=False))]
        (one,) = release([NumberedDocument(patient, _note(people, patient))], how, marked)
        assert isinstance(one, Released)
        seen.update(one.text[place[4] : place[5]] for place in one.places)
    suspects = [name for name in pool if seen[name] <= seen[clinician]]
    assert len(suspects) >= SUSPECTS, (len(suspects), seen[clinician])
