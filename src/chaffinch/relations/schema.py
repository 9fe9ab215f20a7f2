"""Schema of a relation: its name, its roles, and the entity type that fills each role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from chaffinch.checks import check_flags, check_text, to_texts
from chaffinch.errors import ConfigError
from chaffinch.text import Argument, Relation, Span


@dataclass(frozen=True, slots=True)
class Schema:
    """A relation of two roles or more; `types` are the labels of the entities that fill them, by default the roles.

    `name` is the label of the relation in documents. A symmetric relation has one type and no order: (A, B) and (B, A)
    are the same, and only one of them is a candidate.

    >>> Schema("localises", roles=("Protein", "Location")).types
    ('Protein', 'Location')
    >>> Schema("binds", roles=("first", "second"), types=("protein", "protein"), symmetric=True).symmetric
    True
    """

    name: str
    roles: tuple[str, ...]
    types: tuple[str, ...] = ()
    symmetric: bool = False

    def __post_init__(self) -> None:
        """Check the fields, set empty `types` to `roles`; ConfigError if they do not fit together."""
        check_text(self.name, "name")
        object.__setattr__(self, "roles", to_texts(self.roles, "roles"))
        object.__setattr__(self, "types", to_texts(self.types, "types") or self.roles)
        check_flags(self, "symmetric")
        if not self.name:
            raise ConfigError("a schema needs a name, the label of the relation in documents")
        if len(self.roles) < 2 or len(set(self.roles)) < len(self.roles):
            raise ConfigError(f"a schema needs two roles or more, all different, got {', '.join(self.roles)}")
        if len(self.types) != len(self.roles):
            raise ConfigError(f"{len(self.roles)} roles and {len(self.types)} types; give one type for each role")
        if self.symmetric and len(set(self.types)) > 1:
            raise ConfigError(f"a symmetric relation has one type of entity, got {', '.join(self.types)}")

    def relation(self, spans: tuple[Span, ...], *, score: float = 1.0, source: str = "") -> Relation:
        """Return the relation between mentions, one for each role in order; ValueError if their number differs."""
        named = zip(self.roles, spans, strict=True)
        return Relation(self.name, tuple(Argument(role, (span,), span.concept) for role, span in named), score, source)

    def arguments(self, relation: Relation) -> tuple[Argument, ...] | None:
        """Return a relation's arguments in order of roles, matched by role or else by type; None if they do not fit.

        Arguments are matched by their roles, otherwise by the labels of their mentions. Arguments of a symmetric
        relation, and of roles of the same type, keep their order.
        """
        arguments = relation.arguments
        if relation.label != self.name or len(arguments) != len(self.roles):
            return None
        by_role = {argument.role: argument for argument in arguments}
        if by_role.keys() == set(self.roles):
            return tuple(by_role[role] for role in self.roles)
        left, chosen = list(arguments), []
        for kind in self.types:
            fitting = [argument for argument in left if any(span.label == kind for span in argument.spans)]
            if not fitting:
                return None
            chosen.append(fitting[0])
            left.remove(fitting[0])
        return tuple(chosen)

    def tuples(self, relation: Relation) -> Iterator[tuple[Span, ...]]:
        """Yield the tuples of mentions that a relation states, in the order of the roles; none if it does not fit."""
        arguments = self.arguments(relation)
        if arguments is not None:
            yield from product(*(argument.spans for argument in arguments))

    def key(self, spans: tuple[Span, ...]) -> tuple[tuple[int, int], ...]:
        """Return the offsets of a tuple's mentions, sorted if symmetric: equal for equal tuples."""
        offsets = tuple((span.start, span.end) for span in spans)
        return tuple(sorted(offsets)) if self.symmetric else offsets
