// The models of test_data/own_names/heads.json: small ones of many classes, with the tensors that transformers
// saves of each.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/json/json.h"

namespace mckpt::impl {

using GoldenShapes = std::map<std::string, std::vector<i64>>;

// A model of the file: the text of its config, its class, and its tensors.
struct GoldenHead {
  std::string config, name{};
  GoldenShapes tensors{};

  // The config with another class.
  std::string with_class(std::string_view other) const {
    std::string text = config;
    return text.replace(text.find(name), name.size(), other);
  }
};

inline std::vector<GoldenHead> golden_heads() {
  std::ifstream file(MCKPT_TEST_DATA "/own_names/heads.json");
  std::vector<GoldenHead> out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(" {\"config\": ")) {
      out.push_back({line.substr(12, line.size() - 13)});  // without the comma behind it
      const JsonValue config = parse_json(out.back().config);
      out.back().name = config.find("architectures")->array("")[0].string("");
    } else if (line.starts_with("  \"tensors\": ")) {
      const JsonValue tensors = parse_json(line.substr(13, line.rfind("}}") + 1 - 13));
      for (const JsonMember& t : tensors.object(""))
        for (const JsonValue& size : t.value.array(""))
          out.back().tensors[t.name].push_back(size.integer(""));
    }
  }
  return out;
}

}  // namespace mckpt::impl
