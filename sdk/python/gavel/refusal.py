"""Why the host does not answer a plugin's request, if another attempt will not help."""

__all__ = ["InvalidRequest", "Refused"]


class InvalidRequest(Exception):
    """The request is not valid: for example, its endpoint is not granted, or a
    field is not JSON."""


class Refused(Exception):
    """The request was refused, and would be refused again."""
