"""Say what a word that identifies nobody is: the clinical classes of releases, over the notes of many writers.

The classes are those of `chaffinch.deid.release.clinical_classes`: drugs and brands, eponyms and tests, anatomy,
clinical numbers, other numbers, titles, credentials, kin words, field labels, abbreviations in capitals, ordinary
words. The detector protects words of some of the same lists: that it flags next to no listed drug says little about
drugs on no list, which count as ordinary words.
"""

from __future__ import annotations

from chaffinch.deid.release.clinical_classes import CLASSES, classes_of

__all__ = ["CLASSES", "classes_of"]
