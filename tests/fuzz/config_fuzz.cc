// Any text as the config.json of a model; a small model gets its map, without tensors and on a few grids.
#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "hf/config/json.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"
#include "tests/fuzz/mutate/mixed.h"

namespace {

using namespace mckpt::impl;

// Large models are in order, but slow: what they show, small ones do.
bool small(const ModelConfig& model) {
  return std::ssize(model.text.layers) * std::max<i64>(model.moe.experts, 1) <= 64;
}

void map(const HfConfig& config) {
  ModelMap map = ModelMap::promised(config.model, *config.family);
  for (i64 tp : {1, 2}) {
    try {
      Grid grid;
      grid.tp = tp;
      map.parameters(grid, Cell{}, RunSetup{});
    } catch (const Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    HfConfig config = read_hf_config({reinterpret_cast<const char*>(data), size});
    if (small(config.model)) map(config);
  } catch (const Error&) {
  }
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::json)
