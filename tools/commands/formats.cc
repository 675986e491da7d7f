// mckpt formats: the file formats and the data types that mckpt knows.
//
//   format              read  written  recognised by
//   safetensors         yes   yes      a length of 8 bytes and a JSON header
//   torch.save legacy   yes   no       torch's number in a pickle, before torch 1.6
//   GGUF                no    no       its first 4 bytes
//
// Formats and data types come from the tables of the library.
#include <vector>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/store/driver.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// The rows that people are shown. Formats that are not read are named when they are met.
std::vector<const Driver*> shown() {
  std::vector<const Driver*> out;
  for (const Driver& d : all_drivers())
    if (!d.recognised_by.empty()) out.push_back(&d);
  return out;
}

void write_json(Output& out) {
  AnswerJson json(out);
  json.begin_answer("formats", true).key("formats").begin_array();
  for (const Driver* f : shown())
    json.begin_object()
        .field("name", f->name)
        .field("recognised_by", f->recognised_by)
        .field("reads", f->reads)
        .field("writes", f->writes)
        .end_object();
  json.end_array().key("dtypes").begin_array();
  for (const DTypeInfo& d : all_dtypes()) {
    json.begin_object().field("name", d.name).field("bits", d.bits).field("in_torch", d.in_torch);
    d.safetensors.empty() ? json.null_field("safetensors") : json.field("safetensors", d.safetensors);
    json.end_object();
  }
  json.end_array();
  json.end_answer();
}

// Two tables: formats, then data types with their names in torch and in safetensors.
void write_text(Output& out) {
  using enum Align;
  TextTable formats({{"format", kLeft}, {"read", kLeft}, {"written", kLeft}, {"recognised by", kLeft, true}});
  auto yes_or_no = [](bool v) { return std::string(v ? "yes" : "no"); };
  for (const Driver* f : shown())
    formats.row(
        {std::string(f->name), yes_or_no(f->reads), yes_or_no(f->writes), std::string(f->recognised_by)});
  formats.write(out);
  out.line("");
  TextTable dtypes({{"dtype", kLeft}, {"safetensors", kLeft}, {"bits", kRight}});
  for (const DTypeInfo& d : all_dtypes())
    dtypes.row({std::string(d.name), d.safetensors.empty() ? "-" : std::string(d.safetensors), cat(d.bits)});
  dtypes.write(out);
}

}  // namespace

Exit formats_command(CommandLine& line) {
  line.example("mckpt formats");
  line.example("mckpt formats --json");
  line.example("mckpt formats | grep torch");
  line.parse();
  Output out(line.flags());
  out.json() ? write_json(out) : write_text(out);
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
