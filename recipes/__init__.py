"""How the corpora are read and the shipped models were made; runs from a checkout, is not part of the wheel."""
