// Any text as a *.safetensors.index.json: its files stay inside the folder.
#include "core/base/error.h"
#include "io/safetensors/index.h"
#include "tests/fuzz/mutate/mixed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mckpt::impl;
  try {
    SafetensorsIndex index = parse_safetensors_index({reinterpret_cast<const char*>(data), size});
    for (const std::string& file : index.files)
      if (file.starts_with("/") || cat("/", file, "/").find("/../") != std::string::npos) __builtin_trap();
    for (const SafetensorsIndex::Entry& entry : index.weight_map)
      if (entry.file >= index.files.size()) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::json)
