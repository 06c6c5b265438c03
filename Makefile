# Thin names for the scripts in dev/; the scripts work without make.
.PHONY: run test docs dashboards bench
run:
	dev/run
test:
	dev/test
docs:
	.venv/bin/python -m exporter.metrics.docs > docs/metrics.md
	.venv/bin/python -m exporter.state.docs > docs/states.md
dashboards:
	.venv/bin/python -m dashboards.build
bench:
	for each in scrape daemon drivers gauge_error states host_pass soak; do .venv/bin/python -m bench.$$each; done
