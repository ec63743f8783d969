"""Why what a plugin asks the host for is not done, where trying again will not help."""

__all__ = ["InvalidRequest", "Refused"]


class InvalidRequest(Exception):
    """The request cannot be sent as it is: an endpoint that is not granted, a
    field that is not JSON."""


class Refused(Exception):
    """The request was refused; the same one will be refused again."""
