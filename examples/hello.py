# SPDX-License-Identifier: Apache-2.0
"""The smallest script: what it prints comes back, and so does the value of its last line."""

import os
import platform

print(f"Hello from Python {platform.python_version()}")
print(f"as uid {os.getuid()} in {os.getcwd()} on a host called {platform.node()!r}")
6 * 7
