"""Code that several formats share: BioC, JSON records, standoff annotation, token tags, XML."""
