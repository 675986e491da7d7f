// A checkpoint folder of DeepSpeed ZeRO as a store: whole parameters, made of boxes in the flat parts of the
// ranks.
//
//   tensor "b" [4, 6]                 layout: box 0 is at item 40 of part 0, box 1 and 2 at items 0, 1 of part 1
//   tensor "optimizer.state.b.exp_avg"           (the same layout)
//   column "float32 weights"          part 0: file 1, row 3        part 1: file 2, row 3
//   column "exp_avg"                  part 0: file 1, row 5        part 1: file 2, row 5
//
// A tensor is a layout and a column, so the states of the optimizer cost no boxes of their own. Who opens the
// folder (open_zero.cc) adds files, layouts, columns and then tensors.
#pragma once

#include "io/torch/store.h"
#include "io/zero/flat_parts.h"
#include "io/zero/place.h"

namespace mckpt::impl {

class ZeroStore final : public Store {
 public:
  ZeroStore(const std::string& root, const OpenOptions& opening);

  // As TorchStore::add_file().
  i32 add_file(std::string path, i64 bytes, TorchFile file, std::string_view prefix, i32 rank);
  const TorchTable& table(i32 file) const { return files_of_.table(file); }
  // The CRC-32 of a record that is exactly the bytes of that tensor; nothing if there is none.
  std::optional<u32> checksum(const ZeroPlace& place) const;

  // The boxes of stretches; their parts are the parts of the columns that a tensor combines the layout with.
  i64 add_layout(const Shape& shape, std::span<const ZeroStretch> stretches);
  // A whole tensor in each part, all with the same values: the first is read.
  i64 add_copies_layout(const Shape& shape, i64 copies);
  std::span<const i64> layout_dims(i64 layout) const { return layouts_[layout].dims; }
  // pre: at least one place is there, and all have one data type.
  i64 add_column(std::vector<ZeroPlace> places);

  // Boxes in parts that the column lacks are left out, so that the tensor has holes.
  void add_tensor(std::string_view name, i64 layout, i64 column, bool of_model);
  // A row that is a tensor by itself, and not the model's.
  void add_row(std::string_view name, ZeroPlace place);

  // The tensors that were added, which the store then has no more: others are made of them.
  struct Taken {
    std::string name;
    i64 layout, column;
    bool of_model = false;
  };
  std::vector<Taken> take_tensors();
  struct TakenBox {
    std::vector<i64> offsets{}, sizes{};
    i64 part = -1, begin = 0;  // of its first item in the part
    bool replica = false;
  };
  std::vector<TakenBox> boxes_of(i64 layout) const;
  const std::vector<ZeroPlace>& places_of(i64 column) const { return columns_[column].places; }
  i64 add_boxes_layout(const Shape& shape, std::span<const TakenBox> boxes);
  // Copies become tensors, and none of the model's, where they are listed.
  using ModuleCopy = ZeroModuleCopy;
  void add_module_copy(std::string name, std::string_view of, const ZeroPlace& place);
  std::span<const ModuleCopy> module_copies() const { return module_copies_; }
  void list_module_copies(const std::function<bool(const ModuleCopy&)>& wanted);
  void set_compares_copies() { compares_copies_ = true; }  // check() compares copies with what they are of

  void set_ranks(i64 ranks) { ranks_ = ranks; }
  void add_finding(Finding f) { findings_.push_back(std::move(f)); }

  i64 tensor_count() const override { return static_cast<i64>(tensors_.size()); }
  std::string_view name(i64 tensor) const override;
  DType dtype(i64 tensor) const override;
  std::span<const i64> dims(i64 tensor) const override { return layout_of(tensor).dims; }
  i64 chunk_count(i64 tensor) const override;
  Chunk chunk(i64 tensor, i64 index) const override;
  ChunkData resolve(i64 tensor, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override { return files_of_.object(index); }
  // Whether the files list the tensor as the model's.
  bool is_of_model(i64 tensor) const { return tensors_[tensor].of_model; }
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;
  std::optional<std::vector<Finding>> check(int threads) const override;

 private:
  struct Box {
    i64 begin;  // of its first item in the part
    i32 part;
    bool replica;
  };
  // Has boxes [first, end); box i has its offsets and sizes at numbers + (i - first) * 2 * rank.
  struct Layout {
    std::vector<i64> dims;
    u64 first, end, numbers;
  };
  struct Column {
    std::vector<ZeroPlace> places;
    DType dtype;
  };
  struct Tensor {
    u64 name_begin;
    u32 name_bytes, layout, column;
    bool of_model;
  };
  const Layout& layout_of(i64 tensor) const { return layouts_[tensors_[tensor].layout]; }
  const Column& column_of(i64 tensor) const { return columns_[tensors_[tensor].column]; }
  const Box& box_at(i64 tensor, i64 index) const;
  const ZeroPlace& place_of(i64 tensor, const Box& box) const { return column_of(tensor).places[box.part]; }
  i64 offset_of(i64 tensor, const Box& box) const;
  i64 without_missing(i64 layout, const Column& column);

  TorchStore files_of_;  // the files, without tensors
  std::vector<Box> boxes_;
  std::vector<i64> numbers_;
  std::deque<Layout> layouts_;
  std::deque<Column> columns_;
  std::vector<Tensor> tensors_;
  std::string names_;
  std::vector<ModuleCopy> module_copies_;
  bool compares_copies_ = false;
};

}  // namespace mckpt::impl
