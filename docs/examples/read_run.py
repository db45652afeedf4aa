"""Prints the median throughput of each target in each step, and its range over the repeats.

    assay export RUN --format parquet -o steps.parquet
    python read_run.py steps.parquet
"""

import sys

import duckdb

# An invalid result stays in the table with its reasons; here it is left out.
QUERY = """
select step, target, clients, any_value(throughput_unit) as unit, count(*) as repeats,
       median(throughput) as median, min(throughput) as least, max(throughput) as most
from read_parquet($path)
where valid and reported and throughput is not null
group by step, target, clients
order by step, target, clients
"""


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: read_run.py STEPS.parquet")
    for step, target, clients, unit, repeats, median, least, most in duckdb.execute(
        QUERY, {"path": sys.argv[1]}
    ).fetchall():
        print(
            f"{step:12} {target:24} {clients:3} clients  {median:12,.0f} {unit}"
            f"  ({least:,.0f} to {most:,.0f} in {repeats} repeats)"
        )


main()
