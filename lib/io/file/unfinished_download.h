// The remains of the download of a file that is not there. Programs write into a file of another name, and
// rename it when all of it is there:
//
//   model-00002-of-00002.safetensors.incomplete                                    beside it, also .part and .aria2
//   .cache/huggingface/download/model-00002-of-00002.safetensors.3f2a.incomplete   of `hf download --local-dir`
//   model-00002-of-00002.safetensors -> ../../blobs/3f2a                           in a cache of the hub: a link to a
//   ../../blobs/3f2a.incomplete                                                    blob that is not there
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class Folder;

// "the download did not finish: x.incomplete has 1,000 bytes of it"; "" if nothing is left of one.
std::string unfinished_download(const Folder& folder, std::string_view name);

}  // namespace mckpt::impl
