// The finding about a file of another save than the others of its folder, by values that all files of one
// save have alike: the same sentence for the files of any ranks.
//
//   the file is of another save than extra_state_rank_0.pt: lr_scheduler.last_epoch is 5 here and 10 there
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"

namespace mckpt::impl {

// "step is 5 here and 7 there". pre: names and values from files are escaped.
std::string unlike_value(std::string_view name, std::string_view here, std::string_view there);

// A finding of kMixedSaves. `differ`: what unlike_value() says of each; the first eight are named.
Finding other_save(std::string file, std::string_view than, const std::vector<std::string>& differ,
                   std::string help, i64 rank = -1);

}  // namespace mckpt::impl
