// The folder of a model in a Hugging Face hub cache, models--org--name, stands for one of its snapshots:
//
//   models--org--name/refs/main                   "abc"
//   models--org--name/snapshots/abc/config.json   -> ../../blobs/<hash>
#pragma once

#include <optional>
#include <string>

namespace mckpt::impl {

struct HubSnapshot {
  std::string name;  // "snapshots/abc"
  std::string by;    // what chose it: "refs/main", or "the only snapshot"
};

// Nothing if the path is not such a folder. Throws kUnknownFormat where nothing says which snapshot is meant.
// A link is none: it may lead anywhere, and is followed or refused as every other.
std::optional<HubSnapshot> hub_snapshot(const std::string& path);

}  // namespace mckpt::impl
