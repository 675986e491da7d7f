// Whether the tensors of a file and the parameters of a model match, one to one.
#pragma once

#include <string>
#include <vector>

#include "mappings/model/expand.h"

namespace mckpt {

// Everything that does not match, to be refused at once.
class Mismatches {
 public:
  void add(std::string kind, std::string what);
  // Throws kUnaccounted with the first twenty and the number of each kind.
  void refuse_any() const;

 private:
  static constexpr std::size_t kShown = 20;
  std::vector<std::string> shown_;
  std::vector<std::pair<std::string, i64>> counts_;
};

// Throws kQuantized when a tensor's name or type says so.
void refuse_quantized(const SourceTable& sources);

// How the experts of every section are stored, by the names of their tensors, and between the two fused forms
// by whichever tensor of a layer is not square. Throws kAmbiguousLayout.
std::vector<Needs> expert_forms(const Family& family, const ModelConfig& model, const SourceTable& sources,
                                const MapOptions& options);

// How many depths of MTP the file has.
i64 mtp_depths_in(const Family& family, const ModelConfig& model, const SourceTable& sources);

// Pairs every source with its tensor. Returns the number of parameters.
i64 account(const Family& family, const ModelConfig& model, const std::vector<Needs>& forms,
            const SourceTable& sources, std::vector<UnreadTensor>& unread, Mismatches& mismatches);

// The name under which the file has a source: the row's own, or its other spelling where only that is there.
std::string present_name(const Site& site, const Row& row, std::size_t source, i64 expert,
                         const SourceTable& sources);

}  // namespace mckpt
