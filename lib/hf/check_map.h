// What is left to do on a map file: its questions, and the tensors and parameters of the model that do not
// match yet.
#pragma once

#include <string>

namespace mckpt::impl {

struct HfModel;
struct HfModelOptions;

// Opens the model with the map file of the options. A draft is refused with all that is left, in one error:
// kBadMap for its questions, followed by what does not match where the rows are taken as they are. Throws
// what open_hf_model() throws.
HfModel open_with_draft(const std::string& path, const HfModelOptions& options);

}  // namespace mckpt::impl
