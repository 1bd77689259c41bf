# SPDX-License-Identifier: Apache-2.0
"""Search, substitution and groups over a log of 400 kB."""
import re

TEXT = "".join(
    "2026-%02d-%02d host%d app[%d]: user%d@example.org GET /path/%d?q=%d HTTP/1.1 %d %.3f ms\n"
    % (i % 12 + 1, i % 28 + 1, i % 7, i, i % 97, i, i * 31 % 1009, 200 + i % 5, i / 7)
    for i in range(4500))


def work():
    mails = len(re.findall(r"[\w.]+@[\w-]+(?:\.[\w-]+)+", TEXT))
    slow = sum(float(m[1]) > 500 for m in re.finditer(r"(\d+\.\d+) ms$", TEXT, re.M))
    plain = re.sub(r"\b(\d{4})-(\d\d)-(\d\d)\b", lambda m: m[3] + "." + m[2], TEXT)
    fields = [re.match(r"(\S+) (\S+) (\w+)\[(\d+)\]: (.*?) (GET|POST) (\S+)", line).groups()
              for line in TEXT.splitlines()]
    none = re.search(r"(?:host\d+ ){2}|error|warn(?:ing)?", TEXT, re.I)
    return [mails, slow, len(plain), len(fields), none is None]
