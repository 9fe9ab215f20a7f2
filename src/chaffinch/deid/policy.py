"""Policies: which operator acts on which kind of identifier, read from TOML.

    name = "our-release"
    default = "tag"                     # for every kind without a rule
    types = ["TRIAL-ARM"]               # our additional labels, or another guideline's; each needs a rule

    [rules]
    NAME = "surrogate"                  # a category
    DOCTOR = "keep"                     # a sub-type: wins over its category
    AGE = { operator = "generalise", over = 89 }
    TRIAL-ARM = "keep"

The rule for the label itself applies first, then that of its kind, then of its category, then the default.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from chaffinch.checks import did_you_mean
from chaffinch.deid.dates.telling_ages import HIPAA_MAX_AGE, AgeLimit
from chaffinch.deid.detect.class_doubt import LEAVES_NOTHING
from chaffinch.deid.kinds import KINDS, fold_label, is_known, kind_of
from chaffinch.deid.operators import OPERATORS, Action
from chaffinch.deid.operators.generalise import Generalise
from chaffinch.deid.release.replace import Operator
from chaffinch.errors import ConfigError

Option: TypeAlias = str | int | bool

_KEYS = ("name", "about", "default", "types", "rules")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """An operator's name and its checked options."""

    operator: str
    options: tuple[tuple[str, Option], ...] = ()

    def __post_init__(self) -> None:
        """Raise ConfigError unless the operator exists and its options have the right names and types."""
        if self.operator not in OPERATORS:
            raise ConfigError(f"unknown operator {self.operator!r}; {did_you_mean(self.operator, OPERATORS)}")
        kind = OPERATORS[self.operator]
        known = {option.name: option for option in fields(kind)}  # type: ignore[arg-type]  # every operator is a dataclass
        for name, value in self.options:
            if name not in known:
                hint = did_you_mean(name, known) if known else "it has no options"
                raise ConfigError(f"{self.operator} has no option {name!r}; {hint}")
            default = known[name].default
            if default is MISSING or type(value) is not type(default):
                raise ConfigError(
                    f"option {name!r} of {self.operator} is a {type(default).__name__}, got {type(value).__name__}"
                )
        action(self)  # runs the checks of the operator


@lru_cache(maxsize=1024)
def action(rule: PolicyRule) -> Action:
    """Return the operator of a rule, built with its options, cached."""
    return OPERATORS[rule.operator](**dict(rule.options))


@dataclass(frozen=True, slots=True)
class Policy:
    """The operators for all kinds of identifiers: rules by label, sub-type or category, and a default for the rest."""

    name: str
    default: PolicyRule = PolicyRule("tag")
    rules: Mapping[str, PolicyRule] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    about: str = ""
    _hash: int = field(default=0, init=False, repr=False, compare=False)  # computed once: it reads all rules

    def __post_init__(self) -> None:
        """Fold the rules' labels; raise ConfigError if one is unknown, repeated, without a rule or unfit."""
        declared = {fold_label(label) for label in self.types}
        folded_rules: dict[str, PolicyRule] = {}
        for label, rule in self.rules.items():
            if fold_label(label) not in declared and fold_label(label) not in KINDS:
                raise ConfigError(f"policy {self.name}: {_explain_unknown(label, self.types)}")
            if fold_label(label) in folded_rules:
                raise ConfigError(f"policy {self.name}: type {label!r} has two rules; keep one")
            folded_rules[fold_label(label)] = rule
        for label in self.types:
            if fold_label(label) not in folded_rules:
                raise ConfigError(
                    f"policy {self.name}: type {label!r} is declared but has no rule; add one under rules, or remove "
                    "it from types: then the rule of its kind, or the default, applies"
                )
        object.__setattr__(self, "rules", MappingProxyType(folded_rules))
        object.__setattr__(self, "_hash", hash((self.name, self.default, frozenset(folded_rules.items()), self.types)))
        for label in (*folded_rules, *KINDS):
            _check_fit(self, label)

    def __reduce__(self) -> tuple[type[Policy], tuple[Any, ...]]:
        """Pickle by the constructor's arguments, because a mapping proxy cannot be pickled."""
        return Policy, (self.name, self.default, dict(self.rules), self.types, self.about)

    def __hash__(self) -> int:
        """Return a hash of all fields except `about`."""
        return self._hash

    @classmethod
    def read(cls, source: str | Path) -> Policy:
        """Read the packaged policy called `source`, else the TOML file there; ConfigError if neither, or if not valid.

        >>> Policy.read("safe-harbor").rule("DOCTOR").operator
        'tag'
        """
        path, names = Path(source), ready_policies()
        if not (isinstance(source, str) and source in names) and path.is_file():
            try:
                return cls.parse(path.read_text(encoding="utf-8"), name=path.stem)
            except (OSError, UnicodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise ConfigError(f"policy {path} cannot be read ({reason})") from None
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}") from None
        if str(source) not in names:
            raise ConfigError(
                f"there is no policy file {source} and no packaged policy of that name; {did_you_mean(path, names)}"
            )
        return cls.parse((resources.files(__package__) / "policies" / f"{source}.toml").read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str, *, name: str = "") -> Policy:
        """Return the policy of a TOML text, `name` if it has none; ConfigError for bad TOML, keys or types."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not valid TOML: {error}") from None
        for key in content:
            if key not in _KEYS:
                raise ConfigError(f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
        rules = _get_typed(content, "rules", dict, {})
        types = _get_typed(content, "types", list, [])
        if not all(isinstance(label, str) for label in types):
            raise ConfigError("types must be a list of labels in quotes")
        return cls(
            _get_typed(content, "name", str, name) or "unnamed",
            _parse_rule("default", content.get("default", "tag")),
            {label: _parse_rule(label, value) for label, value in rules.items()},
            tuple(types),
            _get_typed(content, "about", str, ""),
        )

    def rule(self, label: str) -> PolicyRule:
        """Return the rule for a label: its own, else that of its kind, of its category, or the default."""
        kind = kind_of(label)
        for name in (label, kind.name, kind.category):
            rule = self.rules.get(fold_label(name))
            if rule is not None:
                return rule
        return self.default

    def operator(self, label: str) -> tuple[str, Operator]:
        """Return (name, operator) for a label, by the policy's rule for it."""
        return _operator(self, label)

    def hides(self, label: str) -> int:
        """Return how much of an identifier with a label is hidden, as its operator says: 0 nothing, 3 all.

        >>> Policy.read("safe-harbor").hides("STATE"), Policy.read("safe-harbor").hides("DOCTOR")
        (0, 3)
        """
        return OPERATORS[self.rule(label).operator].hides

    def age_limit(self, label: str) -> AgeLimit | None:
        """Return the greatest age that dates under a label may reveal; None if any, or if the dates are hidden.

        It is the lowest limit of the rules for ages, and of the rule for dates if it generalises them.

        >>> Policy.read("i2b2-surrogate").age_limit("DATE"), Policy.read("limited-dataset").age_limit("DATE")
        (AgeLimit(years=89, by_year=False), None)
        """
        return _age_limit(self, label)

    @property
    def reads_patients(self) -> bool:
        """Tell whether the result of a note depends on the patient's other notes, so that they must come together.

        Surrogates of names are chosen over all of them, and their dates together may reveal an age.
        """
        names = [name for name in ("DATE", *self.rules) if kind_of(name).name == "DATE"]
        return self.needs_secret or any(self.age_limit(name) is not None for name in names)

    @property
    def date_orders(self) -> frozenset[str]:
        """Return the day–month orders in the options of the policy's operators; empty if it shifts no dates."""
        orders = (getattr(action(rule), "order", None) for rule in (self.default, *self.rules.values()))
        return frozenset(str(order) for order in orders if order is not None)

    @property
    def needs_secret(self) -> bool:
        """Tell whether an operator draws surrogates or date shifts, which needs a secret."""
        return any(OPERATORS[rule.operator].needs_secret for rule in (self.default, *self.rules.values()))

    def digest(self) -> str:
        """Return the SHA-256 of all that determines what the policy does, defaults of options included."""
        rules = {label: _settings(rule) for label, rule in self.rules.items()}
        content = {"name": self.name, "default": _settings(self.default), "rules": rules, "types": sorted(self.types)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=1024)
def _operator(policy: Policy, label: str) -> tuple[str, Operator]:
    """Return (name, operator) for a label, cached."""
    rule = policy.rule(label)
    return rule.operator, action(rule)


@lru_cache(maxsize=1024)
def _age_limit(policy: Policy, label: str) -> AgeLimit | None:
    """Return the greatest age that dates under a label may reveal, cached."""
    date = action(policy.rule(label))
    if date.hides >= LEAVES_NOTHING:
        return None
    rules = {policy.rule(name) for name in ("AGE", *policy.rules) if kind_of(name).name == "AGE"}
    hiding = [operator for operator in map(action, rules) if operator.hides]
    limits = [operator.over if isinstance(operator, Generalise) else HIPAA_MAX_AGE for operator in hiding]
    limits += [date.over] if isinstance(date, Generalise) else []
    return AgeLimit(min(limits), by_year=isinstance(date, Generalise)) if limits else None


def ready_policies() -> tuple[str, ...]:
    """Return the names of the packaged policies."""
    files = (resources.files(__package__) / "policies").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def _explain_unknown(label: str, types: Iterable[str]) -> str:
    """Return why a policy may have no rule for an undeclared label, and what to write instead."""
    kind = kind_of(label).name
    if kind in KINDS:
        return (
            f"{label!r} is another guideline's name for {kind}; write {kind}, or list it under types if your labels "
            "use that name"
        )
    if is_known(label):
        return f"{label!r} is another guideline's label without a kind here; list it under types if you use it"
    return f"unknown type {label!r}; {did_you_mean(label, [*KINDS, *types])}; list additional types under types"


def _settings(rule: PolicyRule) -> list[Any]:
    """Return [operator's name, {option: value}] of a rule, defaults included."""
    operator = action(rule)
    options = {option.name: getattr(operator, option.name) for option in fields(operator)}  # type: ignore[arg-type]  # a dataclass
    return [rule.operator, options]


def _check_fit(policy: Policy, label: str) -> None:
    """Raise ConfigError if the operator for a label cannot act on its kind."""
    rule, kind = policy.rule(label), kind_of(label).name
    operator = OPERATORS[rule.operator]
    if kind in operator.never or (operator.only and kind not in operator.only):
        which = (
            f"it acts on {', '.join(operator.only)}"
            if operator.only
            else f"it acts on all but {', '.join(operator.never)}"
        )
        raise ConfigError(
            f"policy {policy.name}: {rule.operator} cannot act on type {label!r}; {which}; give {label} a separate rule"
        )


def _parse_rule(label: str, value: object) -> PolicyRule:
    """Return the rule of a policy file's value, an operator's name or a table; raise ConfigError for another."""
    if isinstance(value, str):
        return PolicyRule(value)
    if not isinstance(value, dict) or not isinstance(value.get("operator"), str):
        raise ConfigError(
            f'the rule for {label!r} must be an operator\'s name, or {{ operator = "...", option = ... }}'
        )
    options = tuple(sorted((name, option) for name, option in value.items() if name != "operator"))
    try:
        return PolicyRule(value["operator"], options)
    except ConfigError as error:
        raise ConfigError(f"rule for {label!r}: {error}") from None


def _get_typed(content: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """Return the value of a key, or the default; raise ConfigError unless it is of the type."""
    value = content.get(key, default)
    if not isinstance(value, kind):
        raise ConfigError(f"{key} must be a {kind.__name__}, got {type(value).__name__}")
    return value
