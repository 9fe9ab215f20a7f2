"""`chaffinch project`: review projects, from their making to their end."""

from __future__ import annotations

import sys

import typer

from chaffinch.errors import MissingExtraError

try:
    import argon2  # noqa: F401
    import sqlalchemy  # noqa: F401
    import starlette  # noqa: F401
except ImportError as error:
    raise MissingExtraError(error.name or "sqlalchemy", "web") from None

from chaffinch.cli.project import verbs

project_app = typer.Typer(help="Review projects: notes read by two people, differences settled.", rich_markup_mode=None)


@project_app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    """Print the help of `project` if no command is given."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


project_app.command("new", short_help="Make a project.")(verbs.new_command)
project_app.command("user", short_help="Add a user, or set a password.")(verbs.user_command)
project_app.command("import", short_help="Add notes, with suggestions of a detector, a layer or a run.")(
    verbs.import_command
)
project_app.command("status", short_help="Show how far the review is, and assign notes.")(verbs.status_command)
project_app.command("release", short_help="Release the corrected notes.")(verbs.release_command)
project_app.command("export", short_help="Write the closed notes with their marks, in any format.")(
    verbs.export_command
)
project_app.command("audit", short_help="Write the audit trail as JSON lines.")(verbs.audit_command)
project_app.command("backup", short_help="Write the whole project, sealed, to one file.")(verbs.backup_command)
project_app.command("restore", short_help="Make a project from a backup.")(verbs.restore_command)
project_app.command("purge", short_help="Remove a project for good.")(verbs.purge_command)
