"""The web room: bounded HTTP(S) serving, configured as exporter-toolkit is. Imports nothing else of the package."""
