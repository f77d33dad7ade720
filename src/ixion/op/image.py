"""The functions Relay has in ``relay.image``, and ``interpolate``."""
