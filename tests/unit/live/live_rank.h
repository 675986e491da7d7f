// The common part of the tests of live models: models over the ranks of the job, and values by which every
// item of every parameter is known.
#pragma once

#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "live/device/device.h"
#include "live/model/group.h"
#include "live/model/model.h"
#include "mappings/model/parameter.h"
#include "runtime/comm/comm.h"
#include "tests/support/golden_config.h"
#include "tests/support/job.h"

namespace mckpt::impl {

// A grid of all ranks of the job.
inline Grid over_world(Grid grid) {
  grid.dp = world().size() / (grid.tp * grid.cp);
  return grid;
}

inline bool fits_world(const Grid& grid) {
  i64 ranks = world().size();
  if (ranks % (grid.tp * grid.cp) != 0) return false;
  Grid g = over_world(grid);
  return ranks % (g.ep * g.etp) == 0 && g.dp % g.hsdp == 0 && g.edp() % g.hsdp == 0;
}

inline LiveSetup bf16_setup(const ModelMap& map, const Grid& grid, Strategy strategy) {
  LiveSetup setup;
  setup.grid = grid;
  setup.run = {vocab_rows(map.model(), map.family(), grid.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
  setup.fsdp.strategy = strategy;
  return setup;
}

// The map of a golden model.
inline const ModelMap& map_of(const std::string& model) {
  static std::map<std::string, ModelMap> maps;
  auto at = maps.find(model);
  return at != maps.end() ? at->second : maps.emplace(model, golden_map(model)).first->second;
}

inline LiveSetup setup_of(const std::string& model, Strategy strategy = Strategy::kOptimGradsParams,
                          Grid grid = {}) {
  return bf16_setup(map_of(model), over_world(grid), strategy);
}

inline constexpr Strategy kStrategies[] = {Strategy::kNoShard, Strategy::kOptim, Strategy::kOptimGrads,
                                           Strategy::kOptimGradsParams};

// One rank's model with memory of its own, wrapped as Megatron-FSDP does.
struct LiveRank {
  LiveRank(const ModelMap& map, LiveSetup setup) : model(map, std::move(setup), world(), device, gathered) {}
  HostDevice device;
  HostMemory gathered;
  LiveModel model;
  HostMemory& storage = device.weights();
};

// The bf16 bits of an item, the same on every rank that has it.
inline u16 bits_of(i32 parameter, i64 item, u16 salt = 0) {
  return static_cast<u16>(0x3000 + (item * 31 + parameter * 7 + salt) % 0x1000);
}

// Writes them into the stored weights of a group.
inline void fill(LiveGroup& group, u16 salt = 0) {
  i64 size = dtype_bytes(group.stored_type(), 1);
  for (i64 m = 0; m < std::ssize(group.bucket().members); m++) {
    ItemRange items = group.stored_items_of(m);
    i64 first = group.buffer().parameters[static_cast<std::size_t>(m)].offset - group.stored_items().begin;
    for (i64 i = items.begin; i < items.end; i++) {
      i32 p = static_cast<i32>(group.bucket().members[static_cast<std::size_t>(m)]);
      u32 wide = static_cast<u32>(bits_of(p, i, salt)) << 16;
      const u8* value = reinterpret_cast<const u8*>(&wide) + (size == 2 ? 2 : 0);
      std::memcpy(group.stored().data() + (first + i) * size, value, static_cast<std::size_t>(size));
    }
  }
}

inline void fill(LiveModel& model, u16 salt = 0) {
  model.allocate();
  for (LiveGroup* group : model.groups()) fill(*group, salt);
  model.refresh();
}

// The first item of an unsharded parameter that is not as filled; -1: all are.
inline i64 first_wrong(const LiveModel& model, i32 parameter, u16 salt = 0) {
  Tensor::Facts facts = model.tensor(parameter).facts();
  if (facts.meta) return 0;
  for (i64 i = 0; i < facts.shape.items(); i++) {
    u16 bits;
    std::memcpy(&bits, facts.bytes.data() + 2 * i, 2);
    if (bits != bits_of(parameter, i, salt)) return i;
  }
  return -1;
}

inline i32 parameter_named(const LiveModel& model, std::string_view name) {
  for (i32 p = 0; p < static_cast<i32>(model.parameters().size()); p++)
    if (model.parameters()[static_cast<std::size_t>(p)].name == name) return p;
  throw Error(Code::kNoSuchTensor, "no such parameter").tensor(name);
}

}  // namespace mckpt::impl
