"""The database of a project: sealed notes, decisions that are only ever added, and an audit trail."""
