// Every function checks the shape first, since the pieces of a view have to tile it.
#include "convert/own/titan_pieces.h"

#include "convert/own/boxed_tensor.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {

Error TitanPieces::wrong_shape(i64 t, std::string_view what, std::string_view expected) const {
  return Error(Code::kSourceShape, std::string(what))
      .file(store_.root())
      .tensor(store_.name(t))
      .expected(std::string(expected))
      .found(to_string(store_.shape(t)));
}

Error TitanPieces::unknown(i64 t, std::string_view what, std::string_view entries) const {
  return Error(Code::kUnknownAssets, std::string(what))
      .file(store_.root())
      .tensor(store_.name(t))
      .expected(cat(entries, " in config.json"))
      .help("`assets` names a folder with the model's config.json");
}

void TitanPieces::add_copy(i64 t, std::string name) {
  std::span<const i64> dims = store_.dims(t);
  out_.push_back({std::move(name), {dims.begin(), dims.end()}, {{t}}});
}

// The numbers of heads, which no shape shows.
void TitanPieces::need_heads(i64 t) const {
  if (numbers_.heads > 0 && numbers_.kv_heads > 0 && numbers_.head_dim > 0) return;
  throw unknown(t, "the number of heads is needed to put the rows of queries and keys in order",
                "num_attention_heads, num_key_value_heads and head_dim");
}

void TitanPieces::check_rows(i64 t, i64 heads, i64 head_dim) const {
  std::span<const i64> dims = store_.dims(t);
  if ((dims.size() == 2 || dims.size() == 1) && heads > 0 && head_dim % 2 == 0 &&
      dims[0] == checked_mul(heads, head_dim, "rows"))
    return;
  throw wrong_shape(t, "the rows are not those of the heads in config.json",
                    cat("[", heads, " heads of ", head_dim, dims.size() == 1 ? "]" : ", columns]"));
}

void TitanPieces::add_turned(i64 t, std::string name, i64 heads) {
  if (!pairs_) return add_copy(t, std::move(name));
  need_heads(t);
  check_rows(t, heads, numbers_.head_dim);
  add_heads(t, std::move(name), heads, 0, 1, heads, true);
}

// Head h of the new tensor is head (h / each) * stride + h % each + first_head of the old one: of queries in
// the picture of the header 4 of every 6 heads, of keys the fifth. With `pairs` even rows of a head come
// before odd ones.
void TitanPieces::add_heads(i64 t, std::string name, i64 heads, i64 first_head, i64 stride, i64 each,
                            bool pairs) {
  const i64 d = numbers_.head_dim;
  std::vector<StorePiece> pieces;
  for (i64 h = 0; h < heads; h++) {
    i64 from = (h / each * stride + h % each + first_head) * d, to = h * d;
    if (pairs)
      for (i64 j = 0; j < 2; j++) pieces.push_back({t, {}, from + j, d / 2, to + j * (d / 2), 2});
    else
      pieces.push_back({t, {}, from, d, to});
  }
  std::span<const i64> dims = store_.dims(t);
  std::vector<i64> shape(dims.begin(), dims.end());
  shape[0] = heads * d;
  out_.push_back({std::move(name), std::move(shape), std::move(pieces)});
}

void TitanPieces::add_tower_heads(i64 t, std::string name) {
  const i64 heads = numbers_.vision_heads;
  if (heads == 0 || numbers_.vision_hidden % heads != 0)
    throw unknown(t, "the number of heads of the vision tower is needed to put these rows in order",
                  "num_attention_heads and hidden_size of vision_config");
  const i64 d = numbers_.vision_hidden / heads;
  check_rows(t, heads, d);
  std::vector<StorePiece> pieces;
  for (i64 h = 0; h < heads; h++)
    for (i64 j = 0; j < 2; j++) pieces.push_back({t, {}, h * d + j, d / 2, h * d + j * (d / 2), 2});
  std::span<const i64> dims = store_.dims(t);
  out_.push_back({std::move(name), {dims.begin(), dims.end()}, std::move(pieces)});
}

void TitanPieces::add_qkv(i64 t, const std::function<std::string(std::string_view)>& name) {
  need_heads(t);
  const i64 groups = numbers_.kv_heads, each = numbers_.heads / groups;
  if (numbers_.heads % groups != 0)
    throw Error(Code::kModelNumbers, "the heads of queries do not divide over those of keys")
        .expected(cat(numbers_.heads, " heads a multiple of the groups"))
        .found(counted(groups, "group"));
  check_rows(t, numbers_.heads + 2 * groups, numbers_.head_dim);
  add_heads(t, name("q"), numbers_.heads, 0, each + 2, each, pairs_);
  add_heads(t, name("k"), groups, each, each + 2, 1, pairs_);
  add_heads(t, name("v"), groups, each + 1, each + 2, 1, false);
}

void TitanPieces::add_swapped(i64 t, std::string name) {
  BoxedTensor swapped = BoxedTensor::whole(store_, t).swapped(1, 2);
  out_.push_back({std::move(name), std::move(swapped.dims), std::move(swapped.pieces)});
}

// The weight of a convolution whose steps are as long as its window.
void TitanPieces::add_patches(i64 t, std::string name, i64 rank) {
  std::span<const i64> dims = store_.dims(t);
  const i64 side = numbers_.patch_side, frames = rank == 5 ? numbers_.patch_frames : 1;
  if (side == 0 || frames == 0)
    throw unknown(
        t, "the size of a patch is needed for the shape of this tensor",
        rank == 5 ? "patch_size and temporal_patch_size of vision_config" : "patch_size of vision_config");
  const i64 window = checked_mul(frames, checked_mul(side, side, "patch"), "patch");
  if (dims.size() != 2 || dims[1] == 0 || dims[1] % window != 0)
    throw wrong_shape(t, "the columns are not those of the patches in config.json",
                      cat("[rows, channels * ", window, "]"));
  std::vector<i64> as = {dims[0], dims[1] / window};
  if (rank == 5) as.push_back(frames);
  as.insert(as.end(), {side, side});
  StorePiece piece{t};
  piece.as = as;
  out_.push_back({std::move(name), std::move(as), {std::move(piece)}});
}

}  // namespace mckpt::impl
