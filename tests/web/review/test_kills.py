"""A server that is killed at any moment has every decision that it acknowledged, and none twice."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from chaffinch.web.review import lifecycle, reading
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.marks import Edit
from chaffinch.web.review.project import open_project
from chaffinch.web.review.store.work import load_decisions
from tests.attacks.sizes import sized
from tests.web.review.world import Visitor, make_project, note, task_of, user


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server in a process of its own and return its address."""
    command = [sys.executable, "-m", "chaffinch", "serve", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert server.stderr is not None
    line = server.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, line
    return server, found[0]


@pytest.mark.drill
@pytest.mark.slow
def test_no_acknowledged_decision_is_lost_or_doubled(tmp_path: Path) -> None:
    project = make_project(tmp_path, [note(0)])
    task = task_of(project, "ann", 1)
    project.close()
    acknowledged: list[str] = []
    sent = 0
    draw = random.Random(7)
    rounds = sized(10, 100)
    for _ in range(rounds):
        server, base = start(project.folder)
        ann = Visitor(base)
        assert ann.log_in("ann").status_code == 303
        timer = threading.Timer(draw.uniform(0.0, 0.4), lambda server=server: server.send_signal(signal.SIGKILL))
        waiting: list[str] = []
        try:
            while True:
                sent += 1
                waiting = [*waiting[-1:], f"edit-{sent:08d}"]  # the one before is sent again, as after a lost answer
                edits = [{"id": name, "added": [[0, 2, "DATE"]]} for name in waiting]
                answer = ann.post(f"/review/tasks/{task}/edits", {"edits": edits})
                assert answer.status_code == 200
                acknowledged += answer.json()["acknowledged"]
                if not timer.ident:  # at any moment after the first, however slow the machine is
                    timer.start()
        except httpx.TransportError:
            pass
        timer.join()
        server.wait()
        assert server.stderr is not None
        server.stderr.close()
        ann.client.close()
        time.sleep(0.01)
    reopened = open_project(project.folder)
    with reopened.database.read() as connection:
        stored = [edit.id for _, edit in load_decisions(connection, reopened.database, task, Edit)]
    assert len(stored) == len(set(stored))
    assert set(acknowledged) <= set(stored)
    assert len(set(acknowledged)) >= rounds, "something was at stake in every round"
    assert lifecycle.check_project(reopened).decisions == len(stored)
    assert reading.open_task(Desk(reopened), user(reopened, "ann"), task).head == len(stored)
    reopened.close()
