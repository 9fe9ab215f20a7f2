"""A drop-in for the REST services of Presidio's analyzer and anonymizer, on one port."""
