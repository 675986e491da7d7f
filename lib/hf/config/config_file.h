// The config.json of a result, among the files beside its tensors: a copy of the source's, or a text where an
// entry is another one.
#pragma once

#include <string>

namespace mckpt::impl {

struct SideFiles;

// The text as it will be written; "" if the result has no config.json. Throws what reading the source's
// throws.
std::string config_text(const SideFiles& files);

// Makes this text the config.json of the result. Returns false, and changes nothing, if it was that before.
bool set_config_text(SideFiles& files, std::string text);

}  // namespace mckpt::impl
