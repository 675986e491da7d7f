// A Hugging Face folder as the source of a conversion: a model that has weights.
#pragma once

#include <string>

namespace mckpt::impl {

struct HfModel;
struct HfModelOptions;

// Throws what open_hf_model() throws, and kNotFound for a folder with a config alone, which other commands take.
HfModel open_hf_weights(const std::string& path, const HfModelOptions& options);

}  // namespace mckpt::impl
