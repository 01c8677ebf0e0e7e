"""Networks: embeddings and probabilities of a PyTorch module, and trust in its predictions.

Needs PyTorch: ``pip install "neighboragg[torch]"``.
"""

from neighboragg._core.packages import import_extra as _import_extra
from neighboragg._core.packages import publish as _publish

_import_extra("torch", extra="torch", purpose="neighboragg.torch")

from neighboragg.torch._averages import DeepEnsemble, MCDropout  # noqa: E402
from neighboragg.torch._classifier import TorchClassifier  # noqa: E402
from neighboragg.torch._confid_net import ConfidNet  # noqa: E402
from neighboragg.torch._embed import embed  # noqa: E402

__all__ = ["ConfidNet", "DeepEnsemble", "MCDropout", "TorchClassifier", "embed"]

_publish(globals())
