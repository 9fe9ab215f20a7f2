"""Joint extraction of relations and their arguments by a phrase HMM."""
