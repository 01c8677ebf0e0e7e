"""Dates and money as people write them, through the audit: the same rows as with ISO dates and plain numbers."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.datasets import add_label_noise
from neighboragg import Table, audit, correct
from neighboragg._cli.app import app
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import InvalidParameterError
from neighboragg.labels import Columns

N = 300


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.fixture(scope="module")
def plain():
    """Bills of three kinds with wrong labels: their day and amount tell the kind."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, N)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(400 * kind + rng.integers(0, 250, N), "D")
    amount = np.round(np.exp(rng.normal(5 + 1.5 * kind, 0.5)), 2)
    noisy = add_label_noise(np.array(["rent", "travel", "wages"])[kind], rate=0.06, random_state=0)
    return pd.DataFrame({"day": days.strftime("%Y-%m-%d"), "amount": amount, "kind": noisy.y})


def days_as(frame, form):
    return pd.to_datetime(frame["day"]).dt.strftime(form)


def flags(source):
    found = audit(source, "kind")
    return found.rows[found.result.mask].tolist(), found


@pytest.mark.parametrize(
    ("form", "money", "sep", "lines"),
    [
        ("%d.%m.%Y", german, ";", ["1.562,93", "day (day first; --dayfirst)"]),
        ("%m/%d/%Y", "${:,.2f}".format, ",", ["$1,562.93", "day (month first; --dayfirst)"]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_the_same_rows_are_flagged_as_in_the_iso_copy(plain, tmp_path, form, money, sep, lines, kind):
    plain = plain.assign(amount=[1562.93, *plain["amount"][1:]])
    written = plain.assign(day=days_as(plain, form), amount=[money(value) for value in plain["amount"]])
    source = {"csv": tmp_path / "bills.csv", "parquet": tmp_path / "bills.parquet", "frame": written}[kind]
    if kind == "csv":
        written.to_csv(source, sep=sep, index=False)
    elif kind == "parquet":
        written.to_parquet(source)
    expected, _ = flags(plain)
    rows, found = flags(source)
    assert rows == expected
    assert len(rows) > 10
    summary = found.summary()
    assert (
        f"  numbers     amount ({lines[0]} read as 1562.93; --decimal)\n  dates       {lines[1]}\n" in summary
    )
    assert "Note:" not in summary
    shown = found.to_frame()  # as they are written
    assert shown["day"].tolist() == written["day"].iloc[rows].loc[shown["row"]].tolist()


def test_dates_in_doubt_are_noted_and_decided_by_the_option(plain, tmp_path):
    early = pd.to_datetime(plain["day"]).dt.day <= 12
    plain = plain[early.to_numpy()].reset_index(drop=True)
    path = tmp_path / "bills.csv"
    plain.assign(day=days_as(plain, "%d/%m/%Y")).to_csv(path, index=False)
    _, found = flags(path)
    [note] = [note for note in found.notes if "day: " in note]
    assert note.endswith("(--dayfirst).")
    rows, found = flags(Table(path, dayfirst=True))
    assert rows == flags(plain)[0]
    assert not any("day: " in note for note in found.notes)


def test_thousands_that_look_like_fractions(plain, tmp_path):
    """What pandas reads as 1.562 and 900.0 is told, and 1562 if the decimal mark is named."""
    whole = plain.assign(amount=np.ceil(plain["amount"]).astype(int))
    path = tmp_path / "bills.csv"
    whole.assign(amount=[german(value)[:-3] for value in whole["amount"]]).to_csv(path, index=False)
    _, found = flags(path)
    [note] = [note for note in found.notes if "amount: " in note]
    assert note.endswith("(--decimal ',').")
    for option in ({"decimal": ","}, {"thousands": "."}):
        rows, found = flags(Table(path, **option))
        assert rows == flags(whole)[0]
        assert not any("amount: " in note for note in found.notes)


def test_measurements_are_read_as_before(plain, tmp_path):
    """Three digits after every point, or also fewer, are fractions without a word."""
    path = tmp_path / "bills.csv"
    three = [f"{value / 100:.3f}" for value in plain["amount"]]
    few = [f"{value / 100:.3g}" for value in plain["amount"]]
    plain.assign(three=three, few=few).to_csv(path, index=False)
    found = audit(path, "kind")
    assert {role.name: role.reading for role in found.roles} == dict.fromkeys(
        ["day", "amount", "three", "few"]
    )
    assert found.notes == ()


def test_codes_stay_what_they_were(plain):
    rng = np.random.default_rng(1)
    codes = plain.assign(
        zip=rng.choice(["10115", "80331", "50667"], N),
        customer=[f"{i:06d}" for i in rng.permutation(N)],
        version=rng.choice(["1.2.3", "1.2.10", "2.0.1"], N),
        grade=rng.choice(["1+", "2", "3-"], N),
    )
    uses = {role.name: (role.use, role.reading) for role in audit(codes, "kind").roles}
    assert [uses[name] for name in ("zip", "version", "grade")] == [("category", None)] * 3
    assert uses["customer"] == ("ignored", None)


def test_numbers_that_are_identifiers_are_ignored_unless_wanted(plain):
    frame = plain.assign(bill=[f"{i:,}" for i in range(5000, 5000 + N)])
    role = {role.name: role for role in audit(frame, "kind").roles}["bill"]
    assert (role.use, role.reason) == ("ignored", "counted up")
    found = audit(frame, "kind", by=Columns(use=["bill"]))
    assert {role.name: role.use for role in found.roles}["bill"] == "number"
    assert "bill (5,000 read as 5000; --decimal)" in found.summary()


def test_a_column_that_does_not_fit_the_option_is_read_in_its_own_way(plain):
    frame = plain.assign(day=days_as(plain, "%m/%d/%Y"), amount=[f"{value} €" for value in plain["amount"]])
    rows, found = flags(Table(frame, dayfirst=True, decimal=","))
    assert rows == flags(plain)[0]
    assert "day (month first; --dayfirst)" in found.summary()


def test_a_batch_does_not_change_how_values_are_read(plain, tmp_path, monkeypatch):
    """Rows outside the sample, part by part, and the sample itself are read in one way."""
    monkeypatch.setenv("NEIGHBORAGG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("neighboragg.labels._audit.PART_ROWS", 20)
    found = []
    for name, frame in (
        ("iso", plain),
        (
            "written",
            plain.assign(day=days_as(plain, "%d/%m/%Y"), amount=[german(v) for v in plain["amount"]]),
        ),
    ):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        found.append(audit(tmp_path / f"{name}.parquet", "kind", sample=200).result)
    np.testing.assert_allclose(found[0].scores, found[1].scores, atol=1e-9)


def test_the_command_takes_the_options(plain, tmp_path):
    path = tmp_path / "bills.csv"
    plain.assign(day=days_as(plain, "%d/%m/%Y")).to_csv(path, index=False)
    arguments = ["audit", str(path), "--label", "kind", "-o", str(tmp_path / "s.csv")]
    result = CliRunner().invoke(app, [*arguments, "--dayfirst", "--decimal", ".", "--thousands", ","])
    assert result.exit_code == 0, result.output
    assert "day (day first; --dayfirst)" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, "decimal must be '.' or ','. Got ';' instead."),
        ({"thousands": "x"}, "thousands must be ',' or '.' or ' ' or \"'\". Got 'x' instead."),
        ({"dayfirst": "yes"}, "dayfirst must be True or False. Got 'yes' instead."),
        ({"decimal": ".", "thousands": "."}, "decimal and thousands cannot both be '.'."),
    ],
)
def test_options_that_cannot_be(plain, options, message):
    with pytest.raises(InvalidParameterError) as caught:
        audit(Table(plain, **options), "kind")
    assert str(caught.value) == message


def test_a_folder_of_images_has_no_values_to_read(tmp_path):
    with pytest.raises(InvalidParameterError) as caught:
        audit(Table(tmp_path, dayfirst=True))
    assert str(caught.value) == (
        f"The option 'dayfirst' does not apply to {tmp_path}.\nHint: leave it out; it is for tables."
    )


def test_the_corrected_copy_keeps_dates_and_money_as_they_are_written(plain, tmp_path):
    path = tmp_path / "bills.csv"
    written = plain.assign(
        day=days_as(plain, "%d.%m.%Y"), amount=[german(value) for value in plain["amount"]]
    )
    written.to_csv(path, sep=";", index=False)
    found = audit(Table(path, sep=";", dayfirst=True, decimal=","), "kind", flag=3)
    found.write(tmp_path / "s.csv")
    first = found.review_set.flagged[0]
    with DecisionStore(tmp_path / "s.review.decisions.sqlite", found.review_set) as store:
        store.record(first.row, action="relabel", label=first.suggested, reviewer="Ada", based_on=0)
    assert correct(tmp_path / "s.csv", tmp_path / "c.csv").n_changed == 1
    before, after = path.read_text().splitlines(), (tmp_path / "c.csv").read_text().splitlines()
    assert [i - 1 for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [
        first.row
    ]
