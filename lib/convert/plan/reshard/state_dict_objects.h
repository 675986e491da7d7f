// The objects of a checkpoint that Megatron-FSDP v2 saves: the groups of its optimizer, as a list. From an
// fsdp_dtensor checkpoint, which has the options of each parameter, they are made:
//
//   optimizer.param_to_group_meta.<param>.lr, .betas, ...      optimizer.param_groups.0.lr, .betas, ...
//   of each parameter; equal ones are a group             -->  optimizer.param_groups.0.params  [<param>, ...]
//   optimizer.param_to_group_meta.<param>.step            -->  optimizer.state.<param>.step, a tensor
//
// A source that has such a list keeps it. For all other objects (args, iteration, schedules, random states)
// v2 has no place.
#pragma once

#include <string>
#include <vector>

#include "convert/dialects/fsdp/fsdp_plan.h"
#include "convert/jobs/carried_record.h"
#include "convert/plan/reshard/objects.h"
#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/base/notes.h"
#include "io/dcp/write/layout.h"

namespace mckpt::impl {

class KeyTable;
class ReshardSource;
struct Grid;
struct Object;

// Chooses and makes the objects; the records of those that are copied follow from the layout that shared() is
// used for. The source outlives the object.
class StateDictObjects {
 public:
  // `states` are those of the result, by key of the table.
  StateDictObjects(const ReshardSource& source, const KeyTable& keys, const Companions& states);

  // Refers to this.
  SharedObjects shared();
  // What becomes of the objects, when shared() has given them their places. Call once.
  ReshardedObjects placed(const Grid& grid);

 private:
  struct Item {
    DcpName name;
    const Object* stored = nullptr;  // copied; null: made of one of the next two
    std::string pickle{};
    std::optional<float> value{};  // of a tensor
  };
  struct Options;  // of one parameter
  struct Group;

  void keep_list();
  void make_list(const KeyTable& keys, const Companions& states);
  NameMap<std::string, Options> options_by_key() const;
  void note_list(std::span<const Group> groups, i64 names);
  void add_step(const std::string& parameter, const Options& options);
  void note_left_out();

  const ReshardSource& source_;
  std::vector<Item> items_;
  std::vector<CarriedRecord> records_;
  i64 left_out_ = 0;
  Notes notes_;
};

}  // namespace mckpt::impl
