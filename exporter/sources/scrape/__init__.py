"""The source ``dcgm-exporter``: another exporter's /metrics page, read over HTTP."""
