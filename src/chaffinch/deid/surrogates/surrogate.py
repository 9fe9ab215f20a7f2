"""Surrogates: invented values of the same kind and form as the identifiers they replace.

A surrogate is drawn by HMAC from the secret, the patient, the kind and the identifier's normalised form: it is the same
wherever the identifier turns up, in any order of documents, and independent of the draws under another secret. All
values of its form are equally likely, so that the surrogates of many patients do not reveal the original; by chance,
therefore, one may be the original. Ages and dates have separate operators.
"""

from __future__ import annotations

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import Kind, handling_of
from chaffinch.deid.surrogates.letters import Gender, SurrogateSource, bases, reshape
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.errors import ConfigError

LONGEST = 1000  # characters; a longer text is no identifier, and becomes a tag


def surrogate(
    text: str,
    kind: Kind,
    patient: str,
    secret: Secret,
    *,
    gender: Gender | None = None,
    names: NameBook | None = None,
) -> str:
    """Draw the surrogate of a patient's identifier; a tag for empty or long texts; ConfigError for ages and dates.

    `gender` (F or M) is used for first names whose gender the lists do not know; `names` is the book of the patient's
    names so far. A text without letters and digits, or of over 1,000 characters, becomes the tag of its kind. Raise
    ConfigError for ages and dates.

    >>> from chaffinch.deid.kinds import kind_of
    >>> secret = Secret(b"7f1c0a94d3e85b62c4097ad1f6be3358e2d049b7618caf5390fd72ae14c65b08")
    >>> surrogate("Smith, John A.", kind_of("PATIENT"), "p2", secret)
    'Raezama, Ziart S.'
    >>> surrogate("J. SMITH", kind_of("DOCTOR"), "p2", secret)
    'Z. RAEZAMA'
    """
    handling = handling_of(kind)
    if handling.surrogate is None:
        raise ConfigError(f"{kind.category} has no surrogates; use the operator {handling.instead}")
    normal = bases(text) if len(text) <= LONGEST else ""
    if not normal:
        return f"[{kind.name}]"
    source = SurrogateSource(secret, patient, NameBook() if names is None else names, gender=gender)
    drawn = handling.surrogate(text, source)
    return drawn if source.used else reshape(text, source, "nothing drawn")
