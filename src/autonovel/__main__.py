"""So that ``python -m autonovel`` works."""

from autonovel.cli import main

main()
