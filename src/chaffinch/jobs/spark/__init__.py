"""Chaffinch on Spark: the same functions over the partitions of a DataFrame.

    notes  →  partition by patient, sort within  →  mapInArrow over whole partitions  →  one row per note

Only DataFrame methods are used, so that classic sessions and Spark Connect work alike. The plan holds settings, paths
and digests; each Python worker loads its engine once, from its own disk, and reads its secret from a file there.
"""

from chaffinch.jobs.spark.annotate import relate, tag
from chaffinch.jobs.spark.deidentify import SecretFile, Settings, deidentify
from chaffinch.jobs.work import DetectorSpec

__all__ = ["DetectorSpec", "SecretFile", "Settings", "deidentify", "relate", "tag"]
