// Reading torch DCP folders: .metadata beside __<rank>_<n>.distcp files, which are torch.save archives end to
// end. Opening (open_dcp(), io/store/store.h) reads .metadata alone; an item's own header is read when
// resolve() asks for it.
#pragma once

#include <optional>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
enum class NamesOf : u8;
class Store;
struct Finding;
struct RunFacts;

// Nothing if the store is not a DCP folder.
std::optional<DcpDialect> dcp_dialect(const Store& store);

// Facts about the run that wrote a DCP folder; nothing if it contains none, or is not a DCP folder.
RunFacts dcp_run_facts(const Store& store);

// What is wrong although every box and byte is in order: names that do not fit together, files of two saves.
// Reads little. Nothing for a store that is not a DCP folder.
std::vector<Finding> dcp_damage(const Store& store, NamesOf names);

}  // namespace mckpt::impl
