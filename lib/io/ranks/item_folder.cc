// Torch files are joined like files of any ranks; tables of safetensors files are made of their headers and
// of metadata.pkl.
#include "io/ranks/item_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/ranks/item_metadata.h"
#include "io/ranks/item_values.h"
#include "io/ranks/rank_folder.h"
#include "io/safetensors/config_facts.h"
#include "io/safetensors/table.h"
#include "io/store/names/torch_names.h"
#include "io/store/open/format_ids.h"
#include "io/store/open/item_folder.h"
#include "io/torch/files.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTorch = "TorchSerialization", kSafetensors = "SafetensorsSerialization",
                           kJson = "JsonSerialization", kRaw = "RawSerialization";

// The ending of an item's file for which the layout says nothing.
constexpr std::string_view kUsualEnding = ".pt";

// "model_3.EXT" -> model, 3; nothing for other names.
std::optional<RankName> by_number(std::string_view file) {
  const std::string_view stem = file.substr(0, file.rfind('.'));
  const std::size_t at = stem.rfind('_');
  if (at == stem.npos || at == 0) return std::nullopt;
  const std::string_view digits = stem.substr(at + 1);
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != digits.npos)
    return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  return RankName{std::string(stem.substr(0, at)), -1, std::stoll(std::string(digits))};
}

// The same of files of torch.save.
std::optional<RankName> by_end(std::string_view file) {
  return has_torch_suffix(file) ? by_number(file) : std::nullopt;
}

TorchStorage storage_of(DType dtype, i64 bytes) {
  return {.key = "", .dtype = dtype, .bytes = bytes, .view_begin_bytes = 0, .view_bytes = bytes};
}

// A tensor of a safetensors file, whole.
TorchTensor whole_tensor(const SafetensorsTable& table, i64 t) {
  TorchTensor out;
  out.dtype = table.dtype(t);
  out.storage = storage_of(out.dtype, table.bytes(t));
  out.shape = Shape(table.dims(t));
  out.strides.assign(static_cast<std::size_t>(out.shape.rank()), 1);
  for (int d = out.shape.rank() - 2; d >= 0; d--) out.strides[d] = out.strides[d + 1] * out.shape[d + 1];
  return out;
}

// Adds the boxes that the rank has of a tensor. Throws kBadShape for one that is not in the local tensor.
void add_boxes(TorchTable& out, std::string_view name, const TorchTensor& local, const ItemSharding& s,
               i64 at) {
  try {
    for (const TorchBox& box : s.boxes) out.add_placed(name, tensor_of_box(local, s.layout, box), at);
  } catch (Error& e) {
    e.default_tensor(name);
    throw;
  }
}

class Items {
 public:
  Items(const Folder& folder, ItemMetadata metadata) : folder_(folder), metadata_(std::move(metadata)) {}

  std::unique_ptr<Store> open() {
    add_unnamed();
    auto store = std::make_unique<TorchStore>(folder_.path(), Format::kTorchRanks, folder_.opening());
    std::vector<std::string> torch;
    for (const ItemFile& f : metadata_.files) {
      names_.emplace(f.path, RankName{f.item, metadata_.ranks, f.rank});
      if (f.format == kTorch && folder_.has_file(f.path)) torch.push_back(f.path);
    }
    std::vector<OpenedTorchFile> files = open_torch_files(folder_, std::move(torch));
    for (const ItemFile& f : metadata_.files)
      if (f.format == kSafetensors && folder_.has_file(f.path)) files.push_back(open_safetensors(f));
    for (const OpenedTorchFile& o : files)
      if (o.problem) store->add_finding(*o.problem);
    note_missing(*store);
    add_values(*store);
    add_config_facts(folder_, *store, [&](Finding f) { store->add_finding(std::move(f)); });
    store->add_fact("saved by", cat("torch_checkpointing, metadata ", metadata_.version));
    add_rank_files(*store, folder_, files,
                   {[this](std::string_view path) { return names_.at(std::string(path)); },
                    [this](const RankName& n) { return path_of(n); }});
    return store;
  }

 private:
  // Items that are never resharded are not in the metadata: their files have the usual names.
  void add_unnamed() {
    std::set<std::string> items;
    for (const ItemFile& f : metadata_.files) items.insert(f.item);
    for (const FolderEntry& e : folder_.entries()) {
      if (e.folder || !e.name.ends_with(kUsualEnding)) continue;
      std::optional<RankName> name = by_number(e.name);
      if (name && name->rank < metadata_.ranks && !items.contains(name->group))
        metadata_.files.push_back({name->group, e.name, std::string(kTorch), name->rank});
    }
    add_unnamed_values(items);
  }

  // Adds the files that are not torch files: JSON by its name, bytes where every rank has a file. Whether a
  // safetensors file has whole tensors nothing says, so it stays beside.
  void add_unnamed_values(const std::set<std::string>& items) {
    std::map<std::pair<std::string, std::string>, std::set<i64>> ranks;  // by item and ending
    for (const FolderEntry& e : folder_.entries()) {
      const std::size_t dot = e.name.rfind('.');
      if (e.folder || dot == std::string::npos || e.name.ends_with(kUsualEnding) ||
          e.name.ends_with(".safetensors"))
        continue;
      std::optional<RankName> name = by_number(e.name);
      if (name && name->rank < metadata_.ranks && !items.contains(name->group))
        ranks[{name->group, e.name.substr(dot)}].insert(name->rank);
    }
    for (const auto& [of, there] : ranks) {
      const bool json = of.second == ".json";
      if (!json && std::ssize(there) < metadata_.ranks) continue;
      for (i64 r = 0; r < metadata_.ranks; r++)
        metadata_.files.push_back(
            {of.first, cat(of.first, "_", r, of.second), std::string(json ? kJson : kRaw), r});
    }
  }

  std::string path_of(const RankName& n) const {
    for (const ItemFile& f : metadata_.files)
      if (f.item == n.group && f.rank == n.rank) return f.path;
    return cat(n.group, "_", n.rank, ".pt");
  }

  // Items without tensors: objects of each rank.
  void add_values(TorchStore& store) const {
    for (const ItemFile& f : metadata_.files) {
      if (f.format == kTorch || f.format == kSafetensors) continue;
      if (!folder_.has_file(f.path)) {
        store.add_finding(
            {.code = Code::kShardMissing,
             .file = f.path,
             .message = cat("the file of rank ", f.rank, " of ", escaped(f.item), " is missing"),
             .help = cat("copy it into ", folder_.path())});
        continue;
      }
      const InputFile file = folder_.open_file(f.path);
      const std::string name = cat(f.item, ":rank_", f.rank);
      if (f.format != kJson) {
        store.add_bytes(f.path, file.size(), name, static_cast<i32>(f.rank),
                        f.format == kRaw ? "" : cat(", ", escaped(f.format)));
        if (f.format != kRaw) store.add_finding(unread(f));
        continue;
      }
      try {
        store.add_file(f.path, file.size(), json_as_torch_file(json_text(file)), cat(name, ":"),
                       static_cast<i32>(f.rank));
      } catch (const Error& e) {
        if (e.code() == Code::kInterrupted) throw;
        Finding wrong = to_finding(e);
        wrong.file = f.path;
        store.add_finding(std::move(wrong));
      }
    }
  }

  // A file of a format that is not known, whose bytes alone are read. A problem where it has tensors.
  Finding unread(const ItemFile& f) const {
    const auto tensors = metadata_.tensors.lower_bound({f.item, ""});
    const bool has_tensors = tensors != metadata_.tensors.end() && tensors->first.first == f.item;
    return {.code = Code::kUnsupportedTorchFile,
            .file = f.path,
            .message = cat("the file is of the format ", escaped(f.format),
                           " of torch_checkpointing, which is not read"),
            .warning = !has_tensors};
  }

  // Where an item has no file at all, no group of files says that one is missing.
  void note_missing(TorchStore& store) const {
    std::map<std::string, bool> is_there;
    for (const ItemFile& f : metadata_.files) is_there[f.item] |= folder_.has_file(f.path);
    for (const auto& [item, there] : is_there)
      if (!there)
        store.add_finding({.code = Code::kShardMissing,
                           .message = cat("the files of ", escaped(item), " are missing; the first is ",
                                          escaped(path_of({item, metadata_.ranks, 0}))),
                           .help = cat("copy them into ", folder_.path())});
  }

  OpenedTorchFile open_safetensors(const ItemFile& f) const {
    OpenedTorchFile out;
    out.path = f.path;
    try {
      InputFile file = folder_.open_file(f.path);
      out.bytes = file.size();
      out.file.emplace(with_file(f.path, [&] { return read_safetensors(file, f); }));
    } catch (const Error& e) {
      out.problem = to_finding(e);
      out.problem->file = f.path;
    }
    return out;
  }

  TorchFile read_safetensors(const InputFile& file, const ItemFile& f) const {
    const SafetensorsTable header(file);
    TorchFile out{.table = TorchTable()};
    out.findings = header.findings();
    for (i64 t = 0; t < header.size(); t++) {
      const std::string name(header.name(t));
      TorchTensor tensor = whole_tensor(header, t);
      const ItemSharding* sharding = metadata_.of(f.item, name, f.rank);
      if (sharding && sharding->layout.boxes) {
        add_boxes(out.table, name, tensor, *sharding, header.offset(t));
        continue;
      }
      if (sharding) tensor.sharding = checked(*sharding, tensor, name);
      out.table.add_placed(name, tensor, header.offset(t));
    }
    return out;
  }

  // The layout; it does not say which rank wrote the file. Throws kBadShape for another number of dimensions.
  static const TorchSharding& checked(const ItemSharding& s, const TorchTensor& local,
                                      std::string_view name) {
    if (std::ssize(s.layout.global) == local.shape.rank()) return s.layout;
    throw Error(Code::kBadShape, "a tensor and its part have different numbers of dimensions")
        .tensor(name)
        .expected(dims_to_string(s.layout.global))
        .found(to_string(local.shape));
  }

  const Folder& folder_;
  ItemMetadata metadata_;
  std::map<std::string, RankName> names_;  // by path
};

}  // namespace

std::unique_ptr<Store> open_item_folder(const Folder& folder) {
  std::optional<ItemMetadata> metadata = read_item_metadata(folder);
  return metadata ? Items(folder, std::move(*metadata)).open() : nullptr;
}

RankName item_name(std::string_view file) {
  return by_end(file).value_or(RankName{std::string(file), -1, 0});
}

bool are_files_of_items(const std::vector<OpenedTorchFile>& files) {
  std::map<std::string, std::set<i64>> ranks;
  bool distributed = false;
  for (const OpenedTorchFile& o : files) {
    const std::optional<RankName> name = by_end(o.path);
    if (!name) return false;
    ranks[name->group].insert(name->rank);
    if (!o.file) continue;
    const TorchTable& table = o.file->table;
    for (i64 row = 0; row < table.size(); row++) {
      const TorchSharding* s = table.sharding(row);
      if (s == nullptr || s->writer() < 0) continue;
      if (s->writer() != name->rank) return false;
      distributed = true;
      break;
    }
  }
  const auto first = ranks.begin();
  return distributed && first->second.size() > 1 && std::ranges::all_of(ranks, [&](const auto& item) {
           return item.second == first->second && *item.second.rbegin() + 1 == std::ssize(item.second);
         });
}

}  // namespace mckpt::impl
