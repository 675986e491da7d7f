// Which errors are about one of several paths, and how they are reported.
#include "tools/run/each_path.h"

#include "io/json/json_writer.h"
#include "tools/render/json_error.h"
#include "tools/render/output.h"

namespace mckpt::impl {

bool EachPath::is_of_one_path(const Error& e) const {
  Exit exit = code_info(e.code()).exit;
  return several_ && (exit == Exit::kInput || exit == Exit::kNo);
}

void EachPath::report(const Error& e) {
  print_error(flags_, e);
  ended(code_info(e.code()).exit);
}

void write_path_error(JsonWriter& json, const Error& error) {
  json.key("error").begin_object();
  write_error_fields(json, error);
  json.end_object();
}

}  // namespace mckpt::impl
