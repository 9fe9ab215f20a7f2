"""A local Spark session, and a Spark Connect server on this computer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaffinch.deid.keys import Secret

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
QUIET = (
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # PySpark leaves its sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
)


def need_java() -> None:
    """Skip without Java; in CI that is a failure."""
    if shutil.which("java") is None:
        if os.environ.get("CI"):
            pytest.fail("java is missing: apt-get install default-jre-headless")
        pytest.skip("java is not installed")


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which Spark keeps its temporary files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def session(scratch: Path) -> Iterator[SparkSession]:
    """Return a session on this computer, as the command opens it; shuffled blocks are not compressed."""
    need_java()
    from chaffinch.jobs.spark.session import open_session

    more = {"spark.local.dir": str(scratch), "spark.shuffle.compress": "false", "spark.sql.shuffle.partitions": "2"}
    more["spark.executorEnv.PYTHONPATH"] = str(ROOT)  # for detectors of the tests
    opened = open_session("local[2]", more)
    yield opened
    opened.stop()


@pytest.fixture(scope="session")
def connect(scratch: Path) -> Iterator[str]:
    """Return the address of a Spark Connect server that listens on 127.0.0.1 only."""
    need_java()
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    confs = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # the other compiler costs more than it saves here
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.io.encryption.enabled": "true",
        "spark.local.dir": str(scratch),
    }
    command = ["bash", str(home / "sbin" / "start-connect-server.sh"), "--master", "local[2,4]"]  # four attempts
    command += [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    places = {"SPARK_HOME": str(home), "SPARK_LOG_DIR": str(scratch), "SPARK_PID_DIR": str(scratch)}
    fixed = {"SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    fixed["PYTHONPATH"] = str(ROOT)  # for detectors of the tests
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(
        command, env=os.environ | places | fixed, stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        _wait_for(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, 15)
        server.wait(60)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers; fail if it ends or takes five minutes."""
    for _ in range(600):
        if server.poll() is not None:
            pytest.fail(f"the Spark Connect server ended with {server.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    pytest.fail("the Spark Connect server does not answer")


@pytest.fixture(scope="session")
def secret_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a new secret."""
    path = tmp_path_factory.mktemp("secret") / "secret"
    Secret.new().write(path)
    return path
