// Facts of the model that an adapter is for, beside its tensors.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// Names of a model's tensors in memory, which adapters have, as names of its folder. Which they are depends
// on the model; who opens an adapter gives them.
class MemoryNames {
 public:
  virtual ~MemoryNames() = default;
  // The name itself where the model has one name for the tensor.
  virtual std::string on_disk(std::string_view name) const = 0;
  // The parts, one below the other, in which the folder has a tensor of that name in memory. Parts of a stack
  // are tensors of each expert: "x.experts.{E}.w1.weight", "x.experts.{E}.w3.weight". Empty: it has that
  // tensor.
  virtual std::vector<std::string> parts(std::string_view name) const = 0;
  // Whether the folder has the items of that tensor in another order, or in one tensor with other ones.
  virtual bool rearranged(std::string_view name) const = 0;
};
// By the model_type and the class of config.json.
using MakeMemoryNames =
    std::function<std::unique_ptr<MemoryNames>(std::string_view model_type, std::string_view architecture)>;

struct BaseFacts {
  std::string model_type{}, architecture{};    // of config.json; "": it is not known
  std::optional<bool> tied{};                  // tie_word_embeddings
  std::shared_ptr<const MemoryNames> names{};  // null: names are those on disk
};

}  // namespace mckpt::impl
