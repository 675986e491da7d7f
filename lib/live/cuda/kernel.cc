// Compiles the scatter kernel with NVRTC. For a GPU that is newer than NVRTC, PTX of the newest known
// architecture is made, which the driver translates.
#include "live/cuda/kernel.h"

#include <nvrtc.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace mckpt::impl {
namespace {

// The texts of live/cuda/scatter_batch.h and live/cuda/scatter_kernel.cu, one after the other.
constexpr char kSource[] =
#include "live/scatter_source.inc"
    ;

void check(nvrtcResult result) {
  if (result != NVRTC_SUCCESS) throw std::runtime_error(std::string("NVRTC: ") + nvrtcGetErrorString(result));
}

// Owns a program of NVRTC.
struct Program {
  Program() { check(nvrtcCreateProgram(&handle, kSource, "scatter_kernel.cu", 0, nullptr, nullptr)); }
  ~Program() { nvrtcDestroyProgram(&handle); }
  Program(const Program&) = delete;

  std::string log() const {
    std::size_t size = 0;
    if (nvrtcGetProgramLogSize(handle, &size) != NVRTC_SUCCESS || size == 0) return "";
    std::string text(size, '\0');
    nvrtcGetProgramLog(handle, text.data());
    return text;
  }

  nvrtcProgram handle = nullptr;
};

// The compute capabilities that this NVRTC can compile for, in ascending order.
std::vector<int> known_capabilities() {
  int count = 0;
  check(nvrtcGetNumSupportedArchs(&count));
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtcGetSupportedArchs(known.data()));
  return known;
}

// Machine code if NVRTC knows the GPU exactly; PTX for a GPU that is newer than all it knows. Throws for an
// older one that NVRTC has dropped.
std::string compile(int capability) {
  std::vector<int> known = known_capabilities();
  bool exact = std::find(known.begin(), known.end(), capability) != known.end();
  if (!exact && (known.empty() || known.back() > capability))
    throw std::runtime_error("NVRTC does not compile for compute capability " + std::to_string(capability));
  std::string target =
      exact ? "-arch=sm_" + std::to_string(capability) : "-arch=compute_" + std::to_string(known.back());
  // No fused multiply-add: the host rounds the product and the sum, and results must have the same bits.
  const char* options[] = {target.c_str(), "-std=c++17", "-fmad=false"};
  Program program;
  if (nvrtcResult result = nvrtcCompileProgram(program.handle, std::size(options), options);
      result != NVRTC_SUCCESS)
    throw std::runtime_error(std::string(nvrtcGetErrorString(result)) + ": " + program.log());
  std::size_t size = 0;
  check(exact ? nvrtcGetCUBINSize(program.handle, &size) : nvrtcGetPTXSize(program.handle, &size));
  std::string code(size, '\0');
  check(exact ? nvrtcGetCUBIN(program.handle, code.data()) : nvrtcGetPTX(program.handle, code.data()));
  return code;
}

}  // namespace

std::shared_future<std::string> compile_scatter_kernel(int capability) {
  return std::async(std::launch::async, compile, capability).share();
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor));
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace mckpt::impl
