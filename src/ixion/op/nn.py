"""The functions Relay has in ``relay.nn``."""
