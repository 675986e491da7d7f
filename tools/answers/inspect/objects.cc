// Prints the objects of a checkpoint as text or JSON.
//
//   iteration  7                                          a small value: one line
//   args  ...                                             a large one: a summary, and a tree below it
//   rng_state  MC1213: ...                                a value that cannot be read: the error
//   optimizer.param_to_group_meta.*  x104, shown with --tree
//
// Values are pickles; they are parsed as data and never run.
#include "tools/answers/inspect/objects.h"

#include "core/base/error.h"
#include "io/dcp/keys/key.h"
#include "io/json/json_writer.h"
#include "io/pickle/render.h"
#include "io/store/store.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// Megatron keeps a dozen settings of each parameter as an object each.
constexpr std::string_view kPerParameter = kGroupMetaSection;
constexpr std::size_t kLineBytes = 100, kJsonBytes = std::size_t{1} << 20;

// A value, or the error of reading it, which is printed in the value's place.
struct Value {
  std::shared_ptr<const PickleValue> value;
  std::string error;
};

Value value_of(const Store& store, i64 index) {
  try {
    return {store.object(index), {}};
  } catch (const Error& e) {
    return {nullptr, cat(code_name(e.code()), ": ", e.message())};
  }
}

// One object: a line if the value fits 100 bytes, else a summary and the value as a tree.
void write_value(Output& out, const std::string& name, const Value& v) {
  std::string head = cat("  ", escaped(name));
  if (!v.value)
    return out.line(
        cat(head, "  ", out.styled(Style::kRed, v.error.empty() ? "no value" : escaped(v.error))));
  std::string line = pickle_line(*v.value, kLineBytes);
  if (line.size() <= kLineBytes && !line.ends_with("...")) return out.line(cat(head, "  ", line));
  out.line(cat(head, "  ", out.styled(Style::kDim, pickle_summary(*v.value))));
  bool first = true;  // the summary of the whole value, which is printed already
  render_pickle(*v.value, {}, [&](std::string_view text) {
    if (!std::exchange(first, false)) out.line(cat("  ", text));
  });
}

}  // namespace

void write_object_values(Output& out, const Store& store, bool whole) {
  if (store.objects().empty()) return out.line("no objects besides tensors");
  i64 left_out = 0;
  for (std::size_t i = 0; i < store.objects().size(); i++) {
    const std::string& name = store.objects()[i].name;
    if (!whole && name.starts_with(kPerParameter)) {
      left_out++;
      continue;
    }
    write_value(out, name, value_of(store, static_cast<i64>(i)));
  }
  if (left_out > 0) out.line(cat("  ", kPerParameter, "*  x", left_out, ", shown with --tree"));
}

void write_objects_json(JsonWriter& json, const Store& store, bool with_values) {
  json.begin_array();
  for (std::size_t i = 0; i < store.objects().size(); i++) {
    const Object& o = store.objects()[i];
    Value v = with_values ? value_of(store, static_cast<i64>(i)) : Value{};
    json.begin_object()
        .field("name", o.name)
        .field("summary", v.value ? pickle_summary(*v.value) : o.summary);
    if (v.value) json.field("value", pickle_line(*v.value, kJsonBytes));
    if (!v.error.empty()) json.field("error", v.error);
    json.end_object();
  }
  json.end_array();
}

}  // namespace mckpt::impl
