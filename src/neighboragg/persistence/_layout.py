"""The fixed parts of the file: what it begins with, and what it ends with."""

import struct

FORMAT = 1
"""Number of the file format that this version writes, and the newest it reads."""

# As in PNG: a byte that is no ASCII, and line ends that a transfer in text mode would change.
MAGIC = b"\x89NAGG\r\n\x1a"
# Magic bytes, format number, length of the header.
PREFIX = struct.Struct("<8sIQ")
DIGEST_NBYTES = 32
