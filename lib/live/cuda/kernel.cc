// Compiles the scatter kernel with NVRTC. For a GPU that is newer than NVRTC, PTX of the newest known
// architecture is made, which the driver translates.
#include "live/cuda/kernel.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "live/cuda/driver.h"

namespace mckpt::impl {
namespace {

// The texts of live/cuda/scatter_batch.h and live/cuda/scatter_kernel.cu, one after the other.
constexpr char kSource[] =
#include "live/scatter_source.inc"
    ;

void check(int result) {
  if (result != 0) throw std::runtime_error(std::string("NVRTC: ") + nvrtc().error_text(result));
}

// Owns a program of NVRTC.
struct Program {
  Program() { check(nvrtc().create(&handle, kSource, "scatter_kernel.cu", 0, nullptr, nullptr)); }
  ~Program() { nvrtc().destroy(&handle); }
  Program(const Program&) = delete;

  std::string log() const {
    std::size_t size = 0;
    if (nvrtc().log_size(handle, &size) != 0 || size == 0) return "";
    std::string text(size, '\0');
    nvrtc().log(handle, text.data());
    return text;
  }

  void* handle = nullptr;
};

// The compute capabilities that this NVRTC can compile for, in ascending order.
std::vector<int> known_capabilities() {
  int count = 0;
  check(nvrtc().known_count(&count));
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtc().known(known.data()));
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
  if (int result = nvrtc().compile(program.handle, std::size(options), options); result != 0)
    throw std::runtime_error(std::string(nvrtc().error_text(result)) + ": " + program.log());
  std::size_t size = 0;
  check(exact ? nvrtc().cubin_size(program.handle, &size) : nvrtc().ptx_size(program.handle, &size));
  std::string code(size, '\0');
  check(exact ? nvrtc().cubin(program.handle, code.data()) : nvrtc().ptx(program.handle, code.data()));
  return code;
}

// The kernels asked for so far, by compute capability.
struct Compiled {
  std::mutex mutex;
  std::map<int, std::shared_future<std::string>> code;
};

Compiled& compiled() {
  static Compiled compiled;
  return compiled;
}

}  // namespace

std::shared_future<std::string> compile_scatter_kernel(int capability) {
  std::lock_guard lock(compiled().mutex);
  std::shared_future<std::string>& code = compiled().code[capability];
  if (!code.valid()) code = std::async(std::launch::async, compile, capability).share();
  return code;
}

bool is_wanted(int capability) {
  std::lock_guard lock(compiled().mutex);
  return compiled().code.contains(capability);
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check(nvrtc().version(&major, &minor));
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace mckpt::impl
