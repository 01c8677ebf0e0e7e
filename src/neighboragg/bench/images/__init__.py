"""The paper's comparison on images: networks trained here, and every trust method on their embeddings.

Needs PyTorch: ``pip install "neighboragg[torch]"``.
"""

from neighboragg._optional import import_extra as _import_extra
from neighboragg._public import publish as _publish

_import_extra("torch", extra="torch", purpose="neighboragg.bench.images")

from neighboragg.bench.images._figure import images_figure  # noqa: E402
from neighboragg.bench.images._networks import ARCHITECTURES, ResNet, SmallCNN  # noqa: E402
from neighboragg.bench.images._pictures import Pictures, load_pictures  # noqa: E402
from neighboragg.bench.images._study import IMAGE_METHODS, TABLE2_SETS, table2  # noqa: E402
from neighboragg.bench.images._training import Training, train_network  # noqa: E402

__all__ = [
    "ARCHITECTURES",
    "IMAGE_METHODS",
    "TABLE2_SETS",
    "Pictures",
    "ResNet",
    "SmallCNN",
    "Training",
    "images_figure",
    "load_pictures",
    "table2",
    "train_network",
]

_publish(globals())
