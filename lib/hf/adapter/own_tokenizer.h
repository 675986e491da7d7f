// Training programs save the tokenizer beside an adapter. The merged model has the tokenizer of the base.
#pragma once

#include <string>

namespace mckpt::impl {

class Folder;

// Files of a tokenizer in the adapter's folder that the base has not, or has otherwise: a note for who
// converts the two; "" if there are none, or the base is a single file.
std::string own_tokenizer(const Folder& adapter, const std::string& base);

}  // namespace mckpt::impl
