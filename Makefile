# Thin names for the scripts in dev/; the scripts work without make.
.PHONY: run test docs bench
run:
	dev/run
test:
	dev/test
docs:
	.venv/bin/python -m exporter.metrics.docs > docs/metrics.md
bench:
	.venv/bin/python bench/scrape.py
	.venv/bin/python bench/daemon.py
