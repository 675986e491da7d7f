"""Every tensor of an archive in HDF5 is read in any order and again, from one file and from a folder of several; an archive that was
written again since it was opened is refused, as other files are."""
from mckpt_tests.checks import need

need("numpy")
import os
import tempfile
import unittest

from mckpt_tests.package import run  # noqa: I001
from mckpt_tests.setting import BUILD, TINY_MODEL

import mckpt


@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "mckpt-hdf5")), "needs mckpt-hdf5")
class Archives(unittest.TestCase):
    def test_every_tensor_is_read_and_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            for target in ("one.h5", "several"):
                path = os.path.join(folder, target)
                mckpt.convert(TINY_MODEL, path, to="hdf5", progress=False)
                with mckpt.open(TINY_MODEL) as source, mckpt.open(path) as archive:
                    self.assertEqual(sorted(archive), sorted(source))
                    for _ in range(2):
                        for name, tensor in source.items():
                            self.assertEqual(archive[name].tobytes(), tensor.tobytes(), f"{target} {name}")

    def test_an_archive_that_was_written_again_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path, other = os.path.join(folder, "one.h5"), os.path.join(folder, "other.h5")
            for target in (path, other):
                mckpt.convert(TINY_MODEL, target, to="hdf5", progress=False)
            with mckpt.open(path) as archive:
                first, last = sorted(archive)[0], sorted(archive)[-1]
                archive[first].tobytes()
                os.replace(other, path)
                for name in (first, last):
                    with self.assertRaisesRegex(mckpt.Error, "changed while it was read"):
                        archive[name].tobytes()


run()
