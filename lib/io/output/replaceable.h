// Whether a result may get its name: what has the name now, and whether that may be replaced.
#pragma once

#include <string>

#include "io/output/staged_folder.h"

namespace mckpt::impl {

// Throws kOutputExists if something has the name that this run may not replace: a file, a link, a mount
// point, a folder without `overwrite`, or with files of the user's own. A folder that a run of the same plan
// published may have it: its last steps are left to do.
void refuse_unless_replaceable(const std::string& path, const StagedFolder::Options& options,
                               const std::string& plan);
// Throws kOutputExists if something is mounted in a folder that is going to be emptied or removed: it may be
// the source.
void refuse_mounts(const std::string& path);

}  // namespace mckpt::impl
