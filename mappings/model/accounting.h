// Checks that the tensors of a checkpoint and the parameters of a model match one to one: every parameter
// finds its tensors with the shapes that the config promises, every tensor is read or is known not to be
// needed. Only headers are looked at.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {

enum class Needs;
class SourceTable;
struct Family;
struct MapOptions;
struct ModelConfig;
struct Row;
struct Site;
struct UnreadTensor;

// Collects everything that does not match, so that one error can report all of it, in the same words whoever
// compares tensors with a model.
class Mismatches {
 public:
  void add(std::string kind, std::string what);
  // A tensor that the model has and the files have not.
  void missing(std::string_view name) { add("missing", escaped(name)); }
  // `of`: what the sizes are, "vocab hidden"; "": it is not known.
  void wrong_shape(std::string_view name, std::string_view expected, std::string_view of,
                   std::string_view found);
  // The same for a tensor of a layer that the files do not have at all, or have beyond the last: `layers`,
  // the sentence that says so, comes first, and of these tensors only a few are named.
  void add_of_layer(std::string kind, std::string what, const std::string& layers);
  bool empty() const { return counts_.empty(); }
  // kUnaccounted with the first twenty and the number of each kind. pre: not empty().
  Error error() const;
  void refuse_any() const;

 private:
  static constexpr std::size_t kShown = 20, kShownOfLayers = 2;
  void count(std::string kind);

  std::string layers_;
  std::size_t of_layers_ = 0;
  std::vector<std::string> shown_;
  std::vector<std::pair<std::string, i64>> counts_;
};

// Whether only quantised models have a tensor of this name: scales, zero points, packed values.
bool is_name_of_codes(std::string_view name);
// The error about such a tensor, of kind kQuantized; `message` "": about its name.
Error quantized_error(std::string_view name, std::string message = "");
// Throws kQuantized if a tensor's name or type belongs to quantised weights.
void refuse_quantized(const SourceTable& sources);

// How the experts of every section are stored: decided by the names of their tensors, and between the two
// fused forms by any tensor of a layer that is not square. Throws kAmbiguousLayout.
std::vector<Needs> expert_forms(const Family& family, const ModelConfig& model, const SourceTable& sources,
                                const MapOptions& options);

// The number of MTP depths that the tensors show.
i64 mtp_depths_in(const Family& family, const ModelConfig& model, const SourceTable& sources);

// Pairs every source of a row with its tensor. Returns the number of parameters. Notes tensors that a map
// file names under "unread", and that rows of this model read.
i64 account(const Family& family, const ModelConfig& model, const std::vector<Needs>& forms,
            const SourceTable& sources, std::vector<UnreadTensor>& unread, std::vector<std::string>& notes,
            Mismatches& mismatches);

// The name of a source in the file: the row's own, or its other spelling if only that one exists.
std::string present_name(const Site& site, const Row& row, std::size_t source, i64 expert,
                         const SourceTable& sources);

}  // namespace mckpt::impl
