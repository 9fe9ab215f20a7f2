"""Hidden-Markov and structured sequence labelling for clinical and biomedical text, on CPUs, offline."""

__version__ = "0.1.0"
