"""Everything that is exported: families and the samples of a Snapshot, one file per group."""
