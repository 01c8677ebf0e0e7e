"""Save and load: one safetensors file with a digest, never a pickle.

A class takes part by deriving from :class:`Stored`, or :class:`Savable` to have the method `save` too; the walk over
its attributes does the rest.
"""

from neighboragg._public import publish as _publish
from neighboragg.persistence._estimators import dump_estimator, load_estimator
from neighboragg.persistence._file import FORMAT, check_file, read_digest
from neighboragg.persistence._savable import Savable
from neighboragg.persistence._stored import Deferred, Stored, require
from neighboragg.persistence._trusted import TRUSTED_TYPES
from neighboragg.persistence._walk import Given, read_object, write_object

__all__ = [
    "FORMAT",
    "TRUSTED_TYPES",
    "Deferred",
    "Given",
    "Savable",
    "Stored",
    "check_file",
    "dump_estimator",
    "load_estimator",
    "read_digest",
    "read_object",
    "require",
    "write_object",
]

_publish(globals())
