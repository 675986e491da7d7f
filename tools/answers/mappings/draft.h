// The answer of `mckpt mappings draft`: the first map file of a model, and how much of it is left to a
// person.
#pragma once

#include <string>

namespace mckpt::impl {

class Output;
struct GlobalFlags;
struct OpenOptions;

// Writes the map to the file `to`, or with "" to stdout. Throws kUsage for a file that exists, kWriteFailed.
void draft_map_of(Output& out, const GlobalFlags& flags, const std::string& path, const std::string& to,
                  const OpenOptions& opening);

}  // namespace mckpt::impl
