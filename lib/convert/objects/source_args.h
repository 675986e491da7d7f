// The args of the run that wrote a DCP folder, and the objects they are in with other values in them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "convert/layers/pattern_args.h"
#include "io/store/store.h"
#include "tools/render/output.h"

namespace mckpt {

// A field that args of any run have, beside which others are put.
inline constexpr std::string_view kAlwaysThere = "num_layers";

// The pickle in an object's record. Throws what TorchZip throws, kUnsupportedTorchFile where the object holds
// tensors, whose bytes are beside the pickle.
std::string object_pickle(const Store& store, const Object& object);

class SourceArgs {
 public:
  // The store must outlive it. Throws what reading the object throws: no run could load such args either.
  explicit SourceArgs(const Store& store);

  const PickleValue* value() const { return value_.get(); }  // null: there are none
  // The pickle of the object with the changes, where it is one that holds the args and there are changes;
  // warns of what cannot be changed.
  std::optional<std::string> patched(i64 object, std::span<const ArgChange> changes,
                                     const GlobalFlags& flags) const;
  // The same of common.pt, as a file; "" where it stays as it is.
  std::string patched_file(std::span<const ArgChange> changes, const GlobalFlags& flags) const;

 private:
  const Store& store_;
  std::shared_ptr<const PickleValue> value_;
};

}  // namespace mckpt
