"""Networks: embeddings and probabilities of a PyTorch module, and trust in what it predicts.

Needs PyTorch: ``pip install "neighboragg[torch]"``.
"""

from neighboragg._optional import import_extra as _import_extra
from neighboragg._public import publish as _publish

_import_extra("torch", extra="torch", purpose="neighboragg.torch")

from neighboragg.torch._averages import DeepEnsemble, MCDropout  # noqa: E402
from neighboragg.torch._classifier import TorchClassifier  # noqa: E402
from neighboragg.torch._confid_net import ConfidNet  # noqa: E402
from neighboragg.torch._embed import Embedded, embed  # noqa: E402

__all__ = ["ConfidNet", "DeepEnsemble", "Embedded", "MCDropout", "TorchClassifier", "embed"]

_publish(globals())
