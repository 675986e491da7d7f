// Recognises the dialect of a DCP folder by its names.
#include "io/dcp/keys/dialect.h"

#include <algorithm>
#include <optional>

#include "io/dcp/keys/key.h"
#include "io/store/driver.h"

namespace mckpt::impl {
namespace {

bool begins_with_number(std::string_view text) {
  std::size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != text.npos && text[digits] == '.';
}

}  // namespace

Format dcp_format(DcpDialect dialect) {
  const auto row = std::ranges::find(all_drivers(), std::optional(dialect), &Driver::dialect);
  return row->format;
}

// Notes what only one of the dialects has.
void DialectVotes::tensor(std::string_view name) {
  std::string_view rest = name;
  if (take_model(rest)) {
    (rest.starts_with("module.") ? model_module_ : model_other_) = true;
    char half;
    unsplit(rest, half);
    split_half_ |= half != 0;
  } else if (rest.starts_with(kStateSection)) {
    rest.remove_prefix(kStateSection.size());
    (rest.starts_with("module.") ? state_module_
     : begins_with_number(rest)  ? state_number_
                                 : state_name_) = true;
  } else {
    other_tensor_ = true;
  }
}

void DialectVotes::object(std::string_view name) {
  group_meta_ |= name.starts_with(kGroupMetaSection);
  megatron_item_ |= name == "checkpoint_version" || name == "args";
  shard_object_ |= name.find("/shard_") != name.npos;
}

// The surest evidence first: the marker and sharded objects of torch_dist, then what only fsdp_dtensor's
// optimizer has. Both Megatron dialects call the weights alike, so without an optimizer the objects and the
// split halves decide.
DcpDialect DialectVotes::dialect(bool has_metadata_json) const {
  if (has_metadata_json || shard_object_) return DcpDialect::kTorchDist;
  if (state_module_ || group_meta_) return DcpDialect::kFsdpDtensor;
  if (model_module_ && !model_other_) {
    if (state_number_) return DcpDialect::kMegatronFsdp;
    return megatron_item_ || split_half_ ? DcpDialect::kFsdpDtensor : DcpDialect::kMegatronFsdp;
  }
  return model_other_ && !other_tensor_ && !state_number_ ? DcpDialect::kStateDict : DcpDialect::kPlain;
}

}  // namespace mckpt::impl
