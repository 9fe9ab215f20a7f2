"""Surrogates: invented values of the same kind and form as the identifiers they stand for.

A surrogate is drawn by HMAC from the secret, the patient, the kind and the identifier's normalised form: the same
wherever the identifier turns up, in any order of documents, and unlike any other under another secret. All values of
its form are as likely, so that the surrogates of many patients do not tell what they stand for; by chance, therefore,
one may be the original. Ages and dates have operators of their own.
"""

from __future__ import annotations

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import Kind, handling_of
from chaffinch.deid.surrogates.letters import Gender, Keyed, bases, reshaped
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.errors import ConfigError

LONGEST = 1000  # characters; what is longer is no identifier, and gets a tag


def surrogate(
    text: str,
    kind: Kind,
    patient: str,
    secret: Secret,
    *,
    gender: Gender | None = None,
    names: NameBook | None = None,
) -> str:
    """Draw what stands for an identifier of this patient under this secret.

    `gender` (F or M) serves first names of which the lists tell none; `names` is the book of the patient's names so
    far. A text without letters and digits, or of over 1,000 characters, becomes the tag of its kind. ConfigError for
    ages and dates.

    >>> from chaffinch.deid.kinds import kind_of
    >>> secret = Secret(b"7f1c0a94d3e85b62c4097ad1f6be3358e2d049b7618caf5390fd72ae14c65b08")
    >>> surrogate("Smith, John A.", kind_of("PATIENT"), "p2", secret)
    'Rhizama, Ziart S.'
    >>> surrogate("J. SMITH", kind_of("DOCTOR"), "p2", secret)
    'Z. RHIZAMA'
    """
    handling = handling_of(kind)
    if handling.surrogate is None:
        raise ConfigError(f"{kind.category} has no surrogates; use the operator {handling.instead}")
    normal = bases(text) if len(text) <= LONGEST else ""
    if not normal:
        return f"[{kind.name}]"
    keyed = Keyed(secret, patient, NameBook() if names is None else names, gender=gender)
    drawn = handling.surrogate(text, keyed)
    return drawn if keyed.used else reshaped(text, keyed, "nothing drawn")
