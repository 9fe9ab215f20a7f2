"""Surrogates: invented values of the same kind and form as the identifiers they stand for.

A surrogate is drawn by HMAC from the secret, the patient, the kind and the identifier's normalised form: the same
wherever the identifier turns up, in any order of documents, and unlike any other under another secret. It is never the
original. Ages and dates have operators of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from chaffinch.deid import surrogate_contacts as contacts
from chaffinch.deid import surrogate_ids as ids
from chaffinch.deid import surrogate_places as places
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import Kind
from chaffinch.deid.surrogate_letters import Keyed, bases, reshaped
from chaffinch.deid.surrogate_names import Gender, person, username
from chaffinch.errors import ConfigError

# The kind's own way if it has one, else that of its category.
_WAYS: Mapping[str, Callable[[str, Keyed], str]] = {
    "USERNAME": username,
    "PROFESSION": places.profession,
    "HOSPITAL": places.institution,
    "ORGANIZATION": places.institution,
    "STREET": places.street,
    "CITY": places.city,
    "STATE": places.state,
    "COUNTRY": places.country,
    "ZIP": ids.zip_code,
    "ROOM": ids.room,
    "DEPARTMENT": places.department,
    "LOCATION": places.place,
    "PHONE": contacts.phone,
    "FAX": contacts.phone,
    "EMAIL": contacts.email,
    "URL": contacts.url,
    "IPADDR": contacts.ip_address,
    "CONTACT": contacts.contact,
    "SSN": ids.social_security,
    "ID": ids.identifier,
    "OTHER": ids.identifier,
}
LONGEST = 1000  # characters; what is longer is no identifier, and gets a tag
_ELSEWHERE = {"AGE": "generalise", "DATE": "shift"}


def surrogate(
    text: str, kind: Kind, patient: str, secret: Secret, *, gender: Gender | None = None, avoid: Collection[str] = ()
) -> str:
    """What stands for an identifier of this patient under this secret.

    `gender` (F or M) serves first names of which the lists tell none; `avoid` are words that no surrogate of a name or
    place may hold, such as the patient's known names. Both have to be the same in all of the patient's documents. A
    text without letters and digits, or of over 1,000 characters, becomes the tag of its kind. ConfigError for ages and
    dates.

    >>> from chaffinch.deid.kinds import kind_of
    >>> secret = Secret(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f")
    >>> surrogate("Smith, John A.", kind_of("PATIENT"), "p1", secret)
    'Duty, Willian G.'
    >>> surrogate("J. SMITH", kind_of("DOCTOR"), "p1", secret)
    'W. DUTY'
    """
    if kind.category in _ELSEWHERE:
        raise ConfigError(f"{kind.category} has no surrogates; use the operator {_ELSEWHERE[kind.category]}")
    normal = bases(text) if len(text) <= LONGEST else ""
    if not normal:
        return f"[{kind.name}]"
    keyed = Keyed(secret, patient, frozenset(bases(word) for word in avoid))
    way = _WAYS.get(kind.name) or _WAYS.get(kind.category)
    drawn = person(text, keyed, gender=gender) if way is None else way(text, keyed)
    return drawn if bases(drawn) != normal else reshaped(text, keyed, "last resort")
