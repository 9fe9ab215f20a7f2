"""Surrogates: invented values of the same kind and form as the identifiers they replace; start at `surrogate`."""
