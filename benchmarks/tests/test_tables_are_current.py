"""The tables in the README and the docs are those that the committed results give."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
def test_tables_are_current():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "tables", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
