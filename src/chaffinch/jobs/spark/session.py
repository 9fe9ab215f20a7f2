"""A Spark session of our own, for commands: on this computer, on a cluster, or by Spark Connect."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from chaffinch.errors import ConfigError, MissingExtraError
from chaffinch.jobs.spark.table import quiet_pandas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT = "sc://"
_RETRIES = 4  # of a task whose worker is killed; Spark's own number on clusters, while local masters have none
_PRIVATE = {
    "spark.io.encryption.enabled": "true",  # shuffled notes are on the disk; the key is in memory only
    "spark.ui.enabled": "false",  # it listens on a port
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # of notes, which are long rows
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",  # so that few long notes fill one as well
    "spark.ui.showConsoleProgress": "false",
    # Java has little to do: its second compiler took half of its CPU seconds, and the usual collector has many threads.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def open_session(master: str, more: Mapping[str, str] | None = None) -> SparkSession:
    """Open a Spark session on a master (local[N], spark://…, sc://… for Connect); ConfigError if it cannot be used.

    Local sessions listen on 127.0.0.1 only, and encrypt what they write to the disk. Raise ConfigError if the master
    does not answer, MissingExtraError without PySpark.
    """
    try:
        with quiet_pandas():
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith(_CONNECT):
        builder = SparkSession.builder.remote(master)
    else:
        local = master.startswith("local")
        if local:
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(_with_retries(master)).appName("chaffinch")
        settings = {**_PRIVATE, **(more or {})} if local else {"spark.io.encryption.enabled": "true", **(more or {})}
        for name, value in settings.items():
            builder = builder.config(name, value)
    try:
        with quiet_pandas():
            session = builder.getOrCreate()
    except Exception as error:  # Py4J, gRPC and Java each have errors of their own
        raise ConfigError(f"--master {master} cannot be used ({type(error).__name__}); is it running?") from None
    if not master.startswith(_CONNECT):
        session.sparkContext.setLogLevel("OFF")  # a log could quote a row
    return session


def _with_retries(master: str) -> str:
    """Return a local master with a number of task retries added; any other unchanged.

    >>> _with_retries("local[2]"), _with_retries("spark://a:7077")
    ('local[2,4]', 'spark://a:7077')
    """
    found = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return master if found is None else f"local[{found[1] or 1},{_RETRIES}]"
