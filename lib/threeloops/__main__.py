"""`python -m threeloops` is the `threeloops` command, where the command itself is not on the path."""

import sys

from threeloops.cli import main

sys.exit(main())
