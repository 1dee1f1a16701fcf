"""FusionScope's rooms: see each package's first line for what it is for and what may enter it."""
