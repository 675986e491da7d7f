// Rules that apply to tensors by their names, as the user gives them. A glob must match the whole name:
//
//   a data type     *.router.weight -> fp32                       DtypeRules
//   not trained     language_model.embedding.*, or "none"         FrozenNames
//   FSDP units      blocks.*, of a model without a table          UnitModules
//
// A rule that matches no name, or whose names a more general rule takes, is an error, not a rule without
// effect: it is usually a mistyped name, or a list in the wrong order.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
struct ModelParameter;

// The number of the first glob that a more general one in front of it leaves nothing to decide about, or the
// same one again; nothing if there is none. Where several match a name, the one in front decides. A general
// glob behind exceptions that happen to leave it no name is right.
std::optional<std::size_t> shadowed_glob(std::span<const std::string_view> globs, i64 names,
                                         const std::function<std::string_view(i64)>& name);

// The data types of tensors by their names, as a list of rules of which the last that matches decides. A
// value; all functions but add() are const and thread-safe.
class DtypeRules {
 public:
  void add(std::string glob, DType type) { rules_.push_back({std::move(glob), type}); }
  bool empty() const { return rules_.empty(); }
  std::string text() const;  // " GLOB=float32 ...", for people and for comparing two lists
  // The type that the last matching rule gives; nothing if none matches.
  std::optional<DType> of(std::string_view name) const;
  // Throws kNoSuchTensor for a rule that matches none of the names, or is shadowed by another.
  void refuse_unmatched(i64 names, const std::function<std::string_view(i64)>& name) const;

 private:
  struct Rule {
    std::string glob;
    DType type;
  };
  std::vector<Rule> rules_;
};

// The parameters that are not trained. Globs add to the parameters that the family freezes; the word "none"
// first makes all parameters trained. Globs are matched with the global name of a parameter.
class FrozenNames {
 public:
  FrozenNames() = default;
  explicit FrozenNames(std::vector<std::string> globs);

  bool empty() const { return globs_.empty() && !none_; }
  std::string text() const;  // "none GLOB ..."
  void apply(std::vector<ModelParameter>& parameters) const;
  // Throws kNoSuchTensor for a glob that matches none of the parameters.
  void refuse_unmatched(const std::vector<ModelParameter>& parameters) const;

 private:
  std::vector<std::string> globs_;
  bool none_ = false;
};

// The modules that are FSDP units of a model without a table, under v2. A glob means the outermost modules
// that it matches; of units of several globs around a parameter the innermost owns it, as that one is sharded
// first.
class UnitModules {
 public:
  UnitModules() = default;
  explicit UnitModules(std::vector<std::string> globs) : globs_(std::move(globs)) {}

  bool empty() const { return globs_.empty(); }
  std::string text() const;  // "GLOB ..."
  void apply(std::vector<ModelParameter>& parameters) const;
  // Throws kNoSuchTensor for a glob that matches no module around any of the parameters.
  void refuse_unmatched(const std::vector<ModelParameter>& parameters) const;

 private:
  std::vector<std::string> globs_;
};

}  // namespace mckpt::impl
