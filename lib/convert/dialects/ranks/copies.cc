// A checksum is of a record, which may have more than the tensor: parameters that are views of one buffer are
// saved with the whole buffer. Then the tensors are read.
#include "convert/dialects/ranks/copies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "convert/facts/scalar.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/rank_folders.h"
#include "core/items/dtype.h"
#include "io/file/parallel.h"
#include "io/saves/copied_files.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/same_bytes.h"
#include "io/values/tensor_reader.h"
#include "io/values/varying_items.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostUnlike = 20;

// Whether the records of the two tensors have equal sums and the tensors are at the same place in them.
bool have_same_sum(const Store& store, i64 one, i64 other) {
  const ChunkData a = store.resolve(one, 0), b = store.resolve(other, 0);
  return a.checksum && b.checksum && a.checksum->bytes == b.checksum->bytes &&
         a.checksum->crc32 == b.checksum->crc32 && a.strides == b.strides && a.big_endian == b.big_endian &&
         a.dtype == b.dtype && a.offset - a.checksum->offset == b.offset - b.checksum->offset &&
         std::ranges::equal(store.dims(one), store.dims(other));
}

// The model in the file of one rank.
struct RankModel {
  std::string_view folder;
  i64 tensor_rank;
  std::vector<i64> tensors{};
  std::size_t shapes = 0;  // hash of names and shapes
};

std::size_t mixed(std::size_t hash, std::size_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

std::vector<RankModel> models_of(const Store& store) {
  std::vector<RankModel> out;
  std::map<std::string_view, std::size_t> at;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t), folder = name.substr(0, name.find('/'));
    std::string_view inside = name.substr(std::min(name.size(), folder.size() + 1));
    if (!inside.starts_with("model")) continue;
    auto [place, fresh] = at.try_emplace(folder, out.size());
    if (fresh) {
      const std::vector<i64> numbers = rank_folder_numbers(folder);
      out.push_back({folder, numbers.empty() ? 0 : numbers[0]});
    }
    RankModel& model = out[place->second];
    model.tensors.push_back(t);
    model.shapes = mixed(model.shapes, std::hash<std::string_view>()(inside));
    for (i64 size : store.dims(t)) model.shapes = mixed(model.shapes, static_cast<std::size_t>(size));
  }
  return out;
}

// Whether the tensor is a matrix with items that differ.
bool varies(const Store& store, const StoreFiles& files, i64 tensor) {
  struct Differs {};
  const i64 item = dtype_info(store.dtype(tensor)).bits / 8;
  if (store.dims(tensor).size() < 2 || item == 0) return false;
  VaryingItems items(item);
  TensorReader reader(store, files);
  try {
    reader.read(tensor, [&](std::span<const u8> bytes, i64) {
      if (items.add(bytes)) throw Differs();
    });
  } catch (Differs) {
    return true;
  }
  return false;
}

// pre: the models have equal shapes and sums. The first matrix of different items that both have; -1 if their
// bytes differ, or all matrices are constants.
i64 equal_part(const Store& store, const StoreFiles& files, const RankModel& one, const RankModel& other) {
  if (one.tensors.size() != other.tensors.size()) return -1;
  for (std::size_t i = 0; i < one.tensors.size(); i++)
    if (const std::pair pair(one.tensors[i], other.tensors[i]); !have_same_bytes(store, {&pair, 1}, 1)[0])
      return -1;
  auto found = std::ranges::find_if(other.tensors, [&](i64 t) { return varies(store, files, t); });
  return found == other.tensors.end() ? -1 : *found;
}

// Models of two tensor ranks with equal shapes and sums. Records without sums count as equal.
std::vector<std::pair<std::size_t, std::size_t>> equal_by_sums(const Store& store,
                                                               const std::vector<RankModel>& models) {
  std::map<std::size_t, std::vector<std::size_t>> alike;
  for (std::size_t m = 0; m < models.size(); m++) alike[models[m].shapes].push_back(m);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& of_shapes : alike) {
    const std::vector<std::size_t>& group = of_shapes.second;
    std::vector<i64> pieces;
    for (std::size_t m : group) pieces.push_back(std::ssize(models[m].tensors));
    auto sum = [&](i64 file, i64 piece) {
      const std::vector<i64>& tensors = models[group[file]].tensors;
      const std::optional<Checksum> found = store.resolve(tensors[piece], 0).checksum;
      return std::optional(PieceSum{0, found ? found->crc32 : 0});
    };
    for (const std::vector<i64>& equal : files_with_equal_sums(pieces, sum))
      for (std::size_t i = 0; i < equal.size(); i++)
        for (std::size_t k = 0; k < i; k++)
          if (models[group[equal[k]]].tensor_rank != models[group[equal[i]]].tensor_rank)
            pairs.emplace_back(group[equal[k]], group[equal[i]]);
  }
  std::ranges::sort(pairs);
  return pairs;
}

}  // namespace

void refuse_equal_ranks(const Store& store) {
  const std::vector<RankModel> models = models_of(store);
  const std::vector<std::pair<std::size_t, std::size_t>> pairs = equal_by_sums(store, models);
  const StoreFiles files(store);
  for (auto [one, other] : pairs)
    if (i64 t = equal_part(store, files, models[one], models[other]); t >= 0)
      throw Error(Code::kBadShards,
                  cat("the model in the file is, byte for byte, that of ", models[one].folder,
                      ", which is another tensor rank and has other parts of the parameters"))
          .file(file_path(store, store.chunk(t, 0).file))
          .tensor(store.name(t))
          .help("one file was copied over the other; copy the folders again from where they were saved");
}

// If several counts have equal records, one of these counts is read.
void refuse_other_steps(const Store& store, std::span<const std::vector<i64>> steps) {
  struct Most {
    i64 tensor;
    double steps;
  };
  std::optional<Most> first;
  std::vector<std::pair<i64, double>> known;  // of all files, counts with unequal records
  for (const std::vector<i64>& file : steps) {
    std::optional<Most> most;
    for (i64 t : file) {
      auto same =
          std::ranges::find_if(known, [&](const auto& k) { return have_same_sum(store, k.first, t); });
      const double count = same == known.end() ? scalar_of(store, t) : same->second;
      if (same == known.end() && known.size() < kMostUnlike) known.emplace_back(t, count);
      if (!most || count > most->steps) most = {t, count};
    }
    if (!first) first = most;
    if (most && most->steps != first->steps)
      throw Error(Code::kBadShards,
                  "the optimizer had made another number of steps in the files of two ranks")
          .file(file_path(store, store.chunk(most->tensor, 0).file))
          .tensor(store.name(most->tensor))
          .expected(cat(first->steps, ", as in ", file_label(store, store.chunk(first->tensor, 0).file)))
          .found(most->steps)
          .help("files of several saves may be in the folder; copy it again");
  }
}

bool has_ranks_alike(const Store& store) {
  std::set<std::size_t> shapes;
  const std::vector<RankModel> models = models_of(store);
  for (const RankModel& m : models) shapes.insert(m.shapes);
  return shapes.size() < models.size();
}

// The sums decide where they can; other copies are read.
void refuse_unlike_copies(const Store& store, std::span<const std::pair<i64, i64>> copies, bool read_all) {
  std::vector<std::pair<i64, i64>> read;
  for (auto [one, other] : copies)
    if (read_all || !have_same_sum(store, one, other)) read.emplace_back(one, other);
  std::vector<bool> same = have_same_bytes(store, read, default_threads());
  std::vector<std::string> unlike;
  std::size_t first = read.size();
  for (std::size_t i = 0; i < read.size(); i++) {
    if (same[i]) continue;
    first = std::min(first, i);
    unlike.push_back(
        cat(escaped(store.name(read[i].second)), " differs from ", escaped(store.name(read[i].first))));
  }
  if (unlike.empty()) return;
  const i64 count = std::ssize(unlike);
  unlike.resize(std::min(unlike.size(), kMostUnlike));
  throw Error(Code::kBadShards, cat("ranks have ", counted(count, "tensor"),
                                    " that should be the same in all of them, and are not"))
      .file(file_path(store, store.chunk(read[first].second, 0).file))
      .tensor(store.name(read[first].second))
      .each_note(unlike)
      .help("files of several saves may be in the folder; copy it again");
}

}  // namespace mckpt::impl
