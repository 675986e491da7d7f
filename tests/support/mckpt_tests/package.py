"""Makes `import mckpt` find the Python package of this source tree and the library that was built beside the program.
A test of the package begins with this module, and ends with its run()."""
import os
import sys
import unittest

from mckpt_tests.setting import BUILD, SANITIZED, SOURCE

PACKAGE = os.path.join(SOURCE, "tools", "python")
LIBRARY = os.path.join(BUILD, "libmckpt.so")

# scripts/wheel --test sets it: the package is the one that is installed in this Python.
INSTALLED = bool(os.environ.get("MCKPT_INSTALLED"))

if not INSTALLED and (SANITIZED or not os.path.exists(LIBRARY)):
    print("skipped: " + ("a library with sanitizers cannot be loaded into Python" if SANITIZED else f"there is no {LIBRARY}"))
    sys.exit(77)
if not INSTALLED:
    os.environ["MCKPT_LIBRARY"] = LIBRARY
    sys.path.insert(0, PACKAGE)


def run():
    """Runs the tests of the script. That none was found is a failure."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    sys.exit(not (program.result.wasSuccessful() and program.result.testsRun))
