# SPDX-License-Identifier: Apache-2.0
"""Checksums and hashes of small and large data, and compression."""
import base64
import hashlib
import zlib


def work():
    digest = b""
    for i in range(25000):
        digest = hashlib.sha256(digest + b"%d" % i).digest()
    data = b"".join(b"line %d of a text that repeats itself\n" % i for i in range(20000))
    names = [hashlib.new(name, data * 4).hexdigest()[:8] for name in ("md5", "sha1", "sha512", "blake2b")]
    packed = zlib.compress(data, 6)
    text = base64.b64encode(packed)
    return [digest.hex(), names, zlib.decompress(base64.b64decode(text)) == data, zlib.crc32(data),
            hash((1.5, 2, 3))]
