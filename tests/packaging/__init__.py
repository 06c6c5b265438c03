"""The image and the chart."""
