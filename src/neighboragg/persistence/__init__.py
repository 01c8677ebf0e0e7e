"""Save and load: arrays and JSON in one checksummed file, never a pickle.

The container knows no class of neighboragg: each class gives and takes its own record.
"""

from neighboragg._public import publish as _publish
from neighboragg.persistence._estimators import TRUSTED_TYPES, dump_estimator, load_estimator
from neighboragg.persistence._layout import FORMAT
from neighboragg.persistence._reading import read_record
from neighboragg.persistence._writing import write_record

__all__ = ["FORMAT", "TRUSTED_TYPES", "dump_estimator", "load_estimator", "read_record", "write_record"]

_publish(globals())
