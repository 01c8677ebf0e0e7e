"""What is collected: tests and examples of the parts that are installed."""

import os
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

# Some virtual machines show the processor's AMX tiles and do not grant them, on which PyTorch fails or dies.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
