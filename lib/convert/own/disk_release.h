// A check of the release of transformers that a model's names in memory are of. The tables are of one
// release. Others have other names in memory, of which the transforms would turn some and leave others: no
// release has such a result.
//
//   5.24   model.layers.0.self_attn.q_proj.linear.weight    becomes  model.llm.layers.0.attn.wq_du.weight
//   5.23   model.layers.0.self_attn.q_proj.weight           would be model.llm.layers.0.attn.q_proj.weight
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/own/disk_matchers.h"
#include "convert/own/model_section.h"
#include "io/store/store.h"

namespace mckpt::impl {

class DiskRelease {
 public:
  DiskRelease(const Store& store, const DiskClass& rules, const DiskMatchers& matchers,
              std::span<const NamedTensor> model);

  // The first of the names without which the model is not as the table has it in memory; empty: it is.
  std::string_view lacking_in_memory() const;

  // The first of them that the model has neither so nor as the folder has it.
  std::string_view lacking() const;

  [[noreturn]] void refuse(std::string_view lacking) const;

 private:
  bool has(std::string_view wanted) const;
  i64 most_alike(std::string_view wanted) const;

  const Store& store_;
  const DiskClass& rules_;
  const DiskMatchers& matchers_;
  std::span<const NamedTensor> model_;
  std::vector<std::string> names_;  // without numbers
};

}  // namespace mckpt::impl
