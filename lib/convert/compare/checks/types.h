// The check "types" of a comparison: whether weights are stored in the types that a conversion was asked for.
// Without such a claim a comparison takes the types as it finds them: it casts the source's values to them.
//
//   asked for             a weight in float32   in bfloat16
//   nothing               equal                 equal, with a warning of the cast
//   bfloat16              not equal             equal, with the same warning
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/keys/name_rules.h"
#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

class Store;
struct ModelParameter;
struct VerifyReport;

// The types that the conversion was asked for: one for all weights, and rules for single tensors, which come
// first.
struct TypeClaim {
  enum Kind : u8 {
    kNone,  // any type will do
    kKept,  // each tensor's own
    kGiven
  } kind = kNone;
  DType given = DType::kF32;
  DtypeRules rules{};

  // The type of a tensor of this name; `own`: its type before the conversion. Nothing if any type will do.
  std::optional<DType> of(std::string_view name, DType own) const;
  // The type of a key of a checkpoint. Parameters without a main weight keep their own type: buffers, and
  // frozen ones unless `frozen_have_main`, as under Megatron-FSDP v2.
  std::optional<DType> of(const ModelParameter& parameter, std::string_view key, DType own,
                          bool frozen_have_main) const;
};

// Collects the tensors that are looked at. For one thread; ends with add_to().
class TypeCheck {
 public:
  explicit TypeCheck(const TypeClaim& claim) : claim_(claim) {}

  const TypeClaim& claim() const { return claim_; }
  // `asked`: nothing if any type will do.
  void add(std::string_view name, std::optional<DType> asked, DType found);
  // The tensors of the tested side that look like weights, by their names and types: no table says which ones
  // are. `source` has the types before the conversion, under the same names. `takes_type`: by tensor of the
  // source, whether the type asked for is for it; the others keep theirs. Empty: it is for all.
  void add_by_name(const Store& tested, const Store& source, const std::vector<bool>& takes_type = {});
  // Adds the check if a type was asked for. Returns whether all types are those asked for. Throws
  // kNoSuchTensor for a rule that matches no name.
  bool add_to(VerifyReport& report) const;

 private:
  struct Tensor {
    std::string name;
    std::optional<DType> asked;
    DType found;
  };

  const TypeClaim& claim_;
  std::vector<Tensor> tensors_;
};

}  // namespace mckpt::impl
