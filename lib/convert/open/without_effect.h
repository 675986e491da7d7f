// Settings that say how Megatron's names are read, or how a model's table is: they cannot have an effect
// where neither is read, and are refused there, so that nobody takes them for followed.
//
//   source_tp, source_etp, path_tp, path_etp     where no side has the names of Megatron
//   map_file, expert_layout                      where no table of a family is looked at
#pragma once

#include <string_view>
#include <vector>

namespace mckpt::impl {

struct CheckpointOptions;
class Store;

struct GivenSetting {
  std::string_view name;  // the caller's
  bool of_ranks = false;  // false: of the table
};
// The settings of this kind that were given.
std::vector<GivenSetting> given_settings(const CheckpointOptions& how);

// Throws kUsage with the first of them. `table_is_read`: settings of the table have an effect. `whose`: "the
// source has", or "both sides have".
void refuse_without_effect(const std::vector<GivenSetting>& given, const Store& store, std::string_view whose,
                           bool table_is_read);

}  // namespace mckpt::impl
