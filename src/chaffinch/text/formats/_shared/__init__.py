"""What several formats have in common: BioC, records, stand-off, token tags, XML."""
