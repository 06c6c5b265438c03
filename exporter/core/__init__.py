"""From readings to a Snapshot: door, quality, alignment, derivation, ledger, and the sampler that drives them."""
