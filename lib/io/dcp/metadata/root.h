// The fields of the object in .metadata, torch's Metadata. Other programs add some (Megatron-Core 0.19 the
// plans of all ranks), and so may a later torch: what is in a field that is not listed here is never read.
// Private to io/dcp.
//
//   Metadata {state_dict_metadata, planner_data, storage_data, storage_meta, version, all_local_plans, new_field}
//             \_______________ read _______________________________________/  not needed     unknown
#pragma once

#include <set>
#include <string_view>
#include <vector>

namespace mckpt::impl {

struct PickleClass;
struct PickleObject;

// The names of the fields that nobody here knows.
std::vector<std::string_view> unknown_root_fields(const PickleObject& metadata);

// The classes of all objects in these fields. Records that DcpRows took are not objects any more, so their
// classes are not among them.
std::set<const PickleClass*> classes_of_unknown_fields(const PickleObject& metadata);

}  // namespace mckpt::impl
