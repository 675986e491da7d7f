// mckpt formats: the data types that mckpt knows, under all their names.
#include "core/dtype.h"
#include "tools/commands.h"
#include "tools/json_writer.h"

namespace mckpt {

Exit formats_command(CommandLine& line) {
  line.example("mckpt formats");
  line.parse();
  Output out(line.flags());
  if (out.json()) {
    JsonWriter json(out);
    json.begin_answer("formats", true).key("dtypes").begin_array();
    for (const DTypeInfo& d : all_dtypes()) {
      json.begin_object().field("name", d.name).field("bits", d.bits).field("in_torch", d.in_torch);
      d.safetensors.empty() ? json.null_field("safetensors") : json.field("safetensors", d.safetensors);
      json.end_object();
    }
    json.end_array();
    json.end_answer();
  } else {
    auto pad = [](std::string_view s, std::size_t n) {
      return cat(s, std::string(s.size() < n ? n - s.size() : 0, ' '));
    };
    out.line(out.styled(Style::kBold, cat(pad("dtype", 20), pad("safetensors", 14), "bits")));
    for (const DTypeInfo& d : all_dtypes())
      out.line(cat(pad(d.name, 20), pad(d.safetensors.empty() ? "-" : d.safetensors, 14), d.bits));
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt
