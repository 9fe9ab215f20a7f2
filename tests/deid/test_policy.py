"""Policies: what is asked for is checked, with the nearest name; the ready ones do what their name promises."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from chaffinch.deid.kinds import KINDS, KNOWN_LABELS, kind_of
from chaffinch.deid.operators import OPERATORS
from chaffinch.deid.policy import Policy, PolicyRule, ready_policies
from chaffinch.errors import ConfigError

OURS = """
name = "ours"
default = { operator = "mask", length = 3 }
types = ["Trial arm", "NAME_TITLE", "HCW"]
[rules]
NAME = "number"
DOCTOR = "keep"
NAME_TITLE = "keep"
AGE = { operator = "generalise", over = 79 }
trial-arm = "remove"
HCW = "tag"
"""


def test_the_closest_rule_wins() -> None:
    policy = Policy.parse(OURS)
    expected = {
        "PATIENT": "number",
        "NAME": "number",
        "DOCTOR": "keep",
        "NOMBRE_PERSONAL_SANITARIO": "keep",
        "NAME_TITLE": "keep",
        "HCW": "tag",
        "CLINICIAN": "keep",
        "SEXO_SUJETO_ASISTENCIA": "mask",
        "Trial arm": "remove",
        "TRIAL_ARM": "remove",
        "edad_sujeto_asistencia": "generalise",
        "CITY": "mask",
        "Something else": "mask",
    }
    assert {label: policy.rule(label).operator for label in expected} == expected
    assert policy.rule("AGE").options == (("over", 79),)
    assert policy.operator("CITY")[0] == "mask"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[rules]\nDOCTER = "tag"', "unknown type 'DOCTER'; did you mean 'DOCTOR'?"),
        ('types = ["TRIAL"]\n[rules]\nTRAIL = "tag"', "did you mean 'TRIAL'?"),
        ('[rules]\nDOCTOR = "sorrogate"', "unknown operator 'sorrogate'; did you mean 'surrogate'?"),
        ('[rules]\nDOCTOR = "zzz"', f"choose one of {', '.join(OPERATORS)}"),
        ('default = { operator = "mask", lenght = 3 }', "mask has no option 'lenght'; did you mean 'length'?"),
        ('default = { operator = "keep", by = "kind" }', "keep has no option 'by'; it has no options"),
        ('default = { operator = "mask", length = "3" }', "option 'length' of mask is a int, got str"),
        ('default = { operator = "mask", length = true }', "option 'length' of mask is a int, got bool"),
        ('default = { operator = "mask", length = -1 }', "length must be a whole number, at least 0, got -1"),
        ('default = { operator = "mask", character = "ab" }', "character must be one printable character"),
        ('default = { operator = "tag", by = "colour" }', "by must be one of kind, category, label"),
        ('[rules]\nAGE = { operator = "generalise", over = 0 }', "over must be a whole number, at least 1, got 0"),
        ('defualt = "tag"', "unknown key 'defualt'; did you mean 'default'?"),
        ("default = 3", "must be an operator's name"),
        ("[rules]\nDOCTOR = { length = 3 }", "the rule for 'DOCTOR' must be an operator's name"),
        ('[rules]\nDOCTOR = "generalise"', "generalise cannot act on type 'DOCTOR'; it acts on AGE, ZIP, DATE"),
        ('default = "shift"', "shift cannot act on type 'PATIENT'; it acts on DATE; give PATIENT a separate rule"),
        ('default = "surrogate"', "surrogate cannot act on type 'AGE'; it acts on all but AGE, DATE"),
        ('[rules]\nLOCATION = "generalise"', "generalise cannot act on type 'LOCATION'"),
        ('types = ["FECHAS"]\n[rules]\nFECHAS = "surrogate"', "surrogate cannot act on type 'FECHAS'"),
        (
            'default = "keep"\n[rules]\nNAMES = "tag"',
            "'NAMES' is another guideline's name for NAME; write NAME, or list",
        ),
        ('[rules]\nperson = "tag"', "'person' is another guideline's name for NAME; write NAME, or list"),
        ('[rules]\nNOMBRE_SUJETO_ASISTENCIA = "tag"', "another guideline's name for PATIENT; write PATIENT"),
        ('[rules]\n"Medical record number" = "tag"', "another guideline's name for MEDICALRECORD"),
        ('[rules]\nNAME_TITLE = "keep"', "'NAME_TITLE' is another guideline's label without a kind here; list it"),
        ('[rules]\nNOMBRE_SUJETO = "tag"', "unknown type 'NOMBRE_SUJETO'; choose one of PATIENT, FAMILY"),
        ('types = ["TRIAL"]', "type 'TRIAL' is declared but has no rule"),
        ('types = ["TRIAL", "MRN"]\n[rules]\nTRIAL = "tag"', "type 'MRN' is declared but has no rule"),
        ('types = ["Trial arm"]\n[rules]\n"Trial arm" = "tag"\nTRIAL_ARM = "keep"', "type 'TRIAL_ARM' has two rules"),
        ('[rules]\nDOCTOR = "tag"\ndoctor = "keep"', "type 'doctor' has two rules"),
        ("rules = 3", "rules must be a dict"),
        ("types = [3]", "types must be a list of labels"),
        ("name = 3", "name must be a str"),
        ("name = ", "not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy.parse(text)
    assert message in str(caught.value)


def test_no_rule_is_ignored() -> None:
    """A rule that is accepted decides what happens to the label it is written for, whatever the default."""
    for label in KNOWN_LABELS:
        try:
            policy = Policy("one", PolicyRule("keep"), {label: PolicyRule("remove")})
        except ConfigError:
            assert label not in KINDS
            policy = Policy("one", PolicyRule("keep"), {label: PolicyRule("remove")}, (label,))
        assert policy.rule(label).operator == "remove"
        same = [kind.name for kind in KINDS.values() if label in (kind.name, kind.category)]
        assert all(policy.rule(name).operator == "remove" for name in same)


def test_a_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('default = "remove"')
    assert Policy.read(path) == Policy("mine", PolicyRule("remove")) == Policy.read(str(path))
    path.write_text('defualt = "remove"')
    with pytest.raises(ConfigError, match=r"mine.toml: unknown key"):
        Policy.read(path)
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ConfigError, match="it is not UTF-8"):
        Policy.read(path)


def test_an_unknown_ready_policy_gets_the_nearest_name() -> None:
    assert ready_policies() == ("i2b2-surrogate", "limited-dataset", "safe-harbor")
    with pytest.raises(ConfigError, match="did you mean 'safe-harbor'"):
        Policy.read("safe-harbour")


def test_the_digest_is_of_what_the_policy_does() -> None:
    policy = Policy.parse(OURS)
    reordered = "\n".join(["# a comment", *OURS.splitlines()[:5], *reversed(OURS.splitlines()[5:])])
    spelt = OURS.replace('NAME = "number"', 'name = { operator = "number", by = "kind" }')
    assert policy.digest() == Policy.parse(reordered).digest() == Policy.parse(spelt).digest()
    others = [OURS.replace("79", "80"), OURS.replace("length = 3", "length = 4"), OURS.replace('"keep"', '"tag"', 1)]
    assert len({policy.digest(), *(Policy.parse(text).digest() for text in others)}) == 4
    assert len({Policy.read(name).digest() for name in ready_policies()}) == 3


def test_policies_travel_between_processes_and_cannot_be_changed() -> None:
    policy = Policy.parse(OURS)
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert again.digest() == policy.digest()
    assert hash(again) == hash(policy)
    with pytest.raises(TypeError):
        policy.rules["CITY"] = PolicyRule("keep")  # type: ignore[index]  # that it cannot be set is the point


def test_surrogates_may_be_the_default_where_ages_and_dates_have_rules() -> None:
    policy = Policy.parse('default = "surrogate"\n[rules]\nAGE = "tag"\nDATE = "shift"')
    assert policy.rule("Own type").operator == "surrogate"


def test_only_policies_that_draw_need_a_secret() -> None:
    assert {name: Policy.read(name).needs_secret for name in ready_policies()} == {
        "safe-harbor": False, "limited-dataset": False, "i2b2-surrogate": True
    }  # fmt: skip


def by_operator(name: str) -> dict[str, set[str]]:
    policy = Policy.read(name)
    found: dict[str, set[str]] = {operator: set() for operator in OPERATORS}
    for kind in [*KINDS, "Own type"]:
        found[policy.rule(kind).operator].add(kind)
    return {operator: kinds for operator, kinds in found.items() if kinds}


def test_safe_harbor_lets_no_listed_identifier_stand() -> None:
    found = by_operator("safe-harbor")
    assert found.pop("keep") == {"STATE", "COUNTRY"}
    assert found.pop("generalise") == {"AGE", "DATE", "ZIP"}
    assert found.keys() == {"tag"}
    assert all(kind_of(name).hipaa is None for name in ("STATE", "COUNTRY"))


def test_a_limited_data_set_keeps_dates_and_places_but_no_direct_identifier() -> None:
    found = by_operator("limited-dataset")
    assert found.pop("keep") == {"DATE", "AGE", "CITY", "STATE", "ZIP", "COUNTRY"}
    assert found.keys() == {"tag"}


def test_i2b2_surrogates_stand_for_names_places_numbers_and_contacts() -> None:
    found = by_operator("i2b2-surrogate")
    assert found["shift"] == {"DATE"}
    assert found["generalise"] == {"AGE"}
    assert found["tag"] == {"OTHER", "Own type"}
    assert {kind_of(name).category for name in found["surrogate"]} == {
        "NAME", "PROFESSION", "LOCATION", "CONTACT", "ID"
    }  # fmt: skip
    assert found.keys() == {"shift", "generalise", "tag", "surrogate"}
