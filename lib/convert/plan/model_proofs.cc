// A tensor that no parameter reads is a copy of a tensor that is read, or is computed by the model: the first
// kind is counted as copies, the second as dropped.
#include "convert/plan/model_proofs.h"

#include "convert/jobs/proof.h"
#include "convert/keys/key_table.h"
#include "convert/plan/hf_layout.h"
#include "io/dcp/write/layout.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

ProofInput import_proof(const Store& source, const ModelMap& map, const DcpLayout& layout) {
  return import_proof(source, map, side_of(layout));
}

ProofInput import_proof(const Store& source, const ModelMap& map, ProofSide result) {
  ProofInput input{side_of(source), std::move(result)};
  for (const UnreadTensor& u : map.unread()) (u.of >= 0 ? input.copies : input.dropped).push_back(u.tensor);
  input.left_out = [&map](i64 t) -> ProofInput::LeftOut {
    for (const UnreadTensor& u : map.unread())
      if (u.tensor == t) return {u.reason, u.of};
    return {};
  };
  return input;
}

ProofInput export_proof(const KeyTable& keys, const HfLayout& hf) {
  auto items = [&hf](i64 t) { return hf.place(t).file < 0 ? -1 : hf.place(t).shape.items(); };
  auto name = [&hf](i64 t) { return std::string(hf.sources[static_cast<i32>(t)].name); };
  ProofInput input{side_of(keys), {hf.sources.size(), name, items}};
  for (const UnreadTensor& u : keys.map().unread())
    if (u.of >= 0) input.tied.push_back(u.tensor);
  input.rule = [&keys](i64, i64 source) -> std::string_view {
    return source < 0 ? "" : keys.parameter(keys[static_cast<i32>(source)]).row->rule;
  };
  return input;
}

ProofInput gather_proof(const KeyTable& from, const DcpLayout& layout) {
  return {side_of(from), side_of(layout)};
}

}  // namespace mckpt::impl
