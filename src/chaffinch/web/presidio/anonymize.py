"""/anonymize and /deanonymize: results merged and replaced as Presidio's engine does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from chaffinch.web.api.engine import Engine
from chaffinch.web.presidio.bodies import refuse
from chaffinch.web.presidio.keyed import KEYED, KeyedSpan, replace_keyed
from chaffinch.web.presidio.operators import ANONYMIZERS, DEANONYMIZERS, Operate

DEFAULT = "DEFAULT"
_BLANKS = re.compile(r" +")


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text that an analyzer found."""

    start: int
    end: int
    entity_type: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The operator for a type, and its parameters."""

    name: str
    parameters: Mapping[str, Any]


def anonymize(engine: Engine, body: dict[str, Any]) -> dict[str, Any]:
    """Return {text, items}: results merged, then replaced by operators, items last first; Problem if body is bad."""
    if not body:
        raise refuse("Invalid request json", 400)
    chosen = _read_operators(body.get("anonymizers"))
    if any(each.name == "custom" for each in chosen.values()):
        raise refuse("Custom type anonymizer is not supported", 400)
    given = body.get("analyzer_results")
    if given is None:
        raise refuse("Invalid input, request must contain analyzer results")
    text = _read_text(body)
    found = sorted(
        (_read_entity(each, needs_score=True) for each in _check_results(given)), key=lambda e: (e.start, e.end)
    )
    entities = _join_neighbours(text, _drop_contained(_merge_same_type(found)))
    chosen.setdefault(DEFAULT, Chosen("replace", {}))
    return _operate(text, entities, chosen, ANONYMIZERS, engine)


def deanonymize(engine: Engine, body: dict[str, Any]) -> dict[str, Any]:
    """Return {text, items}: encrypted parts decrypted, items last first; Problem if the body is malformed."""
    if not body:
        raise refuse("Invalid request json", 400)
    entities = [_read_entity(each, needs_score=False) for each in _check_results(body.get("anonymizer_results") or [])]
    chosen = _read_operators(body.get("deanonymizers"))
    return _operate(_read_text(body), entities, chosen, DEANONYMIZERS, engine)


def _check_results(value: Any) -> list[Any]:
    """Return the value if it is a list of dicts; raise Problem if it is anything else."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise refuse("Invalid input, results must be an array of objects")
    return value


def _read_text(body: dict[str, Any]) -> str:
    """Return the text of a request; raise Problem if it is missing or no string."""
    text = body.get("text")
    if not isinstance(text, str):
        raise refuse("Invalid input, text must be a string")
    return text


def _read_entity(given: dict[str, Any], *, needs_score: bool) -> Entity:
    """Return an analyzer's result as an Entity; raise Problem in Presidio's words if a field is not valid."""
    for name in ("start", "end"):
        value = given.get(name)
        if value is None:
            raise refuse(f"Invalid input, result must contain {name}")
        if not isinstance(value, int) or isinstance(value, bool):
            raise refuse(f"Invalid parameter value for '{name}'.")
    start, end, entity_type, score = (given.get(name) for name in ("start", "end", "entity_type", "score"))
    if not entity_type or not isinstance(entity_type, str):
        raise refuse("Invalid input, result must contain entity_type")
    if start < 0 or end < 0:  # type: ignore[operator]  # whole numbers, as checked
        raise refuse("Invalid input, result start and end must be positive")
    if start > end:  # type: ignore[operator]  # as above
        raise refuse(f"Invalid input, start index '{start}' must be smaller than end index '{end}'")
    if needs_score and score is None:
        raise refuse("Invalid input, analyzer result must contain score")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise refuse("Invalid parameter value for 'score'.")
    return Entity(start, end, entity_type, score)  # type: ignore[arg-type]  # as above


def _read_operators(given: Any) -> dict[str, Chosen]:
    """Parse the operators of a request into {entity type: operator}; raise Problem if malformed."""
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        raise refuse("Invalid input, operators must be objects by type")
    chosen = {}
    for key, each in given.items():
        name = each.get("type")
        if not name or not isinstance(name, str):
            raise refuse("Invalid input, operator config must contain operator_name")
        chosen[key] = Chosen(name, {option: value for option, value in each.items() if option != "type"})
    return chosen


def _merge_same_type(entities: Sequence[Entity]) -> list[Entity]:
    """Return results, in order of start, with those of one type that overlap merged into one of the highest score."""
    last: dict[str, int] = {}
    merged: list[Entity] = []
    for each in entities:
        at = last.get(each.entity_type)
        if at is not None and each.start < merged[at].end and merged[at].start < each.end:
            before = merged[at]
            score = max(before.score or 0, each.score or 0)
            merged[at] = replace(before, end=max(before.end, each.end), score=score)
        else:
            last[each.entity_type] = len(merged)
            merged.append(each)
    return merged


def _drop_contained(entities: Sequence[Entity]) -> list[Entity]:
    """Return results that lie in no other one; of those with equal edges the surest, the last on a tie."""
    order = sorted(
        range(len(entities)), key=lambda n: (entities[n].start, -entities[n].end, -(entities[n].score or 0), -n)
    )
    kept: list[int] = []
    furthest = -1
    for n in order:
        if entities[n].end > furthest:
            kept.append(n)
            furthest = entities[n].end
    return [entities[n] for n in sorted(kept)]


def _join_neighbours(text: str, entities: Sequence[Entity]) -> list[Entity]:
    """Return results with those of one type that only blanks separate joined; the last one's score is kept."""
    joined: list[Entity] = []
    for each in entities:
        before = joined[-1] if joined else None
        gap = "" if before is None else text[before.end : each.start]
        if before is not None and before.entity_type == each.entity_type and _BLANKS.fullmatch(gap):
            joined[-1] = replace(each, start=before.start)
        else:
            joined.append(each)
    return joined


def _operate(
    text: str, entities: Sequence[Entity], chosen: Mapping[str, Chosen], known: Mapping[str, Operate], engine: Engine
) -> dict[str, Any]:
    """Return {text, items}: each entity replaced by its operator, items last first; Problem if one is outside."""
    ordered = sorted(entities, key=lambda e: (e.start, e.end))
    rules = [_rule_of(each, chosen, known) for each in ordered]
    for each in ordered:
        if each.end > len(text):
            raise refuse(
                f"Invalid analyzer result, start: {each.start} and end: {each.end}, while text length is only "
                f"{len(text)}."
            )
    news = _new_texts(text, ordered, rules, known, engine)
    pieces: list[str] = []
    items: list[dict[str, Any]] = []
    at = size = 0
    for n, (each, rule, new) in enumerate(zip(ordered, rules, news, strict=True)):
        end = min(each.end, ordered[n + 1].start) if n + 1 < len(ordered) else each.end
        between = text[at : each.start]
        size += len(between)
        items.append(
            {
                "start": size, "end": size + len(new), "entity_type": each.entity_type, "text": new,
                "operator": rule.name, "score": each.score,
            }
        )  # fmt: skip
        pieces += [between, new]
        size += len(new)
        at = max(at, end)
    return {"text": "".join([*pieces, text[at:]]), "items": items[::-1]}


def _rule_of(entity: Entity, chosen: Mapping[str, Chosen], known: Mapping[str, Operate]) -> Chosen:
    """Return the operator chosen for an entity's type, else for DEFAULT; raise Problem if none, or it is unknown."""
    rule = chosen.get(entity.entity_type) or chosen.get(DEFAULT)
    keyed = KEYED if known is ANONYMIZERS else ()
    if rule is None or (rule.name not in known and rule.name not in keyed):
        raise refuse(f"Invalid operator class '{'' if rule is None else rule.name}'.")
    return rule


def _new_texts(
    text: str, entities: Sequence[Entity], rules: Sequence[Chosen], known: Mapping[str, Operate], engine: Engine
) -> list[str]:
    """Return the new text of each entity, those of keyed operators drawn together; Problem if such overlap."""
    keyed = [n for n, rule in enumerate(rules) if rule.name in KEYED]
    spans = [
        KeyedSpan(e.start, e.end, e.entity_type, r.name, r.parameters) for e, r in zip(entities, rules, strict=True)
    ]
    if any(second.start < first.end for first, second in pairwise(spans[n] for n in keyed)):
        raise refuse("entities with surrogate or shift overlap; give one of them")
    drawn = dict(zip(keyed, replace_keyed(engine, text, [spans[n] for n in keyed]), strict=True))

    def operate(n: int) -> str:
        """Return the new text of entity `n` by its operator."""
        entity = entities[n]
        return known[rules[n].name](text[entity.start : entity.end], entity.entity_type, rules[n].parameters)

    return [drawn[n] if n in drawn else operate(n) for n in range(len(entities))]
