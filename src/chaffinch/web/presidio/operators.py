"""What /anonymize does with a text: Presidio's operators, each a function of the text and its parameters."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from chaffinch.web.presidio.bodies import refuse

Operate: TypeAlias = Callable[[str, str, Mapping[str, Any]], str]  # text, type and parameters to new text

_LEAST_SALT = 16  # bytes
_BLOCK = 16  # bytes of AES, and of its first vector
_HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}
_JSON_TYPES = {str: "string", bool: "boolean", int: "number", list: "array", dict: "object"}


def _parameter(parameters: Mapping[str, Any], name: str, kind: type, *, needed: bool = True) -> Any:
    """Return a parameter, None if missing and not `needed`; Problem if it is missing or of another type."""
    value = parameters.get(name)
    if value is None and needed:
        raise refuse(f"Expected parameter {name}")
    if value and (not isinstance(value, kind) or (isinstance(value, bool) and kind is int)):
        expected, actual = _JSON_TYPES.get(kind), _JSON_TYPES.get(type(value))
        if expected and actual:
            raise refuse(f"Invalid parameter value for {name}. Expecting '{expected}', but got '{actual}'.")
        raise refuse(f"Invalid parameter value for '{name}'.")
    return value


def replace(_: str, entity_type: str, parameters: Mapping[str, Any]) -> str:
    """Return the parameter `new_value`, or the type in angle brackets."""
    return str(_parameter(parameters, "new_value", str, needed=False) or f"<{entity_type}>")


def redact(_: str, _type: str, _parameters: Mapping[str, Any]) -> str:
    """Return the empty string, whatever the text."""
    return ""


def keep(text: str, _: str, _parameters: Mapping[str, Any]) -> str:
    """Return the text unchanged."""
    return text


def mask(text: str, _: str, parameters: Mapping[str, Any]) -> str:
    """Return the text with `chars_to_mask` characters masked, from its start or end; Problem for bad parameters."""
    sign = _parameter(parameters, "masking_char", str)
    if len(sign) > 1:
        raise refuse("Invalid input, masking_char must be a character")
    count = _parameter(parameters, "chars_to_mask", int)
    from_end = _parameter(parameters, "from_end", bool)
    masked = max(0, min(len(text), count))
    stars: str = sign * masked
    return text[: len(text) - masked] + stars if from_end else stars + text[masked:]


def hash_text(text: str, _: str, parameters: Mapping[str, Any]) -> str:
    """Return the hex SHA-256 or SHA-512 of text and salt, a random salt if none; Problem if type or salt is bad."""
    name = parameters.get("hash_type", "sha256")
    if not isinstance(name, str) or name not in _HASHES:
        raise refuse("Parameter hash_type is not in range of values ['sha256', 'sha512']")
    if "salt" not in parameters:
        return _HASHES[name](text.encode() + os.urandom(32)).hexdigest()
    salt = str(_parameter(parameters, "salt", str)).encode()
    if not salt:
        raise refuse(
            "Salt parameter cannot be empty. Either omit the salt parameter to auto-generate a random salt, or provide "
            "a salt of at least 16 bytes (128 bits)."
        )
    if len(salt) < _LEAST_SALT:
        raise refuse(f"Salt must be at least 16 bytes (128 bits). Provided salt is {len(salt)} bytes.")
    return _HASHES[name](text.encode() + salt).hexdigest()


def _key(parameters: Mapping[str, Any]) -> bytes:
    """Return the encryption key in the parameters as bytes; raise Problem if its length is wrong."""
    key = str(_parameter(parameters, "key", str)).encode()
    if len(key) * 8 not in algorithms.AES.key_sizes:
        raise refuse("Invalid input, key must be of length 128, 192 or 256 bits")
    return key


def encrypt(text: str, _: str, parameters: Mapping[str, Any]) -> str:
    """Return the text encrypted as by Presidio: AES-CBC, random initialisation vector, base64; Problem: bad key."""
    key, vector = _key(parameters), os.urandom(_BLOCK)
    padder = padding.PKCS7(_BLOCK * 8).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    padded = padder.update(text.encode()) + padder.finalize()
    return base64.urlsafe_b64encode(vector + encryptor.update(padded) + encryptor.finalize()).decode()


def decrypt(text: str, _: str, parameters: Mapping[str, Any]) -> str:
    """Return what `encrypt` encrypted; raise Problem if text or key are wrong."""
    key = _key(parameters)
    try:
        content = base64.urlsafe_b64decode(text)
        decryptor = Cipher(algorithms.AES(key), modes.CBC(content[:_BLOCK])).decryptor()
        unpadder = padding.PKCS7(_BLOCK * 8).unpadder()
        padded = decryptor.update(content[_BLOCK:]) + decryptor.finalize()
        return (unpadder.update(padded) + unpadder.finalize()).decode()
    except ValueError:
        raise refuse("a text cannot be decrypted with this key") from None


ANONYMIZERS: Mapping[str, Operate] = {
    "encrypt": encrypt, "hash": hash_text, "keep": keep, "mask": mask, "redact": redact, "replace": replace,
}  # fmt: skip
DEANONYMIZERS: Mapping[str, Operate] = {"decrypt": decrypt, "deanonymize_keep": keep}
