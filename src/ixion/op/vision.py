"""The functions Relay has in ``relay.vision``."""
