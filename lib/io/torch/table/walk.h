// The walk over a torch file's pickle: which containers lead to tensors, and under which names. Private to
// io/torch. It passes the pickle twice: first it counts the tensors below each container, then it names
// them; a container without tensors becomes one object.
//
//   {"model": {"a.w": T}, "epoch": 3, "args": Namespace(...)}
//        1 tensor below        0            0
//   ->  tensor model.a.w, objects epoch and args
//
// The values that a tensor carries (attached.h) follow it, each as an entry of its own.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/torch/table/sharding.h"

namespace mckpt::impl {

class TorchTable;

// Used once, by TorchTable. Values may be shared or contain themselves, so both passes are bounded.
class TorchWalk {
 public:
  TorchWalk(TorchTable& table, std::shared_ptr<const ShardRows> rows)
      : table_(table), meshes_(std::move(rows)) {}
  void run();

 private:
  // Calls visit(name of the part, its value) for everything inside a container or object.
  template <typename Visit>
  void each_part(PickleValue v, Visit&& visit);

  i64 count_tensors(PickleValue v);
  i64 count_of(PickleValue v) const;
  void descend();
  void check_count(i64 count) const;
  void walk(PickleValue v);
  void walk_parts(PickleValue v);
  void check_tensor_keys(PickleValue v);
  void check_tensor_key(PickleValue key);
  void check_keys(PickleValue dict);
  u64 nesting_of(PickleValue container) const;
  void tensor(PickleValue v);
  void attached(PickleValue v);
  void object(PickleValue v);
  std::string unique_name(NameSet<std::string>& taken);
  std::string joined(bool escape_dots) const;
  i64 dict_bytes(std::string_view name) const;

  TorchTable& table_;
  std::vector<std::string> path_;
  // Tensors below a container; kOnPath while it is being counted. Containers without tensors, and tensors
  // themselves, have no entry if they have one owner, as most have.
  std::unordered_map<const PickleNode*, i64> counts_;
  NameSet<std::string> names_, object_names_;
  TorchMeshes meshes_;
  i64 distinct_tensors_ = 0, name_bytes_ = 0;
  int depth_ = 0;
};

}  // namespace mckpt::impl
