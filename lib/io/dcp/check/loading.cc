// Checks the parts of .metadata that only torch's loader uses. Faults that make torch fail or lose a tensor
// are errors, what it merely ignores is a warning.
#include "io/dcp/check/loading.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "io/dcp/metadata/root.h"
#include "io/dcp/metadata/rows.h"
#include "io/file/folder.h"
#include "io/pickle/render.h"
#include "io/store/findings.h"
#include "io/store/names/dcp_names.h"

namespace mckpt::impl {
namespace {

using ValueKind = PickleValue::Kind;
using Kind = DcpRows::Kind;

// The names of layouts that torch._get_layout knows.
constexpr std::string_view kLayouts[] = {"torch.strided",    "torch.sparse_coo", "torch.sparse_csr",
                                         "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc",
                                         "torch._mkldnn",    "torch.jagged"};

// Whether the value is a call of that function, kept as an object because the interpreter calls nothing.
bool is_call(PickleValue value, std::string_view function) {
  return value.is(ValueKind::kObject) && value.as_object().type->name == function;
}

// Why torch cannot restore the tuple (dtype, layout, requires_grad, memory format, pin_memory), behind which
// torch 2.15 writes the strides of the tensor in memory, or None; "": it can.
std::string fault_of_properties(PickleValue state) {
  if (state.size() != 5 && state.size() != 6)
    return cat("their state has ", state.size(), " values; torch reads 5, and from 2.15 on 6");
  PickleValue strides = state.at(5);
  bool integers = strides.is(ValueKind::kTuple) && std::ranges::all_of(strides.tuple(), &PickleValue::is_int);
  if (!strides.is_none() && !integers) return cat("the strides are ", pickle_line(strides, 60));
  PickleValue layout = state.at(1), format = state.at(3);
  PickleValue name = is_call(layout, "_get_layout") ? layout.as_object().args.at(0) : PickleValue();
  if (name.is(ValueKind::kText) && std::ranges::find(kLayouts, name.text()) == std::end(kLayouts))
    return cat("torch has no layout '", escaped(name.text()), "'");
  bool is_format = is_call(format, "_MEM_FORMAT_ENCODING") || is_call(format, "MEM_FORMAT_ENCODING");
  PickleValue code = is_format ? format.as_object().args.at(0) : PickleValue();
  if (code.is_int() && code.as_int() >= 0 && code.as_int() <= 2) return "";
  return cat("the memory format is ", pickle_line(format, 60));
}

// DcpRows, and the first fault of properties met on the way: once they are rows, only their data type is
// left.
class LoadingRows final : public PickleVisitor {
 public:
  explicit LoadingRows(i64 pickle_bytes) : rows(pickle_bytes) {}
  std::optional<u64> build(const PickleObject& object, PickleValue state) override {
    if (properties_fault.empty() && state.is(ValueKind::kTuple) &&
        DcpRows::kind_of(*object.type) == Kind::kProperties)
      properties_fault = fault_of_properties(state);
    return rows.build(object, state);
  }
  std::optional<u64> build(const PickleClass& type, std::span<const PickleValue> state) override {
    return rows.build(type, state);
  }

  DcpRows rows;
  std::string properties_fault;
};

// Whether the parts of a path, as Python's str() shows them, are the name with dots between: what torch calls
// the value that it finds at the end of the path.
bool leads_to(PickleValue path, std::string_view name) {
  std::string other;
  bool first = true;
  for (PickleValue part : path.tuple()) {
    // A value that is longer than the name is not its part; a few bytes of a pickle can be a very long one.
    if (!part.is(ValueKind::kText)) other = pickle_line(part, name.size() + 1);
    std::string_view text = part.is(ValueKind::kText) ? part.text() : other;
    if (!first && !name.starts_with('.')) return false;
    if (!first) name.remove_prefix(1);
    if (!name.starts_with(text)) return false;
    name.remove_prefix(text.size());
    first = false;
  }
  return !first && name.empty();
}

// Compares the names of the three dicts; used once.
class LoadingCheck {
 public:
  explicit LoadingCheck(LoadingRows& rows) : rows_(rows.rows) {
    if (!rows.properties_fault.empty())
      add("", cat("torch cannot load the properties of a tensor: ", rows.properties_fault));
  }

  std::vector<Finding> run(const PickleObject& metadata) {
    list_names(field(metadata, "state_dict_metadata"));
    check_indexes(field(metadata, "storage_data"));
    if (metadata.field("planner_data") == nullptr)
      add("", "there is no planner_data, so torch does not rebuild the dict that was saved", true);
    check_planner(field(metadata, "planner_data"));
    name_unknown_fields(metadata);
    return findings_.take();
  }

 private:
  enum class Listed : u8 { kNot, kTensor, kObject };

  // The field if it is a dict, None otherwise: other readers report a wrong type.
  static PickleValue field(const PickleObject& metadata, std::string_view name) {
    const PickleValue* value = metadata.field(name);
    return value != nullptr && value->is(ValueKind::kDict) ? *value : PickleValue();
  }
  Listed listed(u32 number) const { return number < listed_.size() ? listed_[number] : Listed::kNot; }
  void add(std::string_view name, std::string message, bool warning = false) {
    findings_.add({.code = Code::kBadMetadata,
                   .tensor = std::string(name),
                   .file = std::string(kDcpMetadata),
                   .message = std::move(message),
                   .warning = warning});
  }

  // Notes for each number of a name whether it is a tensor or an object.
  void list_names(PickleValue tensors) {
    for (auto [key, value] : tensors.entries()) {
      u32 number = rows_.names.add(key);
      listed_.resize(std::max<std::size_t>(listed_.size(), number + 1));
      bool object = value.is(ValueKind::kObject) && DcpRows::kind_of(*value.as_object().type) == Kind::kBytes;
      listed_[number] = object ? Listed::kObject : Listed::kTensor;
    }
  }

  // torch looks chunks up by name and offset, and objects by their name without one.
  void check_indexes(PickleValue storage) {
    for (auto [key, value] : storage.entries()) {
      const DcpRows::Index& index =
          rows_.indexes[DcpRows::row_of(key, Kind::kIndex, "a key of storage_data")];
      if (listed(index.name) == Listed::kTensor && !index.has_offset)
        add(rows_.names[index.name],
            "storage_data has no offset for a chunk, so torch does not find the chunk");
      if (listed(index.name) == Listed::kObject && index.has_offset)
        add(rows_.names[index.name],
            "storage_data has an offset for an object, so torch does not find the object");
    }
  }

  // torch up to 2.15 keeps such fields without a use for them; a later one may give them a meaning.
  void name_unknown_fields(const PickleObject& metadata) {
    std::vector<std::string> names = rows_.unknown_fields();
    for (std::string_view field : unknown_root_fields(metadata)) names.push_back(cat("Metadata.", field));
    if (!names.empty())
      add("", cat("fields that mckpt does not know are left out: ", impl::listed(names)), true);
  }

  // Compares the names of planner_data with those that are listed.
  void check_planner(PickleValue planner) {
    if (planner.size() == 0) return;
    std::vector<bool> planned(listed_.size());
    std::vector<std::string_view> strangers;
    for (auto [key, path] : planner.entries()) {
      if (!key.is(ValueKind::kText)) continue;
      u32 number = rows_.names.add(key);
      if (listed(number) == Listed::kNot) {
        strangers.push_back(key.text());
        continue;
      }
      planned[number] = true;
      if (!leads_to(path, key.text()))
        add(key.text(),
            cat("the path in planner_data leads elsewhere, so torch does not find the tensor or object: ",
                pickle_line(path, 200)));
    }
    // Ranks may have had what nobody stored, and a writer may leave out paths of one part; both at once is a
    // name that changed.
    bool changed = false;
    for (u32 n = 0; n < listed_.size(); n++) {
      if (listed_[n] == Listed::kNot || planned[n]) continue;
      changed = !strangers.empty();
      add(rows_.names[n],
          "planner_data does not name this tensor or object, so torch does not put it back in its place",
          !changed);
    }
    for (std::string_view name : strangers)
      add(name, "planner_data has this name, but .metadata lists no tensor or object of it", !changed);
  }

  DcpRows& rows_;
  std::vector<Listed> listed_;  // by the number of the name
  Findings findings_;
};

}  // namespace

std::vector<Finding> loading_faults(std::span<const u8> bytes) {
  LoadingRows rows(std::ssize(bytes));
  PickleRules rules;
  rules.visitor = &rows;
  Pickle pickle(bytes, rules);
  PickleValue root = pickle.root();
  if (!root.is(ValueKind::kObject)) return {};
  return LoadingCheck(rows).run(root.as_object());
}

std::vector<Finding> check_loading(const Folder& folder) {
  if (!folder.has_file(kDcpMetadata)) return {};
  InputFile file = folder.open_file(kDcpMetadata);
  return with_file(file.path(), [&] { return loading_faults(file.read(0, file.size())); });
}

}  // namespace mckpt::impl
