"""Policies: which operator acts on which kind of identifier, read from TOML.

    name = "our-release"
    default = "tag"                     # for every kind without a rule
    types = ["TRIAL-ARM"]               # labels of our own, or another guideline's; each needs a rule

    [rules]
    NAME = "surrogate"                  # a category
    DOCTOR = "keep"                     # a sub-type: wins over its category
    AGE = { operator = "generalise", over = 89 }
    TRIAL-ARM = "keep"

The rule for a label itself is looked for first, then that of its kind, then of its category, then the default.
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
from chaffinch.deid.dates.telling_ages import OLDEST_TOLD, AgeLimit
from chaffinch.deid.detect.class_doubt import LEAVES_NOTHING
from chaffinch.deid.kinds import KINDS, folded, is_known, kind_of
from chaffinch.deid.operators import OPERATORS, Action
from chaffinch.deid.operators.generalise import Generalise
from chaffinch.deid.release.replace import Operator
from chaffinch.errors import ConfigError

Option: TypeAlias = str | int | bool

_KEYS = ("name", "about", "default", "types", "rules")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """An operator's name and its options, checked."""

    operator: str
    options: tuple[tuple[str, Option], ...] = ()

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ConfigError(f"unknown operator {self.operator!r}; {did_you_mean(self.operator, OPERATORS)}")
        kind = OPERATORS[self.operator]
        known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]  # every operator is a dataclass
        for name, value in self.options:
            if name not in known:
                hint = did_you_mean(name, known) if known else "it has no options"
                raise ConfigError(f"{self.operator} has no option {name!r}; {hint}")
            standard = known[name].default
            if standard is MISSING or type(value) is not type(standard):
                raise ConfigError(
                    f"option {name!r} of {self.operator} is a {type(standard).__name__}, got {type(value).__name__}"
                )
        action(self)  # its own checks


@lru_cache(maxsize=1024)
def action(rule: PolicyRule) -> Action:
    """The operator of a rule, ready to be called."""
    return OPERATORS[rule.operator](**dict(rule.options))


@dataclass(frozen=True, slots=True)
class Policy:
    """What to do with every kind of identifier: rules by label, sub-type or category, and a default for the rest."""

    name: str
    default: PolicyRule = PolicyRule("tag")
    rules: Mapping[str, PolicyRule] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    about: str = ""

    def __post_init__(self) -> None:
        declared = {folded(label) for label in self.types}
        ruled: dict[str, PolicyRule] = {}
        for label, rule in self.rules.items():
            if folded(label) not in declared and folded(label) not in KINDS:
                raise ConfigError(f"policy {self.name}: {_why_unknown(label, self.types)}")
            if folded(label) in ruled:
                raise ConfigError(f"policy {self.name}: type {label!r} has two rules; keep one")
            ruled[folded(label)] = rule
        for label in self.types:
            if folded(label) not in ruled:
                raise ConfigError(
                    f"policy {self.name}: type {label!r} is declared and has no rule; give it one under rules, or take "
                    "it out of types, and it is treated as its kind, or by default"
                )
        object.__setattr__(self, "rules", MappingProxyType(ruled))
        for label in (*ruled, *KINDS):
            _check_fit(self, label)

    def __reduce__(self) -> tuple[type[Policy], tuple[Any, ...]]:
        return Policy, (self.name, self.default, dict(self.rules), self.types, self.about)

    def __hash__(self) -> int:
        return hash((self.name, self.default, frozenset(self.rules.items()), self.types))

    @classmethod
    def read(cls, source: str | Path) -> Policy:
        """The policy of a TOML file, or, if no such file exists, the ready one of that name.

        >>> Policy.read("safe-harbor").rule("DOCTOR").operator
        'tag'
        """
        path = Path(source)
        if path.is_file():
            try:
                return cls.parse(path.read_text(encoding="utf-8"), name=path.stem)
            except (OSError, UnicodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise ConfigError(f"policy {path} cannot be read ({reason})") from None
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}") from None
        names = ready()
        if str(source) not in names:
            raise ConfigError(
                f"there is no policy file {source} and no ready policy of that name; {did_you_mean(path, names)}"
            )
        return cls.parse((resources.files(__package__) / "policies" / f"{source}.toml").read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str, *, name: str = "") -> Policy:
        """The policy that a TOML text describes; `name` is for one that does not give its own."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not valid TOML: {error}") from None
        for key in content:
            if key not in _KEYS:
                raise ConfigError(f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
        rules = _typed(content, "rules", dict, {})
        types = _typed(content, "types", list, [])
        if not all(isinstance(label, str) for label in types):
            raise ConfigError("types must be a list of labels in quotes")
        return cls(
            _typed(content, "name", str, name) or "unnamed",
            _rule("default", content.get("default", "tag")),
            {label: _rule(label, value) for label, value in rules.items()},
            tuple(types),
            _typed(content, "about", str, ""),
        )

    def rule(self, label: str) -> PolicyRule:
        """The rule for a label: its own, else that of its kind, of its category, or the default."""
        kind = kind_of(label)
        for name in (label, kind.name, kind.category):
            found = self.rules.get(folded(name))
            if found is not None:
                return found
        return self.default

    def operator(self, label: str) -> tuple[str, Operator]:
        """The name of the operator for a label, and the operator."""
        rule = self.rule(label)
        return rule.operator, action(rule)

    def hides(self, label: str) -> int:
        """Return how much of an identifier with a label is hidden, as its operator says: 0 nothing, 3 all.

        >>> Policy.read("safe-harbor").hides("STATE"), Policy.read("safe-harbor").hides("DOCTOR")
        (0, 3)
        """
        return OPERATORS[self.rule(label).operator].hides

    def age_limit(self, label: str) -> AgeLimit | None:
        """Return the greatest age that dates under a label may tell; None if any, or if nothing of the dates goes out.

        It is the least that a rule for ages lets through, or for dates, if they are generalised.

        >>> Policy.read("i2b2-surrogate").age_limit("DATE"), Policy.read("limited-dataset").age_limit("DATE")
        (AgeLimit(years=89, by_year=False), None)
        """
        date = action(self.rule(label))
        if date.hides >= LEAVES_NOTHING:
            return None
        rules = {self.rule(name) for name in ("AGE", *self.rules) if kind_of(name).name == "AGE"}
        hiding = [one for one in map(action, rules) if one.hides]
        limits = [one.over if isinstance(one, Generalise) else OLDEST_TOLD for one in hiding]
        limits += [date.over] if isinstance(date, Generalise) else []
        return AgeLimit(min(limits), by_year=isinstance(date, Generalise)) if limits else None

    @property
    def reads_patients(self) -> bool:
        """Whether what becomes of a note depends on the patient's other notes, so that they must come together.

        Surrogates of names are settled over all of them, and their dates may tell an age together.
        """
        names = [name for name in ("DATE", *self.rules) if kind_of(name).name == "DATE"]
        return self.keyed or any(self.age_limit(name) is not None for name in names)

    @property
    def keyed(self) -> bool:
        """Whether an operator draws surrogates or shifts, so that a secret is needed."""
        return any(OPERATORS[rule.operator].keyed for rule in (self.default, *self.rules.values()))

    def digest(self) -> str:
        """SHA-256 of all that decides what the policy does, defaults of options included; comments do not count."""
        rules = {label: _settings(rule) for label, rule in self.rules.items()}
        content = {"name": self.name, "default": _settings(self.default), "rules": rules, "types": sorted(self.types)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def ready() -> tuple[str, ...]:
    """The names of the policies that come with the package."""
    files = (resources.files(__package__) / "policies").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def _why_unknown(label: str, types: Iterable[str]) -> str:
    """Return why a label has no rule of its own, and what to write in its place."""
    kind = kind_of(label).name
    if kind in KINDS:
        return (
            f"{label!r} is another guideline's name for {kind}; write {kind}, or list it under types if your labels "
            "are called so"
        )
    if is_known(label):
        return f"{label!r} is another guideline's label that is no kind of ours; list it under types if you use it"
    return f"unknown type {label!r}; {did_you_mean(label, [*KINDS, *types])}; list a type of your own under types"


def _settings(rule: PolicyRule) -> list[Any]:
    made = action(rule)
    options = {one.name: getattr(made, one.name) for one in fields(made)}  # type: ignore[arg-type]  # a dataclass
    return [rule.operator, options]


def _check_fit(policy: Policy, label: str) -> None:
    rule, kind = policy.rule(label), kind_of(label).name
    act = OPERATORS[rule.operator]
    if kind in act.never or (act.only and kind not in act.only):
        which = f"it acts on {', '.join(act.only)}" if act.only else f"it acts on all but {', '.join(act.never)}"
        raise ConfigError(
            f"policy {policy.name}: {rule.operator} cannot act on type {label!r}; {which}; "
            f"give {label} a rule of its own"
        )


def _rule(label: str, value: object) -> PolicyRule:
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


def _typed(content: Mapping[str, Any], key: str, kind: type, standard: Any) -> Any:
    value = content.get(key, standard)
    if not isinstance(value, kind):
        raise ConfigError(f"{key} must be a {kind.__name__}, got {type(value).__name__}")
    return value
