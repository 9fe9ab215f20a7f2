"""Surrogates: invented values of the same kind and form as the identifiers they stand for; begin at `surrogate`."""
