// The scatter kernel: compiled by NVRTC for the chosen GPU while the context is made, and launched.
#include "live/cuda/kernel.h"

#include <nvrtc.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace mckpt::impl {
namespace {

// live/cuda/scatter_batch.h and live/cuda/scatter_kernel.cu, as text.
constexpr char kSource[] =
#include "live/scatter_source.inc"
    ;

void check(nvrtcResult result) {
  if (result != NVRTC_SUCCESS) throw std::runtime_error(std::string("NVRTC: ") + nvrtcGetErrorString(result));
}

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

std::vector<int> known_capabilities() {
  int count = 0;
  check(nvrtcGetNumSupportedArchs(&count));
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtcGetSupportedArchs(known.data()));
  return known;
}

std::string compile(int capability) {
  std::vector<int> known = known_capabilities();
  bool exact = std::find(known.begin(), known.end(), capability) != known.end();
  if (!exact && (known.empty() || known.back() > capability))
    throw std::runtime_error("NVRTC does not compile for compute capability " + std::to_string(capability));
  std::string target =
      exact ? "-arch=sm_" + std::to_string(capability) : "-arch=compute_" + std::to_string(known.back());
  // A product and a sum are never made one: the host rounds both.
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
