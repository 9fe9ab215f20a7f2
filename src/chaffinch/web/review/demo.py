"""A project of invented notes with two readers, an adjudicator and a steward, ready to click."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaffinch.deid.keys import Secret
from chaffinch.deid.synth.notes import notes
from chaffinch.errors import ConfigError
from chaffinch.text import Document
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.importing import detect_notes, import_notes
from chaffinch.web.review.judging import assign_notes
from chaffinch.web.review.project import RULES, Project, ProjectConfig, create_project
from chaffinch.web.review.store.users import User, add_user, list_users

PEOPLE = (("Ann", "reader"), ("Ben", "reader"), ("Carol", "adjudicator"), ("Stella", "steward"), ("Otto", "auditor"))
_PATIENTS, _NOTES = 4, 3  # enough to see a queue, and few enough to read


def demo_documents() -> list[Document]:
    """Return the demonstration's invented notes, the same each time, without their gold spans."""
    drawn = notes(_PATIENTS, _NOTES, seed=20, style="varied")
    return [Document.make(doc.text, id=doc.id, group=doc.group, meta=doc.meta) for doc in drawn]


def make_demo(
    folder: Path, password: str, *, documents: Iterable[Document] | None = None, model: str | None = None
) -> Project:
    """Create and return a project of invented notes with users, suggestions and assignments; its keys lie beside it.

    The rules alone find the suggestions unless a model is named, so that readers have something to add.
    """
    key, secret = Secret.new(), Secret.new()
    key.write(folder / "project.key")
    secret.write(folder / "surrogates.key")
    config = ProjectConfig(
        "Demonstration",
        policy="i2b2-surrogate",
        model=model or RULES,
        without_suggestions=0.25,
        key_file="../project.key",
        secret_file="../surrogates.key",  # noqa: S106  (a path)
    )
    project = create_project(folder / "project", config, key)
    with project.database.change("chaffinch") as change:
        for name, role in PEOPLE:
            add_user(change, name, role, password=password)
    chosen = demo_documents() if documents is None else documents
    import_notes(project, detect_notes(chosen, project.detector()), "chaffinch")
    assign_notes(Desk(project), steward_of(project))
    return project


def steward_of(project: Project) -> User:
    """Return the first steward of a project, in whose name commands act; raise ConfigError if it has none."""
    with project.database.read() as connection:
        found = next((user for user in list_users(connection) if user.role == "steward" and user.active), None)
    if found is None:
        raise ConfigError("the project has no steward; add one: chaffinch project user PROJECT NAME --role steward")
    return found
