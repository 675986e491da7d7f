"""Builds modules of the program for the MPI, torch and NCCL of this machine: python -m mckpt.modules mpi torch nccl

MPI and libtorch have no interface that one binary for all of them could use, so a wheel has the sources of these modules instead:
a few files, which need a C++20 compiler ($CXX or c++) and

    mpi      the compiler wrapper of the MPI that starts the ranks ($MPICXX or mpicxx)
    torch    torch 2.6 or newer in this Python
    nccl     a torch for CUDA in this Python, which brings NCCL along

They become mckpt/lib/libmckpt_NAME.so in this package, where the program looks; or they are put into the folder --to, which the
variable MCKPT_MODULE_PATH then has to name. `mckpt env` shows whether they load.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SOURCES = {
    "mpi": ["runtime/comm/mpi_module.cc"],
    "torch": ["live/device/torch_module.cc", "live/device/torch_tensors.cc"],
    "nccl": ["live/cuda/nccl_module.cc"],
}
_FLAGS = "-std=c++20 -O2 -DNDEBUG -fPIC -fvisibility=hidden -shared -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,-z,defs"


class Missing(Exception):
    """Something that a module is built with is not here; the text says what."""


def sources() -> Path:
    """The folder of the sources: in an installed wheel, or in the source tree."""
    for folder in (_PACKAGE / "src", _PACKAGE.parents[2] / "lib"):
        if (folder / _SOURCES["mpi"][0]).is_file():
            return folder
    raise Missing(f"this package has no sources of modules ({_PACKAGE / 'src'}); a wheel has them")


def _compiler(variable: str, usual: str, advice: str) -> str:
    name = os.environ.get(variable) or usual
    found = shutil.which(name)
    if not found:
        raise Missing(f"there is no {name}: {advice}, or set {variable}")
    return found


def _mpi() -> list[str]:
    wrapper = _compiler("MPICXX", "mpicxx", "install the development files of the MPI that starts your ranks (libopenmpi-dev)")
    return [wrapper, "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-D_MPICC_H"]


def _torch_folder() -> Path:
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise Missing(f"{sys.executable} has no torch: run the command with a Python that has torch 2.6 or newer")
    folder = Path(spec.submodule_search_locations[0])
    for part in ("include/ATen/core/Tensor.h", "lib/libtorch_cpu.so", "lib/libc10.so"):
        if not (folder / part).is_file():
            raise Missing(f"the torch in {folder} has no {part}: the wheels of torch have headers and libraries")
    return folder


def _cxx() -> str:
    return _compiler("CXX", "c++", "install a C++20 compiler (g++)")


def _torch() -> list[str]:
    folder = _torch_folder()
    # libc10 itself says which std::string it was compiled for.
    new = re.search(rb"_ZN3c105Error\w*__cxx11", (folder / "lib/libc10.so").read_bytes()) is not None
    includes = [f"-isystem{folder / part}" for part in ("include", "include/torch/csrc/api/include")]
    libraries = [f"-L{folder / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{folder / 'lib'}"]
    return [_cxx(), f"-D_GLIBCXX_USE_CXX11_ABI={int(new)}", *includes, *libraries]


def _cuda_internals(wheels: Path) -> Path:
    """The folder of the headers that cuda_runtime.h includes. From CUDA 13 on they are in a wheel of their own, which torch
    does not need; an installed CUDA has them too."""
    part = "crt/host_config.h"
    homes = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda", "/usr"]
    folders = [*sorted(wheels.glob("*/include")), *(Path(home, "include") for home in homes if home)]
    for folder in folders:
        if (folder / part).is_file():
            return folder
    raise Missing(f"there is no {part}, neither in {wheels} nor in $CUDA_HOME or /usr/local/cuda: pip install nvidia-cuda-crt brings it")


def _nccl() -> list[str]:
    wheels = _torch_folder().parent / "nvidia"
    header = next(wheels.glob("nccl/include/nccl.h"), None)
    library = next(wheels.glob("nccl/lib/libnccl.so.2"), None)
    runtime = next(wheels.glob("*/include/cuda_runtime.h"), None)
    if header is None or library is None or runtime is None:
        raise Missing(f"there is no NCCL with its headers in {wheels}: a torch for CUDA brings it along")
    includes = [f"-isystem{folder}" for folder in (header.parent, runtime.parent, _cuda_internals(wheels))]
    return [_cxx(), *includes, str(library), f"-Wl,-rpath,{library.parent}"]


_COMMANDS = {"mpi": _mpi, "torch": _torch, "nccl": _nccl}


def build(name: str, to: str | os.PathLike[str] | None = None) -> Path:
    """Builds a module, mpi, torch or nccl, and returns its file. Raises Missing if something is not here, and
    subprocess.CalledProcessError if the compiler fails. The file is there as a whole or not at all."""
    source = sources()
    command = _COMMANDS[name]()
    folder = _PACKAGE / "lib" if to is None else Path(to)
    if not os.access(folder, os.W_OK):
        raise Missing(f"nothing can be written to {folder}: name another folder (--to), and set MCKPT_MODULE_PATH to it")
    with tempfile.TemporaryDirectory(prefix=".modules-", dir=folder) as work:
        made = Path(work, f"libmckpt_{name}.so")
        files = [str(source / file) for file in _SOURCES[name]]
        # Libraries come after the files that need them.
        libraries = [word for word in command if word.startswith(("-l", "-L", "-Wl,")) or word.endswith(".so.2")]
        words = [word for word in command if word not in libraries]
        subprocess.run([*words, *_FLAGS.split(), f"-I{source}", *files, "-o", str(made), *libraries, "-ldl"], check=True)
        done = folder / made.name
        os.replace(made, done)
    return done


def main() -> int:
    text, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m mckpt.modules", description=text, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("module", nargs="+", choices=list(_SOURCES))
    parser.add_argument("--to", metavar="FOLDER", help="where to put the modules; the default is this package")
    chosen = parser.parse_args()
    for name in chosen.module:
        try:
            print(f"{name}: {build(name, chosen.to)}")
        except Missing as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            return 3
        except subprocess.CalledProcessError as failed:
            print(f"{name}: the compiler failed with status {failed.returncode}", file=sys.stderr)
            return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
