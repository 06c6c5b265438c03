"""From readings to a Snapshot: range check, trust, alignment, derivation, ledger, and the sampler that drives them."""
