// Reads the file with one call.
#include "io/json/json_file.h"

#include "core/base/error.h"
#include "io/file/file.h"

namespace mckpt::impl {

std::string json_text(const InputFile& file, i64 most) {
  if (file.size() > most)
    throw Error(Code::kBadJson, "the JSON file is too large")
        .expected(cat("at most ", most, " bytes"))
        .found(cat(file.size(), " bytes"));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::span(reinterpret_cast<u8*>(text.data()), text.size()));
  return text;
}

}  // namespace mckpt::impl
