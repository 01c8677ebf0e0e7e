"""Versions and hardware beside every result."""

import json
import platform
from importlib.metadata import PackageNotFoundError

import neighboragg
from benchmarks.runs import machine


def test_machine_tells_versions_and_hardware(monkeypatch, tmp_path):
    about = machine()
    assert about["neighboragg"] == neighboragg.__version__
    assert about["python"] == platform.python_version()
    assert about["scikit-learn"][0].isdigit()
    assert about["cores"] >= 1
    assert about["processor"]
    json.dumps(about)

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("benchmarks.runs._machine.version", absent)
    monkeypatch.setattr("benchmarks.runs._machine.Path", lambda path: tmp_path / "absent")
    about = machine()
    assert about["numpy"] == "unknown"
    assert about["processor"] == platform.machine()
