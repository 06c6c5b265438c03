"""A running daemon under attack, while a real Prometheus scrapes it every second and must not notice."""
