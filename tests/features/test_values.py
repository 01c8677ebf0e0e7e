"""Numbers and dates written as text: one reading for a whole column, and what else it could be."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighboragg.features._values import read_dates, read_numbers


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1.562,93", "12,5", "900"], [1562.93, 12.5, 900]),
        (["1,562.93", "12.5", "900"], [1562.93, 12.5, 900]),
        (["1.234.567", "2"], [1234567, 2]),
        (["1 234,5", "1\u202f234,5", "1\u00a0234"], [1234.5, 1234.5, 1234]),
        (["1'234.50", "1\u2019234"], [1234.5, 1234]),
        (["$1,234.50", "($3.00)", "-$2", "$-2", "1,000.25-"], [1234.5, -3, -2, -2, -1000.25]),
        (["12,50 €", "\u22127 €", "€ 1.000,00"], [12.5, -7, 1000]),
        (["EUR 5", "7 eur"], [5, 7]),
        (["5%", "12.5 %"], [5, 12.5]),
        ([".5", "+1.25", "1e-05"], [0.5, 1.25, 1e-05]),
        (["0,125", None, " ", np.nan, pd.NA], [0.125, *[np.nan] * 4]),
    ],
)
def test_numbers_that_can_be_read_in_one_way(texts, values):
    found, reading = read_numbers(texts)
    np.testing.assert_array_equal(found, values)
    assert reading.doubt == ""


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["", None],
        ["000123", "000124"],
        ["007.50"],
        ["1.562,93", "1,562.93"],
        ["5 EUR", "5 USD"],
        ["5%", "0.05"],
        ["1.5", "n/a"],
        ["--5"],
        ["(-5)"],
        ["(5"],
        ["12,34,5"],
        ["1.2.3"],
        ["192.168.10.1"],
        ["15.10.2024"],
        ["1e5"],
        ["5 - 10"],
        ["1" * 480_000],
        ["1.1." * 120_000],
        [" " * 480_000 + "x"],
        ["1 " * 240_000 + "x"],
    ],
    ids=lambda texts: str(texts)[:20],
)
def test_what_is_not_a_column_of_numbers(texts):
    assert read_numbers(texts) is None


@pytest.mark.parametrize(
    ("texts", "values", "doubt"),
    [
        (["900", "1.562"], [900, 1.562],
         "1.562 is read as 1.562, but every value also fits the other reading, 1562 (--decimal ',')."),
        (["900", "1,562"], [900, 1562],
         "1,562 is read as 1562, but every value also fits the other reading, 1.562 (--decimal ',')."),
        (["900 €", "1.562 €"], [900, 1562],
         "1.562 € is read as 1562, but every value also fits the other reading, 1.562 (--decimal '.')."),
    ],
)  # fmt: skip
def test_numbers_in_doubt_name_the_option(texts, values, doubt):
    found, reading = read_numbers(texts)
    assert (found.tolist(), reading.doubt) == (values, doubt)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"decimal": ","}, 1562),
        ({"decimal": "."}, 1.562),
        ({"thousands": "."}, 1562),
        ({"thousands": ","}, 1.562),
        ({"decimal": ",", "thousands": " "}, None),
    ],
)
def test_options_decide_about_numbers(options, value):
    found = read_numbers(["1.562"], **options)
    assert (found and (found[0].tolist(), found[1].doubt)) == (value and ([value], ""))


@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=1),
    st.sampled_from([(".", ","), (",", "."), (",", " "), (".", "'"), (".", " ")]),
    st.sampled_from(["{}", "{} €", "$ {}", "{} EUR", "{}%"]),
)
def test_formatted_numbers_come_back(hundredths, marks, unit):
    decimal, thousands = marks
    swap = str.maketrans(",.", thousands + decimal)
    texts = [unit.format(f"{number / 100:,.2f}".translate(swap)) for number in hundredths]
    found, reading = read_numbers(texts)
    assert found.tolist() == [number / 100 for number in hundredths]
    assert (reading.decimal, reading.doubt) == (decimal, "")
    assert reading.read([*texts, None, "?"])[:-2].tolist() == found.tolist()
    assert np.isnan(reading.read([None, "?"])).all()


@pytest.mark.parametrize(
    ("texts", "days", "description"),
    [
        (["15.10.2024", "03.04.2024", None], ["2024-10-15", "2024-04-03", "NaT"], "day first; --dayfirst"),
        (["10/15/2024", "4/3/2024"], ["2024-10-15", "2024-04-03"], "month first; --dayfirst"),
        (["15-10-2024"], ["2024-10-15"], "day first; --dayfirst"),
        (["15.10.24", "01.02.70"], ["2024-10-15", "1970-02-01"], "day first; --dayfirst"),
        (["10/15/24"], ["2024-10-15"], "month first; --dayfirst"),
        (["15.10.2024 13:45"], ["2024-10-15T13:45"], "day first; --dayfirst"),
        (["10/15/2024 1:45:10.5 pm", "10/15/2024 12:00 AM"], ["2024-10-15T13:45:10.5", "2024-10-15"],
         "month first; --dayfirst"),
        (["2024/10/15"], ["2024-10-15"], "2024/10/15 read as 2024-10-15"),
        (["15 Oct 2024", "October 3, 2024"], ["2024-10-15", "2024-10-03"], "15 Oct 2024 read as 2024-10-15"),
        (["15-Oct-2024", "5. May 2024"], ["2024-10-15", "2024-05-05"], "15-Oct-2024 read as 2024-10-15"),
        (["31.12.9999", "01.01.0001"], ["9999-12-31", "0001-01-01"], "day first; --dayfirst"),
    ],
)  # fmt: skip
def test_dates_that_can_be_read_in_one_way(texts, days, description):
    found, reading = read_dates(texts)
    assert found.tolist() == np.array(days, dtype="datetime64[us]").tolist()
    assert (reading.description, reading.doubt) == (description, "")


@pytest.mark.parametrize(
    "text",
    ["31.02.2024", "1.2.10", "24-10-15", "15.10/2024", "15.10.024", "1.10.2024 25:00", "13/13/2024", "0/1/2024",
     "3 Foo 2024", "Oct Oct 2024", "1 J 2024", "1.1.2024 13:00 PM", "1.1." * 120_000, "2024", "10115", ""],
)  # fmt: skip
def test_what_is_not_a_date(text):
    assert read_dates([text]) is None


def test_a_column_has_one_order():
    assert read_dates(["15.10.2024", "10.15.2024"]) is None


@pytest.mark.parametrize(
    ("text", "dayfirst", "day", "doubt"),
    [
        ("03.04.2024", None, "2024-04-03",
         "03.04.2024 is read as 2024-04-03, but every value also fits the other reading, 2024-03-04 (--no-dayfirst)."),
        ("03/04/2024", None, "2024-03-04",
         "03/04/2024 is read as 2024-03-04, but every value also fits the other reading, 2024-04-03 (--dayfirst)."),
        ("03.04.2024", False, "2024-03-04", ""),
        ("03/04/2024", True, "2024-04-03", ""),
        ("04.04.2024", None, "2024-04-04", ""),
    ],
)  # fmt: skip
def test_dates_in_doubt_name_the_option_that_decides(text, dayfirst, day, doubt):
    found, reading = read_dates([text], dayfirst)
    assert (str(found[0])[:10], reading.doubt) == (day, doubt)


@given(
    st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2068, 1, 1)), min_size=1),
    st.sampled_from(
        [("%d.%m.%Y", True), ("%m/%d/%Y", False), ("%d-%m-%Y", True), ("%d.%m.%y", True), ("%Y/%m/%d", None),
         ("%d %B %Y", None), ("%b %d, %Y", None)]
    ),
    st.sampled_from(
        [("", timedelta(days=1)), (" %H:%M", timedelta(minutes=1)), (" %I:%M:%S %p", timedelta(seconds=1))]
    ),
)  # fmt: skip
def test_formatted_dates_come_back(moments, written, clock):
    """Whatever the values are, if the order is named; and without, unless the other order fits as well."""
    (form, dayfirst), (time, precision) = written, clock
    moments = [moment - (moment - datetime.min) % precision for moment in moments]
    texts = [moment.strftime(form + time) for moment in moments]
    found, _ = read_dates(texts, dayfirst)
    assert found.tolist() == moments
    found, reading = read_dates(texts)
    assert found.tolist() == moments or reading.doubt
