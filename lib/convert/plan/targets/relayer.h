// Relayering: the layers of a checkpoint under the names that a model of another form has for them. No value
// changes; chunks keep their ranks.
//
//   ungroup         decoder.layers.0.layers.1.mlp.*  -->  decoder.layers.1.mlp.*      [*-]M  -->  *-M
//   group           the way back                                                       *-M    -->  [*-]M
//   hybrid-to-gpt   the i-th * and the i-th - or E   -->  layer i
//   gpt-to-hybrid   the way back
//
// A pattern has one symbol for each layer: * attention, - dense MLP, E experts, M Mamba; brackets make a
// group (docs/formats/layer_patterns.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/layers/layer_migration.h"
#include "core/base/error_code.h"
#include "core/base/int.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

struct Conversion;

enum class LayerWay : u8 { kUngroup, kGroup, kToGpt, kToHybrid };
std::string_view name_of(LayerWay way);  // "ungroup"

// Plain values; every rank plans with the same ones, except `rank`.
struct RelayerOptions {
  LayerWay way = LayerWay::kUngroup;
  std::string source, target;
  // The pattern of the source for ungroup and hybrid-to-gpt, by default the pattern in the source's args; for
  // group and gpt-to-hybrid the pattern of the result.
  std::optional<std::string> pattern{};
  enum class GroupNames : u8 { kAuto, kLogical, kMember } keys = GroupNames::kAuto;
  enum class GptLayers : u8 { kAuto, kStacked, kIndexed } layers = GptLayers::kAuto;
  MigrationOptions how{};
  std::vector<Code> accept{};  // codes of damage that is accepted
  OpenOptions files{};         // how the files of the source are opened
  int rank = 0;                // of this process; rank 0 alone compares the sums of objects that are files
};

// Throws kUnknownFormat, kUsage for options that do not fit the way, kBadPattern, kNotHeld, and what
// migrate_layers() throws for a key that has no place in the result.
Conversion plan_relayer(const RelayerOptions& options);

}  // namespace mckpt::impl
