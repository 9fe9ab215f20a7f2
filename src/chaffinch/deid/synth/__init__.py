"""Generated notes with gold spans about invented patients."""
