"""LiteLLM's guardrail for Presidio, from PyPI and unchanged, against our server.

It runs where LiteLLM is installed: in this environment, or in that of the interpreter that $CHAFFINCH_LITELLM names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.process import WAIT, serving

PYTHON = os.environ.get("CHAFFINCH_LITELLM", sys.executable)
CLIENT = """
import asyncio, os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network
from litellm.proxy.guardrails.guardrail_hooks.presidio import _OPTIONAL_PresidioPIIMasking as Guardrail

guardrail = Guardrail(presidio_analyzer_api_base=sys.argv[1], presidio_anonymizer_api_base=sys.argv[1])
print(asyncio.run(guardrail.check_pii(
    text="MARGARET PENN, seen by Dr. Margaret Penn on 3/4/1998.", output_parse_pii=False, presidio_config=None,
    request_data={},
)))
"""


def _has_litellm() -> bool:
    return not subprocess.run([PYTHON, "-c", "import litellm"], capture_output=True, check=False).returncode


@pytest.mark.skipif(not _has_litellm(), reason="LiteLLM is not installed")
def test_a_real_client_masks_a_note(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-token", "--model", "rules") as server:
        done = subprocess.run(
            [PYTHON, "-c", CLIENT, server.url], capture_output=True, text=True, timeout=WAIT, check=False
        )
    assert done.stdout.splitlines()[-1:] == ["<PERSON>, seen by Dr. <PERSON> on <DATE_TIME>."], done.stderr
