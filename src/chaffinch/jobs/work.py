"""What a batch of notes needs besides the notes, as a small spec that any process can turn into work.

    WorkSpec + Keys  →  load_work  →  BatchWork  →  process_batch(work, units)

The command line, the pool, Spark and services call the same pure function, `batching.batches.process_batch`. No process
hands a loaded engine to another: a spec names the model and has the digest of everything that decides the result, and
each process loads the engine once (`load_work` keeps it). Secrets are in no spec: it has their fingerprints, and `Keys`
come by another way, a pipe or a file that only its owner can read.

    spec = WorkSpec.of(release, detector_spec)          # picklable: a few kB, no secret
    work = load_work(spec, Keys(secret))                # in the process that works; loads once
    results = process_batch(work, units)                # bytes (a packed `Released`) or `Withheld`, in order
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from chaffinch.bundle import list_packaged_models
from chaffinch.deid.dates.order import DateOrder
from chaffinch.deid.dates.points import Order
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.keys import Secret
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.deid.release.state import STATE
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import read_phrases
from chaffinch.weak.sources import load_sources

RULES = "rules"  # the name of the detector without a model: patterns and lists alone


class DetectorSource(Protocol):
    """Where a process gets its detector from: a small, hashable value that can be pickled."""

    def __hash__(self) -> int:
        """Return a hash, so that a loaded detector can be kept by its source."""

    def build(self) -> Detector:
        """Return the detector; raise ConfigError if it is not the one that the job was planned with."""


@dataclass(frozen=True, slots=True)
class DetectorSpec:
    """A detector by its settings: a model by name or path, the dial, and files of lists. `build` loads it.

    `digest` is that of the detector the job was planned with (`Detector.digest`); empty until `pin`. It covers the
    model and all lists, so that a file that changed in between is refused. Never publish it.
    """

    model: str | None = None  # a file, a packaged model, or None for rules alone
    recall: float | None = None
    known: Path | None = None
    allow: Path | None = None
    deny: Path | None = None
    types: Path | None = None
    by_patient: bool = True
    fast: bool = False
    digest: str = field(default="", repr=False)

    def build(self) -> HybridDetector:
        """Load the detector; ConfigError if the deny list is empty, or if model or lists changed since `pin`."""
        allow, deny = ([] if path is None else read_phrases(path) for path in (self.allow, self.deny))
        if self.deny is not None and not deny:
            raise ConfigError(f"--deny {self.deny} has no phrase; write one per line, or leave it out")
        found = detector(
            self.model,
            recall=self.recall,
            known=self.known,
            allow=allow,
            deny=deny,
            types=[] if self.types is None else load_sources(self.types),
            by_patient=self.by_patient,
            fast=self.fast,
        )
        if self.digest and found.digest != self.digest:
            raise ConfigError(
                "the model or a list of the detector changed while the job was running; run again with --resume and "
                "the files it began with"
            )
        return found

    def pin(self, found: Detector) -> DetectorSpec:
        """Return the spec for other processes: absolute paths, and the digest that the detector must have."""
        model, files = self.model, (self.known, self.allow, self.deny, self.types)
        if model is not None and model not in list_packaged_models():
            model = str(Path(model).absolute())
        known, allow, deny, types = (None if path is None else path.absolute() for path in files)
        return replace(self, model=model, known=known, allow=allow, deny=deny, types=types, digest=found.digest)


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of a job: of surrogates and date shifts, the vault, the state. They are in no spec, file or log."""

    secret: Secret | None = None
    vault: Secret | None = None
    state: Secret | None = None

    @classmethod
    def read(cls, secret_file: str | Path | None, vault_key_file: str | Path | None = None) -> Keys:
        """Read the secret and the vault's key from files that only their owner can read; None where none is given."""
        files = (secret_file, vault_key_file)
        secret, vault = (None if path is None else Secret.read(path) for path in files)
        return cls(secret, vault)


@dataclass(frozen=True, slots=True)
class WorkSpec:
    """Everything besides notes and keys that results depend on: a plain value of a few kB that can be pickled."""

    detector: DetectorSource
    policy: Policy
    keep_ids: bool = False
    fields: tuple[str, ...] = ()
    spans: bool = False
    date_order: DateOrder = "auto"
    counted_order: Order | None = None
    secret: str = ""  # the fingerprint of the secret; empty without one
    salt: str = field(default="", repr=False)  # of vault and state, in hex; empty without both

    @classmethod
    def of(cls, release: Release, source: DetectorSource, *, salt: str = "") -> WorkSpec:
        """Return the spec of a release for other processes: all but the secret, whose fingerprint it keeps."""
        fingerprint = "" if release.secret is None else release.secret.fingerprint()
        return cls(
            source, release.policy, release.keep_ids, release.fields, release.spans, release.date_order,
            release.counted_order, fingerprint, salt,
        )  # fmt: skip

    def release(self, secret: Secret | None) -> Release:
        """Return the release with its secret; raise ConfigError if it is another one than that of the spec."""
        if self.secret != ("" if secret is None else secret.fingerprint()):
            raise ConfigError("the secret is not the one that the job was planned with; give the same one")
        return Release(
            self.policy, secret, self.keep_ids, self.fields, self.spans, self.date_order, self.counted_order
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class BatchWork:
    """Everything besides the units and memories that a batch's results depend on.

    With a seal, originals are added, encrypted; with that of a state, what is remembered of released notes.
    """

    release: Release
    detector: Detector
    seal: Seal | None = None
    state_seal: Seal | None = None

    @classmethod
    def of(cls, release: Release, detector: Detector, keys: Keys, salt: str) -> BatchWork:
        """Return the work with seals for the keys of vault and state, by `salt` (hex); without seals if it is ""."""
        given = bytes.fromhex(salt)
        vault = Seal.new(keys.vault, given) if given and keys.vault is not None else None
        state = Seal.new(keys.state, given, STATE) if given and keys.state is not None else None
        return cls(release, detector, vault, state)


def load_work(spec: WorkSpec, keys: Keys) -> BatchWork:
    """Return release, detector (loaded once) and seals for batches; ConfigError if secret, keys or salt do not fit."""
    if bool(spec.salt) != (keys.vault is not None or keys.state is not None):
        raise ConfigError("a job with a vault or a state needs its key, and one without needs none")
    return BatchWork.of(spec.release(keys.secret), _load_detector(spec.detector), keys, spec.salt)


@lru_cache(maxsize=4)  # a service has few models at a time, and each takes memory
def _load_detector(source: DetectorSource) -> Detector:
    """Build the detector of a source, once per process."""
    return source.build()
