# SPDX-License-Identifier: Apache-2.0
"""A small piece of real work: make a CSV file, load it into SQLite, report on it.

Everything is in the script's own /workspace, which is gone afterwards; the last line's value
is the answer's result.
"""

import csv
import random
import sqlite3
import statistics
from datetime import date, timedelta

REGIONS = ("North", "South", "East", "West")
PRODUCTS = {"anvil": 49.0, "rocket": 189.5, "magnet": 12.25}


def write_sales(path, days=365):
    rng = random.Random(2024)
    with open(path, "w", newline="", encoding="utf-8") as f:
        rows = csv.writer(f)
        rows.writerow(("day", "region", "product", "units", "revenue"))
        for n in range(days):
            day = date(2024, 1, 1) + timedelta(days=n)
            for region in REGIONS:
                product = rng.choice(list(PRODUCTS))
                units = max(0, round(rng.gauss(20 + n / 30, 6)))
                rows.writerow((day, region, product, units, units * PRODUCTS[product]))


def load(path):
    db = sqlite3.connect("sales.sqlite")
    db.execute("create table sale(day text, region text, product text, units int, revenue real)")
    with open(path, newline="", encoding="utf-8") as f, db:
        db.executemany("insert into sale values(:day, :region, :product, :units, :revenue)",
                       csv.DictReader(f))
    return db


def report(db):
    print(f"{'region':<8}{'units':>8}{'revenue':>14}{'best month':>12}")
    for region, units, revenue, month in db.execute("""
            select region, sum(units), sum(revenue),
                (select substr(day, 1, 7) from sale as s where s.region = sale.region
                 group by 1 order by sum(revenue) desc limit 1)
            from sale group by region order by 3 desc"""):
        print(f"{region:<8}{units:>8}{revenue:>14,.2f}{month:>12}")
    daily = [r for r, in db.execute("select sum(revenue) from sale group by day order by day")]
    slope, start = statistics.linear_regression(range(len(daily)), daily)
    print(f"\na day brings {statistics.median(daily):,.2f} (median), "
          f"a little more each day: {slope:+.2f}")
    return {"total": round(sum(daily), 2), "median_day": statistics.median(daily),
            "growth_per_day": round(slope, 2), "first_day_fitted": round(start, 2)}


write_sales("sales.csv")
report(load("sales.csv"))
