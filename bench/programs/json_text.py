# SPDX-License-Identifier: Apache-2.0
"""Records to JSON and back, compact and indented."""
import json

RECORDS = [{"id": i, "name": "name %d" % i, "tags": ["a", "b\u00e4", str(i)], "score": i / 3,
            "nested": {"deep": [i, None, True, {"x": -i}]}} for i in range(4000)]


def work():
    text = ""
    for _ in range(3):
        text = json.dumps(RECORDS)
        again = json.loads(text)
    pretty = json.dumps(again[:800], indent=2, sort_keys=True)
    return [len(text), len(pretty), again == RECORDS]
