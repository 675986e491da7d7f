// The frame of a result: the bytes that no task writes. These are headers, objects, side files, and the index
// or .metadata.
//
//   DCP folder            objects and chunks of no items, side files, assets, .metadata
//   safetensors folder    headers of the files, assets, index
//   .pt file              the zip records around the tensors, with their checksums
//   files of ranks        side files, and likewise
#pragma once

#include <string>

namespace mckpt::impl {

class OutputFiles;
class WrittenSums;
struct Conversion;

// `out`: the files of the conversion, in `folder`; `sums`: of all ranks. Called by rank 0. pre: all tasks of
// all ranks are carried out. Throws what writing throws.
void write_frame(const Conversion& conversion, OutputFiles& out, const std::string& folder, bool durable,
                 const WrittenSums& sums);

}  // namespace mckpt::impl
