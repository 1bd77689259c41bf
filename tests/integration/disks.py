# SPDX-License-Identifier: Apache-2.0
"""What the disks of this machine were told."""

import os


def flushes():
    """How often this machine's disks were told to write out their caches; one number of each."""
    total = 0
    for disk in os.listdir("/sys/block"):
        with open("/sys/block/%s/stat" % disk, encoding="ascii") as f:
            numbers = f.read().split()
        total += int(numbers[15]) if len(numbers) > 15 else 0
    return total
