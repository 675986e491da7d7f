// Facts that the names in a folder of torch.distributed.checkpoint show. This is the one place that knows
// them.
//
//   .metadata          of the whole save
//   __12.metadata      of rank 12, in a save whose ranks did not gather
//   __12_0.distcp      data of rank 12
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

inline constexpr std::string_view kDcpMetadata = ".metadata", kDcpData = ".distcp";

// Whether a file of this name has data of a save, whatever stands in front: programs may choose that.
inline bool is_dcp_data(std::string_view name) { return name.ends_with(kDcpData); }

// The rank in "__12_0.distcp"; -1 for another name. The name may have folders in front.
i32 rank_of_dcp_data(std::string_view path);
// The rank in "__12.metadata"; -1 for another name.
i32 rank_of_dcp_metadata(std::string_view name);

// Whether the name is one of a save: any of the above. "notes.metadata" is not: only ranks have something in
// front.
bool is_dcp_name(std::string_view name);

}  // namespace mckpt::impl
