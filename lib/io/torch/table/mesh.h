// The mesh of ranks that a DTensor is distributed over, as a torch file has it.
#pragma once

#include <optional>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct PickleObject;

// A mesh of ranks: a whole grid, or the row of one that has the rank which wrote the file.
struct TorchMesh {
  std::vector<i64> sizes;
  std::vector<i64> ranks;  // row-major; its own alone
  i64 rank = -1;           // that wrote the file, where it says so
};

// Reads a DeviceMesh, of torch 2.0 to 2.15. Throws kBadPickle.
TorchMesh read_torch_mesh(const PickleObject& device_mesh);

// The place of a rank in the mesh, one coordinate for each of its dimensions; nothing if it is not in it.
std::optional<std::vector<i64>> mesh_place(const TorchMesh& mesh, i64 rank);

}  // namespace mckpt::impl
