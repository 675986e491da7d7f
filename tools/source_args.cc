#include "tools/source_args.h"

#include "io/dcp_record.h"
#include "io/file.h"
#include "io/torch_zip.h"

namespace mckpt {
namespace {

constexpr std::string_view kArgs = "args", kCommonFile = "common.pt", kCommonItem = "common_state/";
constexpr std::string_view kAlwaysThere = "num_layers";  // in args

bool holds_args(std::string_view object) {
  return object == kArgs || object == kCommonFile || object.starts_with(kCommonItem);
}

}  // namespace

std::string object_pickle(const Store& store, const Object& object) {
  InputFile file(file_path(store, object.file));
  RangeSource record(file, object.record_offset, object.record_bytes);
  TorchZip zip(record, 64);
  for (const ZipEntry& e : zip.archive().entries())
    if (e.name.find("/data/") != e.name.npos)
      throw Error(Code::kUnsupportedTorchFile, "an object holds tensors").tensor(object.name);
  std::vector<u8> bytes = zip.read_pickle();
  return {bytes.begin(), bytes.end()};
}

SourceArgs::SourceArgs(const Store& store) : store_(store) {
  for (std::size_t i = 0; i < store.objects().size() && !value_; i++) {
    const std::string& name = store.objects()[i].name;
    if (!holds_args(name)) continue;
    std::shared_ptr<const PickleValue> holder = store.object(static_cast<i64>(i));
    if (!holder) continue;
    const PickleValue* root = holder.get();
    if (root->is(PickleValue::Kind::kList) && root->size() > 0) root = &*root->items().begin();
    value_ = name == kArgs ? root : root->find(kArgs);
    if (value_) holder_ = std::move(holder);
  }
}

std::optional<std::string> SourceArgs::patched(i64 object, std::span<const ArgChange> changes,
                                               const GlobalFlags& flags) const {
  const Object& o = store_.objects()[static_cast<std::size_t>(object)];
  if (changes.empty() || !holds_args(o.name)) return std::nullopt;
  auto kept = [&](std::string_view name) {
    warn(flags, cat("args: ", name, " keeps its old value; set it in the new run"));
  };
  std::string pickle;
  try {
    pickle = object_pickle(store_, o);
  } catch (const Error&) {
    for (const ArgChange& change : changes) kept(change.name);
    return std::nullopt;
  }
  for (const ArgChange& change : changes)
    if (!put_value(pickle, change.name, change.value, kAlwaysThere)) kept(change.name);
  return pickle;
}

std::string SourceArgs::patched_file(std::span<const ArgChange> changes, const GlobalFlags& flags) const {
  for (std::size_t i = 0; i < store_.objects().size(); i++)
    if (store_.objects()[i].name == kCommonFile)
      if (std::optional<std::string> pickle = patched(static_cast<i64>(i), changes, flags))
        return dcp_object_record(*pickle);
  return "";
}

}  // namespace mckpt
