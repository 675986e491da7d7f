// A tensor that no parameter reads is a copy of a tensor that is read, or is computed by the model: the first
// kind is counted as copies, the second as dropped. A parameter that reads no tensor is a constant: an import
// invents it, an export drops it.
#include "convert/plan/model_proofs.h"

#include "convert/jobs/proof.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/plan/hf_layout.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/write/layout.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/fit/grid_fit.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

bool is_constant(const ModelParameter& p) { return p.sources[0] < 0; }

ProofInput import_proof(const Store& source, const KeyTable& keys, const ChunkList& to,
                        const DcpLayout& layout) {
  return import_proof(source, keys, to, side_of(layout));
}

ProofInput import_proof(const Store& source, const KeyTable& keys, const ChunkList& to, ProofSide result) {
  const ModelMap& map = keys.map();
  ProofInput input{side_of(source), std::move(result)};
  for (i64 c = 0; c < to.size(); c++)
    if (is_constant(keys.parameter(keys[to.key(c)]))) input.constant.push_back(to.tensor(c));
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
  for (i32 k = 0; k < keys.size(); k++)
    if (is_constant(keys.parameter(keys[k]))) input.dropped.push_back(k);
  input.left_out = [](i64) -> ProofInput::LeftOut {
    return {"its values are those of its rule, and the model has no tensor for them"};
  };
  input.rule = [&keys](i64, i64 source) -> std::string_view {
    return source < 0 ? "" : keys.parameter(keys[static_cast<i32>(source)]).row->rule;
  };
  return input;
}

void note_constants(const KeyTable& keys, Notes& notes) {
  i64 count = 0;
  std::string first;
  for (i32 k = 0; k < keys.size(); k++)
    if (is_constant(keys.parameter(keys[k])) && count++ == 0) first = keys[k].name;
  if (count > 0)
    notes.note(cat("ones    ", counted(count, "parameter"),
                   " of Megatron, which the model has no tensor for: ", escaped(first),
                   count > 1 ? ", ..." : ""));
}

void note_sizes(const ModelMap& map, const RunSetup& run, const Grid& grid, Notes& notes, Notes& details) {
  if (std::string text = padding_note(map.model(), run, grid.tp); !text.empty()) notes.note(text);
  if (std::string text = idle_sizes_note(map.model(), grid); !text.empty()) notes.note(text);
  std::string needed = vocab_run_note(map.model(), map.family(), run, grid.tp);
  if (!needed.empty()) details.note(needed);
}

ProofInput gather_proof(const KeyTable& from, const DcpLayout& layout) {
  return {side_of(from), side_of(layout)};
}

}  // namespace mckpt::impl
