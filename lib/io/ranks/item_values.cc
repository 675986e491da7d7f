// Writes a pickle of the document's values, so that objects in JSON are shown as all others are.
#include "io/ranks/item_values.h"

#include <utility>

#include "core/base/error.h"
#include "io/json/json.h"
#include "io/pickle/opcodes.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace {

void write_number(const JsonValue& v, PickleWriter& out) {
  if (!v.is_integer()) return out.real(v.real("a number"));
  try {
    out.integer(v.integer("a number"));
  } catch (const Error&) {
    out.text(v.number("a number"));  // more than 63 bits: as it is written
  }
}

// pre: a JSON parser has bounded the depth.
void write_value(const JsonValue& v, PickleWriter& out) {
  switch (v.type()) {
    case JsonType::kNull:
      return out.op(Op::kNone);
    case JsonType::kBool:
      return out.boolean(v.boolean("a value"));
    case JsonType::kNumber:
      return write_number(v, out);
    case JsonType::kString:
      return out.text(v.string("a text"));
    case JsonType::kArray:
      out.op(Op::kEmptyList);
      for (const JsonValue& item : v.array("a list")) write_value(item, out), out.op(Op::kAppend);
      return;
    case JsonType::kObject:
      out.op(Op::kEmptyDict);
      for (const JsonMember& m : v.object("an object"))
        out.text(m.name), write_value(m.value, out), out.op(Op::kSetitem);
      return;
  }
}

}  // namespace

TorchFile json_as_torch_file(std::string_view json) {
  PickleWriter writer;
  write_value(parse_json(json, JsonNumbers::kPython), writer);
  const std::string pickle = writer.finish();
  return {.table = TorchTable(Pickle::own({pickle.begin(), pickle.end()}), nullptr)};
}

}  // namespace mckpt::impl
