// content_metadata has the fields that Megatron's own save has and that decide keys: a run takes them from
// the checkpoint before it asks for tensors.
#include "convert/objects/common_state.h"

#include "io/dcp/write/record.h"
#include "io/pickle/write/compose.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace {

std::string pickle_boolean(bool value) {
  PickleWriter w;
  w.boolean(value);
  return w.finish();
}

std::string pickle_text(std::string_view text) {
  PickleWriter w;
  w.text(text);
  return w.finish();
}

}  // namespace

std::string pickle_content(const TorchDistContent& content) {
  PickledEntries fields{{"singleton_local_shards", pickle_boolean(false)},
                        {"non_homogeneous_layers", pickle_boolean(!content.stacked)}};
  if (!content.state_form.empty()) {
    fields.emplace_back("distrib_optim_sharding_type", pickle_text(content.state_form));
    fields.emplace_back("chained_optim_avoid_prefix", pickle_boolean(true));
  }
  return pickle_dict(fields);
}

std::string common_file(const PickledEntries& entries) { return dcp_object_record(pickle_dict(entries)); }

std::string torch_dist_mark() { return R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})"; }

}  // namespace mckpt::impl
