"""What can go wrong while a trace is read, told in one sentence for the person who brought the file."""


class TraceError(ValueError):
    """The file cannot be read as a trace; the message says what is wrong and what to do."""


class TablesError(TraceError):
    """A folder of cached tables is missing, foreign or of another format: read the trace again."""
