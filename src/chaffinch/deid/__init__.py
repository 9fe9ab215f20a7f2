"""De-identification; so far the generated notes with which it is measured."""

from chaffinch.deid.synth import notes

__all__ = ["notes"]
