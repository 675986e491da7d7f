// The pieces that a tensor of a Hugging Face folder consists of, by what torchtitan does with its rows:
//
//   pairs      rows 0 1 2 3 of a head are 0 2 1 3: even rows come before odd ones
//   qkv        q q q q k v | q q q q k v: every group has its queries, then its key, then its value
//   swapped    [experts, out, in] is [experts, in, out]
//   patches    [out, channels * frames * side * side] has a dimension for each
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/own/disk_names.h"
#include "core/base/error.h"
#include "core/base/int.h"
#include "hf/config/tower_numbers.h"

namespace mckpt::impl {

class Store;

// Adds tensors to a list. Refers to the store and to the list. Functions throw kSourceShape for a tensor that
// is not what they take, and kUnknownAssets for a number that no config states.
class TitanPieces {
 public:
  // `pairs`: whether rows of queries and keys are turned in pairs.
  TitanPieces(const Store& store, const TowerNumbers& numbers, bool pairs, std::vector<PiecedTensor>& out)
      : store_(store), numbers_(numbers), pairs_(pairs), out_(out) {}

  void add_copy(i64 tensor, std::string name);
  void add_queries(i64 tensor, std::string name) { add_turned(tensor, std::move(name), numbers_.heads); }
  void add_keys(i64 tensor, std::string name) { add_turned(tensor, std::move(name), numbers_.kv_heads); }
  // A weight or a bias of the vision tower, whose heads are turned like the heads of the text model.
  void add_tower_heads(i64 tensor, std::string name);
  // `name`: of "q", "k" and "v".
  void add_qkv(i64 tensor, const std::function<std::string(std::string_view)>& name);
  // pre: the tensor has three dimensions.
  void add_swapped(i64 tensor, std::string name);
  // `rank`: 5, or 4 without a dimension of frames.
  void add_patches(i64 tensor, std::string name, i64 rank);

  Error wrong_shape(i64 tensor, std::string_view what, std::string_view expected) const;

 private:
  void add_turned(i64 tensor, std::string name, i64 heads);
  void add_heads(i64 tensor, std::string name, i64 heads, i64 first_head, i64 stride, i64 each, bool pairs);
  void need_heads(i64 tensor) const;
  void check_rows(i64 tensor, i64 heads, i64 head_dim) const;
  Error unknown(i64 tensor, std::string_view what, std::string_view entries) const;

  const Store& store_;
  TowerNumbers numbers_;
  bool pairs_;
  std::vector<PiecedTensor>& out_;
};

}  // namespace mckpt::impl
