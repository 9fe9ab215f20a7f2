"""`python -m chaffinch`."""

import sys

from chaffinch.cli import main

sys.exit(main())
