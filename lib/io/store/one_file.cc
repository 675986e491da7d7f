// A view that leaves out all chunks of other files, and the tensors and objects of which nothing is left.
#include "io/store/one_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/lone_shard.h"
#include "io/store/store_view.h"

namespace mckpt::impl {
namespace {

class OneFile final : public StoreView {
 public:
  OneFile(std::shared_ptr<const Store> whole, i32 file) : StoreView(std::move(whole)), file_(file) {
    // Errors and findings name the file, and not its folder.
    root_ = cat(root_, "/", source().files()[file].path);
    files_ = {{"", source().files()[file].bytes}};
    for (i64 t = 0; t < source().tensor_count(); t++) add_tensor(t);
    for (i64 o = 0; o < std::ssize(source().objects()); o++) add_object(o);
    add_shard_finding();
    for (const Finding& f : source().findings())
      if (f.code == Code::kRecordOutside && f.file == source().files()[file].path) {
        findings_.push_back(f);
        findings_.back().file = root_;
      }
  }

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override { return source().name(tensors_[t].in_source); }
  DType dtype(i64 t) const override { return source().dtype(tensors_[t].in_source); }
  std::span<const i64> dims(i64 t) const override { return source().dims(tensors_[t].in_source); }
  i64 chunk_count(i64 t) const override { return std::ssize(tensors_[t].chunks); }
  Chunk chunk(i64 t, i64 index) const override {
    Chunk c = source().chunk(tensors_[t].in_source, tensors_[t].chunks[index]);
    c.file = 0;
    return c;
  }
  ChunkData resolve(i64 t, i64 index) const override {
    ChunkData data = source().resolve(tensors_[t].in_source, tensors_[t].chunks[index]);
    data.file = 0;
    if (data.checksum) renumber(*data.checksum, t);
    for (Checksum& sum : data.beneath) renumber(sum, t);
    return data;
  }
  std::shared_ptr<const PickleValue> object(i64 index) const override {
    return source().object(object_in_source_[index]);
  }
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override {
    source().each_checksum([&](const Checksum& sum) {
      if (sum.file != file_) return;
      Checksum mine = sum;
      renumber(mine, sum.tensor < 0 ? -1 : number_of(sum.tensor));
      visit(mine);
    });
  }
  // Whether the names of all ranks fit together is not a question of one file.
  std::optional<std::vector<Finding>> check(int /*threads*/) const override { return std::nullopt; }

 private:
  struct Tensor {
    i64 in_source = 0;
    std::vector<i64> chunks{};
  };

  static void renumber(Checksum& sum, i64 tensor) { sum.file = 0, sum.tensor = tensor; }
  i64 number_of(i64 in_source) const {
    auto at = std::ranges::lower_bound(tensors_, in_source, {}, &Tensor::in_source);
    return at != tensors_.end() && at->in_source == in_source ? at - tensors_.begin() : -1;
  }

  void add_tensor(i64 t) {
    Tensor mine{t};
    for (i64 i = 0; i < source().chunk_count(t); i++)
      if (const Chunk c = source().chunk(t, i); c.file == file_) {
        mine.chunks.push_back(i);
        rank_ = c.rank;
      }
    if (!mine.chunks.empty()) tensors_.push_back(std::move(mine));
  }

  void add_object(i64 o) {
    Object object = source().objects()[o];
    if (object.file != file_) return;
    object.file = 0;
    objects_.push_back(std::move(object));
    object_in_source_.push_back(o);
  }

  // Whether the rank has chunks in another file too: savers with several threads write one for each.
  bool writes_more_files() const {
    for (i64 t = 0; t < source().tensor_count(); t++)
      for (i64 i = 0; i < source().chunk_count(t); i++)
        if (const Chunk c = source().chunk(t, i); c.rank == rank_ && c.file != file_) return rank_ >= 0;
    return false;
  }

  void add_shard_finding() {
    std::vector<std::string_view> parts;
    for (i64 t = 0; t < tensor_count(); t++) {
      i64 items = 0;
      for (i64 i = 0; i < chunk_count(t); i++) items += Shape(chunk(t, i).sizes).items();
      if (items < shape(t).items()) parts.push_back(name(t));
    }
    std::string message = cat("the file has ", writes_more_files() ? "a part of " : "", "what ",
                              rank_ >= 0 ? cat("rank ", rank_, " of ", ranks_) : "one rank",
                              " wrote: ", counted(tensor_count(), "tensor"), " of ", source().tensor_count());
    if (!parts.empty()) message += cat(", of ", std::ssize(parts), " a part alone: ", listed(parts, 3));
    findings_.push_back({.code = Code::kShardAlone,
                         .file = root_,
                         .message = std::move(message),
                         .help = kNameAllRanks,
                         .warning = true});
  }

  const i32 file_;
  i32 rank_ = -1;
  std::vector<Tensor> tensors_;
  std::vector<i64> object_in_source_;
};

}  // namespace

std::unique_ptr<Store> one_file_of(std::unique_ptr<Store> store, std::string_view file) {
  auto at = std::ranges::find(store->files(), file, &StoreFile::path);
  if (at == store->files().end()) return nullptr;
  const i32 number = static_cast<i32>(at - store->files().begin());
  return std::make_unique<OneFile>(std::move(store), number);
}

const Store* all_files_of(const Store& one_file) {
  const auto* view = dynamic_cast<const OneFile*>(&one_file);
  return view == nullptr ? nullptr : &view->source();
}

}  // namespace mckpt::impl
