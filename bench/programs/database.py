# SPDX-License-Identifier: Apache-2.0
"""sqlite3 in memory: rows in, an index, a join, a function in Python."""
import sqlite3


def work():
    base = sqlite3.connect(":memory:")
    base.create_function("twice", 1, lambda x: 2 * x, deterministic=True)
    base.execute("create table item (id integer primary key, owner integer, name text, price real)")
    base.execute("create table owner (id integer primary key, name text)")
    base.executemany("insert into owner values (?, ?)", ((i, "owner %d" % i) for i in range(300)))
    base.executemany("insert into item (owner, name, price) values (?, ?, ?)",
                     ((i * 7 % 300, "item %d" % i, i / 9) for i in range(40000)))
    base.execute("create index of_owner on item (owner)")
    rows = base.execute("select owner.name, count(*), sum(twice(price)) from item join owner "
                        "on owner.id = item.owner group by owner.id order by 3").fetchall()
    names = [base.execute("select name from item where id = ?", (i,)).fetchone()[0]
             for i in range(1, 12000)]
    base.close()
    return [len(rows), repr(rows[-1]), names[-1]]
