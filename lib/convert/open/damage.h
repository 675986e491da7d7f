// Which damage of a checkpoint is refused before the checkpoint is converted, and which damage a user may
// accept.
//
//   findings of the reader, names that do not fit together
//       warning                                 an oddity: reported, and the conversion continues
//       error of a code in `accepted`           an oddity, because the user said so
//       any other error                         DamagedCheckpoint is thrown
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"

namespace mckpt::impl {

enum class CheckedPart : u8;
class Store;
struct Finding;

// The codes of damage that leaves the rest of a checkpoint convertible: MC1311, MC1312, MC1313, MC1315,
// MC1317 and MC2017.
std::span<const Code> acceptable_damage();
// The codes that a user may accept: those, and MC2015 for a config.json that contradicts the args of the run.
std::span<const Code> acceptable_codes();

// Throws kShardAlone for the file of one of several ranks: it has holes where other ranks have their pieces,
// and its tensors are not whole. `doing`: "compared".
void refuse_lone_shards(const Store& store, std::string_view doing);

// Everything that is wrong or odd about a store: the findings of its reader and, of a DCP folder, names that
// do not fit together in the parts that are read. Problems of the accepted codes become oddities. Returns the
// oddities; throws DamagedCheckpoint for the first problem. `except`: findings that are left out, because
// they are reported elsewhere. pre: the accepted codes are acceptable.
std::vector<Finding> refuse_damage(const Store& store, CheckedPart parts, std::span<const Code> accepted,
                                   bool (*except)(const Finding&) = nullptr);

}  // namespace mckpt::impl
