"""`chaffinch deid state`: what a state remembers, and which released files hold a patient."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from chaffinch.cli import frame
from chaffinch.cli.deid.results import HeldNote, StateOutput, StateResult
from chaffinch.deid.keys import Secret
from chaffinch.deid.release import state as states
from chaffinch.deid.release.state import part_of
from chaffinch.errors import ConfigError
from chaffinch.jobs.state import output_path

StateKeyFile = Annotated[
    Path | None,
    typer.Option("--state-key-file", help=f"File of the state's key; else it is in ${states.VARIABLE}."),
]


def state_command(
    file: Annotated[Path, typer.Argument(metavar="STATE", help="The file that deid run --state wrote.")],
    state_key_file: StateKeyFile = None,
    patient: Annotated[
        str | None, typer.Option(metavar="ID", help="List the released notes of this patient, as the input calls them.")
    ] = None,
    json: frame.Json = False,
    quiet: frame.Quiet = False,
    config: frame.Config = None,
) -> None:
    """chaffinch deid state releases.state --state-key-file state.key --patient p17

    Say which releases a state remembers and, with --patient, which of their files hold notes of a patient: the output
    of each note, its id there, and its id in the input. Nothing is changed.
    """
    state = states.ReleaseState.open(file, state_key(state_key_file))
    memory = None if patient is None else state.find(patient)
    outputs = [StateOutput(output=str(output_path(file, one)), notes=one.notes) for one in state.head.releases]
    held = [] if memory is None else memory.notes
    notes = [HeldNote(output=outputs[one.release].output, released=one.released, id=one.id) for one in held]
    result = StateResult(
        state=str(file), policy=state.head.policy, secret=state.head.secret, date_order=state.head.date_order,
        patients=state.patients, notes=state.notes, names=state.names, unfinished=part_of(file).exists(),
        outputs=outputs, known=None if patient is None else memory is not None, held=None if patient is None else notes,
    )  # fmt: skip
    frame.emit(result, as_json=json, tables=[] if quiet else result.tables())


def state_key(path: Path | None) -> Secret:
    """Return a state's key from a file, else from the environment variable; ConfigError if there is neither."""
    if path is None and not os.environ.get(states.VARIABLE):
        raise ConfigError(
            f"a state needs a key: give --state-key-file FILE or set {states.VARIABLE}; "
            "make one with: chaffinch deid secret new FILE"
        )
    return Secret.read(path, variable=states.VARIABLE)
