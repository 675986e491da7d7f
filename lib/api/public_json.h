// Values of the interface as JSON, for other languages: an object whose keys are the fields of the struct.
// Lists are inside an object, under the name of what they list.
//
//     write_json(to, error.facts());      {"code": "MC1107", "status": 3, "message": ...}
//     write_json(to, ckpt.objects());     {"objects": [{"name": "args", ...}]}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/json/json_writer.h"
#include "mckpt/mckpt.h"

namespace mckpt::impl {

void write_json(std::string& to, const mckpt::ErrorFacts& facts);
void write_json(std::string& to, const mckpt::Checkpoint& checkpoint);  // what it says of itself
void write_json(std::string& to, const std::vector<mckpt::Object>& objects);
void write_json(std::string& to, const std::vector<mckpt::TensorChunk>& chunks);
void write_json(std::string& to, const mckpt::Statistics& statistics);
void write_json(std::string& to, const mckpt::Conversion& conversion,
                const std::optional<mckpt::Account>& account, const std::optional<mckpt::RunReport>& run);
void write_json(std::string& to, const mckpt::Report& report);
void write_json(std::string& to, const mckpt::Diff& diff);
void write_json(std::string& to, const mckpt::Loaded& loaded);

}  // namespace mckpt::impl
