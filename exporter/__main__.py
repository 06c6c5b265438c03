"""python -m exporter"""

from exporter.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
