# SPDX-License-Identifier: Apache-2.0
"""pandas: groups, a merge, a pivot, dates and texts of 100,000 rows."""
import numpy
import pandas

GENERATOR = numpy.random.RandomState(5)
ROWS = 100000
FRAME = pandas.DataFrame({
    "key": GENERATOR.randint(0, 500, ROWS), "kind": GENERATOR.choice(list("abcdef"), ROWS),
    "value": GENERATOR.rand(ROWS), "count": GENERATOR.randint(0, 100, ROWS)})
NAMES = pandas.DataFrame({"key": range(500), "name": ["name%d" % i for i in range(500)]})


def work():
    groups = FRAME.groupby("key").agg({"value": ["mean", "max"], "count": "sum"})
    joined = FRAME.merge(NAMES, on="key").sort_values(["name", "value"])
    table = joined.pivot_table(index="name", columns="kind", values="value", aggfunc="sum")
    days = pandas.date_range("2026-01-01", periods=ROWS, freq="min")
    daily = pandas.Series(FRAME["value"].to_numpy(), index=days).resample("D").mean()
    rolled = FRAME["value"].rolling(50).mean().fillna(0)
    upper = FRAME["kind"].str.upper().value_counts()
    return [groups.shape, repr(float(table.to_numpy().sum())), len(daily),
            repr(float(rolled.sum())), int(upper.max())]
