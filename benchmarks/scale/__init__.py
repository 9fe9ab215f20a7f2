"""What a release costs as notes, patients and processes become many."""
