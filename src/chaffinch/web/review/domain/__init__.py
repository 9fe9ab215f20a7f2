"""The rules of a review, as pure functions: marks and edits, order of the queue, assignment, agreement, differences."""
