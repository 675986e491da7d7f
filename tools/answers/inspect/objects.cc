// Prints the objects of a checkpoint as text or JSON.
//
//   args  ...                                             the args first: a summary, and a tree below it
//   iteration  7                                          a small value: one line
//   rng_state  MC1213: ...                                a value that cannot be read: the error
//   optimizer.param_to_group_meta.*  x104, shown with --tree
//   objects of other ranks  x12, shown with --tree      of files of Megatron's ranks
//
// Values are pickles; they are parsed as data and never run.
#include "tools/answers/inspect/objects.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
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
void write_value(Output& out, const Object& object, const Value& v) {
  std::string head = cat("  ", escaped(object.name));
  if (!v.value && v.error.empty() && !object.summary.empty())  // bytes without a meaning of their own
    return out.line(cat(head, "  ", out.styled(Style::kDim, object.summary)));
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

// The word under which objects are counted instead of shown: many objects of one kind, none of which says
// anything about the run that the others do not.
std::string left_out_as(const Store& store, std::string_view name) {
  if (name.starts_with(kPerParameter)) return cat(kPerParameter, "*");
  if (name.find("_extra_state") != name.npos) return "extra states of modules";
  if (!store.driver().ranks_apart) return "";
  std::string_view first = store.objects()[0].name;
  return name.starts_with(first.substr(0, first.find('/') + 1)) ? "" : "objects of other ranks";
}

}  // namespace

void write_object_values(Output& out, const Store& store, bool whole) {
  if (store.objects().empty()) return out.line("no objects besides tensors");
  std::vector<i64> shown;
  std::vector<std::pair<std::string, i64>> left_out;
  for (i64 i = 0; i < std::ssize(store.objects()); i++) {
    const std::string as = whole ? "" : left_out_as(store, store.objects()[i].name);
    auto kind = std::ranges::find(left_out, as, [](const auto& k) { return k.first; });
    if (as.empty())
      shown.push_back(i);
    else if (kind == left_out.end())
      left_out.emplace_back(as, 1);
    else
      kind->second++;
  }
  std::stable_partition(shown.begin(), shown.end(), [&](i64 i) {
    const std::string& name = store.objects()[i].name;
    return holds_args(name) || name.ends_with("/args");
  });
  for (i64 i : shown) write_value(out, store.objects()[i], value_of(store, i));
  for (const auto& [as, count] : left_out) out.line(cat("  ", as, "  x", count, ", shown with --tree"));
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
