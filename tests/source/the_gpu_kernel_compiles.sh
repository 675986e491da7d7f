#!/usr/bin/env bash
# NVRTC takes the kernel for the GPUs that are supported. It needs no GPU, but its library, which torch's packages bring.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$(scripts/find-python | sed -n 's/^python //p')
exec "$python" - <<'EOF'
import ctypes
import glob
import sys

found = [f for path in sys.path for f in glob.glob(f"{path}/nvidia/cu*/lib/libnvrtc.so.*")]
if not found:
    print("skipped: no NVRTC")
    sys.exit(77)
nvrtc = ctypes.CDLL(found[0])
source = b"".join(open(f"lib/live/cuda/{name}", "rb").read().replace(b"#pragma once", b"") for name in ("scatter_batch.h", "scatter_kernel.cu"))
program, size, failed = ctypes.c_void_p(), ctypes.c_size_t(), []
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"scatter_kernel.cu", 0, None, None) == 0
for target in (b"sm_80", b"sm_90"):
    options = (ctypes.c_char_p * 3)(b"-arch=" + target, b"-std=c++17", b"-fmad=false")
    if nvrtc.nvrtcCompileProgram(program, 3, options) != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        failed.append(f"{target.decode()}:\n{log.value.decode()}")
print("\n".join(failed) or "compiles")
sys.exit(bool(failed))
EOF
