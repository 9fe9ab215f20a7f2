"""Tokens: exact offsets on any text, and the words of the trade cut where an entity ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.text.tokens import token_offsets
from tests.text.strategies import TEXTS


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in token_offsets(text)]


@given(st.one_of(TEXTS, st.text(st.characters(exclude_categories=["Cs"]))))
def test_tokens_cover_every_character_that_is_not_white_space(text: str) -> None:
    offsets = token_offsets(text)
    assert offsets.dtype == np.int32
    assert (np.diff(offsets.ravel()) >= 0).all()
    assert (offsets[:, 1] > offsets[:, 0]).all()
    assert "".join(words(text)) == "".join(text.split())
    assert not any(c.isspace() for word in words(text) for c in word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 12/03/1998.", "on|12/03/1998|."),
        ("12-Mar-1998, 1998-03-12", "12-Mar-1998|,|1998-03-12"),
        ("id 37947241ZGJ or 3194S62727", "id|37947241ZGJ|or|3194S62727"),
        ("IL-2-induced", "IL-2|-|induced"),
        ("cocaine-induced", "cocaine|-|induced"),
        ("NF-kappaB and T-cell", "NF-kappaB|and|T-cell"),
        ("5mg/kg", "5|mg|/|kg"),
        ("2.5 ml, 40years", "2.5|ml|,|40|years"),
        ("57-year-old", "57|-|year|-|old"),
        ("Dr. O'Brien's", "Dr.|O'Brien|'s"),
        ("Dr. med. Müller-Lüdenscheidt", "Dr.|med.|Müller-Lüdenscheidt"),
        ("she said no. Yes", "she|said|no|.|Yes"),
        ("No. 12", "No.|12"),
        ("hepatitis B. Then", "hepatitis|B|.|Then"),
        ("J. Smith, M.D.", "J|.|Smith|,|M.D."),
        ("a.b+c@x-y.co.uk!", "a.b+c@x-y.co.uk|!"),
        ("(https://x.org/a?b=1).", "(|https://x.org/a?b=1|)|."),
        ("www.clinic.es, clinic.es", "www.clinic.es|,|clinic.es"),
        ("end.Next", "end|.|Next"),
        ("555-123-4567 at 10:30", "555-123-4567|at|10:30"),
        ("s/p CABG and/or y/o", "s/p|CABG|and|/|or|y/o"),
        ("café cafe\u0301s Ñandú", "café|cafe\u0301s|Ñandú"),
        ("東京タワー", "東|京|タワー"),
        ("ok👩‍⚕️🇪🇸👍🏽", "ok|👩‍⚕️|🇪🇸|👍🏽"),
        ("x\0y", "x|\0|y"),
        ("हिन्दी भाषा", "हिन्दी|भाषा"),
        ("Name:____ -- ...", "Name|:|____|--|..."),
        ("37.5°C 98% ≥3", "37.5|°|C|98|%|≥|3"),
    ],
)
def test_tokens_of_the_trade(text: str, expected: str) -> None:
    assert words(text) == expected.split("|")


@pytest.mark.parametrize("unit", "a 1 a. 1. a- 1-1x @ a@ ' \0 - https:// é 1/ _".split(" "))
def test_long_runs_without_white_space_stay_linear(unit: str) -> None:
    # 400,000 characters: a pattern that scans ahead from every token would not come back.
    text = unit * (400_000 // len(unit))
    assert token_offsets(text)[-1, 1] == len(text)
