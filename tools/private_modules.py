"""An import contract: a private module is imported only from within the package that holds it."""

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output

__all__ = ["PrivateModulesContract"]


class PrivateModulesContract(Contract):
    """Every ``package._module`` is imported by modules of ``package`` alone; the top package is open to all."""

    type_name = "private_modules"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Collect the imports that enter a package past its ``__init__``."""
        entered = [
            f"{importer} -> {module}"
            for module in sorted(graph.modules)
            if (package := holder_of(module))
            for importer in sorted(graph.find_modules_that_directly_import(module))
            if not f"{importer}.".startswith(f"{package}.")
        ]
        return ContractCheck(kept=not entered, metadata={"entered": entered})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each import, and the remedy."""
        for line in check.metadata["entered"]:
            output.print_error(line)
        output.print_error("Hint: export what is needed in the package's __init__, and import it from there.")


def holder_of(module: str) -> str | None:
    """The package whose private module this is or lies in; None if it is public or of the top package."""
    parts = module.split(".")
    for depth in range(2, len(parts)):
        if parts[depth].startswith("_"):
            return ".".join(parts[:depth])
    return None
