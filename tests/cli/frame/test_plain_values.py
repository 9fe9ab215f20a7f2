"""Values that pass without typer's check are those that it would give, of every option of the commands used most."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._coercion import build_runtime_param

from chaffinch.cli import _build_app
from chaffinch.cli.frame.command import CheckedCommand
from chaffinch.cli.frame.plain_values import _UNSURE, settle_value

VALUES: tuple[Any, ...] = (
    None, "", "a", "auto", "keep", "new", "spark", "é", "\0", "\udcff", "-", "3", "0.5", "true", b"a", 3, 0.5, 2.0,
    True, Path("a"), Path(), (), [], ["a"], ("a", "b"), "no/such", "/dev/null", __file__, str(Path(__file__).parent),
)  # fmt: skip


def commands(verb: str) -> Iterator[tuple[Any, Any]]:
    root: Any = typer.main.get_command(_build_app([verb]))
    waiting = [(root.get_command(typer.Context(root), verb), typer.Context(root))]
    while waiting:
        command, above = waiting.pop()
        context = typer.Context(command, parent=above)
        if isinstance(command, CheckedCommand):
            yield command, context
        elif hasattr(command, "list_commands"):
            names = command.list_commands(context)
            waiting += [(command.resolve_command(context, [name])[1], context) for name in names]


@pytest.mark.parametrize("verb", ["deid", "train", "tag", "weak"])
def test_a_value_that_passes_is_the_one_that_typer_gives(verb: str) -> None:
    settled = 0
    for command, context in commands(verb):
        for param in command.params:
            for value in (*VALUES, param.get_default(context)):
                found = settle_value(value, param)
                if found is _UNSURE:
                    continue
                right = build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=context)
                assert (found, type(found)) == (right, type(right)), (command.name, param.name, value)
                settled += 1
    assert settled > 100


def test_a_short_run_loads_no_library_for_the_check_of_its_options(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Seen by Dr. Penn on 3/4/1998.\n", encoding="utf-8")
    run = "import sys; from chaffinch.cli import main; print(main(sys.argv[1:]), 'pydantic' in sys.modules)"
    arguments = ["deid", "note.txt", "-o", "out.txt", "--model", "rules", "--overwrite", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", run, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "False"]
