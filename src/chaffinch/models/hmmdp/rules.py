"""Rules that name the sub-categories of categories; the first rule that fits a span wins."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources

import msgspec

from chaffinch.errors import ConfigError
from chaffinch.text.regex import compile_pattern

REACH = 3  # tokens before and after a span in which triggers count; a wider reach also finds triggers of other spans


@dataclass(frozen=True, slots=True)
class TagRule:
    """A rule that labels spans of a category by a pattern in their text, words in it, or words around it.

    Every condition that is set must fit; words and triggers are compared in lower case.
    """

    category: str
    label: str
    pattern: str = ""
    words: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the pattern, and put words and triggers in lower case; ConfigError for a bad pattern."""
        compile_pattern(self.pattern, False, f"the pattern of the rule for {self.label} cannot be read")
        object.__setattr__(self, "words", tuple(word.lower() for word in self.words))
        object.__setattr__(self, "triggers", tuple(word.lower() for word in self.triggers))

    def fits(self, text: str, words: list[str], around: list[str]) -> bool:
        """Tell whether a span matches the pattern, has one of the words and one trigger around it, if these are set."""
        if self.pattern and not compile_pattern(self.pattern, False).search(text):
            return False
        if self.words and not any(word in self.words for word in words):
            return False
        return not self.triggers or any(word in self.triggers for word in around)


@dataclass(frozen=True, slots=True)
class Rules:
    """The category of every label, rules in order, and the label of a category where no rule fits.

    >>> rules = Rules((("DOCTOR", "NAME"), ("PATIENT", "NAME")), (TagRule("NAME", "DOCTOR", triggers=("dr.",)),))
    >>> rules.label("NAME", "Penn", ["penn"], ["seen", "by", "dr."]), rules.label("NAME", "Penn", ["penn"], [])
    ('DOCTOR', 'PATIENT')
    """

    categories: tuple[tuple[str, str], ...]  # label, category
    rules: tuple[TagRule, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()  # category, label; else the last label of a category
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Collect the sorted labels; ConfigError if a label has two categories, or rules or defaults contradict."""
        object.__setattr__(self, "categories", tuple((label, category) for label, category in self.categories))
        object.__setattr__(self, "defaults", tuple((category, label) for category, label in self.defaults))
        object.__setattr__(self, "names", tuple(sorted({label for label, _ in self.categories})))
        known = dict(self.categories)
        if len(known) < len(set(self.categories)):
            raise ConfigError("a label has two categories; give each label one")
        for category, label in self.defaults:
            if known.get(label) != category:
                raise ConfigError(f"{label} cannot be the default of {category}; its category is {known.get(label)}")
        for rule in self.rules:
            if known.get(rule.label) != rule.category:
                found = known.get(rule.label, "none")
                raise ConfigError(f"a rule puts {rule.label} under {rule.category}; its category is {found}")

    @classmethod
    def i2b2(cls) -> Rules:
        """Return the rules of i2b2 2014: its categories and sub-categories, and cues that tell sub-categories apart."""
        text = resources.files(__package__).joinpath("published", "i2b2-rules.toml").read_text(encoding="utf-8")
        table = tomllib.loads(text)
        rules = [{"category": name, **rule} for name, one in table.items() for rule in one.get("rules", ())]
        return cls(
            tuple((label, name) for name, one in table.items() for label in one["labels"]),
            msgspec.convert(rules, tuple[TagRule, ...]),
            tuple((name, one["default"]) for name, one in table.items()),
        )

    def category(self, label: str) -> str:
        """Return the category of a label; raise ConfigError if it has none."""
        category = dict(self.categories).get(label)
        if category is None:
            raise ConfigError("a label has no category; name one for every label in `categories`")
        return category

    def default(self, category: str) -> str:
        """Return a category's default label: the one set, else the last listed; IndexError for an unknown category."""
        last = [label for label, parent in self.categories if parent == category][-1]
        return dict(self.defaults).get(category, last)

    def label(self, category: str, text: str, words: list[str], around: list[str]) -> str:
        """Return the label of the first rule that fits a span, else the default label of its category."""
        fitting = (rule for rule in self.rules if rule.category == category and rule.fits(text, words, around))
        first = next(fitting, None)
        return self.default(category) if first is None else first.label
