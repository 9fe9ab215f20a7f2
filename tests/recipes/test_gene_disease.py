"""GAD and EU-ADR."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recipes.corpora import gene_disease

from chaffinch.errors import DataError
from chaffinch.text import Argument, Relation, Span
from tests.recipes.files import gz

GENE, DISEASE = Span(13, 19, "GENE"), Span(0, 9, "DISEASE")
RELATION = Relation("association", (Argument("gene", (GENE,)), Argument("disease", (DISEASE,))))


def test_gad_has_a_relation_only_where_the_label_is_one(tmp_path: Path) -> None:
    rows = 'index\tsentence\tlabel\n0\t@DISEASE$ by @GENE$. Yes.\t1\n1\t@DISEASE$ by @GENE$, "no".\t0\n'
    gz(tmp_path / "fold_3.tsv.gz", rows)
    positive, negative = gene_disease.read_gad(tmp_path)
    assert positive.layer("gold") == (DISEASE, GENE)
    assert positive.relations == (RELATION,)
    assert positive.sentences.tolist() == [[0, 25]]
    assert (positive.id, positive.meta["fold"]) == ("3-0", 3)
    assert (negative.id, negative.layer("gold"), negative.relations) == ("3-1", (DISEASE, GENE), ())


def test_eu_adr_has_the_same_roles_whatever_the_order_of_entities(tmp_path: Path) -> None:
    rows = [
        {"id": f"t_{kind}", "text": "@DISEASE$ by @GENE$.", "relation": [{"relation_type": kind, "entity_1": "@GENE$"}]}
        for kind in ("positive", "negative")
    ]
    gz(tmp_path / "fold_0.json.gz", "".join(json.dumps(row) + "\n" for row in rows))
    positive, negative = gene_disease.read_eu_adr(tmp_path)
    assert (positive.id, positive.relations, positive.meta["fold"]) == ("t_positive", (RELATION,), 0)
    assert (negative.layer("gold"), negative.relations) == ((DISEASE, GENE), ())


@pytest.mark.parametrize(
    "row", ["0\t@GENE$ alone\t1", "0\t@GENE$ @GENE$ @DISEASE$\t1", "0\t@GENE$ @DISEASE$\t2", "canary"]
)
def test_a_broken_row_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    with pytest.raises(DataError, match=r"fold_1\.tsv\.gz:2") as caught:
        list(gene_disease.read_gad(gz(tmp_path / "fold_1.tsv.gz", f"index\tsentence\tlabel\n{row}\n")))
    assert "alone" not in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("row", ['{"id": "a", "text": "canary", "relation": []}', "{", '{"text": "canary"}'])
def test_a_broken_record_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    with pytest.raises(DataError, match=r"fold_1\.json\.gz:1") as caught:
        list(gene_disease.read_eu_adr(gz(tmp_path / "fold_1.json.gz", row)))
    assert "canary" not in str(caught.value)


def test_a_fold_without_a_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fold_3"):
        list(gene_disease.read_gad(gz(tmp_path / "all.tsv.gz", "index\tsentence\tlabel\n")))
