"""Presidio's synthetic samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recipes.corpora import presidio_synth

from chaffinch.errors import DataError
from chaffinch.text import Span
from tests.recipes.files import gz


def sample(start: int = 3) -> dict[str, Any]:
    name = {"entity_type": "PERSON", "entity_value": "Zoë Q", "start_position": start, "end_position": start + 5}
    masked = "Hi {{PERSON}}"
    return {"full_text": "Hi Zoë Q", "masked": masked, "spans": [name], "template_id": 4, "metadata": None}


def test_the_template_is_the_group(tmp_path: Path) -> None:
    gz(tmp_path / "large.json.gz", json.dumps([sample(), {**sample(), "spans": []}]))
    (tmp_path / "templates.txt").write_text("Hi {{PERSON}}")
    first, second = presidio_synth.read(tmp_path)
    assert (first.id, first.text, first.layer("gold")) == ("large-0", "Hi Zoë Q", (Span(3, 8, "PERSON"),))
    assert first.meta == {"dataset": "large", "masked": "Hi {{PERSON}}"}
    assert first.group == second.group == "large-template-4"
    assert (second.id, second.layer("gold")) == ("large-1", ())


@pytest.mark.parametrize("content", [json.dumps([sample(2)]), '[{"full_text": "Zoë"}]', "[Zoë", "[1]"])
def test_a_broken_sample_is_refused_by_name_and_without_its_text(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match=r"large\.json\.gz") as caught:
        list(presidio_synth.read(gz(tmp_path / "large.json.gz", content)))
    assert "Zoë" not in str(caught.value)
