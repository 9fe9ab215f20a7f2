"""`chaffinch project`: review projects, from their making to their end."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

from chaffinch.cli.frame.deferred import DeferredCommand, DeferredGroup, defer_app
from chaffinch.errors import MissingExtraError


def check_extra() -> None:
    """Raise MissingExtraError unless the packages of review projects are installed."""
    for package in ("argon2", "sqlalchemy", "starlette"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "web")


def _verb(name: str, about: str) -> DeferredCommand:
    """Return the deferred verb NAME_command, with `about` as its help."""
    return DeferredCommand(f"{__name__}.verbs", f"{name}_command", about)


class _ProjectGroup(DeferredGroup):
    """The verbs of `project`."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {
        "new": _verb("new", "Make a project."),
        "user": _verb("user", "Add a user, or set a password."),
        "import": _verb("import", "Add notes, with suggestions of a detector, a layer or a run."),
        "status": _verb("status", "Show how far the review is, and assign notes."),
        "release": _verb("release", "Release the corrected notes."),
        "export": _verb("export", "Write the closed notes with their marks, in any format."),
        "audit": _verb("audit", "Write the audit trail as JSON lines."),
        "backup": _verb("backup", "Write the whole project, sealed, to one file."),
        "restore": _verb("restore", "Make a project from a backup."),
        "purge": _verb("purge", "Remove a project for good."),
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the verb that the arguments name, and return it; MissingExtraError without its packages."""
        check_extra()
        return super().resolve_command(ctx, args)


project_app = defer_app("Review projects: notes read by two people, differences settled.", _ProjectGroup)
