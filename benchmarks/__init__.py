"""The figures we claim, each beside its peer in one run; `chaffinch bench NAME` runs them."""
