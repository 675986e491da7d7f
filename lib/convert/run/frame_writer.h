// The bytes of a result that no task writes: headers, objects, side files, the index or .metadata.
#pragma once

#include <string>

namespace mckpt::impl {

class OutputFiles;
struct Conversion;

// `out`: the files of the conversion in `folder`. pre: all tasks are carried out.
void write_frame(const Conversion& conversion, OutputFiles& out, const std::string& folder, bool durable);

}  // namespace mckpt::impl
