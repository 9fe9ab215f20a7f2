"""What all verbs share: how they are called, their options, configuration files, results and output."""

from __future__ import annotations

from chaffinch.cli.frame.command import CheckedCommand, StoppedEarly, takes
from chaffinch.cli.frame.config_file import Config
from chaffinch.cli.frame.options import (
    DEFAULT_MAX_CHARS,
    Documents,
    From,
    GroupBy,
    IdColumn,
    Json,
    Layer,
    Lines,
    MaxChars,
    NewLayer,
    Out,
    Overwrite,
    PatientColumn,
    Quiet,
    TagNames,
    TextColumns,
    Workers,
    columns_of,
    count_workers,
    documents_of,
    file_of,
    names_of_tags,
    note_cut,
    path_of,
    read_group_by,
    read_grouped,
    split_of,
)
from chaffinch.cli.frame.output import (
    check_page,
    emit,
    facts_table,
    live_line,
    name_unwritable,
    note,
    progress,
    table_of,
)

__all__ = [
    "DEFAULT_MAX_CHARS", "CheckedCommand", "Config", "Documents", "From", "GroupBy", "IdColumn", "Json", "Layer",
    "Lines", "MaxChars", "NewLayer", "Out", "Overwrite", "PatientColumn", "Quiet", "StoppedEarly", "TagNames",
    "TextColumns", "Workers", "check_page", "columns_of", "count_workers", "documents_of", "emit", "facts_table",
    "file_of", "live_line", "name_unwritable", "names_of_tags", "note", "note_cut", "path_of", "progress",
    "read_group_by", "read_grouped", "split_of", "table_of", "takes",
]  # fmt: skip
