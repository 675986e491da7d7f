// The golden models: their configs, maps, and what ranks of a run hold of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "hf/config/json.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

// The folder of a model: golden/models/ and golden/families/ have different names.
inline std::string golden_folder(const std::string& model) {
  std::string folder = cat(MCKPT_TEST_DATA "/golden/models/", model);
  return std::filesystem::exists(folder) ? folder : cat(MCKPT_TEST_DATA "/golden/families/", model);
}

inline std::string golden_config_text(const std::string& model) {
  std::ifstream in(golden_folder(model) + "/config.json");
  return {std::istreambuf_iterator<char>(in), {}};
}

inline HfConfig golden_config(const std::string& model) { return read_hf_config(golden_config_text(model)); }

inline std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(MCKPT_TEST_DATA "/golden/models"))
    names.push_back(e.path().filename().string());
  return names;
}

// The models of golden/families/ that no table has yet: a line of pending.txt each.
inline std::set<std::string> pending_models() {
  std::ifstream in(MCKPT_TEST_DATA "/golden/families/pending.txt");
  return {std::istream_iterator<std::string>(in), {}};
}

// The other models of golden/families/.
inline std::vector<std::string> family_models() {
  std::vector<std::string> names;
  std::set<std::string> pending = pending_models();
  for (const auto& e : std::filesystem::directory_iterator(MCKPT_TEST_DATA "/golden/families"))
    if (e.is_directory() && !pending.contains(e.path().filename()))
      names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// golden_models() and family_models().
inline std::vector<std::string> all_models() {
  std::vector<std::string> names = golden_models(), more = family_models();
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

inline ModelMap golden_map(const std::string& model) {
  HfConfig c = golden_config(model);
  return ModelMap::promised(c.model, *c.family);
}

// As the golden runs were set up: bf16, and a vocabulary padded where it does not divide.
inline std::vector<ModelParameter> golden_parameters(const ModelMap& map, const Grid& grid, i64 rank,
                                                     const PipelineOptions& pipeline = {}) {
  RunSetup setup{vocab_rows(map.model(), map.family(), grid.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
  Cell cell = cell_of(grid, rank);
  if (!pipeline.first_layers) return map.parameters(grid, cell, setup);
  PipelineSplit split(std::ssize(map.model().text.layers), grid.pp, pipeline);
  return map.parameters(grid, cell, setup, split.part(cell.pp, 0));
}

}  // namespace mckpt::impl
