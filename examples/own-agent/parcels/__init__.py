"""A shop's agent for complaints about parcels."""
