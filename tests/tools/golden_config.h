// The configs of the golden models.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/text.h"
#include "tools/config_json.h"

namespace mckpt {

inline std::string golden_config_text(const std::string& model) {
  std::ifstream in(cat(MCKPT_TEST_DATA "/golden/models/", model, "/config.json"));
  return {std::istreambuf_iterator<char>(in), {}};
}

inline HfConfig golden_config(const std::string& model) { return read_hf_config(golden_config_text(model)); }

inline std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(MCKPT_TEST_DATA "/golden/models"))
    names.push_back(e.path().filename().string());
  return names;
}

}  // namespace mckpt
