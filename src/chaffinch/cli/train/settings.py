"""Settings of `chaffinch train`: read from --set and --config, checked against the method's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from chaffinch.checks import check_choice, check_flags, check_text, check_wholes, did_you_mean
from chaffinch.cli.frame.config_file import ConfigFile
from chaffinch.errors import ConfigError
from chaffinch.models.alignment.config import MODES, Alignment
from chaffinch.models.core.methods import Material, Method, list_alternatives
from chaffinch.models.registry import METHODS, Config, method_of
from chaffinch.models.tagger import Tagger, load
from chaffinch.text import MAX_CHARS

Mode: TypeAlias = Literal["recall", "balanced"]

# What a setting of the run, or an option, is to a method.
_MATERIALS: Mapping[str, Material] = {
    "clusters": "resources", "before": "layers", "untagged_documents": "untagged", "soft": "soft",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """Settings of a training run that every method shares.

    `published` starts from the settings of the publication; "submitted" is the earlier system of HMM-DP. `soft` names
    soft labels to learn from instead of spans. `clusters` are documents to learn word clusters from,
    `untagged_documents` documents without labels to learn from as well. `before` is a tagger, such as genia, whose
    layers are features. `align` learns to give a word one answer across a patient's documents, too (recall: no label is
    taken away), which trains five times more. `workers` are threads; any number gives the same model. `notes` (licence,
    attribution) go into the model file. Documents longer than `max_chars` are refused. `dev_format` is the format of
    the dev documents, where it is not recognised. `tag_names` are the names of integer tags: O,B-NAME,I-NAME.
    """

    published: bool | Literal["submitted"] = False
    soft: str | None = None
    clusters: Path | None = None
    untagged_documents: Path | None = None
    before: str | None = None
    align: Mode | None = None
    workers: int = 1
    notes: str = ""
    max_chars: int = MAX_CHARS
    dev_format: str | None = None
    tag_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ConfigError if a setting of the run has a wrong type or value."""
        if self.published != "submitted":
            check_flags(self, "published")
        check_wholes(self, "workers", "max_chars", least=1)
        for name in ("soft", "before", "dev_format", "notes"):
            if getattr(self, name) is not None:
                check_text(getattr(self, name), name)
        if self.align is not None:
            check_choice(self.align, "align", MODES)


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """A method, those of its settings that were chosen, and the settings of the run."""

    method: Method
    chosen: Mapping[str, Any]
    run: RunSettings

    @classmethod
    def read(cls, method: str, assignments: Iterable[str], file: ConfigFile | None = None) -> TrainSettings:
        """Parse --set KEY=VALUE over the table [train.METHOD]; ConfigError for an unknown method, table or key.

        >>> settings = TrainSettings.read("cascade", ["epochs=3", "workers=2"])
        >>> settings.chosen, settings.run.workers
        ({'epochs': 3}, 2)
        """
        if method not in METHODS:
            raise ConfigError(f"unknown method {method!r}; {did_you_mean(method, METHODS)}")
        tables = {} if file is None else file.tables
        for name in tables:
            if name not in METHODS:
                where = "" if file is None else f"--config {file.path}: "
                raise ConfigError(f"{where}unknown table [train.{name}]; {did_you_mean(name, METHODS)}")
        table = {key.replace("-", "_"): value for key, value in tables.get(method, {}).items()}
        given = {**table, **parse_assignments(assignments)}
        hints = get_type_hints(METHODS[method].config)
        of_run = get_type_hints(RunSettings)
        _check_names(given, METHODS[method], [*hints, *of_run])
        values = {key: convert_setting(key, value, {**hints, **of_run}[key]) for key, value in given.items()}
        run = RunSettings(**{key: value for key, value in values.items() if key in of_run})
        chosen = {key: value for key, value in values.items() if key in hints}
        return cls(METHODS[method], _resolve(chosen), run)

    def config(self, start: Tagger | None, before: Tagger | None, *, lexicon: bool = False) -> Config:
        """Return the method's config: chosen values over the start model's or defaults; ConfigError if one is unused.

        ConfigError if the method cannot learn from what is given, or if a chosen setting has no effect.
        """
        method, chosen = self.method, dict(self.chosen)
        if "floor" in chosen and start is None and method.has_setting("min_patients"):
            chosen.setdefault("min_patients", chosen["floor"])  # of the words that a model holds, as of its features
        if before is not None:
            if start is not None or "layers" in chosen:
                raise ConfigError("--set before=… brings its own layers; leave out --set layers=… and --start")
            method.check("layers", method.config(), _methods())
            chosen["layers"] = tuple(step.layer for step in before.steps)
        config = replace(self._base(start, lexicon=lexicon), **chosen)
        given = {f"--set {name}": _MATERIALS[name] for name in _MATERIALS if getattr(self.run, name) is not None}
        given |= {"--lexicon": "resources"} if lexicon else {}
        given |= {"--start": "model"} if start else {}
        for option, material in given.items():
            if material != "soft":  # whether it can be learnt from is for `train` to say, which has read it
                try:
                    method.check(material, config, _methods())
                except ConfigError as error:
                    raise ConfigError(f"{option}: {error}") from None
        unused = method.unused(config)
        for name in self.chosen:
            if name in unused:
                raise ConfigError(f"--set {name}: {unused[name]}")
        return config

    def alignment(self, start: Tagger | None) -> Alignment | None:
        """Return the config of word alignment, None if not asked for; ConfigError with soft labels or --start."""
        if self.run.align is None:
            return None
        for option, given in (("--set soft", self.run.soft is not None), ("--start", start is not None)):
            if given:
                raise ConfigError(f"--set align learns from spans, and from the beginning; leave out {option}, or it")
        return Alignment(self.run.align, seed=self.chosen.get("seed", 0))

    def helper(self) -> Tagger | None:
        """Load the tagger given with --set before, whose layers become features; None if not given."""
        return None if self.run.before is None else load(self.run.before)

    def _base(self, start: Tagger | None, *, lexicon: bool) -> Config:
        """Return the config to override: the start model's, published or default; ConfigError if options conflict."""
        method = self.method
        if start is None:
            if not self.run.published:
                return method.config()  # type: ignore[no-any-return]
            system = "submitted" if self.run.published == "submitted" else "published"
            if not hasattr(method.config, system):
                able = list_alternatives([name for name, other in METHODS.items() if hasattr(other.config, system)])
                raise ConfigError(f"{method.title} has no {system} settings, {able} has; leave out --set published")
            return getattr(method.config, system)()  # type: ignore[no-any-return]
        config = start.model.config
        kind = method_of(config)
        if kind is not method:
            goes_on = "model" in kind.learns_from
            remedy = f"give --method {kind.name}, or train a new one" if goes_on else "train a new one"
            raise ConfigError(f"--start goes on from {method.title}, and this model is of {kind.name}; {remedy}")
        if self.run.published:
            raise ConfigError("--start goes on with the settings of that model; leave out --set published")
        for given, name in ((lexicon, "--lexicon"), (self.run.clusters is not None, "--set clusters")):
            if given:
                raise ConfigError(f"--start goes on with the lexicon and clusters of that model; leave out {name}")
        for name, value in self.chosen.items():
            if name in method.fixed and value != getattr(config, name):
                raise ConfigError(
                    f"--start goes on from a model with {name}={_show(getattr(config, name))}; "
                    f"leave out --set {name}, or train a new one"
                )
        return config


def setting_rows(settings: type[Any]) -> list[dict[str, Any]]:
    """Return a row per field of a settings dataclass: name, allowed values, default."""
    hints = get_type_hints(settings)
    return [
        {"setting": each.name, "values": _describe(hints[each.name]), "default": _show(each.default)}
        for each in fields(settings)
    ]


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Parse KEY=VALUE strings into a dict; raise ConfigError if malformed or given twice."""
    values: dict[str, str] = {}
    for item in assignments:
        key, mark, value = item.partition("=")
        key = key.strip().replace("-", "_")
        if not (key and mark):
            raise ConfigError(f"--set {item!r} is not KEY=VALUE, such as epochs=3")
        if key in values:
            raise ConfigError(f"--set {key} was given twice; choose one value")
        values[key] = value.strip()
    return values


def _check_names(given: Iterable[str], method: Method, known: list[str]) -> None:
    """Raise ConfigError for a setting that neither the method nor the run has, with the method that has it."""
    for key in given:
        if key not in known:
            others = [name for name, other in METHODS.items() if other.has_setting(key)]
            whose = f"; it is one of {list_alternatives(others)}" if others else ""
            raise ConfigError(
                f"{method.name} has no setting {key!r}{whose or '; ' + did_you_mean(key, known)} "
                f"(chaffinch show {method.name} lists them)"
            )


def _kinds(hint: Any) -> tuple[Any, ...]:
    """Return the types in a type hint: the members of a union, else the hint alone."""
    return (hint,) if get_origin(hint) in (None, Literal, tuple) else get_args(hint)


def convert_setting(name: str, value: Any, hint: Any) -> Any:
    """Convert a setting's text by its hint; text that does not fit stays; ConfigError if only Python can set it."""
    kinds = _kinds(hint)
    if not isinstance(value, str):
        return tuple(value) if isinstance(value, list) else value
    if value == "none" and NoneType in kinds:
        return None
    if not any(_is_plain(kind) for kind in kinds):
        raise ConfigError(f"{name} cannot be set on the command line; train from Python")
    if bool in kinds and value in ("true", "false"):
        return value == "true"
    for kind in kinds:
        if get_origin(kind) is Literal:
            value = next((choice for choice in get_args(kind) if str(choice) == value), value)
    for kind in (int, float):
        if kind in kinds and isinstance(value, str):
            try:
                return kind(value)
            except ValueError:
                continue
    if any(get_origin(kind) is tuple for kind in kinds):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return Path(value) if Path in kinds else value


def _is_plain(kind: Any) -> bool:
    """Tell whether a type can be written on the command line: text, number, flag, choice, path, tuple."""
    return kind in (bool, int, float, str, Path) or get_origin(kind) in (Literal, tuple)


def _resolve(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with absolute paths of language and encoder folders; ConfigError for an unknown language."""
    resolved = dict(chosen)
    if isinstance(resolved.get("language"), str):
        from chaffinch.languages import pack, pack_names

        pack(resolved["language"])  # refuses an unknown language before documents are read
        if resolved["language"] not in pack_names():
            resolved["language"] = str(Path(resolved["language"]).resolve())
    if isinstance(resolved.get("folder"), str):
        resolved["folder"] = str(Path(resolved["folder"]).resolve())
    return resolved


def _describe(hint: Any) -> str:
    """Return the allowed values of a type hint in words, such as "whole number, none"."""
    words = {bool: "true, false", int: "whole number", float: "number", str: "text", Path: "path", NoneType: "none"}
    said: list[str] = []
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            said += [str(choice) for choice in get_args(kind)]
        else:
            said.append("a,b,…" if get_origin(kind) is tuple else words.get(kind, "in Python"))
    return ", ".join(said)


def _show(value: object) -> str:
    """Return a setting's value as text that --set takes: a,b for tuples, true, none."""
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _methods() -> list[Method]:
    """Return all training methods, sorted by name."""
    return sorted(METHODS.values(), key=lambda method: method.name)
