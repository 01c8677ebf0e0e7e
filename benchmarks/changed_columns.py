"""Ten ways in which columns change between fit and use: what is converted, what is named, and what a promise is worth.

On adult and bank_marketing, with a pipeline of scaling, one-hot encoding and logistic regression: the risk of the
accepted predictions is promised on calibration rows, and measured on new rows whose columns have been changed.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._record import save
from benchmarks.datasets import load_dataset
from neighboragg import SelectiveClassifier, TrustedClassifier

N_TRAIN, N_CALIBRATION, N_NEW = 10_000, 5_000, 10_000
#: Target risk, the most telling columns of text and of numbers, and a factor between units.
SETS = {
    "adult": (0.08, "marital-status", "age", 12.0),
    "bank_marketing": (0.05, "poutcome", "duration", 1 / 60),
}


def changes(text: str, number: str, factor: float) -> dict[str, Callable[[Any], Any]]:
    """A new frame from an old one, by the name of the change."""
    return {
        "none": lambda X: X,
        "upper case": lambda X: X.assign(**{text: X[text].str.upper()}),
        "a space behind": lambda X: X.assign(**{text: X[text] + " "}),
        "other units": lambda X: X.assign(**{number: X[number] * factor}),
        "all missing": lambda X: X.assign(**{number: np.nan}),
        "new categories": lambda X: X.assign(
            **{text: "code " + X[text].astype("category").cat.codes.astype(str)}
        ),
        "two columns swapped": lambda X: _swapped(X, number),
        "one in ten missing": lambda X: X.assign(**{number: X[number].mask(np.arange(len(X)) % 10 == 0)}),
        "numbers as text": lambda X: X.assign(**{number: X[number].astype(str)}),
        "categories as a type": lambda X: X.assign(**{text: X[text].astype("category")}),
        "whole numbers as fractions": lambda X: X.assign(**{number: X[number].astype("float32")}),
    }


def _swapped(X: Any, number: str) -> Any:
    other = next(name for name in X.select_dtypes("number").columns if name != number)
    return X.assign(**{number: X[other], other: X[number]})


def main() -> None:
    rows = []
    for name, (target, text, number, factor) in SETS.items():
        data = load_dataset(name)
        numbers = [name for name in data.feature_names if name not in data.categorical_names]
        X = pd.DataFrame(data.numeric, columns=numbers).join(
            pd.DataFrame(data.categorical, columns=list(data.categorical_names))
        )
        y = np.asarray(data.y)
        drawn = np.random.default_rng(0).permutation(len(y))
        train, calibration, new = np.split(drawn, np.cumsum([N_TRAIN, N_CALIBRATION, N_NEW]))[:3]
        encoder = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
            (
                OneHotEncoder(handle_unknown="ignore", min_frequency=20),
                make_column_selector(dtype_exclude="number"),
            ),
        )
        model = TrustedClassifier(make_pipeline(encoder, LogisticRegression(max_iter=500)), random_state=0)
        model.fit(X.iloc[train], y[train])
        safe = SelectiveClassifier(model, target_risk=target).calibrate(X.iloc[calibration], y[calibration])
        for change, make in changes(text, number, factor).items():
            changed = make(X.iloc[new])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assessed = safe.assess(changed)
            kept = assessed.accepted
            row = {
                "set": name,
                "change": change,
                "target_risk": target,
                "accepted": float(kept.mean()),
                "risk": float((assessed.predicted != y[new])[kept].mean()),
                "notes": list(assessed.notes),
            }
            rows.append(row)
            print(
                f"{name:15} {change:27} accepted {row['accepted']:.1%} risk {row['risk']:.2%} of {target:.0%}",
                *(f"\n    {note[:150]}" for note in row["notes"]),
                flush=True,
            )
    save("changed_columns", rows, 0)


if __name__ == "__main__":
    main()
