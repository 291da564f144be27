#!/usr/bin/env python3
"""Runs the queries in a directory on Spark. `spark.py trace FOLDER | fleet ROOT ...  QUERIES ANSWERS`

Each pair names the tables of a trace or of a fleet. Writes to the file ANSWERS a line of JSON for
each query of each pair: {"tables": FOLDER, "query": NAME, "rows": [{COLUMN: VALUE}]}. The answers
are in a separate file because the Java virtual machine prints its warnings to standard output.
"""
import datetime
import decimal
import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

TABLES = ("events", "stacks", "frames", "modules", "mappings", "processes", "threads", "samples",
          "cpu", "sites")


def session():
    # The vectorized reader does not support integers that are stored byte by byte (byte stream
    # split), as in a trace.
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "localhost",
        # The data are small, so compiling code for each query would take most of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": "/nonexistent",
    }
    builder = SparkSession.builder.appName("mallard")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def make_tables_of_trace(spark, folder, keys):
    """Makes views of the tables, with the columns that `mallard query` adds."""
    for name in TABLES:
        path = folder / name if (folder / name).is_dir() else folder / f"{name}.parquet"
        spark.read.parquet(str(path)).createOrReplaceTempView("plain")
        spark.sql(f"SELECT *, '{keys['service']}' AS service, DATE '{keys['date']}' AS date, "
                  f"'{keys['run']}' AS run FROM plain").createOrReplaceTempView(name)


def make_tables_of_fleet(spark, root):
    for table in sorted(root.iterdir()):
        if not table.name.startswith("."):
            spark.read.parquet(str(table)).createOrReplaceTempView(table.name)


def make_derived(spark, views, names):
    for name in names:
        text = (views / f"{name}.sql").read_text()
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {text}")


def plain(value):
    """Converts a value to a form that JSON can represent."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def write_answers(pairs, queries, file):
    spark = session()
    for kind, folder in zip(pairs[::2], pairs[1::2]):
        if kind == "trace":
            folder, _, keys = folder.partition("::")
            make_tables_of_trace(spark, Path(folder), json.loads(keys))
            make_derived(spark, queries / "views", ("allocs", "functions"))
        else:
            make_tables_of_fleet(spark, Path(folder))
            make_derived(spark, queries / "views", ("functions",))
        for query in sorted(queries.glob("*.sql")):
            rows = spark.sql(query.read_text()).collect()
            rows = [{name: plain(value) for name, value in row.asDict().items()} for row in rows]
            answer = {"tables": kind, "query": query.stem, "rows": rows}
            print(json.dumps(answer, allow_nan=False), file=file)
    spark.stop()


def main():
    *pairs, queries, answers = sys.argv[1:]
    with open(answers, "w", encoding="utf-8") as file:
        write_answers(pairs, Path(queries), file)


main()
