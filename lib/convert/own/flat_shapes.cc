// Shapes first, for all tensors, so that an error names all that do not fit; then the boxes of each stretch.
#include "convert/own/flat_shapes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/items/stretch_boxes.h"
#include "io/store/store_view.h"

namespace mckpt::impl {
namespace {

// The view. Tensors, chunks' files and data are the source's; a chunk of a tensor with another shape is a few
// boxes here. Findings are the source's, and were judged with it.
class ShapedStore final : public StoreView {
 public:
  explicit ShapedStore(std::unique_ptr<Store> source) : StoreView(std::move(source)) {
    take_objects();
    for (i64 t = 0; t < tensor_count(); t++) {
      std::span<const i64> dims = StoreView::dims(t);
      tensors_.push_back({{dims.begin(), dims.end()}, {}, {}});
    }
  }

  // pre: the tensor has one dimension, and as many items as the shape.
  void shape(i64 tensor, std::vector<i64> dims) {
    Tensor& t = tensors_[tensor];
    t.dims = std::move(dims);
    for (i64 c = 0; c < source().chunk_count(tensor); c++) {
      const Chunk flat = source().chunk(tensor, c);
      const std::size_t first = t.numbers.size();
      const i64 boxes = stretch_boxes(t.dims, {flat.offsets[0], flat.offsets[0] + flat.sizes[0]}, t.numbers);
      for (i64 b = 0, begin = 0; b < boxes; b++) {
        t.boxes.push_back({c, begin});
        begin += Shape(numbers(t, first, 2 * b + 1)).items();
      }
    }
    if (!t.boxes.empty()) return;
    t.boxes.push_back({0, 0});  // of no items
    t.numbers.assign(t.dims.size(), 0);
    t.numbers.insert(t.numbers.end(), t.dims.begin(), t.dims.end());
  }

  std::span<const i64> dims(i64 t) const override { return tensors_[t].dims; }
  i64 chunk_count(i64 t) const override {
    return tensors_[t].boxes.empty() ? source().chunk_count(t) : std::ssize(tensors_[t].boxes);
  }
  Chunk chunk(i64 t, i64 index) const override {
    const Tensor& of = tensors_[t];
    if (of.boxes.empty()) return source().chunk(t, index);
    const Box& box = of.boxes[index];
    Chunk out = source().chunk(t, box.chunk);
    out.offsets = numbers(of, 0, 2 * index);
    out.sizes = numbers(of, 0, 2 * index + 1);
    out.record_offset += dtype_bytes(dtype(t), box.begin);
    out.record_bytes = dtype_bytes(dtype(t), Shape(out.sizes).items());
    return out;
  }
  // A stretch has no strides: its items are one after the other (io/torch/flat_pieces.h).
  ChunkData resolve(i64 t, i64 index) const override {
    const Tensor& of = tensors_[t];
    if (of.boxes.empty()) return source().resolve(t, index);
    ChunkData out = source().resolve(t, of.boxes[index].chunk);
    if (!out.strides.empty())
      throw Error(Code::kUnsupportedTensor, "the items of a flat tensor are apart from each other")
          .file(file_path(*this, out.file))
          .tensor(name(t));
    out.offset += dtype_bytes(dtype(t), of.boxes[index].begin);
    return out;
  }

 private:
  struct Box {
    i64 chunk;  // of the source
    i64 begin;  // of its first item in the chunk
  };
  struct Tensor {
    std::vector<i64> dims;
    std::vector<Box> boxes;    // none: as in the source
    std::vector<i64> numbers;  // the offsets and then the sizes of each box
  };
  // The offsets of a box, or its sizes; `which` counts both.
  static std::span<const i64> numbers(const Tensor& t, std::size_t from, i64 which) {
    const std::size_t rank = t.dims.size();
    return std::span(t.numbers).subspan(from + static_cast<std::size_t>(which) * rank, rank);
  }

  std::vector<Tensor> tensors_;
};

// Where a tensor's first items are, and how many it has: two tensors with the same are one weight.
std::tuple<i32, i64, i64> place_of(const Store& store, i64 tensor) {
  const Chunk first = store.chunk(tensor, 0);
  return {first.file, first.record_offset, store.shape(tensor).items()};
}

// The shapes of the model's tensors, in their order. Throws kUnaccounted with all that have none.
std::vector<std::vector<i64>> shapes_of(const Store& store, std::span<const NamedTensor> model,
                                        const TensorShapes& folder, std::string_view model_type) {
  std::vector<std::optional<std::vector<i64>>> found;
  std::map<std::tuple<i32, i64, i64>, std::size_t> by_place;
  for (const NamedTensor& n : model) {
    found.push_back(shape_in_memory(folder, n.name, model_type));
    if (found.back()) by_place.emplace(place_of(store, n.tensor), found.size() - 1);
  }
  std::vector<std::vector<i64>> out;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < model.size(); i++) {
    const i64 tensor = model[i].tensor;
    if (!found[i])
      if (auto twin = by_place.find(place_of(store, tensor)); twin != by_place.end())
        found[i] = found[twin->second];
    std::span<const i64> dims = store.dims(tensor);
    if (!found[i] && dims.size() == 1)
      lines.push_back(cat(escaped(store.name(tensor)), ": ", with_commas(dims[0]), " items"));
    out.push_back(found[i] ? *found[i] : std::vector<i64>(dims.begin(), dims.end()));
  }
  if (!lines.empty())
    throw Error(Code::kUnaccounted,
                "the model has no shape for tensors of the checkpoint, whose files have none either")
        .file(store.root())
        .each_note(lines)
        .help("`assets` names the folder of the model that was trained, with config.json or the weights");
  return out;
}

}  // namespace

std::unique_ptr<Store> with_shapes(std::unique_ptr<Store> store, std::span<const NamedTensor> model,
                                   const TensorShapes& folder, std::string_view model_type) {
  if (folder.empty())
    throw Error(
        Code::kUnknownAssets,
        "the tensors were saved flat (LOCAL_STATE_DICT), and their shapes are those of the model, which is not known")
        .file(store->root())
        .help(
            "`assets` names the folder of the model, with its weights, or with a config.json of a known model");
  std::vector<std::vector<i64>> shapes = shapes_of(*store, model, folder, model_type);
  auto out = std::make_unique<ShapedStore>(std::move(store));
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < model.size(); i++) {
    const i64 tensor = model[i].tensor;
    std::span<const i64> dims = out->dims(tensor);
    if (dims.size() != 1 || std::ranges::equal(dims, shapes[i])) continue;
    if (i64 items = Shape(shapes[i]).items(); items == dims[0])
      out->shape(tensor, std::move(shapes[i]));
    else
      lines.push_back(cat(escaped(out->name(tensor)), ": expected ", dims_to_string(shapes[i]),
                          ", which are ", with_commas(items), " items, found ", with_commas(dims[0])));
  }
  if (!lines.empty())
    throw Error(Code::kSourceShape,
                "tensors of the checkpoint do not have as many items as those of the model")
        .file(out->root())
        .each_note(lines)
        .help("`assets` names the folder of the model that was trained");
  return out;
}

}  // namespace mckpt::impl
