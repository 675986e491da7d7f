// Tensors inside of objects: no list of tensors has them, and no check looks at their values.
//
//   dcp.save({"model": {...}}, planner=DefaultSavePlanner(flatten_state_dict=False))     one object, "model"
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check "inside" with the names of objects of a DCP folder that have tensors of floats with several
// items. Objects that cannot be read are not among them: another check reports these.
void note_inside(const Store& store, VerifyReport& report);

}  // namespace mckpt::impl
