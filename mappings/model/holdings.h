// The holdings of one cell: what its rules say of each row, and the rows that do not divide over the cells.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/int.h"
#include "mappings/rule.h"

namespace mckpt::impl {

class Error;
struct ModelConfig;
struct Row;
struct Site;
struct TowerConfig;

// Calls the rule with the shapes that the row promises; no file is looked at.
Holding holding_of(const ModelConfig& model, const TowerConfig& tower, const Row& row, Part part, i64 expert,
                   i64 vocab_rows);

// Whether a tensor of the row has all experts. A tensor of a single expert is split in the same way for every
// expert.
bool is_fused_expert(const Row& row, i64 expert);

// "This does not divide", not "this is broken"; and such an error in a line.
bool is_misfit(const Error& e);
std::string misfit_line(std::string_view parameter, const Error& e);

// Computes each holding once for all layers and experts that are alike. The model outlives it.
class Holdings {
 public:
  Holdings(const ModelConfig& model, i64 vocab_rows) : model_(model), vocab_rows_(vocab_rows) {}

  // Null if the row does not divide; then refuse_misfits() lists it.
  std::shared_ptr<const Holding> of(const Site& site, const Row& row, Part part, i64 expert);

  // Throws kGridMisfit with every row that does not divide. `sizes`: what to say of sizes that fit.
  void refuse_misfits(const std::function<std::string()>& sizes) const;

 private:
  std::shared_ptr<const Holding> make(const Site& site, const Row& row, Part part, i64 expert);

  const ModelConfig& model_;
  i64 vocab_rows_;
  std::map<std::tuple<const Row*, const TowerConfig*, i64>, std::shared_ptr<const Holding>> known_;
  std::map<const Row*, bool> misfit_;
  std::vector<std::string> lines_;
};

}  // namespace mckpt::impl
