// One name in a given spelling, and what a spelling says of a model (core/hybrid/spellings.h has the table).
//
//   spelled_rest("mixer.conv1d_weight", kMamba, submodule-conv)     "mixer.conv1d.weight"
//   spelled_rest("mixer.conv1d.weight", kMamba, usual)              "mixer.conv1d_weight"
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class LayerKind : u8;
struct Spelling;

// The word of spelling_of() for usual names, which is given alone: for a checkpoint that would keep its own.
inline constexpr std::string_view kUsualWord = "usual";

// The name behind a layer of that kind in this spelling, whichever spelling `rest` has. A name that no row of
// the table has stays.
std::string spelled_rest(std::string_view rest, LayerKind kind, const Spelling& spelling);

// Whether any norm has the name of a module of its own.
bool has_unfused_norms(const Spelling& spelling);

}  // namespace mckpt::impl
