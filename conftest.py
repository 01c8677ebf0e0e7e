"""What is collected: tests and examples of the parts that are installed."""

from importlib.util import find_spec

collect_ignore_glob = (
    []
    if find_spec("torch")
    else [
        "tests/torch_networks*",
        "src/neighboragg/torch*",
        "src/neighboragg/bench/images*",
    ]
)
