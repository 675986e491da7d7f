// Takes every right from the process but those that reading one open file and writing one answer need. A file
// may make HDF5 misbehave; here this can waste its own memory and time, both limited, and nothing else.
#pragma once

namespace mckpt::impl {

// The limits of the process; beyond them, memory is refused and the process is ended (SIGPROF).
struct SandboxLimits {
  long memory_bytes = 0;  // of address space
  long cpu_ms = 0;
};

// From here on the process may read standard input at any place, write to standard output, take anonymous
// memory and end; any other call of the system ends it at once (SIGSYS). It cannot be undone. Returns null,
// or what the system refused: then nothing may be trusted to it.
const char* enter_sandbox(const SandboxLimits& limits);

}  // namespace mckpt::impl
