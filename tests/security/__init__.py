"""What docs/security.md promises, held by tests: TLS, passwords, no shell-outs, labels, dependencies."""
