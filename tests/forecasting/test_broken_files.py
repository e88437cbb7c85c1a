"""Every way in which a file can be broken that docs/files.md tells of: what the tool says, and the exit code."""

import gzip
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROWS = re.findall(
    r"^\| (.+?) \| (.+?) \| (\d) \|$",
    (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8"),
    re.M,
)


def hourly(count=60, start="2024-01-01", **columns):
    stamps = pd.date_range(start, periods=count, freq="h")
    generator = np.random.default_rng(0)
    frame = {"ds": stamps.strftime("%Y-%m-%d %H:%M:%S"), "y": generator.normal(50, 5, count).round(2)}
    return pd.DataFrame({**frame, **columns})


def csv(frame):
    return frame.to_csv(index=False)


def changed(row, column, value, **options):
    frame = hourly(**options).astype({column: object})
    frame.loc[row, column] = value
    return csv(frame)


def local(start, count, zone="Europe/Berlin"):
    stamps = pd.date_range(start, periods=count, freq="30min", tz=zone)
    return csv(pd.DataFrame({"ds": stamps.strftime("%Y-%m-%d %H:%M"), "y": np.arange(count) % 7}))


def half_hours(start, count, zone="Europe/London"):
    stamps = pd.date_range(start, periods=count, freq="30min", tz=zone)
    number = (stamps - stamps.normalize()) // pd.Timedelta("30min") + 1
    return csv(pd.DataFrame({"date": stamps.strftime("%Y-%m-%d"), "period": number, "y": np.arange(count) % 7}))


def excel():
    return b"PK\x03\x04" + b"\x00" * 26


def zipped(folder):
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.writestr("a.csv", "ds,y\n2024-01-01,1\n")
        archive.writestr("b.csv", "ds,y\n2024-01-01,1\n")
    return (folder / "two.zip").read_bytes()


def book(folder):
    with zipfile.ZipFile(folder / "book.zip", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return (folder / "book.zip").read_bytes()


SHIFTED = hourly(200).assign(z=lambda frame: frame["y"].shift(-1))
EMPTY = hourly(40, z=np.nan).assign(unique_id="a", z=lambda f: f["y"])

GROUPED = [f"{int(980 + 2 * i):,d}".replace(",", ".") for i in range(30)]  # 982 to 1.038

# What stands in the file, and what is said of it on the command line.
AUDITS = {
    "the file is empty": ("", ()),
    "a heading and no rows": ("ds,y\n", ()),
    "no heading": ("2024-01-01,1\n2024-01-02,2\n", ()),
    "no heading, one column of text": ("".join(f"AAPL,2024-01-{d:02d},{d}\n" for d in range(1, 30)), ()),
    "years in the heading": ("Country,1990,1991,1992,1993\nA,1,2,3,4\n", ()),
    "a row a series, the times in the heading": ("id,2024-01,2024-02,2024-03,2024-04\na,1,2,3,4\n", ()),
    "a spreadsheet": (book, ()),
    "a zip of several files": (zipped, ()),
    "a compressed file that is cut off": (gzip.compress(csv(hourly(5000)).encode())[:9000], ()),
    "an encoding that it does not have": (csv(hourly()).encode("utf-16"), ("data.encoding=utf-8",)),
    "a row with too few fields": (csv(hourly()) + "2024-02-01\n", ()),
    "no column of times": ("a,b\n1,2\n3,4\n", ()),
    "a column that is not there": (csv(hourly()), ("data.target=load",)),
    "a time that cannot be read": (changed(40, "ds", "yesterday"), ()),
    "day and month cannot be told apart": ("ds,y\n03/04/2021,1\n04/04/2021,2\n", ()),
    "some times with an offset from UTC, some without": (changed(40, "ds", "2024-01-02 16:00:00+01:00"), ()),
    "a row without its time": (changed(40, "ds", ""), ()),
    "a count of seconds that may be anything": ("ds,y\n1,5\n2,6\n3,5\n", ()),
    "times that name their clock, no zone stated": ("ds,y\n2024-01-01 10:00 CET,1\n2024-01-01 11:00 CET,2\n", ()),
    "a clock that is never changed, in a zone whose clock is": (
        csv(hourly(60, "2024-03-30").assign(ds=lambda f: f["ds"] + " CET")), ("data.timezone=Europe/Berlin",),
    ),
    "hours up to 12 without AM or PM": (
        csv(hourly().assign(ds=pd.date_range("2024-01-01", periods=60, freq="h").strftime("%Y-%m-%d %I:%M"))), (),
    ),
    "a 49th half-hour, no zone stated": (half_hours("2024-10-25", 200), ()),
    "years of two digits, dates sorted as text": (
        "ds,y\n" + ",1\n".join(sorted(pd.date_range("2019-01-01", periods=700).strftime("%d/%m/%y"))) + ",1\n", (),
    ),
    "times of day of an unknown form beside dates": (
        "Date,Time,y\n" + "".join(f"2024-01-{i // 24 + 1:02d},HE{i % 24:02d},{i % 7}\n" for i in range(240)), (),
    ),
    "days of a spreadsheet": ("date,y\n" + "".join(f"{45292 + i},{i % 5}\n" for i in range(30)), ()),
    "years that no nanoseconds reach": (
        "ds,y\n" + "".join(f"{1500 + i}-06-01,{i % 5}\n" for i in range(30)), ("data.time=ds",),
    ),
    "a zone that does not exist": (csv(hourly()), ("data.timezone=Berlin",)),
    "an hour that the local clock leaves out": (csv(hourly(start="2024-03-30")), ("data.timezone=Europe/Berlin",)),
    "the hour that the local clock shows twice": (local("2024-10-26", 120), ("data.timezone=Europe/Berlin",)),
    "that hour standing once": (csv(hourly(start="2024-10-26")), ("data.timezone=Europe/Berlin",)),
    "the hour that stands twice, no zone stated": (local("2024-10-20", 600), ()),
    "parts of the date beside it": (csv(hourly(200).assign(month=lambda f: 1 + f.index // 24 % 12)), ()),
    "a time that stands twice": (csv(pd.concat([hourly(), hourly().iloc[7:10]])), ()),
    "the same, a policy stated": (csv(pd.concat([hourly(), hourly().iloc[7:10]])), ("data.duplicates=last",)),
    "newest rows first": (csv(hourly()[::-1]), ()),
    "rows missing": (csv(hourly().drop(index=[5, 6, 30])), ()),
    "blank rows": (csv(hourly()) + ",\n,\n", ()),
    "a text among the numbers": (changed(40, "y", "12 kW"), ()),
    "a number whose square is none": (changed(40, "y", 1e300), ()),
    "events": (
        csv(pd.DataFrame({
            "ds": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(200) ** 2 // 7 * 7, unit="min"), "y": 1,
        }).assign(y=np.arange(200) % 3)), (),
    ),
    "a last day that is not over, resampled": (csv(hourly()), ("data.resample=1d",)),
    "an infinite value": (changed(40, "y", "inf"), ()),
    "a code for missing values": (csv(hourly(100).assign(y=lambda f: f["y"].where(f.index % 25 != 3, -999))), ()),
    "the same code, stated": (
        csv(hourly(100).assign(y=lambda f: f["y"].where(f.index % 25 != 3, -999))), ('data.missing=["-999.0"]',),
    ),
    "a comma that may be decimal or not": ("ds;y\n2024-01-01;1,234\n2024-01-02;1,235\n", ()),
    "a number in another dialect": (changed(40, "y", '"49,9"').replace('"""', '"'), ()),
    "three digits behind all points": (csv(hourly().assign(y=[f"{1 + i % 7 / 10:.3f}" for i in range(60)])), ()),
    "semicolons, decimal commas and Latin letters": (
        "Zeit;Höhe\n" + "".join(f"{d:02d}.03.2024 00:00;{d},5\n" for d in range(1, 30)), (),
    ),
    "lines before the heading": ("Station 7\nmade by logger\n\n" + csv(hourly()), ()),
    "units below the heading": (csv(hourly()).replace("y\n", "y\n,°C\nSmp,Avg\n", 1), ()),
    "blanks between the fields": (csv(hourly()).replace(" ", "T").replace(",", "  "), ()),
    "few rows": (csv(hourly(12)), ()),
    "a line `sep=;` for spreadsheets": ("sep=;\n" + csv(hourly()).replace(",", ";"), ()),
    "a point that may be decimal or not": (
        "ds;y\n" + "".join(f"2024-01-{i:02d};{GROUPED[i]}\n" for i in range(1, 30)), (),
    ),
    "prices and percent": (
        "ds,a,b\n" + "".join(f'2024-01-{i:02d},"$1,{i}34.50",{i / 2}%\n' for i in range(10, 30)), (),
    ),
    "some numbers with a sign of percent, some without": (
        "ds,y\n" + "".join(f"2024-01-{i:02d},{i}{'%' if i % 2 else ''}\n" for i in range(1, 30)), ("data.target=y",),
    ),
    "the same, nothing stated": (
        "ds,y\n" + "".join(f"2024-01-{i:02d},{i}{'%' if i % 3 else ''}\n" for i in range(2, 30)), (),
    ),
    "a column called as the forecasts are": (csv(hourly(unique_id="a").rename(columns={"unique_id": "model"})),
                                             ("data.id=model",)),
    "times without a grid, and long without any": (
        "ds,y\n" + "".join(f"2024-{m:02d}-{d:02d},{m + d}\n" for m in (1, 2, 3) for d in (1, 2, 4, 8, 15))
        + "".join(f"2024-05-{d:02d},{d}\n" for d in (14, 15, 17, 18, 20)), (),
    ),
    "steps that no grid explains": (
        "ds,y\n" + "".join(f"2024-{m:02d}-{d:02d},{m + d}\n" for m in range(1, 13) for d in (1, 15)), (),
    ),
    "rows before the first value": (csv(hourly().assign(y=lambda f: f["y"].where(f.index > 20))), ()),
    "times written as spans": (
        "time;y\n" + "".join(f"{20 + i // 24}.03.2021 {i % 24}:00 - {i % 24}:30;{i % 24}\n" for i in range(60)), (),
    ),
    "lines that tell of the columns, below their names": (
        "Title,Rate\nUnits,Percent\nPublished,04-Jan-2023\n"
        + "".join(f"{i:02d}-Jan-2018,0.78{i}\n" for i in range(1, 25)), (),
    ),
    "rows at the end without a value": (csv(hourly().assign(y=lambda f: f["y"].where(f.index < 48))), ()),
    "a series without a name": (changed(40, "unique_id", "", unique_id="a"), ()),
    "a constant series": (csv(hourly().assign(y=3)), ()),
    "every value missing": (csv(pd.concat([hourly(unique_id="a"), hourly(unique_id="b").assign(y=np.nan)])), ()),
    "a single row": (csv(pd.concat([hourly(unique_id="a"), hourly(1, unique_id="b")])), ()),
    "a covariate that is the target of the next row": (csv(SHIFTED), ("data.target=y", "data.past=[z]")),
    "a static covariate that changes": (csv(hourly(unique_id="a", z=np.arange(60))), ("data.static=[z]",)),
}  # fmt: skip


@pytest.mark.parametrize("name", AUDITS)
def test_what_the_audit_says(name, farview_forecast, tmp_path):
    content, stated = AUDITS[name]
    data = content(tmp_path) if callable(content) else content
    path = tmp_path / "f.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode("cp1252"))
    done = farview_forecast("audit", path, *(part for each in stated for part in ("--set", each)))
    check(name, done)


def check(name, done):
    says, code = next((says, int(code)) for title, says, code in ROWS if title == name)
    output = done.stdout + done.stderr
    assert done.exit_code == code, output
    for part in re.findall(r"`(.+?)`", says):
        assert part in " ".join(output.split()), output
    assert "Traceback" not in output


RUNS = {
    "series too short for the horizon": (csv(hourly(6)), "", None),
    "no value in the training part": (
        csv(hourly(60).assign(y=lambda f: f["y"].where((f.index == 0) | (f.index > 50)))), "", None,
    ),
    "two times asked for at once": (csv(hourly(60)), "", "ds\n2024-01-03 13:00:00\n2024-01-03 13:00:00\n"),
    "times between the steps of a resampled run": (
        csv(hourly(480)), "  resample: 1d\n", "ds\n2024-01-21 13:00:00\n",
    ),
    "a time beyond the horizon": (csv(hourly(60)), "", "ds\n2024-01-09 13:00:00\n"),
    "a value known ahead that is missing": (
        csv(hourly(60, wind=1.0)), "  future: [wind]\n", "ds,wind\n2024-01-03 12:00:00,\n",
    ),
    "values known ahead that are not given": (csv(hourly(60, wind=1.0)), "  future: [wind]\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_what_fit_and_predict_say(name, farview_forecast, tmp_path):
    content, keys, requests = RUNS[name]
    (tmp_path / "f.csv").write_text(content)
    (tmp_path / "job.yaml").write_text(
        f"data:\n  path: f.csv\n{keys}lookback: 12\nhorizon: 4\nmodel: {{kind: ridge}}\n"
    )
    done = farview_forecast("fit", tmp_path / "job.yaml", "-o", tmp_path / "run")
    if requests is not None:
        assert done.exit_code == 0, done.output
        (tmp_path / "at.csv").write_text(requests)
        at = ("--at", tmp_path / "at.csv") if requests else ()
        done = farview_forecast("predict", tmp_path / "run", tmp_path / "f.csv", "-o", tmp_path / "o.csv", *at)
        assert not (tmp_path / "o.csv").exists()
    check(name, done)


def test_every_way_is_tested():
    assert sorted(title for title, _, _ in ROWS) == sorted([*AUDITS, *RUNS])
    assert len(ROWS) > 30
