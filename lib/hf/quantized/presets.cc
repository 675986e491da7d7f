// The table of names. A rule makes the names of integers in groups of 128, as W4A16: the bits of weights and
// the bits of activations, which are not fewer.
#include "hf/quantized/presets.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr i64 kGroupOfIntegers = 128;

QuantConfig::Weights floats(i64 bits, const char* strategy, i64 group = 0, i64 block = 0) {
  return {bits, group, strategy, block, block, "float", "", true};
}

QuantConfig::Weights integers(i64 bits, bool symmetric = true) {
  return {bits, kGroupOfIntegers, "group", 0, 0, "int", "", symmetric};
}

QuantConfig::Weights rows_of_bytes() { return {8, 0, "channel", 0, 0, "int", "", true}; }

using Alternatives = std::vector<QuantConfig::Weights>;

std::optional<Alternatives> integers_named(std::string_view name) {
  if (name.size() < 4 || name[0] != 'W' || name[1] < '2' || name[1] > '8' || name[2] != 'A')
    return std::nullopt;
  const std::string_view activations = name.substr(3);
  const i64 bits = name[1] - '0', most = activations == "4" ? 4 : activations == "8" ? 8 : 16;
  if (bits > most || (most == 16 && activations != "16")) return std::nullopt;
  if (name == "W8A8") return Alternatives{rows_of_bytes()};
  if (name == "W8A16") return Alternatives{integers(8), rows_of_bytes()};  // since 0.16, and before
  return Alternatives{integers(bits)};
}

}  // namespace

std::optional<std::vector<QuantConfig::Weights>> preset_weights(std::string_view written) {
  std::string name;
  for (char c : written) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  struct Preset {
    std::string_view name;
    QuantConfig::Weights weights;
  };
  const Preset presets[] = {{"W4A16_ASYM", integers(4, false)},
                            {"INT8", rows_of_bytes()},
                            {"W4AFP8", integers(4)},
                            {"FP8", floats(8, "tensor")},
                            {"FP8_DYNAMIC", floats(8, "channel")},
                            {"FP8_BLOCK", floats(8, "block", 0, 128)},
                            {"NVFP4A16", floats(4, "tensor_group", 16)},
                            {"NVFP4", floats(4, "tensor_group", 16)},
                            {"MXFP4A16", floats(4, "group", 32)},
                            {"MXFP4", floats(4, "group", 32)},
                            {"MXFP4XFP8", floats(4, "group", 32)},
                            {"MXFP6A16", floats(6, "group", 32)},
                            {"MXFP6A8", floats(6, "group", 32)},
                            {"MXFP8A16", floats(8, "group", 32)},
                            {"MXFP8", floats(8, "group", 32)}};
  if (name == "UNQUANTIZED") return Alternatives();
  const Preset* found = std::ranges::find(presets, std::string_view(name), &Preset::name);
  if (found != std::end(presets)) return Alternatives{found->weights};
  return integers_named(name);
}

}  // namespace mckpt::impl
