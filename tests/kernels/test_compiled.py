"""When and where kernels are compiled: not at import, in a private folder, and not at all if asked."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")
USE = """
import numpy as np
from chaffinch.kernels import Lattice, Batch, forward_backward, viterbi, best_paths, sample, group
rng = np.random.default_rng(0)
for K in (3, 26):
    lattice = Lattice(rng.normal(size=K), rng.normal(size=(K, K)), rng.normal(size=(4, K)), rng.normal(size=K))
    wild = Lattice(lattice.start * 900, lattice.trans * 900, lattice.emit * 900, lattice.end * 900)
    listed = lattice.clamp(np.tile(np.arange(K) < 2, (4, 1)))
    for one in (lattice, wild, listed, Batch.of([lattice, lattice])):
        post = forward_backward(one)
        print(np.round(post.log_z, 9), np.round(post.states.sum(), 9), np.round(post.pairs[:2, :2], 9).tolist())
        print(np.round(viterbi(one).score, 9), viterbi(one).states.tolist())
        print(np.round(group(one, np.arange(K) % 2).pairs.sum(axis=0), 9).tolist())
    print([path.states.tolist() for path in best_paths(lattice, 3)], sample(lattice, rng, 3).tolist())
"""


def python(code: str, cache: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    env = {**kept, "PYTHONPATH": SOURCE, "CHAFFINCH_CACHE": str(cache), **extra}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_importing_the_room_imports_no_compiler(tmp_path: Path) -> None:
    code = "import sys, chaffinch.kernels; print([m for m in ('numba', 'llvmlite', 'scipy') if m in sys.modules])"
    assert python(code, tmp_path).stdout.strip() == "[]"
    assert not list(tmp_path.iterdir())


def test_without_the_compiler_every_kernel_is_slow_and_equal(tmp_path: Path) -> None:
    slow = python(USE, tmp_path, NUMBA_DISABLE_JIT="1")
    quick = python(USE, Path(os.environ["CHAFFINCH_CACHE"]))
    assert slow.stdout == quick.stdout
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_compiled_code_is_kept_in_a_private_folder_and_announced_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o755)
    (cache / "kernels").mkdir(mode=0o755)
    code = (
        "import numpy as np, numba; before = numba.config.CACHE_DIR;"
        "from chaffinch.kernels import Lattice, viterbi;"
        "viterbi(Lattice(np.zeros(2), np.zeros((1, 2, 2)), np.zeros((2, 2)), np.zeros(2)));"
        "assert numba.config.CACHE_DIR == before"
    )
    first, second = python(code, cache), python(code, cache)
    assert first.stderr.count("compiling kernels") == 1
    assert "compiling" not in second.stderr
    assert stat.S_IMODE((cache / "kernels").stat().st_mode) == 0o700
    assert list((cache / "kernels").rglob("*.nbi"))


def test_no_folder_no_harm(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    code = (
        "import numpy as np; from chaffinch.kernels import Lattice, best_paths;"
        "print(best_paths(Lattice(np.zeros(1), np.zeros((1, 1)), np.zeros((2, 1)), np.zeros(1)), 2)[0].states)"
    )
    done = python(code, blocked)
    assert done.stdout.strip() == "[0 0]"
    assert "not kept" in done.stderr


def test_only_commands_of_ours_do_without_parts_of_the_compiler(tmp_path: Path) -> None:
    code = (
        "import chaffinch.kernels._compile\n"
        "from numba.np import arraymath; from numba.core.typing import cffi_utils\n"
        "print(arraymath._HAVE_BLAS, cffi_utils.SUPPORTED)"
    )
    assert python(code, tmp_path).stdout.split() == ["True", str(find_spec("cffi") is not None)]
    command = "from chaffinch.threads import limit_process; limit_process()\n"
    assert python(command + code, tmp_path).stdout.split() == ["False", "False"]
    tell = "\nimport sys; print('yaml' in sys.modules)"
    assert python(command + code + tell, tmp_path).stdout.split()[-1] == "False"


@pytest.mark.skipif(sys.platform == "win32", reason="file locks are POSIX")
def test_the_processes_of_a_test_run_take_turns_to_compile_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    import numba
    from numba.core.dispatcher import Dispatcher

    from tests.compiling import lock_file, take_turns

    monkeypatch.setenv("CHAFFINCH_CACHE", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Dispatcher, "compile", Dispatcher.compile)  # it is put back
    numba.njit(add_one)(1)  # the compiler is warm: without a turn, the next one would be ready at once
    take_turns()
    kernel = numba.njit(cache=True)(add_one)
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.append(kernel(1)))
    with lock_file(f"{__name__}.add_one").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)  # as another process does that compiles it
        waiting.start()
        waiting.join(1)
        assert found == []
    waiting.join(60)
    assert found == [2]
    assert list(tmp_path.rglob("*.nbi"))


def add_one(number: int) -> int:
    return number + 1
